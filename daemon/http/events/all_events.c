/* SPDX-License-Identifier: Apache-2.0 */
/* Streams the events of all jobs that the sender may see, from now on or behind the event that a client saw
 * last. The events of a job come in their order. What the ring has lost is said by an event `gap`, never
 * passed over in silence. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/base/waiters.h"
#include "daemon/http/events/event_ring.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/request/sse.h"
#include "proto/base/log.h"
#include "proto/limits_controller.h"

struct following {
    struct server *server;
    char *owner;  /* whose jobs; owned; NULL: everybody's */
    int64_t next; /* number of the touch that is sent next */
    bool gap;     /* events before it are lost */
};

static void following_destroy(void *closure)
{
    struct following *following = closure;
    free(following->owner);
    free(following);
}

/* The position of a stream in this run of the controller: "INCARNATION-NUMBER". */
static void write_id(const struct server *server, int64_t number, char out[48])
{
    snprintf(out, 48, "%u-%lld", server->config.incarnation, (long long)number);
}

/* Only the last event of a touch has the id, so that a client which comes back misses none. */
static void add_lines(const struct server *server, int64_t number, const struct text *lines, struct text *out)
{
    const char *line = lines->bytes;
    for (size_t left = lines->length; left > 0;) {
        const char *end = memchr(line, '\n', left), *space = memchr(line, ' ', left);
        const size_t length = (size_t)(end - line) + 1;
        char id[48], kind[32];
        write_id(server, number, id);
        snprintf(kind, sizeof kind, "%.*s", (int)(space - line), line);
        sse_append(out, left == length ? id : NULL, kind, space + 1, (size_t)(end - space - 1));
        line += length;
        left -= length;
    }
}

static void add_gap(struct following *following, struct text *out)
{
    static const char data[] = "{\"reason\":\"events were lost: list the jobs to see what they are now\"}";
    char id[48];
    write_id(following->server, following->next - 1, id);
    sse_append(out, id, "gap", data, sizeof data - 1);
    following->gap = false;
}

static bool add_touch(struct following *following, struct text *out, struct err *err)
{
    struct server *server = following->server;
    const char *owner;
    const struct text *lines;
    if (!event_ring_read(server->event_ring, following->next, server->reader, &owner, &lines, err)) {
        return false;
    }
    if (owner != NULL && (following->owner == NULL || strcmp(owner, following->owner) == 0)) {
        add_lines(server, following->next, lines, out);
    }
    following->next++;
    return true;
}

static enum sse_more fill(void *closure, struct text *out)
{
    struct following *following = closure;
    const struct event_ring *ring = following->server->event_ring;
    if (following->next < event_ring_oldest(ring)) {
        following->next = event_ring_oldest(ring);
        following->gap = true;
    }
    if (following->gap) {
        add_gap(following, out);
    }
    for (int looked = 0; looked < EVENT_RING_PIECE; looked++) {
        struct err err;
        if (following->next == event_ring_next(ring)) {
            return SSE_WAIT;
        }
        if (!add_touch(following, out, &err)) {
            log_error("events unreadable", "text=\"%s\"", err.text);
            return SSE_END;
        }
        if (out->length >= LIMIT_SSE_FILL_BYTES) {
            return SSE_MORE;
        }
    }
    return SSE_PAUSE;
}

/* Where the client goes on: behind the last event that it saw, if that was in this run of the controller. */
static bool read_position(const struct request *request, struct following *following, struct err *err)
{
    const struct server *server = request->server;
    const char *last = request->headers.last_event_id;
    following->next = event_ring_next(server->event_ring);
    if (last == NULL) {
        return true;
    }
    char *incarnation = xstrndup(last, strcspn(last, "-"));
    const char *dash = strchr(last, '-');
    int64_t run, number;
    bool known = dash != NULL && text_to_int(incarnation, 0, UINT32_MAX, &run) &&
                 text_to_int(dash + 1, 0, INT64_MAX - 1, &number);
    free(incarnation);
    if (!known) {
        return err_field(err, ERR_FIELD, "Last-Event-ID", NULL, "the Last-Event-ID is not one of ours");
    }
    if (run == server->config.incarnation && number < following->next) {
        following->next = number + 1;
    } else {
        following->gap = true;
    }
    return true;
}

bool events_follow_all(struct request *request, struct err *err)
{
    struct following position = {.server = request->server};
    if (!request_wants_events(request)) {
        return err_field(err, ERR_FIELD, "Accept", "send Accept: text/event-stream",
                         "events of all jobs come as a stream alone");
    }
    if (!read_position(request, &position, err)) {
        return false;
    }
    struct following *following = xzalloc(sizeof *following);
    *following = position;
    const char *owner = request_owner_scope(request);
    following->owner = owner != NULL ? xstrdup(owner) : NULL;
    request_shows_all_of(request, owner, NULL);
    const struct sse_source source = {
        .fill = fill, .finish = following_destroy, .closure = following, .job_key = WAITERS_EVENTS};
    return sse_reply(request, &source);
}
