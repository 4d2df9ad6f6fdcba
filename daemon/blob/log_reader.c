/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the streams of an attempt in the order of arrival, for one reader. It returns each byte of each
 * stream once and in order, also to a reader that returns with the id of the last piece that it saw. Metrics
 * are returned as whole lines, however the pieces were cut when they arrived. */
#include "daemon/blob/logs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blob/log_index.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

/* The position of a place's offset in its stream's lines. Output uses only the first. */
enum place_at {
    AT_NO_PLACE, /* no record of the stream was read yet */
    AT_LINE,     /* at the start of a line */
    AT_ANYWHERE, /* not known yet */
    AT_INSIDE,   /* in a line that is too long to be returned */
};

/* How far a stream was returned. In metrics, the offset stays at the start of a line until the line's end has
 * arrived. */
struct place {
    int64_t offset;
    enum place_at at;
};

struct log_reader {
    const struct logs *logs;
    char job_id[ID_LENGTH + 1];
    int64_t attempt;
    int64_t rank;
    enum stream stream;
    struct log_index index;
    int64_t first;    /* number of the record that it began with */
    int64_t next;     /* number of the next record, or of the record being read */
    int64_t since_ms; /* records before it are passed over */
    struct place *places;
    size_t place_room;
    int fd; /* of the channel that was read last; -1: none */
    int64_t fd_channel;
    char *buffer;
};

static struct place *place_of(struct log_reader *reader, int64_t channel)
{
    size_t at = (size_t)log_channel_rank(channel) * STREAM_COUNT + log_channel_stream(channel);
    if (at >= reader->place_room) {
        size_t more = 2 * at + 8;
        reader->places = xrealloc(reader->places, more * sizeof *reader->places);
        memset(reader->places + reader->place_room, 0, (more - reader->place_room) * sizeof *reader->places);
        reader->place_room = more;
    }
    return &reader->places[at];
}

static bool wanted(const struct log_reader *reader, int64_t channel)
{
    enum stream stream = log_channel_stream(channel);
    bool fits = reader->stream == STREAM_COUNT ? stream_is_output(stream) : stream == reader->stream;
    return fits && (reader->rank < 0 || log_channel_rank(channel) == reader->rank);
}

/* --- ids: ATTEMPT.RECORD.OFFSET ------------------------------------------------------------------------- */

void log_piece_id(const struct log_piece *piece, size_t length, char out[LOG_ID_BYTES])
{
    snprintf(out, LOG_ID_BYTES, "%lld.%lld.%lld", (long long)piece->attempt, (long long)piece->record,
             (long long)piece->offset + (long long)length);
}

bool log_id_parse(const char *id, int64_t *ret_attempt, int64_t *ret_record, int64_t *ret_offset)
{
    long long attempt, record, offset;
    char rest;
    if (strlen(id) >= LOG_ID_BYTES ||
        sscanf(id, "%lld.%lld.%lld%c", &attempt, &record, &offset, &rest) != 3) {
        return false;
    }
    *ret_attempt = attempt;
    *ret_record = record;
    *ret_offset = offset;
    return attempt > 0 && record >= 0 && record < INT64_MAX / (int64_t)sizeof(struct log_record) &&
           offset >= 0;
}

bool log_id_attempt(const char *id, int64_t *ret_attempt)
{
    int64_t record, offset;
    return log_id_parse(id, ret_attempt, &record, &offset);
}

/* Moves the reader past the piece of the id. The records before it are not read: see meet. */
static bool skip_to(struct log_reader *reader, const char *after, struct err *err)
{
    int64_t attempt, record, offset;
    struct log_record found;
    if (!log_id_parse(after, &attempt, &record, &offset) || attempt != reader->attempt ||
        !log_index_read(&reader->index, record, &found) || offset > found.offset + found.length) {
        return err_field(err, ERR_FIELD, "Last-Event-ID", "send the id of an event of this stream, or none",
                         "the id \"%.64s\" is not of these logs", after);
    }
    reader->first = reader->next = record;
    *place_of(reader, found.channel) = (struct place){offset, AT_ANYWHERE};
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
    log_index_init(&reader->index, logs, job_id, attempt);
    reader->fd = -1;
    reader->buffer = xalloc(LIMIT_LOG_PIECE_BYTES);
    if (after != NULL && !skip_to(reader, after, err)) {
        log_reader_close(reader);
        return NULL;
    }
    return reader;
}

