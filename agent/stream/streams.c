/* SPDX-License-Identifier: Apache-2.0 */
/* Joins streams: connects to the controller, asks for the upgrade, and then moves bytes between that
 * connection and the end in the attempt, as frames. The connection is always read: a client may not send more
 * than the node has said that it takes. The end in the attempt is read only while the connection takes what
 * was read before, so a slow reader at the client slows the job's process, and nothing grows. A stream ends
 * with its connection, its command or the attempt. An agent that ends or dies takes its streams with it: the
 * shim kills commands whose socket was closed. */
#include "agent/stream/streams.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/base/curl_loop.h"
#include "agent/stream/local.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/http/upgrade.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/frame.h"

enum stage {
    STAGE_CONNECTING,
    STAGE_ASKING,  /* the request for the upgrade was sent */
    STAGE_JOINED,  /* bytes flow */
    STAGE_LEAVING, /* the last frame is on its way; the client is to close */
};

struct end {
    struct loop_watch watch; /* fd -1: none */
    bool on;
};

struct job_stream {
    struct streams *streams;
    char id[ID_LENGTH + 1];
    char job_id[ID_LENGTH + 1];
    uint64_t attempt_id;
    json_t *json;
    struct stream_request request; /* borrows from json */
    enum stage stage;
    CURL *easy;
    struct end remote, ends[LOCAL_ENDS];
    struct text reply, part; /* to the upgrade; of a frame */
    struct text out;         /* for the controller, */
    size_t out_from;         /* from here */
    struct text input;       /* for the end in the attempt, */
    size_t input_from;       /* from here */
    bool input_ended;        /* nothing more comes */
    size_t passed;           /* of the input, since the client was last told */
    bool exited;             /* the command; then: */
    uint32_t code, signal;
    struct loop_timer timer; /* of STAGE_CONNECTING, _ASKING and _LEAVING */
    struct loop_timer again; /* more has come than is read in one turn */
    struct job_stream *prev, *next;
};

struct streams {
    struct agent_context *context;
    struct attempt *(*find)(void *closure, uint64_t attempt_id);
    void *closure;
    struct curl_loop *curl;
    struct job_stream *all;
    char buffer[FRAME_ROOM + LIMIT_FRAME_BYTES];
};

#define READS_A_TURN 16

static void pump_input(struct job_stream *stream);
static void pump_output(struct job_stream *stream);

/* --- watches -------------------------------------------------------------------------------------------- */

static void want(struct job_stream *stream, struct end *end, uint32_t events)
{
    struct loop *loop = stream->streams->context->loop;
    if (end->watch.fd < 0 || (end->on ? end->watch.events : 0) == events) {
        return;
    }
    end->watch.events = events;
    if (events == 0) {
        loop_unwatch(loop, &end->watch);
    } else if (end->on) {
        loop_rewatch(loop, &end->watch);
    } else {
        loop_watch(loop, &end->watch);
    }
    end->on = events != 0;
}

static void end_close(struct job_stream *stream, struct end *end)
{
    want(stream, end, 0);
    cleanup_close(&end->watch.fd);
    end->watch.fd = -1;
}

/* The end in the attempt; a command is killed. */
static void ends_close(struct job_stream *stream)
{
    for (int i = 0; i < LOCAL_ENDS; i++) {
        end_close(stream, &stream->ends[i]);
    }
}

static void destroy(struct job_stream *stream)
{
    struct streams *streams = stream->streams;
    ends_close(stream);
    want(stream, &stream->remote, 0); /* its descriptor is curl's */
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
    destroy(closure);
}

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

static bool is_clear(const struct job_stream *stream)
{
    return stream->out.length == 0;
}

static void flush(struct job_stream *stream)
{
    size_t sent;
    if (is_clear(stream)) {
        return;
    }
    if (!send_now(stream, stream->out.bytes + stream->out_from, stream->out.length - stream->out_from,
                  &sent)) {
        want(stream, &stream->remote, EPOLLIN);
        return;
    }
    stream->out_from += sent;
    if (stream->out_from == stream->out.length) {
        text_finish(&stream->out);
        stream->out = (struct text){0};
        stream->out_from = 0;
    }
    want(stream, &stream->remote, EPOLLIN | (is_clear(stream) ? 0 : EPOLLOUT));
}

static void push(struct job_stream *stream, const char *bytes, size_t length)
{
    size_t sent = 0;
    if (is_clear(stream)) {
        send_now(stream, bytes, length, &sent);
    }
    if (sent < length) {
        text_append_bytes(&stream->out, bytes + sent, length - sent);
        want(stream, &stream->remote, EPOLLIN | EPOLLOUT);
    }
}

