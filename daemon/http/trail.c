/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of a follower through the attempts of a job. It promises each piece once, across reconnects
 * and across attempts, and that it is over only when the job is terminal and nothing is missing. What the
 * pieces become is left to logs.c and metrics.c. */
#include "daemon/http/trail.h"

#include <stdlib.h>

#include "daemon/http/parts.h"
#include "daemon/http/sse.h"
#include "proto/base/cleanup.h"

struct trail {
    struct server *server;
    struct trail_wish wish; /* with the job as of the last look */
    int64_t attempt;        /* that is being read */
    struct log_reader *reader;
};

static struct log_reader *open_reader(const struct trail *trail, const char *after, struct err *err)
{
    const struct trail_wish *wish = &trail->wish;
    return log_reader_open(trail->server->config.logs, wish->job.id, trail->attempt, wish->rank, wish->stream,
                           after, err);
}

struct trail *trail_open(struct server *server, const struct trail_wish *wish, struct err *err)
{
    struct trail *trail = xzalloc(sizeof *trail);
    trail->server = server;
    trail->wish = *wish;
    trail->attempt = wish->attempt > 0 ? wish->attempt : wish->from > 0 ? wish->from : wish->job.attempt;
    trail->attempt = trail->attempt > 0 ? trail->attempt : 1;
    if (wish->after != NULL && wish->attempt <= 0) {
        log_id_attempt(wish->after, &trail->attempt); /* what is no id is refused by the reader */
    }
    trail->reader = open_reader(trail, wish->after, err);
    if (trail->reader == NULL) {
        free(trail);
        return NULL;
    }
    return trail;
}

void trail_close(struct trail *trail)
{
    log_reader_close(trail->reader);
    free(trail);
}

static void refresh_job(const struct job_record *job, void *closure)
{
    struct job_facts *facts = closure;
    facts->state = job->life.state;
    facts->exit_code = job->life.exit_code;
    facts->attempt = job->life.attempt;
}

/* Nothing more is stored of this attempt. */
static enum trail_step after_last(struct trail *trail)
{
    struct job_facts *job = &trail->wish.job;
    bool fixed = trail->wish.attempt > 0;
    bool found;
    struct err err;
    if (!reader_job_by_key(trail->server->reader, job->key, refresh_job, job, &found, &err) || !found) {
        return TRAIL_LOST;
    }
    bool newer = trail->attempt < job->attempt;
    if (newer && !fixed) {
        return TRAIL_TURN;
    }
    return newer || job_state_terminal(job->state) || !trail->wish.follow ? TRAIL_OVER : TRAIL_WAIT;
}

enum trail_step trail_next(struct trail *trail, struct log_piece *ret_piece)
{
    struct err err;
    bool found;
    if (!log_reader_next(trail->reader, &found, ret_piece, &err)) {
        return TRAIL_LOST;
    }
    return found ? TRAIL_PIECE : after_last(trail);
}

void trail_turn(struct trail *trail)
{
    struct err err;
    log_reader_close(trail->reader);
    trail->attempt++;
    trail->reader = open_reader(trail, NULL, &err);
}

int64_t trail_attempt(const struct trail *trail)
{
    return trail->attempt;
}

void trail_append_end(const struct trail *trail, struct text *out)
{
    const struct job_facts *job = &trail->wish.job;
    autotext struct text data = {0};
    text_printf(&data, "{\"state\": \"%s\", \"exit_code\": ", job_state_text(job->state));
    if (job->exit_code >= 0) {
        text_printf(&data, "%lld}", (long long)job->exit_code);
    } else {
        text_append(&data, "null}");
    }
    sse_append(out, NULL, "end", data.bytes, data.length);
}
