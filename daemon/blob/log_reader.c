/* SPDX-License-Identifier: Apache-2.0 */
/* Owns one reader's way through the output of an attempt, in the order in which it came. It promises each
 * byte of each stream once and in order, also when the reader went away and came back with the id of the last
 * piece it saw. */
#include "daemon/blob/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/log_file.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/limits.h"

struct log_reader {
    const struct logs *logs;
    char job_id[ID_LENGTH + 1];
    int64_t attempt;
    int64_t rank;
    enum stream stream;
    int index;        /* -1: not there yet */
    int64_t next;     /* number of the record that comes next, or is being read */
    int64_t *emitted; /* by channel: the offset up to which pieces were given */
    size_t channels;
    int fd; /* of the channel that was read last; -1: none */
    int64_t fd_channel;
    char *buffer;
};

static int64_t *emitted_of(struct log_reader *reader, int64_t channel)
{
    if ((size_t)channel >= reader->channels) {
        size_t more = 2 * (size_t)channel + 8;
        reader->emitted = xrealloc(reader->emitted, more * sizeof *reader->emitted);
        memset(reader->emitted + reader->channels, 0, (more - reader->channels) * sizeof *reader->emitted);
        reader->channels = more;
    }
    return &reader->emitted[channel];
}

/* false: the record is not (wholly) there. */
static bool read_record(struct log_reader *reader, int64_t number, struct log_record *ret_record)
{
    if (reader->index < 0) {
        autofree char *path = log_index_path(reader->logs, reader->job_id, reader->attempt);
        reader->index = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (reader->index < 0) {
        return false;
    }
    ssize_t got = pread(reader->index, ret_record, sizeof *ret_record, number * (int64_t)sizeof *ret_record);
    return got == (ssize_t)sizeof *ret_record && ret_record->channel >= 0 &&
           ret_record->channel < LIMIT_GPUS * STREAM_COUNT;
}

/* --- ids: ATTEMPT.RECORD.OFFSET
 * ---------------------------------------------------------------------------------------------- */

static bool id_parse(const char *id, int64_t *ret_attempt, int64_t *ret_record, int64_t *ret_offset)
{
    long long attempt, record, offset;
    char rest;
    if (strlen(id) > 62 || sscanf(id, "%lld.%lld.%lld%c", &attempt, &record, &offset, &rest) != 3) {
        return false;
    }
    *ret_attempt = attempt;
    *ret_record = record;
    *ret_offset = offset;
    return attempt > 0 && record >= 0 && offset >= 0;
}

bool log_id_attempt(const char *id, int64_t *ret_attempt)
{
    int64_t record, offset;
    return id_parse(id, ret_attempt, &record, &offset);
}

/* Puts the reader behind the piece, by going over the index up to its record. */
static bool skip_to(struct log_reader *reader, const char *after, struct err *err)
{
    int64_t attempt, record, offset;
    struct log_record found;
    if (!id_parse(after, &attempt, &record, &offset) || attempt != reader->attempt ||
        !read_record(reader, record, &found) || offset > found.offset + found.length) {
        return err_field(err, ERR_FIELD, "Last-Event-ID", "send the id of an event of this stream, or none",
                         "the id \"%.64s\" is not of these logs", after);
    }
    for (reader->next = 0; reader->next < record; reader->next++) {
        struct log_record passed;
        if (read_record(reader, reader->next, &passed)) {
            int64_t *emitted = emitted_of(reader, passed.channel);
            *emitted = passed.offset + passed.length > *emitted ? passed.offset + passed.length : *emitted;
        }
    }
    *emitted_of(reader, found.channel) = offset;
    return true;
}

struct log_reader *log_reader_open(const struct logs *logs, const char *job_id, int64_t attempt, int64_t rank,
                                   enum stream stream, const char *after, struct err *err)
{
    struct log_reader *reader = xzalloc(sizeof *reader);
    reader->logs = logs;
    snprintf(reader->job_id, sizeof reader->job_id, "%s", job_id);
    reader->attempt = attempt;
    reader->rank = rank;
    reader->stream = stream;
    reader->index = -1;
    reader->fd = -1;
    reader->buffer = xalloc(LIMIT_LOG_PIECE_BYTES);
    if (after != NULL && !skip_to(reader, after, err)) {
        log_reader_close(reader);
        return NULL;
    }
    return reader;
}

void log_reader_close(struct log_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    if (reader->index >= 0) {
        close(reader->index);
    }
    if (reader->fd >= 0) {
        close(reader->fd);
    }
    free(reader->emitted);
    free(reader->buffer);
    free(reader);
}

static bool wanted(const struct log_reader *reader, int64_t channel)
{
    return (reader->rank < 0 || channel / STREAM_COUNT == reader->rank) &&
           (reader->stream == STREAM_COUNT || channel % STREAM_COUNT == (int64_t)reader->stream);
}

static bool open_channel(struct log_reader *reader, int64_t channel, struct err *err)
{
    if (reader->fd >= 0 && reader->fd_channel == channel) {
        return true;
    }
    if (reader->fd >= 0) {
        close(reader->fd);
    }
    const struct log_name name = {reader->job_id, reader->attempt, channel / STREAM_COUNT,
                                  (enum stream)(channel % STREAM_COUNT)};
    int64_t size;
    reader->fd_channel = channel;
    reader->fd = logs_open_stream(reader->logs, &name, &size, err);
    return reader->fd >= 0 || err->code == ERR_NONE;
}

/* Where to cut a piece that is not the end of its record: behind the last line, else before a character that
 * is not whole. */
static size_t cut(const char *bytes, size_t length)
{
    const char *line = memrchr(bytes, '\n', length);
    if (line != NULL) {
        return (size_t)(line - bytes) + 1;
    }
    size_t end = length;
    while (end > 0 && length - end < 4 && ((unsigned char)bytes[end - 1] & 0xC0) == 0x80) {
        end--;
    }
    return end > 1 && (unsigned char)bytes[end - 1] >= 0xC0 ? end - 1 : length;
}

/* Reads on in a record: *ret_length 0 when nothing (more) of it is to be given. */
static bool read_piece(struct log_reader *reader, const struct log_record *record, int64_t offset,
                       size_t *ret_length, struct err *err)
{
    int64_t left = record->offset + record->length - offset;
    *ret_length = 0;
    if (left <= 0 || !open_channel(reader, record->channel, err)) {
        return left <= 0;
    }
    if (reader->fd < 0) {
        return true;
    }
    size_t want = left < LIMIT_LOG_PIECE_BYTES ? (size_t)left : (size_t)LIMIT_LOG_PIECE_BYTES;
    ssize_t got = pread(reader->fd, reader->buffer, want, offset);
    if (got < 0) {
        return err_errno(err, "cannot read stored output");
    }
    *ret_length = (int64_t)got < left && got > 0 ? cut(reader->buffer, (size_t)got) : (size_t)got;
    return true;
}

bool log_reader_next(struct log_reader *reader, bool *ret_found, struct log_piece *ret_piece, struct err *err)
{
    struct log_record record;
    *ret_found = false;
    for (; read_record(reader, reader->next, &record); reader->next++) {
        int64_t *emitted = emitted_of(reader, record.channel);
        int64_t offset = record.offset > *emitted ? record.offset : *emitted;
        size_t length = 0;
        if (!wanted(reader, record.channel)) {
            continue;
        }
        if (!read_piece(reader, &record, offset, &length, err)) {
            return false;
        }
        if (length == 0) {
            continue;
        }
        *emitted = offset + (int64_t)length;
        *ret_found = true;
        *ret_piece = (struct log_piece){.rank = record.channel / STREAM_COUNT,
                                        .stream = (enum stream)(record.channel % STREAM_COUNT),
                                        .offset = offset,
                                        .bytes = reader->buffer,
                                        .length = length};
        snprintf(ret_piece->id, sizeof ret_piece->id, "%lld.%lld.%lld", (long long)reader->attempt,
                 (long long)reader->next, (long long)*emitted);
        return true;
    }
    return true;
}
