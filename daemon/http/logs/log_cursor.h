/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a follower through the stored streams of a job, from attempt to attempt until the job ends. */
#ifndef HTTP_LOG_CURSOR_H
#define HTTP_LOG_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/blob/logs.h"
#include "daemon/http/api/job_lookup.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct server;
struct log_cursor;

struct log_query {
    struct job_facts job;
    int64_t attempt;    /* only this one; -1: from the newest, or from that of `after`, on */
    int64_t rank;       /* -1: all */
    enum stream stream; /* STREAM_COUNT: stdout and stderr */
    int64_t since_ms;   /* output that arrived before is left out */
    bool follow;        /* false: it is over at what is stored */
    const char *after;  /* an id of log_piece_id; NULL: from the start of the attempt */
    int64_t from;       /* without attempt and after: the attempt to begin with; 0: the newest */
};

/* ERR_FIELD when `after` is no id of these streams. */
struct log_cursor *log_cursor_open(struct server *server, const struct log_query *wanted, struct err *err);
void log_cursor_close(struct log_cursor *cursor);

enum log_cursor_step {
    LOG_CURSOR_PIECE, /* *ret_piece was set; its bytes are valid until the next call */
    LOG_CURSOR_WAIT,  /* all stored bytes were read; more may come */
    LOG_CURSOR_TURN,  /* nothing more will come of this attempt: log_cursor_turn goes on to the next */
    LOG_CURSOR_OVER,  /* nothing more will come: the event `end` is due */
    LOG_CURSOR_LOST,  /* it cannot be read: the stream ends without that event, so the client comes back */
};

enum log_cursor_step log_cursor_next(struct log_cursor *cursor, struct log_piece *ret_piece);
void log_cursor_turn(struct log_cursor *cursor);

/* The attempt that is being read. */
int64_t log_cursor_attempt(const struct log_cursor *cursor);

/* Appends the event `end`: {"state", "exit_code"}. */
void log_cursor_append_end(const struct log_cursor *cursor, struct text *out);

#endif