static void push_numbers(struct job_stream *stream, enum frame_kind kind, uint32_t first, uint32_t second)
{
    char frame[FRAME_NUMBERS_BYTES];
    push(stream, frame, frame_numbers(kind, first, second, frame));
}

static void push_text(struct job_stream *stream, enum frame_kind kind, const char *text)
{
    char head[FRAME_HEAD_BYTES];
    size_t length = strnlen(text, LIMIT_STREAM_FAILURE_BYTES);
    frame_head(kind, length, head);
    push(stream, head, sizeof head);
    push(stream, text, length);
}

/* For the client to close, once it has all. */
static void await_close(struct job_stream *stream)
{
    if (stream->stage == STAGE_LEAVING && is_clear(stream) && !stream->timer.on) {
        loop_arm(stream->streams->context->loop, &stream->timer, clock_boot_ms() + STREAM_LEAVE_MS);
    }
}

/* The last frame was pushed. The client closes when it has it; closing before could lose it on the way. */
static void leave(struct job_stream *stream)
{
    stream->stage = STAGE_LEAVING;
    ends_close(stream);
    text_finish(&stream->input);
    stream->input = (struct text){0};
    await_close(stream);
}

static void fail(struct job_stream *stream, const char *text)
{
    push_text(stream, FRAME_FAILURE, text);
    leave(stream);
}

/* --- from the attempt ----------------------------------------------------------------------------------- */

static bool is_forward(const struct job_stream *stream)
{
    return stream->request.kind == STREAM_KIND_FORWARD;
}

static void output_ended(struct job_stream *stream, int number)
{
    end_close(stream, &stream->ends[number]);
    if (is_forward(stream)) {
        char head[FRAME_HEAD_BYTES];
        frame_head(FRAME_END, 0, head);
        push(stream, head, sizeof head);
    }
}

/* False: there is nothing to read now. */
static bool read_output(struct job_stream *stream, int number)
{
    char *buffer = stream->streams->buffer;
    struct end *end = &stream->ends[number];
    ssize_t got = read(end->watch.fd, buffer + FRAME_HEAD_BYTES, LIMIT_FRAME_BYTES);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got <= 0) {
        output_ended(stream, number); /* a terminal that nobody has open any more is an error */
        return false;
    }
    frame_head(number == LOCAL_ERR ? FRAME_STDERR : FRAME_DATA, (size_t)got, buffer);
    push(stream, buffer, FRAME_HEAD_BYTES + (size_t)got);
    return true;
}

/* The command has ended: what it left in its pipes goes first. */
static void drain(struct job_stream *stream)
{
    for (int i = LOCAL_OUT; i <= LOCAL_ERR; i++) {
        while (is_clear(stream) && stream->ends[i].watch.fd >= 0 && read_output(stream, i)) {
        }
    }
    if (is_clear(stream)) {
        push_numbers(stream, FRAME_EXIT, stream->code, stream->signal);
        leave(stream);
    }
}

static void pump_output(struct job_stream *stream)
{
    bool clear = is_clear(stream);
    if (stream->stage != STAGE_JOINED) {
        return;
    }
    if (stream->exited && clear) {
        drain(stream);
        return;
    }
    for (int i = LOCAL_OUT; i <= LOCAL_ERR; i++) {
        want(stream, &stream->ends[i], clear ? EPOLLIN : 0);
    }
    if (is_forward(stream) && clear && stream->ends[LOCAL_OUT].watch.fd < 0 &&
        stream->ends[LOCAL_IN].watch.fd < 0) {
        leave(stream);
    }
}

static void output_ready(struct job_stream *stream, int number)
{
    read_output(stream, number);
    pump_output(stream);
}

static void out_ready(void *closure, uint32_t events)
{
    output_ready(closure, LOCAL_OUT);
}

static void err_ready(void *closure, uint32_t events)
{
    output_ready(closure, LOCAL_ERR);
}

