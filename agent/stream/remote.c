/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of streams to the controller: asks for the upgrade, and then takes and sends frames. A
 * connection is always read: a client may not send more than the node has said that it takes. */
#include "agent/stream/streams_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/upgrade.h"
#include "proto/base/log.h"
#include "proto/limits_agent.h"

#define READS_A_TURN 16

static void await_close(struct job_stream *stream);

/* --- to the controller ---------------------------------------------------------------------------------- */

/* Sends what it takes now. False: the connection has failed; the loop will say so, too. */
static bool send_now(const struct job_stream *stream, const char *bytes, size_t length, size_t *ret_sent)
{
    *ret_sent = 0;
    while (*ret_sent < length) {
        size_t sent = 0;
        CURLcode code = curl_easy_send(stream->easy, bytes + *ret_sent, length - *ret_sent, &sent);
        if (code != CURLE_OK) {
            return code == CURLE_AGAIN;
        }
        *ret_sent += sent;
    }
    return true;
}

bool remote_is_clear(const struct job_stream *stream)
{
    return stream->out.length == 0;
}

static void flush(struct job_stream *stream)
{
    size_t sent;
    if (remote_is_clear(stream)) {
        return;
    }
    if (!send_now(stream, stream->out.bytes + stream->out_from, stream->out.length - stream->out_from,
                  &sent)) {
        end_want(stream, &stream->remote, EPOLLIN);
        return;
    }
    stream->out_from += sent;
    if (stream->out_from == stream->out.length) {
        text_finish(&stream->out);
        stream->out = (struct text){0};
        stream->out_from = 0;
    }
    end_want(stream, &stream->remote, EPOLLIN | (remote_is_clear(stream) ? 0 : EPOLLOUT));
}

void remote_push(struct job_stream *stream, const char *bytes, size_t length)
{
    size_t sent = 0;
    if (remote_is_clear(stream)) {
        send_now(stream, bytes, length, &sent);
    }
    if (sent < length) {
        text_append_bytes(&stream->out, bytes + sent, length - sent);
        end_want(stream, &stream->remote, EPOLLIN | EPOLLOUT);
    }
}

void remote_push_numbers(struct job_stream *stream, enum frame_kind kind, uint32_t first, uint32_t second)
{
    char frame[FRAME_NUMBERS_BYTES];
    remote_push(stream, frame, frame_numbers(kind, first, second, frame));
}

void remote_push_text(struct job_stream *stream, enum frame_kind kind, const char *text)
{
    char head[FRAME_HEAD_BYTES];
    size_t length = strnlen(text, LIMIT_STREAM_FAILURE_BYTES);
    frame_head(kind, length, head);
    remote_push(stream, head, sizeof head);
    remote_push(stream, text, length);
}

/* For the client to close, once it has all. */
static void await_close(struct job_stream *stream)
{
    if (stream->stage == STAGE_LEAVING && remote_is_clear(stream) && !stream->timer.on) {
        loop_arm(stream->streams->context->loop, &stream->timer, clock_boot_ms() + STREAM_LEAVE_MS);
    }
}

/* The last frame was pushed. The client closes when it has it; closing before could lose it on the way. */
void remote_leave(struct job_stream *stream)
{
    stream->stage = STAGE_LEAVING;
    ends_close(stream);
    text_finish(&stream->input);
    stream->input = (struct text){0};
    await_close(stream);
}

void remote_fail(struct job_stream *stream, const char *text)
{
    remote_push_text(stream, FRAME_FAILURE, text);
    remote_leave(stream);
}

/* --- from the controller -------------------------------------------------------------------------------- */

static bool break_off(struct job_stream *stream, const char *why)
{
    log_warning("stream unclear", "id=%s problem=\"%s\"", stream->id, why);
    stream_destroy(stream);
    return false;
}

/* False: the stream is gone. */
static bool take(struct job_stream *stream, const struct frame *frame)
{
    if (stream->stage == STAGE_LEAVING) {
        return true;
    }
    switch (frame->kind) {
    case FRAME_DATA:
        return ends_take_data(stream, frame) || break_off(stream, "the client sends more than it may");
    case FRAME_END:
        stream->input_ended = true;
        if (!stream->ends[LOCAL_IN].on) {
            ends_pump_input(stream);
        }
        return true;
    case FRAME_SIZE:
        if (stream->request.terminal && stream->ends[LOCAL_IN].watch.fd >= 0) {
            const struct local local = {.fds = {[LOCAL_IN] = stream->ends[LOCAL_IN].watch.fd}};
            local_resize(&local, frame->numbers[0], frame->numbers[1]);
        }
        return true;
    case FRAME_STDERR:
    case FRAME_EXIT:
    case FRAME_FAILURE:
    case FRAME_CREDIT:
        break;
    }
    return break_off(stream, "the client sends a frame of the node's");
}

