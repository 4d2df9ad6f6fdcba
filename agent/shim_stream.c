/* SPDX-License-Identifier: Apache-2.0 */
/* A file of output, as far as its bytes go: opened at its end, only ever appended to, never above
 * LIMIT_STREAM_BYTES. What goes beyond the limit, or what a full or broken disk refuses, is counted and
 * dropped, and a line in the file says how much, as soon as one can be written. Where the bytes come from is
 * shim_output.c's and shim_metrics.c's. */
#include "agent/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool stream_open(struct stream *stream, const char *logs, int rank, const char *kind, struct why *why)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%d.%s", logs, rank, kind) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return why_set(why, "the path of the log folder is too long");
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (size < 0) {
        int error = errno;
        why_set(why, "log file %s: %s", path, strerror(error));
        if (fd >= 0) {
            close(fd);
        }
        errno = error;
        return false;
    }
    stream->file = fd;
    stream->stored = size;
    return true;
}

static void reason_write(const struct stream *stream, char *text, size_t room)
{
    if (stream->state == STREAM_FULL) {
        snprintf(text, room, "stream limit of %lld GiB", LIMIT_STREAM_BYTES / GIB);
    } else {
        snprintf(text, room, "%s", strerror(stream->error));
    }
}

/* Writes the line that tells of dropped bytes, on a line of its own. A part of it that fits is kept: files
 * only grow. */
static bool marker_write(struct stream *stream)
{
    char text[256], reason[128], last = '\n';
    if (stream->stored > 0 && pread(stream->file, &last, 1, stream->stored - 1) != 1) {
        return false;
    }
    reason_write(stream, reason, sizeof reason);
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
    if (stream->state == STREAM_STORES && stream->stored >= LIMIT_STREAM_BYTES) {
        stream->state = STREAM_FULL;
    }
    return stream->state == STREAM_STORES;
}

void stream_append(struct stream *stream, const char *bytes, size_t length)
{
    while (length > 0 && stream_ready(stream)) {
        size_t room = (size_t)(LIMIT_STREAM_BYTES - stream->stored);
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
    if (stream->dropped > 0 && !marker_write(stream)) {
        char reason[128];
        reason_write(stream, reason, sizeof reason);
        shim_complain("dropped %lld bytes of %d.%s: %s", (long long)stream->dropped, rank, kind, reason);
    }
    stream->state = STREAM_ENDED;
    if (stream->file >= 0) {
        close(stream->file);
        stream->file = -1;
    }
}