void log_reader_since(struct log_reader *reader, int64_t since_ms)
{
    reader->since_ms = since_ms;
}

void log_reader_close(struct log_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    log_index_finish(&reader->index);
    if (reader->fd >= 0) {
        close(reader->fd);
    }
    free(reader->places);
    free(reader->buffer);
    free(reader);
}

/* --- bytes of one record -------------------------------------------------------------------------------- */

/* Opens the stream of the channel; reader->fd stays -1 if the stream does not exist. */
static bool open_channel(struct log_reader *reader, int64_t channel, struct err *err)
{
    if (reader->fd >= 0 && reader->fd_channel == channel) {
        return true;
    }
    if (reader->fd >= 0) {
        close(reader->fd);
    }
    const struct log_name name = {reader->job_id, reader->attempt, log_channel_rank(channel),
                                  log_channel_stream(channel)};
    int64_t size;
    reader->fd_channel = channel;
    reader->fd = logs_open_stream(reader->logs, &name, &size, err);
    return reader->fd >= 0 || err->code == ERR_NONE;
}

/* Fills the buffer from the offset to the end, limited by the stored bytes and the room. */
static bool fill(struct log_reader *reader, int64_t offset, int64_t end, size_t *ret_length, struct err *err)
{
    *ret_length = 0;
    if (offset >= end || reader->fd < 0) {
        return true;
    }
    size_t want = end - offset < LIMIT_LOG_PIECE_BYTES ? (size_t)(end - offset) : LIMIT_LOG_PIECE_BYTES;
    ssize_t got = pread(reader->fd, reader->buffer, want, offset);
    if (got < 0) {
        return err_errno(err, "cannot read what the ranks said");
    }
    *ret_length = (size_t)got;
    return true;
}

/* Where to cut a piece before the end of its record: after the last line end, else before an incomplete
 * character. */
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

/* Reads the next output up to the record's end; found: there is some. */
static bool read_output(struct log_reader *reader, const struct log_record *record, struct place *place,
                        struct log_piece *piece, bool *ret_found, struct err *err)
{
    int64_t end = record->offset + record->length;
    size_t got;
    piece->offset = record->offset > place->offset ? record->offset : place->offset;
    if (!fill(reader, piece->offset, end, &got, err)) {
        return false;
    }
    bool last = piece->offset + (int64_t)got >= end;
    piece->length = last || got == 0 ? got : cut(reader->buffer, got);
    place->offset = piece->offset + (int64_t)piece->length;
    *ret_found = got > 0;
    return true;
}

/* Gives a stream its place at the first record of it that is read. A stream is only appended to, so what came
 * before the record ends where the record begins. Bytes that an earlier record promises and that were lost
 * come again in the record that is met. */
static void meet(const struct log_reader *reader, const struct log_record *record, struct place *place)
{
    if (place->at == AT_NO_PLACE) {
        *place = (struct place){reader->first > 0 ? record->offset : 0, AT_ANYWHERE};
    }
}

/* Moves a place with only a known offset back to the start of its line. */
static bool align(struct log_reader *reader, struct place *place, struct err *err)
{
    int64_t from = place->offset > LIMIT_LOG_PIECE_BYTES ? place->offset - LIMIT_LOG_PIECE_BYTES : 0;
    size_t got;
    if (!fill(reader, from, place->offset, &got, err)) {
        return false;
    }
    const char *line = memrchr(reader->buffer, '\n', got);
    if (line != NULL) {
        *place = (struct place){from + (line - reader->buffer) + 1, AT_LINE};
    } else if (from > 0 || got == LIMIT_LOG_PIECE_BYTES) {
        place->at = AT_INSIDE;
    } else {
        *place = (struct place){0, AT_LINE};
    }
    return true;
}

