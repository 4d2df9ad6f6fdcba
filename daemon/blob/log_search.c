/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through the index of an attempt and looks at the lines that begin in each record. It promises that
 * searches that follow one another look at every line once, and that each one does a bounded piece of work
 * and gets on by at least one line. What was looked for is log_pattern.c's. */
#include "daemon/blob/log_search.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/log_index.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

struct scan {
    const struct log_search *search;
    bool (*take)(void *closure, const struct log_match *match);
    void *closure;
    struct log_index index;
    int64_t number; /* of the record */
    struct log_record record;
    int fd; /* of the channel that was read last; -1: none */
    int64_t fd_channel;
    char *buffer; /* bytes of that channel from base on */
    int64_t base;
    size_t length;
    int64_t scanned, until_us;
    bool looked; /* at a line */
    bool full;
};

int64_t log_search_records(const struct logs *logs, const char *job_id, int64_t attempt)
{
    autofree char *path = log_index_path(logs, job_id, attempt);
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size / (int64_t)sizeof(struct log_record) : 0;
}

static bool wanted(const struct log_search *search, int64_t channel)
{
    enum stream stream = log_channel_stream(channel);
    bool fits = search->stream == STREAM_COUNT ? stream_is_output(stream) : stream == search->stream;
    return fits && (search->rank < 0 || log_channel_rank(channel) == search->rank);
}

static bool is_over(const struct scan *scan)
{
    return scan->full || scan->scanned >= LIMIT_SEARCH_BYTES || clock_boot_us() >= scan->until_us;
}

/* --- bytes ---------------------------------------------------------------------------------------------- */

static bool open_channel(struct scan *scan, struct err *err)
{
    if (scan->fd >= 0 && scan->fd_channel == scan->record.channel) {
        return true;
    }
    if (scan->fd >= 0) {
        close(scan->fd);
    }
    const struct log_name name = {scan->search->job_id, scan->search->attempt,
                                  log_channel_rank(scan->record.channel),
                                  log_channel_stream(scan->record.channel)};
    int64_t size;
    scan->fd_channel = scan->record.channel;
    scan->length = 0;
    scan->fd = logs_open_stream(scan->search->logs, &name, &size, err);
    return scan->fd >= 0 || err->code == ERR_NONE;
}

/* Has the buffer hold the bytes from `at` on, `want` of them if there are as many. */
static bool fill(struct scan *scan, int64_t at, size_t want, struct err *err)
{
    if (at >= scan->base && at + (int64_t)want <= scan->base + (int64_t)scan->length) {
        return true;
    }
    int64_t rest = scan->record.offset + scan->record.length - at;
    size_t room = rest > 0 ? (size_t)rest + want : want;
    room = room < SEARCH_BUFFER_BYTES ? room : SEARCH_BUFFER_BYTES;
    ssize_t got = scan->fd >= 0 ? pread(scan->fd, scan->buffer, room, at) : 0;
    scan->base = at;
    scan->length = got > 0 ? (size_t)got : 0;
    return got >= 0 || err_errno(err, "cannot read output");
}

static const char *bytes_at(const struct scan *scan, int64_t at, size_t *ret_length)
{
    int64_t from = at - scan->base;
    *ret_length = from >= 0 && from < (int64_t)scan->length ? scan->length - (size_t)from : 0;
    return scan->buffer + from;
}

/* --- lines ---------------------------------------------------------------------------------------------- */

/* The index of the first end of a line; length: there is none. */
static size_t find_end(const char *bytes, size_t length)
{
    const char *end = memchr(bytes, '\n', length);
    length = end != NULL ? (size_t)(end - bytes) : length;
    const char *back = memchr(bytes, '\r', length);
    return back != NULL ? (size_t)(back - bytes) : length;
}

/* The bytes of the end of a line at `at`: 2 for \r\n. */
static size_t end_bytes(const char *bytes, size_t at, size_t length)
{
    if (at == length) {
        return 0;
    }
    return bytes[at] == '\r' && at + 1 < length && bytes[at + 1] == '\n' ? 2 : 1;
}

/* *ret_at: behind the end of a line at `end`. */
static bool pass_end(struct scan *scan, int64_t end, int64_t *ret_at, struct err *err)
{
    size_t length;
    if (!fill(scan, end, 2, err)) {
        return false;
    }
    const char *bytes = bytes_at(scan, end, &length);
    *ret_at = end + (int64_t)end_bytes(bytes, 0, length);
    return true;
}

