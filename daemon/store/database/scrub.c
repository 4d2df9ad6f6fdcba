/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the pages of a database to see whether each has its sum. It reads the file in order, past SQLite:
 * that needs no snapshot, however long it takes. So a page without its sum is not yet damage. A checkpoint
 * may be writing it right now, a crash may have torn it while the log has it whole, or it may be free. Such a
 * page is read again after a moment, and if it is still without its sum, SQLite reads all pages that are in
 * use. */
#include "daemon/store/database/scrub.h"

#include <string.h>
#include <time.h>

#include "proto/base/clock.h"
#include "proto/limits_controller.h"

/* --- all pages in use ----------------------------------------------------------------------------------- */

static bool quick_check(struct connection *connection, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(connection->db, "PRAGMA quick_check(1)", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        sqlite3_finalize(statement);
        return connection_fail(connection, err);
    }
    const char *finding = connection_text(statement, 0);
    const char *heading_end = strchr(finding, '\n'); /* "*** in database main ***" */
    const char *what = heading_end != NULL ? heading_end + 1 : finding;
    bool ok = strcmp(finding, "ok") == 0 || (pages_have_failed(connection->pages)
                                                 ? err_set(err, ERR_IO, "cannot read the database: %s", what)
                                                 : connection_damaged(err, what));
    sqlite3_finalize(statement);
    return ok;
}

bool scrub_whole(struct connection *connection, struct err *err)
{
    pages_set_strict(connection->pages, true);
    bool ok = quick_check(connection, err);
    pages_set_strict(connection->pages, false);
    return ok;
}

/* --- page by page --------------------------------------------------------------------------------------- */

static void rest(int64_t us)
{
    const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

/* SQLITE_CORRUPT: it has not its sum, also at a second look. */
static int read_page(sqlite3_file *file, int64_t index)
{
    char page[PAGE_BYTES];
    int code = file->pMethods->xRead(file, page, sizeof page, index * PAGE_BYTES);
    if (code == SQLITE_CORRUPT) {
        rest(SCRUB_AGAIN_US);
        code = file->pMethods->xRead(file, page, sizeof page, index * PAGE_BYTES);
    }
    return code;
}

/* SQLITE_IOERR_SHORT_READ: the file has ended. */
static int read_piece(sqlite3_file *file, int64_t first)
{
    int code = SQLITE_OK;
    for (int64_t i = first; i < first + COPY_STEP_PAGES && code == SQLITE_OK; i++) {
        code = read_page(file, i);
    }
    return code;
}

static bool read_pages(sqlite3_file *file, const struct copy_watch *watch, int *ret_code)
{
    *ret_code = SQLITE_OK;
    for (int64_t first = 0; *ret_code == SQLITE_OK && watch->go_on(watch->closure);
         first += COPY_STEP_PAGES) {
        int64_t began_us = clock_boot_us();
        *ret_code = read_piece(file, first);
        rest(SCRUB_REST * (clock_boot_us() - began_us));
    }
    return *ret_code == SQLITE_OK || *ret_code == SQLITE_IOERR_SHORT_READ;
}

static int is_stopped(void *closure)
{
    const struct copy_watch *watch = closure;
    return !watch->go_on(watch->closure);
}

/* Damage that is found by a scrub that was told to stop is left to the next one. */
static bool read_whole(struct connection *connection, const struct copy_watch *watch, struct err *err)
{
    sqlite3_progress_handler(connection->db, SCRUB_STOP_STEPS, is_stopped, (void *)(uintptr_t)watch);
    return scrub_whole(connection, err) || is_stopped((void *)(uintptr_t)watch);
}

static bool scrub(struct connection *connection, const struct copy_watch *watch, struct err *err)
{
    sqlite3_file *file = NULL;
    int code = sqlite3_file_control(connection->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code != SQLITE_OK) {
        return connection_fail(connection, err);
    }
    if (read_pages(file, watch, &code)) {
        return true;
    }
    return code == SQLITE_CORRUPT
               ? read_whole(connection, watch, err)
               : err_set(err, ERR_IO, "cannot read the database: %s", sqlite3_errstr(code));
}

bool scrub_run(const char *path, const struct copy_watch *watch, struct err *err)
{
    struct connection connection;
    bool ok =
        connection_open(&connection, path, CONNECTION_COPIER, NULL, err) && scrub(&connection, watch, err);
    connection_close(&connection);
    return ok;
}