/* The number of bytes to skip: of a line that is too long, or of the rest of such a line. */
static size_t pass(struct log_reader *reader, struct place *place, size_t got)
{
    const char *line = place->at == AT_INSIDE ? memchr(reader->buffer, '\n', got) : NULL;
    place->at = line != NULL ? AT_LINE : AT_INSIDE;
    return line != NULL ? (size_t)(line - reader->buffer) + 1 : got;
}

/* Reads the next whole lines that end in the record; found: there are some, or part of a line that is too
 * long was skipped. */
static bool read_lines(struct log_reader *reader, const struct log_record *record, struct place *place,
                       struct log_piece *piece, bool *ret_found, struct err *err)
{
    size_t got;
    if ((place->at == AT_ANYWHERE && !align(reader, place, err)) ||
        !fill(reader, place->offset, record->offset + record->length, &got, err)) {
        return false;
    }
    const char *line = memrchr(reader->buffer, '\n', got);
    *ret_found = got > 0;
    if (place->at == AT_LINE && line != NULL) {
        piece->offset = place->offset;
        piece->length = (size_t)(line - reader->buffer) + 1;
        place->offset += (int64_t)piece->length;
    } else if (got > 0 && (place->at == AT_INSIDE || got == LIMIT_LOG_PIECE_BYTES)) {
        place->offset += (int64_t)pass(reader, place, got);
        piece->offset = place->offset;
        piece->length = 0;
    } else {
        *ret_found = false; /* the end of the line comes in a later record */
    }
    return true;
}

static bool read_piece(struct log_reader *reader, const struct log_record *record, struct log_piece *piece,
                       bool *ret_found, struct err *err)
{
    struct place *place = place_of(reader, record->channel);
    enum stream stream = log_channel_stream(record->channel);
    *piece = (struct log_piece){.attempt = reader->attempt,
                                .record = reader->next,
                                .rank = log_channel_rank(record->channel),
                                .stream = stream,
                                .at_ms = record->at_ms,
                                .bytes = reader->buffer};
    meet(reader, record, place);
    if (place->offset >= record->offset + record->length) {
        return true;
    }
    if (!open_channel(reader, record->channel, err)) {
        return false;
    }
    return stream_is_output(stream) ? read_output(reader, record, place, piece, ret_found, err)
                                    : read_lines(reader, record, place, piece, ret_found, err);
}

/* A piece without bytes in front of the record. */
static struct log_piece pause_at(const struct log_reader *reader, const struct log_record *record)
{
    return (struct log_piece){.attempt = reader->attempt,
                              .record = reader->next,
                              .rank = log_channel_rank(record->channel),
                              .stream = log_channel_stream(record->channel),
                              .offset = record->offset,
                              .at_ms = record->at_ms,
                              .bytes = reader->buffer};
}

bool log_reader_next(struct log_reader *reader, bool *ret_found, struct log_piece *ret_piece, struct err *err)
{
    struct log_record record;
    *ret_found = false;
    for (int passed = 0; log_index_read(&reader->index, reader->next, &record); reader->next++) {
        if (passed++ == LIMIT_LOG_PASSED_RECORDS) {
            *ret_piece = pause_at(reader, &record);
            *ret_found = true;
            return true;
        }
        if (record.at_ms < reader->since_ms) {
            reader->first = reader->next + 1; /* streams begin at their first record that is read */
            continue;
        }
        if (!wanted(reader, record.channel)) {
            continue;
        }
        if (!read_piece(reader, &record, ret_piece, ret_found, err)) {
            return false;
        }
        if (*ret_found) {
            return true;
        }
    }
    return true;
}
