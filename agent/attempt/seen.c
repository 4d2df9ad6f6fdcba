/* SPDX-License-Identifier: Apache-2.0 */
/* Manages RUN/seen: the ids of claimed attempts that are over, one a line. An added id is there for every
 * later agent of this boot, however this one ends. The file stays small: when it is full, its lower half is
 * dropped, and every id of the same incarnation up to the highest dropped one counts as seen. This is safe
 * because a controller gives out ids in rising order and a node's orders are complete, so no order that old
 * can come for the first time. A reboot empties the folder, and ends the attempts. */
#include "agent/attempt/seen.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define FLOOR      "floor "
#define LINE_BYTES 32
#define FILE_BYTES ((size_t)LIMIT_SEEN * LINE_BYTES)

struct seen {
    char *path;
    int file;
    uint64_t *ids; /* rising; room for LIMIT_SEEN */
    size_t count;
    uint64_t floor; /* the highest dropped id; 0: none */
};

static uint64_t incarnation_of(uint64_t attempt_id)
{
    return attempt_id >> 32;
}

/* The position of the id, present or not. */
static size_t place_of(const struct seen *seen, uint64_t attempt_id)
{
    size_t first = 0, end = seen->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (seen->ids[middle] < attempt_id) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

static bool is_listed(const struct seen *seen, uint64_t attempt_id)
{
    size_t place = place_of(seen, attempt_id);
    return place < seen->count && seen->ids[place] == attempt_id;
}

bool seen_has(const struct seen *seen, uint64_t attempt_id)
{
    return is_listed(seen, attempt_id) ||
           (incarnation_of(attempt_id) == incarnation_of(seen->floor) && attempt_id <= seen->floor);
}

/* --- the file ------------------------------------------------------------------------------------------- */

static bool open_file(struct seen *seen, struct err *err)
{
    cleanup_close(&seen->file);
    seen->file = open(seen->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return seen->file >= 0 || err_errno(err, "cannot open %s", seen->path);
}

/* Removes a partial line after a failed write: it would be another number. */
static bool append(struct seen *seen, uint64_t attempt_id)
{
    struct stat status;
    autofree char *line = xprintf("%llu\n", (unsigned long long)attempt_id);
    size_t length = strlen(line);
    if (seen->file < 0 || fstat(seen->file, &status) != 0) {
        return false;
    }
    bool whole = write(seen->file, line, length) == (ssize_t)length;
    if (!whole && ftruncate(seen->file, status.st_size) != 0) {
        cleanup_close(&seen->file);
        seen->file = -1;
    }
    return whole;
}

static bool write_all(struct seen *seen)
{
    autotext struct text text = {0};
    text_printf(&text, FLOOR "%llu\n", (unsigned long long)seen->floor);
    for (size_t i = 0; i < seen->count; i++) {
        text_printf(&text, "%llu\n", (unsigned long long)seen->ids[i]);
    }
    return file_replace(seen->path, text.bytes, text.length, 0600, NULL) && open_file(seen, NULL);
}

/* --- the set -------------------------------------------------------------------------------------------- */

static void put(struct seen *seen, uint64_t attempt_id)
{
    size_t place = place_of(seen, attempt_id);
    memmove(&seen->ids[place + 1], &seen->ids[place], (seen->count - place) * sizeof *seen->ids);
    seen->ids[place] = attempt_id;
    seen->count++;
}

static void drop_half(struct seen *seen)
{
    size_t half = seen->count / 2;
    seen->floor = seen->ids[half - 1];
    seen->count -= half;
    memmove(seen->ids, seen->ids + half, seen->count * sizeof *seen->ids);
}

bool seen_add(struct seen *seen, uint64_t attempt_id)
{
    if (is_listed(seen, attempt_id)) {
        return true;
    }
    if (!append(seen, attempt_id)) {
        return false;
    }
    put(seen, attempt_id);
    if (seen->count == LIMIT_SEEN) {
        drop_half(seen);
        write_all(seen); /* on failure the file only stays longer than necessary */
    }
    return true;
}

static void take_line(struct seen *seen, const char *line)
{
    int64_t attempt_id;
    if (strncmp(line, FLOOR, strlen(FLOOR)) == 0) {
        if (text_to_int(line + strlen(FLOOR), 0, INT64_MAX, &attempt_id)) {
            seen->floor = (uint64_t)attempt_id;
        }
    } else if (text_to_int(line, 1, INT64_MAX, &attempt_id) && !is_listed(seen, (uint64_t)attempt_id)) {
        put(seen, (uint64_t)attempt_id);
        if (seen->count == LIMIT_SEEN) {
            drop_half(seen);
        }
    }
}

struct seen *seen_open(const char *run, struct err *err)
{
    struct seen *seen = xzalloc(sizeof *seen);
    *seen = (struct seen){.path = xprintf("%s/" SEEN_FILE, run),
                          .file = -1,
                          .ids = xalloc((LIMIT_SEEN + 1) * sizeof *seen->ids)};
    autofree char *text = NULL;
    if (access(seen->path, F_OK) == 0 && !file_read(seen->path, 2 * FILE_BYTES, &text, NULL, err)) {
        seen_close(seen);
        return NULL;
    }
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        take_line(seen, line);
    }
    if (!open_file(seen, err)) {
        seen_close(seen);
        return NULL;
    }
    return seen;
}

void seen_close(struct seen *seen)
{
    if (seen != NULL) {
        cleanup_close(&seen->file);
        free(seen->ids);
        free(seen->path);
        free(seen);
    }
}
