/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: two files of lines; the older file is dropped when the newer one is full. A line is complete
 * or not read, and both files together stay within twice LIMIT_JOURNAL_BYTES. Lines are written without a
 * sync, so as not to delay a start: a node that loses its power may lose the last lines. The controller
 * decides what to make of them.
 *
 *   began ATTEMPT ID JOB MS
 *   ended ATTEMPT ID CODE MS */
#include "agent/node/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define READ_BYTES (2 * LIMIT_JOURNAL_BYTES) /* of a file, which one line may bring over its limit */

struct journal {
    char *path, *old_path;
    int fd; /* -1: the file could not be opened */
    int64_t size;
};

/* --- writing -------------------------------------------------------------------------------------------- */

static bool open_file(struct journal *journal)
{
    struct stat status;
    journal->fd = open(journal->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    journal->size = journal->fd >= 0 && fstat(journal->fd, &status) == 0 ? status.st_size : 0;
    return journal->fd >= 0;
}

struct journal *journal_open(const char *state, struct err *err)
{
    struct journal *journal = xzalloc(sizeof *journal);
    journal->path = xprintf("%s/journal", state);
    journal->old_path = xprintf("%s/journal.old", state);
    if (!open_file(journal)) {
        err_errno(err, "cannot open %s", journal->path);
        journal_close(journal);
        return NULL;
    }
    return journal;
}

void journal_close(struct journal *journal)
{
    if (journal != NULL) {
        cleanup_close(&journal->fd);
        free(journal->path);
        free(journal->old_path);
        free(journal);
    }
}

static void turn_over(struct journal *journal)
{
    cleanup_close(&journal->fd);
    if (rename(journal->path, journal->old_path) != 0) {
        log_warning("journal stuck", "path=%s error=\"%s\"", journal->path, strerror(errno));
    }
    open_file(journal);
}

/* The newline behind a line that a full disk cut short ends it; it is not read. */
static void add(struct journal *journal, const char *line, size_t length)
{
    if (journal->size + (int64_t)length > LIMIT_JOURNAL_BYTES) {
        turn_over(journal);
    }
    ssize_t written = journal->fd >= 0 ? write(journal->fd, line, length) : -1;
    journal->size += written > 0 ? written : 0;
    if (written != (ssize_t)length) {
        log_warning("journal incomplete", "path=%s error=\"%s\"", journal->path, strerror(errno));
        (void)!write(journal->fd, "\n", 1);
    }
}

void journal_began(struct journal *journal, uint64_t attempt_id, const char *job_id)
{
    char line[96];
    int length = snprintf(line, sizeof line, "began %" PRIu64 " %.16s %" PRId64 "\n", attempt_id, job_id,
                          clock_wall_ms());
    add(journal, line, (size_t)length);
}

void journal_ended(struct journal *journal, uint64_t attempt_id, int64_t code)
{
    char line[96];
    int length = snprintf(line, sizeof line, "ended %" PRIu64 " %" PRId64 " %" PRId64 "\n", attempt_id, code,
                          clock_wall_ms());
    add(journal, line, (size_t)length);
}

/* --- reading -------------------------------------------------------------------------------------------- */

struct reading {
    struct journal_item *items;
    size_t count, room;
    int64_t since_ms;
};

static void take_began(struct reading *reading, uint64_t attempt_id, const char *job_id, int64_t at_ms)
{
    if (at_ms < reading->since_ms || !text_is_id(job_id)) {
        return;
    }
    XGROW(reading->items, reading->count, reading->room, 64);
    struct journal_item *item = &reading->items[reading->count++];
    *item = (struct journal_item){.attempt_id = attempt_id, .began_ms = at_ms, .code = -1};
    memcpy(item->job_id, job_id, sizeof item->job_id);
}

/* Searches from the end: few attempts live at once, so the ended one is near. */
static void take_ended(struct reading *reading, uint64_t attempt_id, int64_t code, int64_t at_ms)
{
    for (size_t i = reading->count; i-- > 0;) {
        if (reading->items[i].attempt_id == attempt_id) {
            reading->items[i].code = code;
            reading->items[i].ended_ms = at_ms;
            return;
        }
    }
}

static void take_line(struct reading *reading, char *line)
{
    char *rest = line;
    const char *word = strsep(&rest, " "), *attempt_id_text = strsep(&rest, " "),
               *middle = strsep(&rest, " ");
    int64_t attempt_id, at_ms, code;
    if (rest == NULL || !text_to_int(attempt_id_text, 1, INT64_MAX, &attempt_id) ||
        !text_to_int(rest, 0, INT64_MAX, &at_ms)) {
        return;
    }
    if (strcmp(word, "began") == 0) {
        take_began(reading, (uint64_t)attempt_id, middle, at_ms);
    } else if (strcmp(word, "ended") == 0 && text_to_int(middle, -1, INT32_MAX, &code)) {
        take_ended(reading, (uint64_t)attempt_id, code, at_ms);
    }
}

static void read_file(struct reading *reading, const char *path)
{
    autofree char *text = NULL;
    struct err err;
    if (access(path, F_OK) != 0) {
        return;
    }
    if (!file_read(path, READ_BYTES, &text, NULL, &err)) {
        log_warning("journal unreadable", "path=%s error=\"%s\"", path, err.text);
        return;
    }
    for (char *rest = text, *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL && rest != NULL;) {
        take_line(reading, line);
    }
}

struct journal_item *journal_read(const struct journal *journal, int64_t since_ms, size_t *ret_count)
{
    struct reading reading = {.since_ms = since_ms};
    read_file(&reading, journal->old_path);
    read_file(&reading, journal->path);
    *ret_count = reading.count;
    return reading.items;
}
