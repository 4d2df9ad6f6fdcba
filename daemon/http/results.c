/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of a job's results: what the ranks of one attempt returned or raised. It promises pages of
 * bounded size, by rank, and JSON exactly as the rank left it, which was checked when it arrived. */
#include <stdlib.h>

#include "daemon/http/job_lookup.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "proto/base/cleanup.h"
#include "proto/base/hash.h"
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

struct search {
    int64_t number;
    uint64_t attempt_id; /* 0: not found */
};

static bool match_number(const struct attempt_row *row, void *closure)
{
    struct search *search = closure;
    if (row->number == search->number) {
        search->attempt_id = row->attempt_id;
    }
    return row->number > search->number; /* the newest come first */
}

/* --- writing -------------------------------------------------------------------------------------------- */

struct page {
    struct text *out;
    int64_t rows, limit;
    int64_t last_rank;
    bool bytes;
    bool more;
};

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

static bool write_result(const struct result_row *row, const void *bytes, void *closure)
{
    struct page *page = closure;
    struct text *out = page->out;
    if (page->rows == page->limit || out->length >= LIMIT_RESULTS_BYTES) {
        page->more = true;
        return false;
    }
    text_append(out, page->rows > 0 ? "," : "");
    member_write_int(out, "{\"rank\":", row->rank);
    member_write_text(out, ",\"kind\":", result_kind_text(row->kind));
    member_write_int(out, ",\"size\":", row->size);
    write_pickle(out, row, page->bytes ? bytes : NULL);
    if (row->json != NULL) {
        text_append(out, row->kind == RESULT_EXCEPTION ? ",\"error\":" : ",\"json\":");
        text_append(out, row->json);
    }
    text_append(out, "}");
    page->last_rank = row->rank;
    page->rows++;
    return true;
}

static bool write_page(struct reader *reader, int64_t job_key, const struct result_query *wanted,
                       struct text *out, struct err *err)
{
    struct search search = {.number = wanted->attempt};
    struct page page = {.out = out, .limit = wanted->limit, .bytes = wanted->bytes == 1};
    text_printf(out, "{\"attempt\":%lld,\"results\":[", (long long)wanted->attempt);
    /* One row more tells whether there is a next page. */
    if (!reader_attempts(reader, job_key, match_number, &search, err) ||
        (search.attempt_id != 0 && !reader_results(reader, search.attempt_id, wanted->after_rank,
                                                   wanted->limit + 1, write_result, &page, err))) {
        return false;
    }
    member_write_int_or_null(out, "],\"next\":", page.more ? page.last_rank : -1, -1);
    text_append(out, "}");
    return true;
}

void results_list(struct request *request)
{
    struct err err;
    struct job_facts job;
    struct result_query wanted;
    struct text json = {0};
    if (job_find(request, &job, &err) && read_query(request, &job, &wanted, &err) &&
        write_page(request->server->reader, job.key, &wanted, &json, &err)) {
        request_reply_json(request, 200, &json);
    } else {
        text_finish(&json);
        request_fail(request, &err);
    }
}