/* Moves to the first line that begins in the record, or to the end of the record. */
static bool find_first(struct scan *scan, int64_t *at, struct err *err)
{
    int64_t end = scan->record.offset + scan->record.length;
    size_t length = 0;
    if (*at == 0) {
        return true;
    }
    for (int64_t from = *at - 1; from < end; from += (int64_t)length) { /* the byte before may be an end */
        if (!fill(scan, from, 2, err)) {
            return false;
        }
        const char *bytes = bytes_at(scan, from, &length);
        size_t found = find_end(bytes, length);
        scan->scanned += (int64_t)found;
        if (found < length) {
            return pass_end(scan, from + (int64_t)found, at, err);
        }
        if (length == 0) {
            break; /* promised, and never stored */
        }
    }
    *at = end;
    return true;
}

static void look(struct scan *scan, int64_t at, const char *line, size_t length, bool cut)
{
    scan->looked = true;
    if (!log_pattern_finds(scan->search->pattern, line, length)) {
        return;
    }
    int64_t end = scan->record.offset + scan->record.length;
    struct log_match match = {.rank = log_channel_rank(scan->record.channel),
                              .stream = log_channel_stream(scan->record.channel),
                              .offset = at,
                              .at_ms = scan->record.at_ms,
                              .line = line,
                              .length = length,
                              .cut = cut};
    const struct log_piece piece = {
        .attempt = scan->search->attempt, .record = scan->number, .offset = at < end ? at : end};
    log_piece_id(&piece, 0, match.id);
    scan->full = !scan->take(scan->closure, &match);
}

/* Looks at the line at *at and moves behind it; *inside: that is within a line that is too long. */
static bool look_at_line(struct scan *scan, int64_t *at, bool *inside, struct err *err)
{
    size_t length;
    if (!fill(scan, *at, LIMIT_SEARCH_LINE_BYTES + 2, err)) {
        return false;
    }
    const char *line = bytes_at(scan, *at, &length);
    if (length == 0) {
        *at = INT64_MAX; /* nothing is stored from here on */
        return true;
    }
    size_t end = find_end(line, length < LIMIT_SEARCH_LINE_BYTES + 1 ? length : LIMIT_SEARCH_LINE_BYTES + 1);
    *inside = end > LIMIT_SEARCH_LINE_BYTES;
    end -= *inside;
    look(scan, *at, line, end, *inside);
    end += *inside ? 0 : end_bytes(line, end, length);
    scan->scanned += (int64_t)end;
    *at += (int64_t)end;
    return true;
}

/* Looks at the lines that begin in the record, from the offset on. *ret_at: the offset at which it was left;
 * -1: it is done. */
static bool search_record(struct scan *scan, int64_t offset, int64_t *ret_at, struct err *err)
{
    int64_t end = scan->record.offset + scan->record.length;
    int64_t at = scan->record.offset;
    bool inside = offset > at && offset >= end;
    if (!open_channel(scan, err)) {
        return false;
    }
    if (offset > at) {
        at = offset;
    } else if (!find_first(scan, &at, err)) {
        return false;
    }
    while (at < end || (inside && at != INT64_MAX)) {
        if (scan->looked && is_over(scan)) {
            *ret_at = at;
            return true;
        }
        if (!look_at_line(scan, &at, &inside, err)) {
            return false;
        }
    }
    *ret_at = -1;
    return true;
}

/* --- all ------------------------------------------------------------------------------------------------ */

static bool search_records(struct scan *scan, struct log_search_end *end, struct err *err)
{
    const struct log_search *search = scan->search;
    for (; scan->number < search->records; scan->number++) {
        int64_t at;
        if (!log_index_read(&scan->index, scan->number, &scan->record)) {
            return true;
        }
        bool moved = scan->number > search->record;
        if (moved && is_over(scan)) {
            *end = (struct log_search_end){.more = true, .record = scan->number};
            return true;
        }
        scan->scanned += (int64_t)sizeof scan->record;
        if (!wanted(search, scan->record.channel) || scan->record.at_ms < search->since_ms) {
            continue;
        }
        if (!search_record(scan, moved ? 0 : search->offset, &at, err)) {
            return false;
        }
        if (at >= 0) {
            *end = (struct log_search_end){.more = true, .record = scan->number, .offset = at};
            return true;
        }
    }
    return true;
}

bool log_search_run(const struct log_search *search,
                    bool (*take)(void *closure, const struct log_match *match), void *closure,
                    struct log_search_end *ret_end, struct err *err)
{
    struct scan scan = {.search = search,
                        .take = take,
                        .closure = closure,
                        .number = search->record,
                        .fd = -1,
                        .buffer = xalloc(SEARCH_BUFFER_BYTES),
                        .until_us = clock_boot_us() + LIMIT_SEARCH_US};
    log_index_init(&scan.index, search->logs, search->job_id, search->attempt);
    *ret_end = (struct log_search_end){0};
    bool good = search_records(&scan, ret_end, err);
    ret_end->scanned = scan.scanned;
    log_index_finish(&scan.index);
    cleanup_close(&scan.fd);
    free(scan.buffer);
    return good;
}
