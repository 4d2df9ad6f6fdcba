/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the audit: newest first, so that each row is followed by the one whose hash it continues. */
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/wire/views.h"

static void write_row(const struct audit_row *row, struct text *out)
{
    char hash[HASH_HEX + 1];
    text_to_hex(row->hash, sizeof row->hash, hash);
    struct audit_view view = store_audit_view(row);
    view.hash = hash;
    audit_view_encode(&view, out);
}

/* The rows of one page. *ret_before: where the next one goes on; 0: there is none. The wall clock may have
 * been set back by less than a day between two rows. */
static bool write_page(struct reader *reader, const struct audit_filter *filter, int64_t since_ms,
                       int64_t first_seq, int64_t *ret_before, struct text *out, struct err *err)
{
    autorows struct rows rows = reader_audit(reader, filter, err);
    struct audit_row row;
    int64_t left = filter->limit, before = filter->before_seq - LIMIT_AUDIT_SCAN;
    bool young = true;
    while (young && left > 0 && rows_audit(&rows, &row)) {
        young = row.at_ms >= since_ms - 24 * HOUR_MS;
        if (row.at_ms >= since_ms) {
            member_separate(out);
            write_row(&row, out);
            before = --left == 0 ? row.seq : before;
        }
    }
    *ret_before = young && before > first_seq ? before : 0;
    return !rows.failed;
}

bool audit_list(struct request *request, struct err *err)
{
    struct reader *reader = request->server->reader;
    struct audit_filter filter = {.owner = query_text(request->query, "owner"),
                                  .path = query_text(request->query, "path"),
                                  .limit = LIMIT_LIST_ROWS};
    int64_t since_ms = 0, last = 0, first = 0, cursor = INT64_MAX, before;
    if (!query_int(request->query, "limit", 1, LIMIT_LIST_ROWS, &filter.limit, err) ||
        !query_int(request->query, "cursor", 1, INT64_MAX, &cursor, err) ||
        !query_moment(request->query, "since", &since_ms, err) ||
        !reader_audit_ends(reader, &last, &first, err)) {
        return false;
    }
    struct text json = {0};
    filter.before_seq = cursor <= last ? cursor : last + 1;
    text_append(&json, "{\"audit\":[");
    if (!write_page(reader, &filter, since_ms, first, &before, &json, err)) {
        text_finish(&json);
        return false;
    }
    text_append(&json, "],\"next\":");
    if (before > 0) {
        text_printf(&json, "\"%lld\"}", (long long)before);
    } else {
        text_append(&json, "null}");
    }
    return request_reply_json(request, 200, &json);
}
