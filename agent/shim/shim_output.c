/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes from the pipes of the ranks to the files on disk. Bytes are spliced and never changed, unless
 * the ranks have secrets: then mask.c sees them first. A rank never waits for its file: bytes that the file
 * does not take are dropped. shim_stream.c owns the file with its limit and its gaps; shim_agent_socket.c
 * tells the agent that files have grown. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES (64 * KIB)
#define DRAIN_TURNS 1024 /* 64 MiB: more than a pipe can hold, even one that its rank has enlarged */

static const char *const stream_names[2] = {"stdout", "stderr"};

bool output_open(struct shim *shim, struct why *why)
{
    for (size_t i = 0; i < 2 * shim->launch.rank_count; i++) {
        struct stream *stream = &shim->ranks[i / 2].streams[i % 2];
        if (!stream_open(stream, shim->launch.logs, shim->launch.ranks[i / 2].number, stream_names[i % 2],
                         shim->launch.log_limit, why)) {
            return false;
        }
        tail_reserve(stream);
        stream->state = STREAM_STORES;
        stream->masked = shim->mask != NULL ? mask_stream_create(shim->mask) : NULL;
    }
    return true;
}

static bool pipes_make(int ret_pipes[2][2])
{
    if (pipe2(ret_pipes[0], O_CLOEXEC) != 0) {
        return false;
    }
    if (pipe2(ret_pipes[1], O_CLOEXEC) != 0) { /* closing pipes leaves errno as it is */
        close(ret_pipes[0][0]);
        close(ret_pipes[0][1]);
        return false;
    }
    return true;
}

bool output_pipes(struct shim *shim, size_t rank, int ret_write[2], struct why *why)
{
    int pipes[2][2];
    if (!pipes_make(pipes)) {
        return why_set(why, "cannot make a pipe: %s", strerror(errno));
    }
    for (size_t which = 0; which < 2; which++) {
        fcntl(pipes[which][0], F_SETFL, O_NONBLOCK);
        shim->ranks[rank].streams[which].pipe = pipes[which][0];
        shim_watch(shim, pipes[which][0], WATCH_STREAM, 2 * rank + which);
        ret_write[which] = pipes[which][1];
    }
    return true;
}

