/* SPDX-License-Identifier: Apache-2.0 */
/* Sends streams of server-sent events: a buffer between a source and a socket, suspension while there is
 * nothing to send, and a heartbeat. A source is asked only when everything before was sent. A stream that
 * is woken misses nothing that was committed before the wake. A client hears something every
 * SSE_HEARTBEAT_MS. */
#include "daemon/http/request/sse.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/base/waiters.h"
#include "daemon/http/request/request.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

struct sse {
    struct request *request;
    struct sse_source source;
    struct text out;
    size_t sent;
    bool fresh;  /* the source may have more */
    bool ended;  /* nothing comes after out */
    bool asleep; /* the request is suspended */
};

static void wake(struct sse *sse)
{
    if (sse->asleep) {
        sse->asleep = false;
        request_resume(sse->request);
    }
}

void sse_wake(struct request *request)
{
    struct sse *sse = request->waiter.closure;
    sse->fresh = true;
    wake(sse);
}

static void job_woke(struct waiter *waiter, const struct job_touch *touch)
{
    struct sse *sse = waiter->closure;
    sse_wake(sse->request);
}

/* What was allowed when the stream began may not be now. */
static bool may_go_on(const struct sse *sse)
{
    struct err err;
    return request_stands(sse->request, &err) &&
           (sse->source.may_see == NULL || sse->source.may_see(sse->request));
}

static void heartbeat_due(struct deadline *deadline)
{
    struct sse *sse = deadline->closure;
    struct server *server = sse->request->server;
    if (server->ending || !may_go_on(sse)) {
        sse->ended = true;
        wake(sse);
        return;
    }
    if (sse->asleep) {
        text_append(&sse->out, ": still here\n\n");
        wake(sse);
    }
    deadline_set(server->deadlines, deadline, server->now_ms + SSE_HEARTBEAT_MS);
}

static void fill(struct sse *sse)
{
    bool paused = false;
    text_clear(&sse->out);
    sse->sent = 0;
    sse->ended = sse->ended || (sse->fresh && !may_go_on(sse));
    while (sse->fresh && !sse->ended && !paused && sse->out.length < LIMIT_SSE_FILL_BYTES) {
        switch (sse->source.fill(sse->source.closure, &sse->out)) {
        case SSE_MORE:
            break;
        case SSE_WAIT:
            sse->fresh = false;
            break;
        case SSE_PAUSE:
            paused = true;
            break;
        case SSE_END:
            sse->ended = true;
            break;
        }
    }
    if (paused && sse->out.length == 0) {
        text_append(&sse->out, ":\n\n"); /* something to send gives the loop back */
    }
}

static ssize_t read_stream(void *closure, uint64_t position, char *buffer, size_t room)
{
    struct sse *sse = closure;
    if (sse->sent == sse->out.length) {
        fill(sse);
    }
    size_t left = sse->out.length - sse->sent;
    if (left == 0) {
        if (sse->ended) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        sse->asleep = true;
        request_suspend(sse->request);
        return 0;
    }
    size_t length = left < room ? left : room;
    memcpy(buffer, sse->out.bytes + sse->sent, length);
    sse->sent += length;
    return (ssize_t)length;
}

static void finish(void *closure)
{
    struct sse *sse = closure;
    struct server *server = sse->request->server;
    deadline_clear(server->deadlines, &sse->request->deadline);
    waiters_remove(server->waiters, &sse->request->waiter);
    sse->source.finish(sse->source.closure);
    text_finish(&sse->out);
    free(sse);
}

bool sse_reply(struct request *request, const struct sse_source *source)
{
    struct server *server = request->server;
    struct sse *sse = xzalloc(sizeof *sse);
    sse->request = request;
    sse->source = *source;
    sse->fresh = true;
    request_reply_stream(request, 200, "text/event-stream", read_stream, finish, sse);
    request_header(request, "Cache-Control", "no-store");
    request->waiter.wake = job_woke;
    request->waiter.closure = sse;
    waiters_add(server->waiters, &request->waiter, source->job_key);
    request->deadline.due = heartbeat_due;
    request->deadline.closure = sse;
    deadline_set(server->deadlines, &request->deadline, server->now_ms + SSE_HEARTBEAT_MS);
    return true;
}

void sse_append(struct text *out, const char *id, const char *event, const char *data, size_t length)
{
    if (id != NULL) {
        text_append(out, "id: ");
        text_append(out, id);
        text_append(out, "\n");
    }
    if (event != NULL) {
        text_append(out, "event: ");
        text_append(out, event);
        text_append(out, "\n");
    }
    text_append(out, "data: ");
    text_append_bytes(out, data, length);
    text_append(out, "\n\n");
}
