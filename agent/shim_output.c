/* SPDX-License-Identifier: Apache-2.0 */
/* From the pipes of the ranks to the files on disk. Bytes are spliced and never changed; files only grow. A
 * rank is never held up: what goes beyond the limit, or what a full or broken disk refuses, is counted and
 * dropped, and a line in the file says how much, as soon as one can be written. Telling the agent that files
 * have grown is shim_link.c's. */
#include "agent/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES (64 * KIB)
#define DRAIN_TURNS 1024 /* 64 MiB: more than a pipe can hold, even one that its rank enlarged */

static const char *const stream_names[2] = {"stdout", "stderr"};

static bool stream_open(const struct shim *shim, int number, size_t which, struct stream *stream,
                        struct why *why)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%d.%s", shim->launch.logs, number, stream_names[which]);
    if (length >= PATH_MAX) {
        return why_set(why, "the path of the log folder is too long");
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (size < 0) {
        why_set(why, "log file %s: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    *stream = (struct stream){.state = STREAM_STORES, .pipe = -1, .file = fd, .stored = size};
    return true;
}

bool output_open(struct shim *shim, struct why *why)
{
    for (size_t i = 0; i < 2 * shim->launch.rank_count; i++) {
        int number = shim->launch.ranks[i / 2].number;
        if (!stream_open(shim, number, i % 2, &shim->ranks[i / 2].streams[i % 2], why)) {
            return false;
        }
    }
    return true;
}

bool output_pipes(struct shim *shim, size_t rank, int ret_write[2], struct why *why)
{
    for (size_t which = 0; which < 2; which++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            why_set(why, "cannot make a pipe: %s", strerror(errno));
            if (which == 1) {
                close(ret_write[0]);
            }
            return false;
        }
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        shim->ranks[rank].streams[which].pipe = ends[0];
        shim_watch(shim, ends[0], WATCH_STREAM, 2 * rank + which);
        ret_write[which] = ends[1];
    }
    return true;
}

/* Writes the line that tells of dropped bytes, on a line of its own. A part of it that fits is kept: files
 * only grow. */
static bool marker_write(struct stream *stream, const char *reason)
{
    char text[256], last = '\n';
    if (stream->stored > 0 && pread(stream->file, &last, 1, stream->stored - 1) != 1) {
        return false;
    }
    int length = snprintf(text, sizeof text, "%s[gpuctl: %lld bytes dropped: %s]\n", last == '\n' ? "" : "\n",
                          (long long)stream->dropped, reason);
    ssize_t written = pwrite(stream->file, text, (size_t)length, stream->stored);
    if (written > 0) {
        stream->stored += written;
    }
    if (written != length) {
        return false;
    }
    stream->dropped = 0;
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
    for (ssize_t done = 0; done < got;) {
        ssize_t written = pwrite(stream->file, bytes + done, (size_t)(got - done), stream->stored);
        if (written <= 0) {
            stream->state = STREAM_FAILS;
            stream->error = written < 0 ? errno : ENOSPC;
            stream->dropped += got - done;
            break;
        }
        stream->stored += written;
        done += written;
    }
    return got;
}

static ssize_t stream_store(const struct shim *shim, struct stream *stream)
{
    int64_t room = LIMIT_STREAM_BYTES - stream->stored;
    if (room <= 0) {
        stream->state = STREAM_FULL;
        return stream_drop(shim, stream);
    }
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
    stream->state = STREAM_FAILS;
    stream->error = errno;
    return stream_drop(shim, stream);
}

/* Moves one chunk; 0: end of the stream; -1: nothing there now. */
static ssize_t stream_move(const struct shim *shim, struct stream *stream)
{
    switch (stream->state) {
    case STREAM_STORES:
        return stream_store(shim, stream);
    case STREAM_FAILS:
        if (stream->dropped > 0 && !marker_write(stream, strerror(stream->error))) {
            return stream_drop(shim, stream);
        }
        stream->state = STREAM_STORES;
        return stream_store(shim, stream);
    case STREAM_FULL:
        return stream_drop(shim, stream);
    case STREAM_ENDED:
        break;
    }
    return 0;
}

static void stream_end(const struct shim *shim, size_t index)
{
    struct stream *stream = &shim->ranks[index / 2].streams[index % 2];
    char reason[128];
    if (stream->state == STREAM_FULL) {
        snprintf(reason, sizeof reason, "stream limit of %lld GiB", LIMIT_STREAM_BYTES / GIB);
    } else {
        snprintf(reason, sizeof reason, "%s", strerror(stream->error));
    }
    if (stream->dropped > 0 && !marker_write(stream, reason)) {
        shim_complain("dropped %lld bytes of %d.%s: %s", (long long)stream->dropped,
                      shim->launch.ranks[index / 2].number, stream_names[index % 2], reason);
    }
    stream->state = STREAM_ENDED;
    if (stream->pipe >= 0) {
        close(stream->pipe);
    }
    close(stream->file);
    stream->pipe = stream->file = -1;
}

void output_move(struct shim *shim, size_t index)
{
    struct stream *stream = &shim->ranks[index / 2].streams[index % 2];
    int64_t stored = stream->stored;
    if (stream->state == STREAM_ENDED) {
        return; /* ended earlier in this turn */
    }
    if (stream_move(shim, stream) == 0) {
        stream_end(shim, index);
    }
    if (stream->stored > stored) {
        link_grown(shim);
    }
}

void output_drain(struct shim *shim, size_t rank)
{
    for (size_t index = 2 * rank; index < 2 * rank + 2; index++) {
        struct stream *stream = &shim->ranks[rank].streams[index % 2];
        int64_t stored = stream->stored;
        for (int turn = 0; stream->pipe >= 0 && turn < DRAIN_TURNS; turn++) {
            ssize_t moved = stream_move(shim, stream);
            if (moved == 0) {
                stream_end(shim, index);
            }
            if (moved <= 0) {
                break;
            }
        }
        if (stream->stored > stored) {
            link_grown(shim);
        }
    }
}

/* All writers are gone, so each pipe holds its last bytes and then the end; a process outside of the attempt
 * that was handed a pipe is not waited for. */
void output_finish(struct shim *shim)
{
    for (size_t i = 0; i < 2 * shim->launch.rank_count; i++) {
        struct stream *stream = &shim->ranks[i / 2].streams[i % 2];
        int64_t stored = stream->stored;
        if (stream->state == STREAM_ENDED) {
            continue;
        }
        for (int turn = 0; stream->pipe >= 0 && turn < DRAIN_TURNS && stream_move(shim, stream) > 0; turn++) {
        }
        stream_end(shim, i);
        if (stream->stored > stored) {
            link_grown(shim);
        }
    }
}

void output_close(struct shim *shim)
{
    for (size_t i = 0; shim->ranks != NULL && i < 2 * shim->launch.rank_count; i++) {
        struct stream *stream = &shim->ranks[i / 2].streams[i % 2];
        if (stream->state != STREAM_ENDED) {
            close(stream->pipe);
            close(stream->file);
            *stream = (struct stream){.state = STREAM_ENDED, .pipe = -1, .file = -1};
        }
    }
}
