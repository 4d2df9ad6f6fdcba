/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that follow something: a stream of server-sent events, with a heartbeat while nothing happens. */
#ifndef HTTP_SSE_H
#define HTTP_SSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/text.h"

struct request;

enum sse_more {
    SSE_MORE,  /* out holds something, and there is more to fetch at once */
    SSE_WAIT,  /* that is all for now (out may be empty): call again when the job was woken */
    SSE_PAUSE, /* much was looked at and little found (out may be empty): call again after others had a turn
                */
    SSE_END,   /* that was the last: the stream ends when out is sent */
};

struct sse_source {
    /* Appends new events to out: about LIMIT_SSE_FILL_BYTES at most, then SSE_MORE. Called when all earlier
     * events were sent, so a slow client holds no memory. */
    enum sse_more (*fill)(void *closure, struct text *out);
    void (*finish)(void *closure); /* once, when the stream has ended for any reason */
    void *closure;
    /* Whether the sender may still see what is streamed; NULL: as long as its token stands. */
    bool (*may_see)(struct request *request);
    int64_t job_key; /* changes of this job and server_wake wake the stream */
};

/* Replies with the stream. It ends by itself when the server stops, when the sender's token no longer
 * stands, and when the sender may no longer see it, before anything else is sent; the client then comes back
 * with Last-Event-ID. */
bool sse_reply(struct request *request, const struct sse_source *source);

/* Has the source of the stream that replies to the request asked again. */
void sse_wake(struct request *request);

/* Appends one event; id and event may be NULL. data is one line: JSON without line breaks. */
void sse_append(struct text *out, const char *id, const char *event, const char *data, size_t length);

#endif
