/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a follower through the stored streams of a job, from attempt to attempt until the job ends. */
#ifndef HTTP_TRAIL_H
#define HTTP_TRAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/blob/logs.h"
#include "daemon/http/job_lookup.h"
#include "proto/base/err.h"
#include "proto/base/text.h"

struct server;
struct trail;

struct trail_wish {
    struct job_facts job;
    int64_t attempt;    /* only this one; -1: from the newest, or from that of `after`, on */
    int64_t rank;       /* -1: all */
    enum stream stream; /* STREAM_COUNT: stdout and stderr */
    bool follow;        /* false: it is over at what is stored */
    const char *after;  /* an id of log_piece_id; NULL: from the start of the attempt */
    int64_t from;       /* without attempt and after: the attempt to begin with; 0: the newest */
};

/* ERR_FIELD when `after` is no id of these streams. */
struct trail *trail_open(struct server *server, const struct trail_wish *wish, struct err *err);
void trail_close(struct trail *trail);

enum trail_step {
    TRAIL_PIECE, /* *ret_piece was set; its bytes are valid until the next call */
    TRAIL_WAIT,  /* nothing more is stored for now */
    TRAIL_TURN,  /* nothing more will come of this attempt: trail_turn goes on to the next */
    TRAIL_OVER,  /* nothing more will come: the event `end` is due */
    TRAIL_LOST,  /* it cannot be read: the stream ends without that event, so the client comes back */
};

enum trail_step trail_next(struct trail *trail, struct log_piece *ret_piece);
void trail_turn(struct trail *trail);

/* The attempt that is being read. */
int64_t trail_attempt(const struct trail *trail);

/* Appends the event `end`: {"state", "exit_code"}. */
void trail_append_end(const struct trail *trail, struct text *out);

#endif
