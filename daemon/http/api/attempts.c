/* SPDX-License-Identifier: Apache-2.0 */
/* Lists a job's attempts, each with its members and the exits of its ranks. A page ends with the attempt that
 * brings it to LIMIT_SCAN_ROWS rows. */
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/limits.h"
#include "proto/members.h"

/* *rows_read grows by those that were read. */
static bool write_members(struct reader *reader, uint64_t epoch, int64_t *rows_read, struct text *out,
                          struct err *err)
{
    autorows struct rows rows = reader_members(reader, epoch, err);
    struct member_row row;
    while (rows_member(&rows, &row)) {
        const struct placement_view placement = job_placement(&row);
        ++*rows_read;
        member_separate(out);
        placement_view_encode(&placement, out);
    }
    return !rows.failed;
}

static bool write_ranks(struct reader *reader, uint64_t epoch, int64_t *rows_read, struct text *out,
                        struct err *err)
{
    autorows struct rows rows = reader_ranks(reader, epoch, err);
    struct rank_row row;
    while (rows_rank(&rows, &row)) {
        ++*rows_read;
        member_separate(out);
        member_write_int(out, "{\"rank\":", row.rank);
        member_write_int(out, ",\"exit_code\":", row.code);
        member_write_int_or_null(out, ",\"signal\":", row.signal, 0);
        member_write_time(out, ",\"at\":", row.at_ms);
        member_write_int(out, ",\"stdout_bytes\":", row.out_bytes);
        member_write_int(out, ",\"stderr_bytes\":", row.err_bytes);
        text_append(out, "}");
    }
    return !rows.failed;
}

static void write_head(const struct attempt_row *row, struct text *out)
{
    /* The attempt id is text: it needs more than the 53 bits that JavaScript keeps of a number. */
    text_printf(out, "{\"attempt\":%lld,\"epoch\":\"%llu\"", (long long)row->number,
                (unsigned long long)row->attempt_id);
    member_write_text(out, ",\"state\":", attempt_state_text(row->state));
    member_write_text(out, ",\"claim\":", claim_text(row->claim));
    member_write_text(out, ",\"cause\":", row->cause != CAUSE_NONE ? cause_text(row->cause) : NULL);
    member_write_text(out, ",\"reason\":", row->cause_text);
    member_write_text(out, ",\"pool\":", row->pool);
    member_write_text(out, ",\"master_address\":", row->master_address);
    member_write_int_or_null(out, ",\"master_port\":", row->master_port, 0);
    member_write_time(out, ",\"created_at\":", row->created_ms);
    member_write_time(out, ",\"started_at\":", row->started_ms);
    member_write_time(out, ",\"warned_at\":", row->warned_ms);
    member_write_time(out, ",\"checkpoint_at\":", row->checkpoint_ms);
    member_write_time(out, ",\"ended_at\":", row->ended_ms);
    member_write_int_or_null(out, ",\"failed_rank\":", row->failed_rank, -1);
    member_write_int_or_null(out, ",\"failed_code\":", row->failed_code,
                             row->failed_rank < 0 ? row->failed_code : -1);
}

static bool write_attempt(struct reader *reader, const struct attempt_row *row, int64_t *rows_read,
                          struct text *out, struct err *err)
{
    ++*rows_read;
    member_separate(out);
    write_head(row, out);
    text_append(out, ",\"nodes\":[");
    if (!write_members(reader, row->attempt_id, rows_read, out, err)) {
        return false;
    }
    text_append(out, "],\"ranks\":[");
    if (!write_ranks(reader, row->attempt_id, rows_read, out, err)) {
        return false;
    }
    text_append(out, "]}");
    return true;
}

static bool write_page(struct reader *reader, int64_t job_key, int64_t before, struct text *out,
                       struct err *err)
{
    autorows struct rows rows = reader_attempts(reader, job_key, before, err);
    struct attempt_row row;
    int64_t rows_read = 0, last = 0;
    text_append(out, "{\"attempts\":[");
    while (rows_read < LIMIT_SCAN_ROWS && rows_attempt(&rows, &row)) {
        if (!write_attempt(reader, &row, &rows_read, out, err)) {
            return false;
        }
        last = row.number;
    }
    bool more = rows_read >= LIMIT_SCAN_ROWS && last > 1; /* attempts are numbered from 1 */
    member_write_int_or_null(out, "],\"next\":", more ? last : -1, -1);
    text_append(out, "}");
    return !rows.failed;
}

bool attempts_list(struct request *request, struct err *err)
{
    struct job_facts job;
    autotext struct text json = {0};
    int64_t before = ALL_ATTEMPTS;
    return query_int(request->query, "cursor", 1, INT64_MAX, &before, err) && job_find(request, &job, err) &&
           write_page(request->server->reader, job.key, before, &json, err) &&
           request_reply_json(request, 200, &json);
}
