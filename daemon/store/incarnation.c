/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the starts of the controller. No two starts on one state folder have the same number, even when an
 * older copy replaces the database: a mark beside it, PATH.incarnation, remembers the largest number, and is
 * on disk before anything is served.
 *
 * If the mark is lost with the whole machine, nobody knows how many starts there were after the backup was
 * taken, nor how often it was restored elsewhere. A restore therefore leaps by 2^16, more starts
 * than anybody makes between two backups, and by a random number below 2^22 more, so that two restores of
 * one backup do not land on the same numbers. About a thousand leaps fit. */
#include "daemon/store/incarnation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/database/pages.h"
#include "daemon/store/query.h"
#include "daemon/store/database/schema_version.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define LEAP_LEAST  (1 << 16)
#define LEAP_RANDOM (1 << 22)

/* --- the mark beside the database ----------------------------------------------------------------------- */

/* "INCARNATION RESTORED_MS FROM_MS": the largest that was ever begun, and the last restore; 0 0: there was
 * none. */
struct mark {
    int64_t incarnation;
    struct store_restored restored;
};

static char *mark_of(const char *path)
{
    return xprintf("%s.incarnation", path);
}

static bool mark_parse(char *text, struct mark *ret_mark)
{
    struct mark mark;
    text[strcspn(text, "\n")] = '\0';
    char *rest = text;
    const char *first = strsep(&rest, " "), *second = strsep(&rest, " ");
    if (rest == NULL || !text_to_int(first, 0, INT32_MAX, &mark.incarnation) ||
        !text_to_int(second, 0, INT64_MAX, &mark.restored.at_ms) ||
        !text_to_int(rest, 0, INT64_MAX, &mark.restored.from_ms)) {
        return false;
    }
    *ret_mark = mark;
    return true;
}

/* All members are 0 if there is no mark. */
static bool mark_read(const char *path, struct mark *ret_mark, struct err *err)
{
    autofree char *name = mark_of(path);
    autofree char *text = NULL;
    *ret_mark = (struct mark){0};
    if (access(name, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_read(name, 64, &text, NULL, err)) {
        return false;
    }
    if (mark_parse(text, ret_mark)) {
        return true;
    }
    err_set(err, ERR_IO, "%s is damaged", name);
    return err_hint(err, "remove it and put the newest backup back: gpuctl admin restore");
}

static bool mark_write(const char *path, const struct mark *mark, struct err *err)
{
    autofree char *name = mark_of(path);
    autofree char *text = xprintf("%" PRId64 " %" PRId64 " %" PRId64 "\n", mark->incarnation,
                                  mark->restored.at_ms, mark->restored.from_ms);
    autofree char *folder = file_folder_of(path);
    return file_replace(name, text, strlen(text), 0600, err) && file_give_to_owner_of(folder, name, err);
}

/* --- starts --------------------------------------------------------------------------------------------- */

static bool read_number(struct query *query, int64_t *ret_value, struct err *err)
{
    *ret_value = query_step(query, err) ? query_read_number(query) : 0;
    return !query->failed && !query_step(query, err) && !query->failed; /* a change is committed by this */
}

static bool read_last(struct connection *writer, int64_t *ret_value, struct err *err)
{
    autoquery struct query query = query_begin(writer, SQL_INCARNATION);
    return read_number(&query, ret_value, err);
}

static bool bump(struct connection *writer, int64_t least, int64_t *ret_value, struct err *err)
{
    autoquery struct query query = query_begin(writer, SQL_BUMP);
    query_bind_number(&query, least);
    return read_number(&query, ret_value, err);
}

/* Somebody replaced the database by an older file by hand. Nobody knows when that was copied, so nodes are
 * asked for everything that they remember. */
static void note_older(struct mark *mark, int64_t last)
{
    log_warning("database older", "incarnation=%" PRId64 " seen=%" PRId64, last, mark->incarnation);
    mark->restored = (struct store_restored){.at_ms = clock_wall_ms(), .from_ms = 1};
}

bool incarnation_is_marked(const char *path)
{
    autofree char *name = mark_of(path);
    return access(name, F_OK) == 0;
}

bool incarnation_begin(struct connection *writer, const char *path, uint32_t *ret_incarnation,
                       struct store_restored *ret_restored, struct err *err)
{
    struct mark mark;
    int64_t last;
    if (!mark_read(path, &mark, err) || !read_last(writer, &last, err)) {
        return false;
    }
    if (last < mark.incarnation) {
        note_older(&mark, last);
    }
    if (!bump(writer, mark.incarnation, &mark.incarnation, err)) {
        return false;
    }
    if (mark.incarnation < 1 ||
        mark.incarnation > INT32_MAX) { /* an attempt id is a positive integer of SQLite */
        return err_set(err, ERR_IO, "the database has no usable incarnation");
    }
    *ret_incarnation = (uint32_t)mark.incarnation;
    *ret_restored = mark.restored.at_ms > 0 && clock_wall_ms() - mark.restored.at_ms < LOST_ASKED_MS
                        ? mark.restored
                        : (struct store_restored){0};
    return mark_write(path, &mark, err);
}

/* --- restores ------------------------------------------------------------------------------------------- */

static bool leap_within(sqlite3 *db, int64_t least, int64_t leap, struct err *err)
{
    autofree char *sql = xprintf("PRAGMA synchronous = FULL; UPDATE meta SET value = max(value, %" PRId64
                                 ") + %" PRId64 " WHERE name = 'incarnation'",
                                 least, leap);
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ||
           err_set(err, ERR_IO, "cannot mark the database: %s", sqlite3_errmsg(db));
}

/* The mark keeps its number: should the restore not come to its end, the database that stays is not older. */
bool incarnation_leap(const char *database, const char *place, int64_t taken_ms, uint32_t chance,
                      struct err *err)
{
    struct mark mark;
    sqlite3 *db = NULL;
    struct pages *pages = pages_create(NULL);
    bool ok = mark_read(place, &mark, err);
    if (ok && sqlite3_open_v2(database, &db, SQLITE_OPEN_READWRITE, pages_name(pages)) != SQLITE_OK) {
        ok = err_set(err, ERR_IO, "cannot open %s: %s", database, sqlite3_errmsg(db));
    }
    ok = ok && schema_check(db, err) &&
         leap_within(db, mark.incarnation, LEAP_LEAST + chance % LEAP_RANDOM, err);
    sqlite3_close(db);
    pages_destroy(pages);
    mark.restored = (struct store_restored){.at_ms = clock_wall_ms(), .from_ms = taken_ms > 0 ? taken_ms : 1};
    return ok && mark_write(place, &mark, err);
}
