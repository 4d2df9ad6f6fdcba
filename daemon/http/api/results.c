/* SPDX-License-Identifier: Apache-2.0 */
/* Lists a job's results: the values or exceptions of the ranks of one attempt. Pages have a bounded size
 * and are in order of rank. JSON is exactly as the rank left it; it was checked when it arrived. */
#include <stdlib.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/limits.h"
#include "proto/members.h"

/* --- what is asked for ---------------------------------------------------------------------------------- */

struct result_query {
    int64_t attempt;    /* number; 0: there is none yet */
    int64_t after_rank; /* -1: from the first */
    int64_t limit;
    int64_t bytes; /* 1: small pickles, too */
};

static bool read_query(const struct request *request, const struct job_facts *job,
                       struct result_query *wanted, struct err *err)
{
    const struct query *query = request->query;
    int64_t newest = job->attempt > 0 ? job->attempt : 1;
    *wanted =
        (struct result_query){.attempt = job->attempt, .after_rank = -1, .limit = LIMIT_LIST_DEFAULT_ROWS};
    return query_int(query, "attempt", 1, newest, &wanted->attempt, err) &&
           query_int(query, "after", 0, LIMIT_GPUS, &wanted->after_rank, err) &&
           query_int(query, "limit", 1, LIMIT_LIST_ROWS, &wanted->limit, err) &&
           query_int(query, "bytes", 0, 1, &wanted->bytes, err);
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void write_pickle(struct text *out, const struct result_row *row, const void *bytes)
{
    char hex[HASH_HEX + 1];
    if (row->hash != NULL) {
        text_to_hex(row->hash, HASH_BYTES, hex);
    }
    member_write_text(out, ",\"sha256\":", row->hash != NULL ? hex : NULL);
    if (bytes != NULL) {
        autofree char *base64 = text_to_base64(bytes, (size_t)row->size);
        member_write_text(out, ",\"base64\":", base64);
    }
}

static void write_result(const struct result_row *row, const void *bytes, struct text *out)
{
    member_write_int(out, "{\"rank\":", row->rank);
    member_write_text(out, ",\"kind\":", result_kind_text(row->kind));
    member_write_int(out, ",\"size\":", row->size);
    write_pickle(out, row, bytes);
    if (row->json != NULL) {
        text_append(out, row->kind == RESULT_EXCEPTION ? ",\"error\":" : ",\"json\":");
        text_append(out, row->json);
    }
    text_append(out, "}");
}

/* One row more than the page has tells whether there is a next one. */
static bool write_page(struct reader *reader, int64_t job_key, const struct result_query *wanted,
                       struct text *out, struct err *err)
{
    uint64_t attempt_id;
    if (!job_attempt_id(reader, job_key, wanted->attempt, &attempt_id, err)) {
        return false;
    }
    autorows struct rows rows =
        reader_results(reader, attempt_id, wanted->after_rank, wanted->limit + 1, err);
    struct result_row row;
    const void *bytes;
    int64_t last_rank = -1;
    bool more;
    text_printf(out, "{\"attempt\":%lld,\"results\":[", (long long)wanted->attempt);
    for (int64_t room = wanted->limit;
         (more = rows_result(&rows, &row, &bytes)) && room > 0 && out->length < LIMIT_RESULTS_BYTES; room--) {
        member_separate(out);
        write_result(&row, wanted->bytes == 1 ? bytes : NULL, out);
        last_rank = row.rank;
    }
    member_write_int_or_null(out, "],\"next\":", more ? last_rank : -1, -1);
    text_append(out, "}");
    return !rows.failed;
}

bool results_list(struct request *request, struct err *err)
{
    struct job_facts job;
    struct result_query wanted;
    autotext struct text json = {0};
    return job_find(request, &job, err) && read_query(request, &job, &wanted, err) &&
           write_page(request->server->reader, job.key, &wanted, &json, err) &&
           request_reply_json(request, 200, &json);
}
