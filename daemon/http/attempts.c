/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of a job's attempts: each with its members and the exits of its ranks. */
#include <stdlib.h>

#include "daemon/http/job_lookup.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/limits.h"
#include "proto/members.h"

/* The rows of one job's attempts, kept while their members and ranks are read. */
struct attempts {
    struct attempt_row *items; /* strings owned */
    size_t count, room;
};

static char *copy(const char *string)
{
    return string != NULL ? xstrdup(string) : NULL;
}

static bool take_attempt(const struct attempt_row *row, void *closure)
{
    struct attempts *attempts = closure;
    if (attempts->count == attempts->room) {
        attempts->room = attempts->room > 0 ? 2 * attempts->room : 4;
        attempts->items = xrealloc(attempts->items, attempts->room * sizeof *attempts->items);
    }
    struct attempt_row *item = &attempts->items[attempts->count++];
    *item = *row;
    item->cause_text = copy(row->cause_text);
    item->pool = copy(row->pool);
    item->master_address = copy(row->master_address);
    return attempts->count < LIMIT_LIST_ROWS;
}

static void attempts_finish(struct attempts *attempts)
{
    for (size_t i = 0; i < attempts->count; i++) {
        member_release(attempts->items[i].cause_text);
        member_release(attempts->items[i].pool);
        member_release(attempts->items[i].master_address);
    }
    free(attempts->items);
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void write_time(struct text *out, const char *key, int64_t wall_ms)
{
    char at[32];
    clock_format_wall(wall_ms, at, sizeof at);
    member_write_text(out, key, wall_ms != 0 ? at : NULL);
}

struct list {
    struct text *out;
    bool begun;
};

static void separate(struct list *list)
{
    text_append(list->out, list->begun ? "," : "");
    list->begun = true;
}

static bool write_member(const struct member_row *row, void *closure)
{
    struct list *list = closure;
    separate(list);
    member_write_text(list->out, "{\"node\":", row->node);
    member_write_int(list->out, ",\"node_rank\":", row->node_rank);
    member_write_int(list->out, ",\"first_rank\":", row->first_rank);
    member_write_int(list->out, ",\"local_ranks\":", row->local_ranks);
    member_write_text(list->out, ",\"devices\":", row->devices);
    member_write_text(list->out, ",\"state\":", member_state_text(row->state));
    text_append(list->out, "}");
    return true;
}

static bool write_rank(const struct rank_row *row, void *closure)
{
    struct list *list = closure;
    separate(list);
    member_write_int(list->out, "{\"rank\":", row->rank);
    member_write_int(list->out, ",\"exit_code\":", row->code);
    member_write_int_or_null(list->out, ",\"signal\":", row->signal, 0);
    write_time(list->out, ",\"at\":", row->at_ms);
    member_write_int(list->out, ",\"stdout_bytes\":", row->out_bytes);
    member_write_int(list->out, ",\"stderr_bytes\":", row->err_bytes);
    text_append(list->out, "}");
    return true;
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
    write_time(out, ",\"created_at\":", row->created_ms);
    write_time(out, ",\"started_at\":", row->started_ms);
    write_time(out, ",\"warned_at\":", row->warned_ms);
    write_time(out, ",\"checkpoint_at\":", row->checkpoint_ms);
    write_time(out, ",\"ended_at\":", row->ended_ms);
    member_write_int_or_null(out, ",\"failed_rank\":", row->failed_rank, -1);
    member_write_int_or_null(out, ",\"failed_code\":", row->failed_code,
                             row->failed_rank < 0 ? row->failed_code : -1);
}

static bool write_attempt(struct reader *reader, const struct attempt_row *row, struct text *out,
                          struct err *err)
{
    struct list members = {.out = out};
    struct list ranks = {.out = out};
    write_head(row, out);
    text_append(out, ",\"nodes\":[");
    if (!reader_members(reader, row->attempt_id, write_member, &members, err)) {
        return false;
    }
    text_append(out, "],\"ranks\":[");
    if (!reader_ranks(reader, row->attempt_id, write_rank, &ranks, err)) {
        return false;
    }
    text_append(out, "]}");
    return true;
}

static bool write_attempts(struct reader *reader, int64_t job_key, struct text *out, struct err *err)
{
    struct attempts attempts = {0};
    bool ok = reader_attempts(reader, job_key, take_attempt, &attempts, err);
    text_append(out, "{\"attempts\":[");
    for (size_t i = 0; ok && i < attempts.count; i++) {
        text_append(out, i > 0 ? "," : "");
        ok = write_attempt(reader, &attempts.items[i], out, err);
    }
    text_append(out, "]}");
    attempts_finish(&attempts);
    return ok;
}

void attempts_list(struct request *request)
{
    struct err err;
    struct job_facts job;
    struct text json = {0};
    if (job_find(request, &job, &err) && write_attempts(request->server->reader, job.key, &json, &err)) {
        request_reply_json(request, 200, &json);
    } else {
        text_finish(&json);
        request_fail(request, &err);
    }
}
