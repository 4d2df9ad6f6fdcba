/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of streams in their attempts: moves bytes between them and the connections to the controller. An
 * end is read only while the connection takes what was read before, so a slow reader at the client slows the
 * job's process, and nothing grows. What the client sends waits here until the end takes it. */
#include "agent/stream/streams_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/limits_agent.h"

/* --- watches -------------------------------------------------------------------------------------------- */

void end_want(struct job_stream *stream, struct end *end, uint32_t events)
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
    end_want(stream, end, 0);
    cleanup_close(&end->watch.fd);
    end->watch.fd = -1;
}

/* The end in the attempt; a command is killed. */
void ends_close(struct job_stream *stream)
{
    for (int i = 0; i < LOCAL_ENDS; i++) {
        end_close(stream, &stream->ends[i]);
    }
}

/* --- from the attempt ----------------------------------------------------------------------------------- */

static void output_ended(struct job_stream *stream, int number)
{
    end_close(stream, &stream->ends[number]);
    if (stream_is_forward(stream)) {
        char head[FRAME_HEAD_BYTES];
        frame_head(FRAME_END, 0, head);
        remote_push(stream, head, sizeof head);
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
    remote_push(stream, buffer, FRAME_HEAD_BYTES + (size_t)got);
    return true;
}

/* The command has ended: what it left in its pipes goes first. */
static void drain(struct job_stream *stream)
{
    for (int i = LOCAL_OUT; i <= LOCAL_ERR; i++) {
        while (remote_is_clear(stream) && stream->ends[i].watch.fd >= 0 && read_output(stream, i)) {
        }
    }
    if (remote_is_clear(stream)) {
        remote_push_numbers(stream, FRAME_EXIT, stream->code, stream->signal);
        remote_leave(stream);
    }
}

void ends_pump_output(struct job_stream *stream)
{
    bool clear = remote_is_clear(stream);
    if (stream->stage != STAGE_JOINED) {
        return;
    }
    if (stream->exited && clear) {
        drain(stream);
        return;
    }
    for (int i = LOCAL_OUT; i <= LOCAL_ERR; i++) {
        end_want(stream, &stream->ends[i], clear ? EPOLLIN : 0);
    }
    if (stream_is_forward(stream) && clear && stream->ends[LOCAL_OUT].watch.fd < 0 &&
        stream->ends[LOCAL_IN].watch.fd < 0) {
        remote_leave(stream);
    }
}

static void output_ready(struct job_stream *stream, int number)
{
    read_output(stream, number);
    ends_pump_output(stream);
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
        ends_pump_output(stream);
    } else if (sscanf(text, "failed %d %n", &code, &used) == 1 && code != 0) {
        autofree char *line = xprintf("%s%s", text + used, stream->request.terminal ? "\r\n" : "\n");
        remote_push_text(stream, FRAME_STDERR, line);
        remote_push_numbers(stream, FRAME_EXIT, (uint32_t)code, 0);
        remote_leave(stream);
    } else {
        bool said = strncmp(text, "failed 0 ", strlen("failed 0 ")) == 0;
        autofree char *line =
            xprintf("job %s: %s", stream->job_id,
                    said              ? text + strlen("failed 0 ")
                    : text[0] != '\0' ? "the job ends, and with it what was started in it"
                                      : "the job ends, or its supervisor is of an earlier version");
        remote_fail(stream, line);
    }
}

/* --- to the attempt ------------------------------------------------------------------------------------- */

static void give_credit(struct job_stream *stream, size_t length)
{
    stream->passed += length;
    if (stream->passed >= (size_t)STREAM_CREDIT_BYTES / 4) {
        remote_push_numbers(stream, FRAME_CREDIT, (uint32_t)stream->passed, 0);
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
    if (stream_is_forward(stream)) {
        shutdown(in->watch.fd, SHUT_WR);
    } else if (stream->request.terminal) {
        ssize_t written = write(in->watch.fd, "\x04", 1);
        (void)written; /* a terminal whose buffer is full has a process that does not read */
        stream->input_ended = false;
        return;
    }
    end_close(stream, in);
    ends_pump_output(stream);
}

/* Nobody reads any more: the rest has no use. For a client that is no error, as with a pipe. */
void ends_pump_input(struct job_stream *stream)
{
    struct end *in = &stream->ends[LOCAL_IN];
    while (stream->input_from < stream->input.length && in->watch.fd >= 0) {
        ssize_t written = write(in->watch.fd, stream->input.bytes + stream->input_from,
                                stream->input.length - stream->input_from);
        if (written < 0 && (errno == EAGAIN || errno == EINTR)) {
            end_want(stream, in, EPOLLOUT);
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
    end_want(stream, in, 0);
    if (stream->input_ended) {
        input_close(stream);
    }
}

/* The connection to the port is there, or was refused. */
static bool check_connected(struct job_stream *stream)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (!stream_is_forward(stream) ||
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
    remote_fail(stream, text);
    return false;
}

static void in_ready(void *closure, uint32_t events)
{
    struct job_stream *stream = closure;
    if (check_connected(stream)) {
        ends_pump_input(stream);
        ends_pump_output(stream);
    }
}

bool ends_take_data(struct job_stream *stream, const struct frame *frame)
{
    size_t waits = stream->input.length - stream->input_from;
    if (stream->input_ended || waits + frame->length > (size_t)STREAM_CREDIT_BYTES) {
        return false;
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
        ends_pump_input(stream);
    }
    return true;
}

/* --- opening -------------------------------------------------------------------------------------------- */

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
    return stream_is_forward(stream) ? local_connect(attempt, &stream->request, ret_local, err)
                                     : local_exec(attempt, &stream->request, ret_local, err);
}

void ends_open(struct job_stream *stream)
{
    struct local local;
    struct err err;
    if (!open_local(stream, &local, &err)) {
        autofree char *text = xprintf("job %s: %s", stream->job_id, err.text);
        remote_fail(stream, text);
        return;
    }
    watch_end(stream, LOCAL_IN, local.fds[LOCAL_IN], in_ready);
    watch_end(stream, LOCAL_OUT, local.fds[LOCAL_OUT], out_ready);
    watch_end(stream, LOCAL_ERR, local.fds[LOCAL_ERR], err_ready);
    watch_end(stream, LOCAL_ANSWER, local.fds[LOCAL_ANSWER], answer_ready);
    if (stream_is_forward(stream)) {
        end_want(stream, &stream->ends[LOCAL_IN], EPOLLOUT); /* until it is connected */
    } else {
        end_want(stream, &stream->ends[LOCAL_ANSWER], EPOLLIN);
        ends_pump_output(stream);
    }
}
