/* SPDX-License-Identifier: Apache-2.0 */
/* Joins streams: connects to the controller, and then lets remote.c and ends.c move bytes between that
 * connection and the end in the attempt. A stream ends with its connection, its command or the attempt. An
 * agent that ends or dies takes its streams with it: the shim kills commands whose socket was closed. */
#include "agent/stream/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/stream/streams_parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/http/upgrade.h"
#include "proto/base/log.h"
#include "proto/limits_agent.h"

static void connected(void *closure, CURL *easy, CURLcode result);

void stream_destroy(struct job_stream *stream)
{
    struct streams *streams = stream->streams;
    ends_close(stream);
    end_want(stream, &stream->remote, 0); /* its descriptor is curl's */
    loop_disarm(streams->context->loop, &stream->timer);
    loop_disarm(streams->context->loop, &stream->again);
    curl_multi_remove_handle(curl_loop_multi(streams->curl), stream->easy);
    curl_easy_cleanup(stream->easy);
    DL_DELETE(streams->all, stream);
    text_finish(&stream->reply);
    text_finish(&stream->part);
    text_finish(&stream->out);
    text_finish(&stream->input);
    json_decref(stream->json);
    free(stream);
}

static void time_is_over(void *closure)
{
    stream_destroy(closure);
}

static void connected(void *closure, CURL *easy, CURLcode result)
{
    void *found;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &found);
    struct job_stream *stream = found;
    if (result == CURLE_OK) {
        remote_ask(stream);
    } else {
        log_warning("stream lost", "id=%s problem=\"%s\"", stream->id, curl_easy_strerror(result));
        stream_destroy(stream);
    }
}

static size_t count_of(const struct streams *streams)
{
    const struct job_stream *stream;
    size_t count = 0;
    DL_COUNT(streams->all, stream, count);
    return count;
}

void streams_join(struct streams *streams, const struct stream_order *order)
{
    struct agent_context *context = streams->context;
    struct job_stream *stream = xzalloc(sizeof *stream);
    struct err err;
    if (!stream_request_decode(order->request, &stream->request, &err) ||
        count_of(streams) >= LIMIT_NODE_STREAMS) {
        log_warning("stream refused", "id=%s", order->id);
        free(stream);
        return;
    }
    stream->streams = streams;
    stream->json = json_incref(order->request);
    stream->attempt_id = order->attempt_id;
    memcpy(stream->id, order->id, ID_LENGTH + 1);
    snprintf(stream->job_id, sizeof stream->job_id, "%s", order->job_id);
    stream->remote.watch.fd = -1;
    for (int i = 0; i < LOCAL_ENDS; i++) {
        stream->ends[i].watch.fd = -1;
    }
    stream->timer = (struct loop_timer){.due = time_is_over, .closure = stream};
    stream->again = (struct loop_timer){.due = remote_receive_again, .closure = stream};
    loop_arm(context->loop, &stream->timer, clock_boot_ms() + STREAM_OPEN_MS);
    DL_APPEND(streams->all, stream);
    stream->easy = curl_use_easy();
    controller_client_set(context->controller, stream->easy);
    curl_use_set(stream->easy, CURLOPT_URL, controller_client_url(context->controller));
    curl_use_set(stream->easy, CURLOPT_PRIVATE, stream);
    upgrade_only_connect(stream->easy);
    curl_use_must_multi(curl_multi_add_handle(curl_loop_multi(streams->curl), stream->easy));
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct streams *streams_create(struct agent_context *context,
                               struct attempt *(*find)(void *closure, uint64_t attempt_id), void *closure)
{
    struct streams *streams = xzalloc(sizeof *streams);
    streams->context = context;
    streams->find = find;
    streams->closure = closure;
    streams->curl = curl_loop_create(context->loop, connected, streams);
    return streams;
}

void streams_destroy(struct streams *streams)
{
    if (streams == NULL) {
        return;
    }
    while (streams->all != NULL) {
        stream_destroy(streams->all);
    }
    curl_loop_destroy(streams->curl);
    free(streams);
}

void streams_attempt_over(struct streams *streams, uint64_t attempt_id)
{
    struct job_stream *stream, *next;
    DL_FOREACH_SAFE (streams->all, stream, next) {
        if (stream->attempt_id == attempt_id && stream->stage == STAGE_JOINED && stream_is_forward(stream)) {
            autofree char *text = xprintf("job %s has ended", stream->job_id);
            remote_fail(stream, text);
        }
    }
}