static bool take_bytes(struct job_stream *stream, const char *bytes, size_t length)
{
    struct frame frame;
    struct err err;
    size_t at = 0, used = 0;
    enum frame_look look;
    while ((look = frame_decode(bytes + at, length - at, &frame, &used, &err)) == FRAME_WHOLE) {
        if (!take(stream, &frame)) {
            return false;
        }
        at += used;
    }
    if (look == FRAME_WRONG) {
        return break_off(stream, err.text);
    }
    text_clear(&stream->part);
    if (at < length) {
        text_append_bytes(&stream->part, bytes + at, length - at);
    } else {
        text_finish(&stream->part);
        stream->part = (struct text){0};
    }
    return true;
}

/* Of the reply to the request for the upgrade. False: the stream is gone. */
static bool take_reply(struct job_stream *stream, const char *bytes, size_t length)
{
    struct upgrade_reply reply;
    text_append_bytes(&stream->reply, bytes, length);
    switch (upgrade_read(stream->reply.bytes, stream->reply.length, &reply)) {
    case UPGRADE_PART:
        return true;
    case UPGRADE_WRONG:
        return break_off(stream, "the controller's reply is no upgrade");
    case UPGRADE_WHOLE:
        break;
    }
    if (reply.status != 101) {
        log_debug("stream refused", "id=%s status=%d", stream->id, reply.status);
        stream_destroy(stream);
        return false;
    }
    struct text rest = stream->reply;
    stream->reply = (struct text){0};
    stream->stage = STAGE_JOINED;
    loop_disarm(stream->streams->context->loop, &stream->timer);
    ends_open(stream);
    bool lives = take_bytes(stream, rest.bytes + reply.used, rest.length - reply.used);
    text_finish(&rest);
    return lives;
}

/* curl may hold bytes that epoll knows nothing of, so it reads until there are none. */
static void receive(struct job_stream *stream)
{
    char *buffer = stream->streams->buffer;
    for (int i = 0; i < READS_A_TURN; i++) {
        size_t got = 0, kept = stream->part.length;
        CURLcode code =
            curl_easy_recv(stream->easy, buffer + kept, sizeof stream->streams->buffer - kept, &got);
        if (code == CURLE_AGAIN) {
            return;
        }
        if (code != CURLE_OK || got == 0) {
            stream_destroy(stream);
            return;
        }
        if (stream->stage == STAGE_ASKING) {
            if (!take_reply(stream, buffer, got)) {
                return;
            }
        } else {
            memcpy(buffer, stream->part.bytes != NULL ? stream->part.bytes : "", kept);
            autofree char *bytes = xalloc(kept + got);
            memcpy(bytes, buffer, kept + got); /* the end in the attempt uses the buffer, too */
            if (!take_bytes(stream, bytes, kept + got)) {
                return;
            }
        }
    }
    loop_arm(stream->streams->context->loop, &stream->again, clock_boot_ms());
}

void remote_receive_again(void *closure)
{
    receive(closure);
}

static void remote_ready(void *closure, uint32_t events)
{
    struct job_stream *stream = closure;
    if ((events & EPOLLOUT) != 0) {
        flush(stream);
        ends_pump_output(stream);
        await_close(stream);
    }
    receive(stream);
}

void remote_ask(struct job_stream *stream)
{
    const struct controller_client *controller = stream->streams->context->controller;
    curl_socket_t fd = CURL_SOCKET_BAD;
    size_t sent;
    curl_easy_getinfo(stream->easy, CURLINFO_ACTIVESOCKET, &fd);
    autofree char *path = xprintf("/v1/agent/streams/%s", stream->id);
    autofree char *head = upgrade_head(controller_client_url(controller), path, STREAM_UPGRADE,
                                       controller_client_token(controller), "gpuagent/" GPUCTL_VERSION);
    stream->remote.watch = (struct loop_watch){.fd = fd, .ready = remote_ready, .closure = stream};
    bool whole = fd != CURL_SOCKET_BAD && send_now(stream, head, strlen(head), &sent) && sent == strlen(head);
    explicit_bzero(head, strlen(head));
    if (!whole) {
        stream->remote.watch.fd = -1;
        stream_destroy(stream);
        return;
    }
    stream->stage = STAGE_ASKING;
    end_want(stream, &stream->remote, EPOLLIN);
}
