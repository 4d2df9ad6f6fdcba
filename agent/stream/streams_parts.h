/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share of a stream. */
#ifndef AGENT_STREAMS_PARTS_H
#define AGENT_STREAMS_PARTS_H

#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/attempt/attempt.h"
#include "agent/base/curl_loop.h"
#include "agent/base/loop.h"
#include "agent/stream/local.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/wire/frame.h"
#include "proto/wire/stream_request.h"

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

static inline bool stream_is_forward(const struct job_stream *stream)
{
    return stream->request.kind == STREAM_KIND_FORWARD;
}

/* streams.c */
void stream_destroy(struct job_stream *stream);

/* ends.c. end_want watches an end, or the connection to the controller, for these events. ends_open opens the
 * end in the attempt, or tells the client why not. ends_take_data takes what the client sends, and is false
 * when that is more than it may. ends_pump_input and ends_pump_output move what waits. ends_close closes
 * them; a command is killed. */
void end_want(struct job_stream *stream, struct end *end, uint32_t events);
void ends_open(struct job_stream *stream);
bool ends_take_data(struct job_stream *stream, const struct frame *frame);
void ends_pump_input(struct job_stream *stream);
void ends_pump_output(struct job_stream *stream);
void ends_close(struct job_stream *stream);

/* remote.c. remote_ask asks for the upgrade. remote_is_clear says whether all that was pushed is sent.
 * remote_leave is called behind the last frame, remote_fail tells the client a last sentence. */
void remote_ask(struct job_stream *stream);
void remote_receive_again(void *closure);
bool remote_is_clear(const struct job_stream *stream);
void remote_push(struct job_stream *stream, const char *bytes, size_t length);
void remote_push_numbers(struct job_stream *stream, enum frame_kind kind, uint32_t first, uint32_t second);
void remote_push_text(struct job_stream *stream, enum frame_kind kind, const char *text);
void remote_leave(struct job_stream *stream);
void remote_fail(struct job_stream *stream, const char *text);

#endif
