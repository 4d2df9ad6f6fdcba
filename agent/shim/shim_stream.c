/* SPDX-License-Identifier: Apache-2.0 */
/* A file of output: opened at its end, only ever appended to, never above its limit. Bytes beyond the limit
 * that do not fit the tail, and bytes that a full or broken disk refuses, are counted and dropped. A line in
 * the file states their number, as soon as it can be written. The bytes come from shim_output.c and
 * shim_metrics.c; shim_tail.c owns the tail. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

bool stream_open(struct stream *stream, const char *logs, int rank, const char *kind, int64_t limit,
                 struct why *why)
{
    autofree char *path = xprintf("%s/%d.%s", logs, rank, kind);
    autoclose int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (size < 0) {
        int error = errno;
        why_set(why, "log file %s: %s", path, strerror(error));
        errno = error;
        return false;
    }
    stream->file = give_fd(&fd);
    stream->stored = size;
    stream->tail = -1;
    stream->tail_bytes = 0;
    stream->limit = limit - STREAM_MARKS_BYTES;
    return true;
}

static void reason_write(const struct stream *stream, char *text, size_t room)
{
    if (stream->state == STREAM_FULL) {
        snprintf(text, room, "the limit of a stream is %lld MiB",
                 (long long)((stream->limit + stream->tail_bytes + STREAM_MARKS_BYTES) / MIB));
    } else {
        snprintf(text, room, "%s", strerror(stream->error));
    }
}

/* Writes a line of the shim's own. A part of the line stays in the file, because files only grow. */
static bool line_write(struct stream *stream, const char *line)
{
    char text[256], last = '\n';
    if (stream->stored > 0 && pread(stream->file, &last, 1, stream->stored - 1) != 1) {
        return false;
    }
    int length = snprintf(text, sizeof text, "%s%s\n", last == '\n' ? "" : "\n", line);
    ssize_t written = pwrite(stream->file, text, (size_t)length, stream->stored);
    if (written > 0) {
        stream->stored += written;
    }
    return written == length;
}

/* Writes the number of dropped bytes into the file. */
static bool marker_write(struct stream *stream)
{
    char line[240], reason[128];
    reason_write(stream, reason, sizeof reason);
    snprintf(line, sizeof line, "[gpuctl: %lld bytes dropped: %s]", (long long)stream->dropped, reason);
    if (!line_write(stream, line)) {
        return false;
    }
    stream->dropped = 0;
    return true;
}

/* The file is at its limit: tells readers why no more output comes. */
static void fill_up(struct stream *stream)
{
    char line[128];
    snprintf(line, sizeof line,
             "[gpuctl: output is at its limit; its last %lld KiB follow when it has ended]",
             (long long)(stream->tail_bytes / KIB));
    stream->state = STREAM_FULL;
    if (stream->tail_bytes > 0) {
        line_write(stream, line);
    }
}

void stream_fail(struct stream *stream, int error)
{
    stream->state = STREAM_FAILS;
    stream->error = error;
}

bool stream_ready(struct stream *stream)
{
    if (stream->state == STREAM_FAILS && (stream->dropped == 0 || marker_write(stream))) {
        stream->state = STREAM_STORES;
    }
    if (stream->state == STREAM_STORES && stream->stored >= stream->limit) {
        fill_up(stream);
    }
    return stream->state == STREAM_STORES;
}

void stream_append(struct stream *stream, const char *bytes, size_t length)
{
    while (length > 0 && stream_ready(stream)) {
        size_t room = (size_t)(stream->limit - stream->stored);
        ssize_t written = pwrite(stream->file, bytes, length < room ? length : room, stream->stored);
        if (written <= 0) {
            stream_fail(stream, written < 0 ? errno : ENOSPC);
            break;
        }
        stream->stored += written;
        bytes += written;
        length -= (size_t)written;
    }
    stream->dropped += (int64_t)length;
}

void stream_end(struct stream *stream, int rank, const char *kind)
{
    stream->dropped += tail_lost(stream);
    if (stream->dropped > 0 && marker_write(stream)) {
        tail_append(stream);
    } else if (stream->dropped == 0) {
        tail_append(stream);
    }
    tail_close(stream);
    if (stream->dropped > 0 && !marker_write(stream)) {
        char reason[128];
        reason_write(stream, reason, sizeof reason);
        shim_log_error("dropped %lld bytes of %d.%s: %s", (long long)stream->dropped, rank, kind, reason);
    }
    stream->state = STREAM_ENDED;
    cleanup_close(&stream->file);
    stream->file = -1;
}
