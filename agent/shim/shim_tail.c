/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the last bytes of a stream that is at its limit, because the end of a program's output says how it
 * went. The bytes go round in a ring file without a name. When the stream ends, they are appended to the
 * stream's file, from the start of a line if there is one. So while it is written, a stream takes
 * LIMIT_STREAM_BYTES, or the limit of the launch file, and its tail a second time. Bytes that fall out of the
 * ring are counted as dropped. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define CHUNK_BYTES (64 * KIB)

void tail_reserve(struct stream *stream)
{
    int64_t part = stream->limit / STREAM_TAIL_PART;
    stream->tail_bytes = part < LIMIT_TAIL_BYTES ? part : LIMIT_TAIL_BYTES;
    stream->limit -= stream->tail_bytes;
}

bool tail_open(struct stream *stream, const char *logs, int rank, const char *kind)
{
    autofree char *path = xprintf("%s/%d.%s.tail", logs, rank, kind);
    stream->tail = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (stream->tail < 0) {
        return false;
    }
    unlink(path);
    stream->passed = 0;
    return true;
}

void tail_close(struct stream *stream)
{
    cleanup_close(&stream->tail);
    stream->tail = -1;
}

/* At most up to the end of the ring. If the disk refuses the bytes, the tail is given up. */
size_t tail_put(struct stream *stream, const char *bytes, size_t length)
{
    loff_t at = stream->passed % stream->tail_bytes;
    size_t room = (size_t)(stream->tail_bytes - at), part = length < room ? length : room;
    if (pwrite(stream->tail, bytes, part, at) != (ssize_t)part) {
        tail_close(stream);
        stream->dropped += stream->passed + (int64_t)part;
    } else {
        stream->passed += (int64_t)part;
    }
    return part;
}

/* For file systems that cannot splice. */
static ssize_t copy(struct stream *stream, size_t room)
{
    char bytes[CHUNK_BYTES];
    ssize_t got = read(stream->pipe, bytes, room < sizeof bytes ? room : sizeof bytes);
    if (got > 0) {
        tail_put(stream, bytes, (size_t)got);
    }
    return got;
}

ssize_t tail_take(struct stream *stream)
{
    loff_t at = stream->passed % stream->tail_bytes;
    size_t room = (size_t)(stream->tail_bytes - at);
    loff_t to = at;
    ssize_t moved = splice(stream->pipe, NULL, stream->tail, &to, room < CHUNK_BYTES ? room : CHUNK_BYTES,
                           SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (moved > 0) {
        stream->passed += moved;
    }
    if (moved >= 0 || errno == EAGAIN || errno == EINTR) {
        return moved;
    }
    return copy(stream, room); /* also if the disk refuses the bytes: then the tail is given up */
}

/* Reads up to one chunk of the kept bytes, from a position counted over all bytes that passed. */
static ssize_t tail_read(const struct stream *stream, int64_t position, char *bytes)
{
    loff_t at = position % stream->tail_bytes;
    int64_t left = stream->passed - position, round = stream->tail_bytes - at;
    int64_t most = left < round ? left : round;
    return pread(stream->tail, bytes, (size_t)(most < CHUNK_BYTES ? most : CHUNK_BYTES), at);
}

/* The start of the tail: behind the first line end, if one is near. */
static int64_t tail_begin(const struct stream *stream)
{
    char bytes[CHUNK_BYTES];
    int64_t first = stream->passed - stream->tail_bytes;
    if (first <= 0) {
        return 0;
    }
    ssize_t got = tail_read(stream, first, bytes);
    const char *newline = got > 0 ? memchr(bytes, '\n', (size_t)got) : NULL;
    return newline != NULL ? first + (newline - bytes) + 1 : first;
}

int64_t tail_lost(const struct stream *stream)
{
    return stream->tail >= 0 ? tail_begin(stream) : 0;
}

void tail_append(struct stream *stream)
{
    char bytes[CHUNK_BYTES];
    for (int64_t at = tail_lost(stream); stream->tail >= 0 && at < stream->passed;) {
        ssize_t got = tail_read(stream, at, bytes);
        ssize_t written = got > 0 ? pwrite(stream->file, bytes, (size_t)got, stream->stored) : -1;
        if (written <= 0) {
            stream_fail(stream, errno != 0 ? errno : EIO);
            stream->dropped += stream->passed - at;
            break;
        }
        stream->stored += written;
        at += written;
    }
    tail_close(stream);
}
