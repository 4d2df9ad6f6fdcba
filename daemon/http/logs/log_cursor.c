/* SPDX-License-Identifier: Apache-2.0 */
/* Leads a reader of logs through the attempts of a job. The reader gets each piece once, across reconnects
 * and across attempts. The cursor is over only when the job has ended and nothing is missing. */
#include "daemon/http/logs/log_cursor.h"

#include <stdlib.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/sse.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"

struct log_cursor {
    struct server *server;
    struct log_query wanted; /* with the job as of the last look */
    int64_t attempt;         /* that is being read */
    struct log_reader *reader;
};

static struct log_reader *open_reader(const struct log_cursor *cursor, const char *after, struct err *err)
{
    const struct log_query *wanted = &cursor->wanted;
    struct log_reader *reader = log_reader_open(cursor->server->config.logs, wanted->job.id, cursor->attempt,
                                                wanted->rank, wanted->stream, after, err);
    if (reader != NULL) {
        log_reader_since(reader, wanted->since_ms);
    }
    return reader;
}

struct log_cursor *log_cursor_open(struct server *server, const struct log_query *wanted, struct err *err)
{
    struct log_cursor *cursor = xzalloc(sizeof *cursor);
    cursor->server = server;
    cursor->wanted = *wanted;
    cursor->attempt = wanted->attempt > 0 ? wanted->attempt
                      : wanted->from > 0  ? wanted->from
                                          : wanted->job.attempt;
    cursor->attempt = cursor->attempt > 0 ? cursor->attempt : 1;
    if (wanted->after != NULL && wanted->attempt <= 0) {
        log_id_attempt(wanted->after, &cursor->attempt); /* the reader refuses other texts */
    }
    cursor->reader = open_reader(cursor, wanted->after, err);
    if (cursor->reader == NULL) {
        free(cursor);
        return NULL;
    }
    return cursor;
}

void log_cursor_close(struct log_cursor *cursor)
{
    log_reader_close(cursor->reader);
    free(cursor);
}

static bool refresh_job(struct reader *reader, struct job_facts *facts)
{
    struct err err;
    autorows struct rows rows = reader_job_by_key(reader, facts->key, &err);
    struct job_record job;
    if (!rows_job(&rows, &job)) {
        return false;
    }
    facts->state = job.life.state;
    facts->exit_code = job.life.exit_code;
    facts->attempt = job.life.attempt;
    return true;
}

/* Nothing more is stored of this attempt. */
static enum log_cursor_step after_last(struct log_cursor *cursor)
{
    struct job_facts *job = &cursor->wanted.job;
    bool fixed = cursor->wanted.attempt > 0;
    if (!refresh_job(cursor->server->reader, job)) {
        return LOG_CURSOR_LOST;
    }
    bool newer = cursor->attempt < job->attempt;
    if (newer && !fixed) {
        return LOG_CURSOR_TURN;
    }
    return newer || job_state_terminal(job->state) || !cursor->wanted.follow ? LOG_CURSOR_OVER
                                                                             : LOG_CURSOR_WAIT;
}

enum log_cursor_step log_cursor_next(struct log_cursor *cursor, struct log_piece *ret_piece)
{
    struct err err;
    bool found;
    if (!log_reader_next(cursor->reader, &found, ret_piece, &err)) {
        return LOG_CURSOR_LOST;
    }
    return found ? LOG_CURSOR_PIECE : after_last(cursor);
}

void log_cursor_turn(struct log_cursor *cursor)
{
    struct err err;
    log_reader_close(cursor->reader);
    cursor->attempt++;
    cursor->reader = open_reader(cursor, NULL, &err);
}

int64_t log_cursor_attempt(const struct log_cursor *cursor)
{
    return cursor->attempt;
}

void log_cursor_append_end(const struct log_cursor *cursor, struct text *out)
{
    const struct job_facts *job = &cursor->wanted.job;
    autotext struct text data = {0};
    text_printf(&data, "{\"state\": \"%s\", \"exit_code\": ", job_state_text(job->state));
    if (job->exit_code >= 0) {
        text_printf(&data, "%lld}", (long long)job->exit_code);
    } else {
        text_append(&data, "null}");
    }
    sse_append(out, NULL, "end", data.bytes, data.length);
}
