/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of text/event-stream: bytes in, events out. */
#ifndef CLI_SSE_H
#define CLI_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/text/text.h"

/* Borrowed from the reader until the next call. */
struct sse_event {
    const char *name; /* "message" where the server named none */
    const char *data;
    size_t data_length;
};

struct sse {
    struct text pending; /* received, not looked at from `at` on */
    size_t at;
    struct text name, data;
    struct text id; /* of the newest event that was handed out: Last-Event-ID */
    struct text next_id;
    bool has_data;
    bool handed; /* name and data belong to the event that was handed out last */
};

void sse_finish(struct sse *sse);
void sse_feed(struct sse *sse, const char *bytes, size_t length);
/* Bytes that were fed and not handed out. */
size_t sse_waiting(const struct sse *sse);
/* The next whole event; false when there is none yet. */
bool sse_next(struct sse *sse, struct sse_event *ret_event);
/* A new connection: forgets the half event, keeps the id. */
void sse_restart(struct sse *sse);

#endif
