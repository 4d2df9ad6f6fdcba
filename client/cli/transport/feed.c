/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an event stream over any number of connections. It promises that no event is lost or seen twice as
 * long as the server keeps its ids, and that memory is bounded however slow the reader is. */
#include "client/cli/transport/feed.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/limits_client.h"

struct feed {
    struct api *api;
    char *path;
    struct sse sse;
    struct transfer *transfer; /* NULL: between two connections */
    bool ended;
    bool paused;
    bool resumed;  /* events may have come in without a turn of the loop */
    bool answered; /* bytes have come since the last look */
    bool unread;   /* bytes have come since the reader found no whole event */
    int64_t backoff_ms;
    int64_t again_at_ms;
};

static bool take_bytes(const char *bytes, size_t length, void *closure)
{
    struct feed *feed = closure;
    if (sse_waiting(&feed->sse) > CLIENT_STREAM_BYTES) {
        feed->paused = true;
        return false;
    }
    feed->answered = true;
    feed->unread = true;
    sse_feed(&feed->sse, bytes, length);
    return true;
}

static void connect_feed(struct feed *feed)
{
    sse_restart(&feed->sse);
    feed->paused = false;
    feed->answered = false;
    feed->unread = false;
    feed->transfer =
        transfer_start(feed->api,
                       &(struct request){.method = "GET",
                                         .path = feed->path,
                                         .accept = "text/event-stream",
                                         .last_id = feed->sse.id.length > 0 ? feed->sse.id.bytes : NULL,
                                         .timeout_ms = -1},
                       take_bytes, feed);
}

struct feed *feed_create(struct api *api, const char *path, const char *last_id)
{
    struct feed *feed = xzalloc(sizeof *feed);
    feed->api = api;
    feed->path = xstrdup(path);
    feed->backoff_ms = CLIENT_BACKOFF_MS;
    text_append(&feed->sse.id, last_id != NULL ? last_id : "");
    connect_feed(feed);
    return feed;
}

void feed_destroy(struct feed *feed)
{
    if (feed == NULL) {
        return;
    }
    transfer_destroy(feed->transfer);
    sse_finish(&feed->sse);
    free(feed->path);
    free(feed);
}

/* The connection is over, and all that came over it was handed out: decides what that means. */
static bool judge_end(struct feed *feed, struct err *err)
{
    struct err why = {0};
    bool whole = transfer_result(feed->transfer, &why);
    int64_t again_ms = transfer_again_ms(feed->transfer);
    transfer_destroy(feed->transfer);
    feed->transfer = NULL;
    if (whole) {
        err_set(&why, ERR_UNREACHABLE, "the controller at %s has closed the stream",
                api_context(feed->api)->url);
    } else if (!err_retryable(why.code)) {
        *err = why;
        return false;
    }
    api_lost(feed->api, &why);
    feed->again_at_ms = clock_boot_ms() + (again_ms > feed->backoff_ms ? again_ms : feed->backoff_ms);
    feed->backoff_ms = api_next_pause(feed->backoff_ms);
    return true;
}

bool feed_tend(struct feed *feed, struct err *err)
{
    if (feed->ended) {
        return true;
    }
    if (feed->transfer == NULL) {
        if (clock_boot_ms() >= feed->again_at_ms) {
            connect_feed(feed);
        }
        return true;
    }
    if (feed->answered && !transfer_done(feed->transfer)) {
        feed->answered = false;
        feed->backoff_ms = CLIENT_BACKOFF_MS;
        api_found(feed->api);
    }
    feed->resumed = feed->paused;
    if (feed->paused) {
        feed->paused = false;
        transfer_resume(feed->transfer);
    }
    return transfer_done(feed->transfer) && !feed->unread ? judge_end(feed, err) : true;
}

int64_t feed_patience_ms(const struct feed *feed)
{
    if (feed->ended || feed->transfer != NULL) {
        bool due =
            !feed->ended && transfer_done(feed->transfer); /* it ended, and some of it is still unread */
        return feed->resumed || due ? 0 : CLIENT_REPLY_MS;
    }
    int64_t left = feed->again_at_ms - clock_boot_ms();
    return left > 0 ? left : 0;
}

bool feed_next(struct feed *feed, struct sse_event *ret_event)
{
    if (feed->ended || !sse_next(&feed->sse, ret_event)) {
        feed->unread = false;
        return false;
    }
    feed->ended = strcmp(ret_event->name, "end") == 0;
    return !feed->ended;
}

bool feed_ended(const struct feed *feed)
{
    return feed->ended;
}

const char *feed_last_id(const struct feed *feed)
{
    return feed->sse.id.bytes;
}

bool feed_read(struct feed *feed, bool (*take)(const struct sse_event *event, void *closure, struct err *err),
               bool (*flush)(void *closure, struct err *err), void *closure, struct err *err)
{
    while (!feed->ended) {
        struct sse_event event;
        api_turn(feed->api, feed_patience_ms(feed));
        while (feed_next(feed, &event)) {
            if (!take(&event, closure, err)) {
                return false;
            }
        }
        if ((flush != NULL && !flush(closure, err)) || !feed_tend(feed, err)) {
            return false;
        }
    }
    return true;
}
