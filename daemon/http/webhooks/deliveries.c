/* SPDX-License-Identifier: Apache-2.0 */
/* Serves what webhooks were told: the list of a webhook's deliveries, and their replay. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/webhooks/webhook_ask.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

/* --- list ----------------------------------------------------------------------------------------------- */

/* Keys are larger than numbers of JSON are exact. */
static void write_delivery(const struct delivery_record *record, struct text *out)
{
    const struct delivery_row *row = &record->row;
    const bool pending = row->state == DELIVERY_PENDING;
    text_printf(out, "{\"id\":\"%lld\"", (long long)row->key);
    member_write_text(out, ",\"state\":", delivery_state_text(row->state));
    member_write_text(out, ",\"job_id\":", record->job_id);
    member_write_text(out, ",\"event\":", row->job_key == 0 ? "test" : record->kind);
    member_write_int_or_null(out, ",\"seq\":", row->seq, 0);
    member_write_int(out, ",\"tries\":", row->tries);
    member_write_int_or_null(out, ",\"status\":", row->code, 0);
    member_write_text(out, ",\"error\":", row->error);
    member_write_time(out, ",\"created_at\":", row->created_ms);
    member_write_time(out, ",\"tried_at\":", row->at_ms);
    member_write_time(out, ",\"next_at\":", pending ? row->next_ms : 0);
    text_append(out, "}");
}

/* Those that were not tried yet say nothing of the receiver. */
bool deliveries_write_newest(const struct request *request, const char *webhook, struct text *out,
                             struct err *err)
{
    autotext struct text last = {0};
    autorows struct rows rows =
        reader_deliveries(request->server->reader, webhook, INT64_MAX, NULL, LIMIT_NEWEST_DELIVERIES, err);
    struct delivery_record record;
    int64_t failures = 0;
    bool delivered = false;
    while (!delivered && rows_delivery(&rows, &record)) {
        if (record.row.at_ms == 0) {
            continue;
        }
        if (last.length == 0) {
            write_delivery(&record, &last);
        }
        delivered = record.row.state == DELIVERY_DELIVERED;
        failures += !delivered;
    }
    text_printf(out, ",\"last_delivery\":%s", last.length > 0 ? last.bytes : "null");
    member_write_int(out, ",\"failures\":", failures);
    return !rows.failed;
}

static bool read_state(const struct request *request, const char **ret_state, struct err *err)
{
    enum delivery_state state;
    *ret_state = query_text(request->query, "state");
    return *ret_state == NULL || delivery_state_from_text(*ret_state, &state) ||
           err_field(err, ERR_FIELD, "state", "write PENDING, DELIVERED or FAILED",
                     "there is no state \"%.64s\"", *ret_state);
}

static bool is_mine(struct request *request, struct err *err)
{
    autorows struct rows rows = {0};
    struct webhook_row row;
    return webhook_find_row(request, &rows, &row, err);
}

bool deliveries_list(struct request *request, struct err *err)
{
    const char *state;
    int64_t before = INT64_MAX, limit = LIMIT_LIST_DEFAULT_ROWS, last = 0;
    if (!read_state(request, &state, err) ||
        !query_int(request->query, "cursor", 1, INT64_MAX, &before, err) ||
        !query_int(request->query, "limit", 1, LIMIT_LIST_ROWS, &limit, err) || !is_mine(request, err)) {
        return false;
    }
    autotext struct text json = {0};
    autorows struct rows rows =
        reader_deliveries(request->server->reader, request->argument, before, state, limit + 1, err);
    struct delivery_record record;
    bool more;
    text_append(&json, "{\"deliveries\":[");
    while ((more = rows_delivery(&rows, &record)) && limit-- > 0) {
        member_separate(&json);
        write_delivery(&record, &json);
        last = record.row.key;
    }
    autofree char *next = more ? xprintf("%lld", (long long)last) : NULL;
    member_write_text(&json, "],\"next\":", next);
    text_append(&json, "}");
    return !rows.failed && request_reply_json(request, 200, &json);
}

/* --- replay --------------------------------------------------------------------------------------------- */

static int render_replayed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct webhook_ask *asked = writer->asker;
    member_write_int(out, "{\"replayed\":", (int64_t)writer->input.webhook.count);
    member_write_bool(out, ",\"more\":", asked->left > 0);
    text_append(out, "}");
    return 202;
}

/* Those of this webhook that are over. */
static bool take_named(struct request *request, const json_t *named, struct webhook_ask *asked,
                       size_t *ret_count, struct err *err)
{
    size_t count = json_array_size(named);
    if (!json_is_array(named) || count == 0 || count > LIMIT_REPLAY) {
        return err_field(err, ERR_FIELD, "deliveries", "leave it out for all that have failed",
                         "deliveries must be an array of 1 to %d ids", LIMIT_REPLAY);
    }
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(named, i));
        int64_t key = 0;
        if (text == NULL || !text_to_int(text, 1, INT64_MAX, &key)) {
            return err_field(err, ERR_FIELD, "deliveries", "list the deliveries for their ids",
                             "deliveries[%zu] is no id of a delivery", i);
        }
        autorows struct rows rows = reader_delivery(request->server->reader, key, err);
        struct delivery_record record;
        if (!rows_delivery(&rows, &record) || strcmp(record.row.webhook, request->argument) != 0) {
            return !rows.failed &&
                   err_field(err, ERR_NOT_FOUND, "deliveries", "list the deliveries for their ids",
                             "webhook %s has no delivery %s", request->argument, text);
        }
        asked->keys[(*ret_count)++] = key;
    }
    return true;
}

static bool take_failed(struct request *request, struct webhook_ask *asked, size_t *ret_count,
                        struct err *err)
{
    autorows struct rows rows =
        reader_deliveries(request->server->reader, request->argument, INT64_MAX,
                          delivery_state_text(DELIVERY_FAILED), LIMIT_REPLAY + 1, err);
    struct delivery_record record;
    while (rows_delivery(&rows, &record)) {
        if (*ret_count < LIMIT_REPLAY) {
            asked->keys[(*ret_count)++] = record.row.key;
        } else {
            asked->left++;
        }
    }
    return !rows.failed;
}

bool deliveries_replay(struct request *request, struct err *err)
{
    const json_t *named = json_object_get(request->json, "deliveries");
    size_t count = 0;
    if (!request_only_fields(request->json, "deliveries", err) || !is_mine(request, err)) {
        return false;
    }
    autoask struct webhook_ask *asked = webhook_ask_create(request, WEBHOOK_ACTION_REPLAY, render_replayed);
    asked->keys = xalloc(LIMIT_REPLAY * sizeof *asked->keys);
    if (named != NULL && !json_is_null(named) ? !take_named(request, named, asked, &count, err)
                                              : !take_failed(request, asked, &count, err)) {
        return false;
    }
    asked->ask.writer.input.webhook.keys = asked->keys;
    asked->ask.writer.input.webhook.count = count;
    return ask_writer(give(asked), err);
}