/* "exited CODE SIGNAL", " ends" behind it where the attempt ends; "failed CODE TEXT"; nothing. */
static void answer_ready(void *closure, uint32_t events)
{
    struct job_stream *stream = closure;
    char text[LIMIT_SHIM_MESSAGE + 1];
    int code = 0, signal = 0, used = 0;
    ssize_t length = recv(stream->ends[LOCAL_ANSWER].watch.fd, text, LIMIT_SHIM_MESSAGE, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    text[length > 0 ? length : 0] = '\0';
    end_close(stream, &stream->ends[LOCAL_ANSWER]);
    if (sscanf(text, "exited %d %d%n", &code, &signal, &used) == 2 && text[used] == '\0') {
        stream->exited = true;
        stream->code = (uint32_t)code;
        stream->signal = (uint32_t)signal;
        pump_output(stream);
    } else if (sscanf(text, "failed %d %n", &code, &used) == 1 && code != 0) {
        autofree char *line = xprintf("%s%s", text + used, stream->request.terminal ? "\r\n" : "\n");
        push_text(stream, FRAME_STDERR, line);
        push_numbers(stream, FRAME_EXIT, (uint32_t)code, 0);
        leave(stream);
    } else {
        bool said = strncmp(text, "failed 0 ", strlen("failed 0 ")) == 0;
        autofree char *line =
            xprintf("job %s: %s", stream->job_id,
                    said              ? text + strlen("failed 0 ")
                    : text[0] != '\0' ? "the job ends, and with it what was started in it"
                                      : "the job ends, or its supervisor is of an earlier version");
        fail(stream, line);
    }
}

/* --- to the attempt ------------------------------------------------------------------------------------- */

static void give_credit(struct job_stream *stream, size_t length)
{
    stream->passed += length;
    if (stream->passed >= (size_t)STREAM_CREDIT_BYTES / 4) {
        push_numbers(stream, FRAME_CREDIT, (uint32_t)stream->passed, 0);
        stream->passed = 0;
    }
}

static void input_drop(struct job_stream *stream)
{
    give_credit(stream, stream->input.length - stream->input_from);
    text_finish(&stream->input);
    stream->input = (struct text){0};
    stream->input_from = 0;
}

/* A terminal has no end: the process reads one when it gets the character for it. */
static void input_close(struct job_stream *stream)
{
    struct end *in = &stream->ends[LOCAL_IN];
    if (in->watch.fd < 0) {
        return;
    }
    if (is_forward(stream)) {
        shutdown(in->watch.fd, SHUT_WR);
    } else if (stream->request.terminal) {
        ssize_t written = write(in->watch.fd, "\x04", 1);
        (void)written; /* a terminal whose buffer is full has a process that does not read */
        stream->input_ended = false;
        return;
    }
    end_close(stream, in);
    pump_output(stream);
}

/* Nobody reads any more: the rest has no use. For a client that is no error, as with a pipe. */
static void pump_input(struct job_stream *stream)
{
    struct end *in = &stream->ends[LOCAL_IN];
    while (stream->input_from < stream->input.length && in->watch.fd >= 0) {
        ssize_t written = write(in->watch.fd, stream->input.bytes + stream->input_from,
                                stream->input.length - stream->input_from);
        if (written < 0 && (errno == EAGAIN || errno == EINTR)) {
            want(stream, in, EPOLLOUT);
            return;
        }
        if (written < 0) {
            end_close(stream, in);
            break;
        }
        stream->input_from += (size_t)written;
        give_credit(stream, (size_t)written);
    }
    input_drop(stream);
    want(stream, in, 0);
    if (stream->input_ended) {
        input_close(stream);
    }
}

/* The connection to the port is there, or was refused. */
static bool check_connected(struct job_stream *stream)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (!is_forward(stream) ||
        (getsockopt(stream->ends[LOCAL_IN].watch.fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
         error == 0)) {
        return true;
    }
    autofree char *text =
        error == ECONNREFUSED
            ? xprintf("job %s: nothing listens on port %lld beside rank %lld", stream->job_id,
                      (long long)stream->request.port, (long long)stream->request.rank)
            : xprintf("job %s: port %lld beside rank %lld: %s", stream->job_id,
                      (long long)stream->request.port, (long long)stream->request.rank, strerror(error));
    fail(stream, text);
    return false;
}

static void in_ready(void *closure, uint32_t events)
{
    struct job_stream *stream = closure;
    if (check_connected(stream)) {
        pump_input(stream);
        pump_output(stream);
    }
}

/* --- from the controller -------------------------------------------------------------------------------- */

static bool break_off(struct job_stream *stream, const char *why)
{
    log_warning("stream unclear", "id=%s problem=\"%s\"", stream->id, why);
    destroy(stream);
    return false;
}

static bool take_data(struct job_stream *stream, const struct frame *frame)
{
    size_t waits = stream->input.length - stream->input_from;
    if (stream->input_ended || waits + frame->length > (size_t)STREAM_CREDIT_BYTES) {
        return break_off(stream, "the client sends more than it may");
    }
    if (stream->ends[LOCAL_IN].watch.fd < 0) {
        give_credit(stream, frame->length);
        return true;
    }
    if (stream->input_from > 0 && waits == 0) {
        text_clear(&stream->input);
        stream->input_from = 0;
    }
    bool idle = waits == 0;
    text_append_bytes(&stream->input, frame->bytes, frame->length);
    if (idle && !stream->ends[LOCAL_IN].on) {
        pump_input(stream);
    }
    return true;
}

/* False: the stream is gone. */
static bool take(struct job_stream *stream, const struct frame *frame)
{
    if (stream->stage == STAGE_LEAVING) {
        return true;
    }
    switch (frame->kind) {
    case FRAME_DATA:
        return take_data(stream, frame);
    case FRAME_END:
        stream->input_ended = true;
        if (!stream->ends[LOCAL_IN].on) {
            pump_input(stream);
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

static void open_end(struct job_stream *stream);

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
        destroy(stream);
        return false;
    }
    struct text rest = stream->reply;
    stream->reply = (struct text){0};
    stream->stage = STAGE_JOINED;
    loop_disarm(stream->streams->context->loop, &stream->timer);
    open_end(stream);
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
            destroy(stream);
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

static void receive_again(void *closure)
{
    receive(closure);
}

static void remote_ready(void *closure, uint32_t events)
{
    struct job_stream *stream = closure;
    if ((events & EPOLLOUT) != 0) {
        flush(stream);
        pump_output(stream);
        await_close(stream);
    }
    receive(stream);
}

/* --- joining -------------------------------------------------------------------------------------------- */

static void watch_end(struct job_stream *stream, int number, int fd,
                      void (*ready)(void *closure, uint32_t events))
{
    stream->ends[number].watch = (struct loop_watch){.fd = fd, .ready = ready, .closure = stream};
}

static bool open_local(struct job_stream *stream, struct local *ret_local, struct err *err)
{
    const struct agent_context *context = stream->streams->context;
    struct attempt *attempt = stream->streams->find(stream->streams->closure, stream->attempt_id);
    if (attempt == NULL || attempt->phase != PHASE_SHIM || attempt->shim.fd < 0) {
        return err_set(err, ERR_CONFLICT, "it does not run on node %s any more", context->config.name);
    }
    if (context->users != NULL && attempt->user.name == NULL) {
        return err_set(err, ERR_CONFLICT, "the agent of node %s has just started: try again",
                       context->config.name);
    }
    return is_forward(stream) ? local_connect(attempt, &stream->request, ret_local, err)
                              : local_exec(attempt, &stream->request, ret_local, err);
}

static void open_end(struct job_stream *stream)
{
    struct local local;
    struct err err;
    if (!open_local(stream, &local, &err)) {
        autofree char *text = xprintf("job %s: %s", stream->job_id, err.text);
        fail(stream, text);
        return;
    }
    watch_end(stream, LOCAL_IN, local.fds[LOCAL_IN], in_ready);
    watch_end(stream, LOCAL_OUT, local.fds[LOCAL_OUT], out_ready);
    watch_end(stream, LOCAL_ERR, local.fds[LOCAL_ERR], err_ready);
    watch_end(stream, LOCAL_ANSWER, local.fds[LOCAL_ANSWER], answer_ready);
    if (is_forward(stream)) {
        want(stream, &stream->ends[LOCAL_IN], EPOLLOUT); /* until it is connected */
    } else {
        want(stream, &stream->ends[LOCAL_ANSWER], EPOLLIN);
        pump_output(stream);
    }
}

static void ask(struct job_stream *stream)
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
        destroy(stream);
        return;
    }
    stream->stage = STAGE_ASKING;
    want(stream, &stream->remote, EPOLLIN);
}

static void connected(void *closure, CURL *easy, CURLcode result)
{
    void *found;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &found);
    struct job_stream *stream = found;
    if (result == CURLE_OK) {
        ask(stream);
    } else {
        log_warning("stream lost", "id=%s problem=\"%s\"", stream->id, curl_easy_strerror(result));
        destroy(stream);
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
    stream->again = (struct loop_timer){.due = receive_again, .closure = stream};
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
        destroy(streams->all);
    }
    curl_loop_destroy(streams->curl);
    free(streams);
}

void streams_attempt_over(struct streams *streams, uint64_t attempt_id)
{
    struct job_stream *stream, *next;
    DL_FOREACH_SAFE (streams->all, stream, next) {
        if (stream->attempt_id == attempt_id && stream->stage == STAGE_JOINED && is_forward(stream)) {
            autofree char *text = xprintf("job %s has ended", stream->job_id);
            fail(stream, text);
        }
    }
}