static ssize_t stream_drop(const struct shim *shim, struct stream *stream)
{
    ssize_t moved =
        splice(stream->pipe, NULL, shim->null, NULL, (size_t)CHUNK_BYTES, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (moved > 0) {
        stream->dropped += moved;
    }
    return moved;
}

/* For file systems that cannot splice. */
static ssize_t stream_copy(struct stream *stream, size_t room)
{
    char bytes[CHUNK_BYTES];
    ssize_t got = read(stream->pipe, bytes, room < sizeof bytes ? room : sizeof bytes);
    if (got > 0) {
        stream_append(stream, bytes, (size_t)got);
    }
    return got;
}

static ssize_t stream_store(const struct shim *shim, struct stream *stream)
{
    int64_t room = stream->limit - stream->stored;
    loff_t offset = stream->stored;
    size_t size = (size_t)(room < CHUNK_BYTES ? room : CHUNK_BYTES);
    ssize_t moved =
        splice(stream->pipe, NULL, stream->file, &offset, size, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (moved > 0) {
        stream->stored += moved;
    }
    if (moved >= 0 || errno == EAGAIN || errno == EINTR) {
        return moved;
    }
    if (errno == EINVAL) {
        return stream_copy(stream, size);
    }
    stream_fail(stream, errno);
    return stream_drop(shim, stream);
}

/* Opens the tail when the stream reaches its limit. False: there is none. */
static bool stream_has_tail(const struct shim *shim, struct stream *stream, size_t index)
{
    if (stream->tail < 0 && stream->dropped == 0) { /* else the tail was given up */
        tail_open(stream, shim->launch.logs, shim->launch.ranks[index / 2].number, stream_names[index % 2]);
    }
    return stream->tail >= 0;
}

/* --- masked streams ------------------------------------------------------------------------------------- */

/* Stores bytes that do not come from the pipe as they are. */
static void stream_put(const struct shim *shim, size_t index, const char *bytes, size_t length)
{
    struct stream *stream = &shim->ranks[index / 2].streams[index % 2];
    while (length > 0) {
        size_t part = length;
        if (stream_ready(stream)) {
            size_t room = (size_t)(stream->limit - stream->stored);
            part = length < room ? length : room;
            stream_append(stream, bytes, part);
        } else if (stream->state == STREAM_FULL && stream_has_tail(shim, stream, index)) {
            part = tail_put(stream, bytes, length);
        } else {
            stream->dropped += (int64_t)length;
        }
        bytes += part;
        length -= part;
    }
}

static ssize_t stream_mask(const struct shim *shim, size_t index)
{
    struct stream *stream = &shim->ranks[index / 2].streams[index % 2];
    char bytes[CHUNK_BYTES];
    ssize_t got = read(stream->pipe, bytes, sizeof bytes);
    if (got > 0) {
        autotext struct text shown = {0};
        mask_feed(stream->masked, bytes, (size_t)got, &shown);
        stream_put(shim, index, shown.bytes, shown.length);
    }
    return got;
}

static void stream_mask_end(const struct shim *shim, size_t index)
{
    struct stream *stream = &shim->ranks[index / 2].streams[index % 2];
    autotext struct text rest = {0};
    if (stream->masked != NULL) {
        mask_end(stream->masked, &rest);
        stream_put(shim, index, rest.bytes, rest.length);
        mask_stream_destroy(stream->masked);
        stream->masked = NULL;
    }
}

/* --- moving --------------------------------------------------------------------------------------------- */

/* Moves one chunk. 0: end of the stream; -1: nothing to read now. */
static ssize_t stream_move(const struct shim *shim, size_t index)
{
    struct stream *stream = &shim->ranks[index / 2].streams[index % 2];
    if (stream->state == STREAM_ENDED) {
        return 0;
    }
    if (stream->masked != NULL) {
        return stream_mask(shim, index);
    }
    if (stream_ready(stream)) {
        return stream_store(shim, stream);
    }
    return stream->state == STREAM_FULL && stream_has_tail(shim, stream, index) ? tail_take(stream)
                                                                                : stream_drop(shim, stream);
}

static void output_end(const struct shim *shim, size_t index)
{
    struct stream *stream = &shim->ranks[index / 2].streams[index % 2];
    stream_mask_end(shim, index);
    stream_end(stream, shim->launch.ranks[index / 2].number, stream_names[index % 2]);
    if (stream->pipe >= 0) {
        close(stream->pipe);
        stream->pipe = -1;
    }
}

/* Reports growth if the file now has more than `stored` bytes. */
static void grown_note(struct shim *shim, const struct stream *stream, int64_t stored)
{
    if (stream->stored > stored) {
        shim_note(shim, MOMENT_OUTPUT);
        agent_socket_output_grown(shim);
    }
}

void output_move(struct shim *shim, size_t index)
{
    if (index >= 2 * shim->launch.rank_count) {
        return; /* of an attempt that was given up earlier in this turn */
    }
    struct stream *stream = &shim->ranks[index / 2].streams[index % 2];
    int64_t stored = stream->stored;
    if (stream->state == STREAM_ENDED) {
        return; /* ended earlier in this turn */
    }
    if (stream_move(shim, index) == 0) {
        output_end(shim, index);
    }
    grown_note(shim, stream, stored);
}

void output_drain(struct shim *shim, size_t rank)
{
    for (size_t index = 2 * rank; index < 2 * rank + 2; index++) {
        struct stream *stream = &shim->ranks[rank].streams[index % 2];
        int64_t stored = stream->stored;
        for (int turn = 0; stream->pipe >= 0 && turn < DRAIN_TURNS; turn++) {
            ssize_t moved = stream_move(shim, index);
            if (moved == 0) {
                output_end(shim, index);
            }
            if (moved <= 0) {
                break;
            }
        }
        grown_note(shim, stream, stored);
    }
}

/* All writers are gone, so each pipe holds its last bytes and then the end. The shim does not wait for a
 * process outside the attempt that was handed a pipe. */
void output_finish(struct shim *shim)
{
    for (size_t i = 0; i < 2 * shim->launch.rank_count; i++) {
        struct stream *stream = &shim->ranks[i / 2].streams[i % 2];
        int64_t stored = stream->stored;
        if (stream->state == STREAM_ENDED) {
            continue;
        }
        for (int turn = 0; stream->pipe >= 0 && turn < DRAIN_TURNS && stream_move(shim, i) > 0; turn++) {
        }
        output_end(shim, i);
        grown_note(shim, stream, stored);
    }
}

void output_close(struct shim *shim)
{
    for (size_t i = 0; shim->ranks != NULL && i < 2 * shim->launch.rank_count; i++) {
        struct stream *stream = &shim->ranks[i / 2].streams[i % 2];
        if (stream->state != STREAM_ENDED) {
            close(stream->pipe);
            close(stream->file);
            tail_close(stream);
            mask_stream_destroy(stream->masked);
            *stream = (struct stream){.state = STREAM_ENDED, .pipe = -1, .file = -1, .tail = -1};
        }
    }
}
