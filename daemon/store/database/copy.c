/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a database while it is in use. A copy is one committed state of the whole database, and it was read
 * back before it is called good. Copying delays no commit: it reads from one snapshot, and gives up before
 * the log grows so long that the writer would have to wait for readers. daemon/backup makes backups of such
 * copies.
 *
 * The pages come through SQLite's backup interface. Its own way to copy in steps begins anew after each
 * commit of another connection, and would never end on a busy controller; a snapshot that is held for the
 * whole copy does not. */
#include "daemon/store/database/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/database/connection.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

struct copy {
    struct connection from;
    const char *log; /* the write-ahead log of `from` */
    int64_t log_max_bytes;
    sqlite3 *to;
    const char *path; /* of `to` */
    struct pages *to_pages;
    int fd; /* of `to`, to have its pages written while they come */
    const struct copy_watch *watch;
};

static bool stopped(const struct copy_watch *watch)
{
    return watch != NULL && !watch->go_on(watch->closure);
}

static bool stop_error(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "the copy was stopped");
}

static bool copy_fail(const struct copy *copy, int code, struct err *err)
{
    if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB) {
        return connection_damaged(err,
                                  sqlite3_errstr(code)); /* of the original: nothing of the copy is read */
    }
    return err_set(err, (code & 0xff) == SQLITE_FULL ? ERR_DISK_FULL : ERR_IO,
                   "cannot copy the database to %s: %s", copy->path, sqlite3_errstr(code));
}

/* --- the snapshot --------------------------------------------------------------------------------------- */

static int64_t log_bytes(const struct copy *copy)
{
    struct stat status;
    return stat(copy->log, &status) == 0 ? status.st_size : 0;
}

/* If older frames fill the log already, it must not grow at all. */
static bool take_snapshot(struct copy *copy, struct err *err)
{
    int64_t now_bytes = log_bytes(copy);
    copy->log_max_bytes = now_bytes > LIMIT_COPY_LOG_BYTES ? now_bytes : LIMIT_COPY_LOG_BYTES;
    return connection_set(&copy->from, "BEGIN", err) &&
           connection_set(&copy->from, "SELECT count(*) FROM sqlite_schema", err);
}

static bool may_go_on(const struct copy *copy, struct err *err)
{
    if (stopped(copy->watch)) {
        return stop_error(err);
    }
    if (log_bytes(copy) > copy->log_max_bytes) {
        err_set(err, ERR_UNAVAILABLE, "the database is written faster than it can be copied");
        return err_hint(err, "try again when less is going on");
    }
    return true;
}

/* --- the copy ------------------------------------------------------------------------------------------- */

static bool set(struct copy *copy, const char *sql, struct err *err)
{
    int code = sqlite3_exec(copy->to, sql, NULL, NULL, NULL);
    return code == SQLITE_OK || copy_fail(copy, code, err);
}

/* The target is synced as a whole at its end, and removed after a failure. Pages that come out of the log
 * have no sums yet. */
static bool open_target(struct copy *copy, struct err *err)
{
    copy->fd = open(copy->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (copy->fd < 0) {
        return err_errno(err, "cannot make %s", copy->path);
    }
    copy->to_pages = pages_create(NULL);
    pages_set_summed(copy->to_pages, pages_are_summed(copy->from.db));
    int code = sqlite3_open_v2(copy->path, &copy->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                               pages_name(copy->to_pages));
    return (code == SQLITE_OK || copy_fail(copy, code, err)) && set(copy, "PRAGMA synchronous = OFF", err) &&
           set(copy, "PRAGMA journal_mode = OFF", err) && set(copy, "PRAGMA cache_size = -1024", err);
}

/* Gives the disk a little at a time, so that commits of the controller never wait for many of our pages. */
static void trickle(const struct copy *copy)
{
    sync_file_range(copy->fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE);
}

static bool copy_pages(struct copy *copy, sqlite3_backup *backup, struct err *err)
{
    int code;
    while ((code = sqlite3_backup_step(backup, COPY_STEP_PAGES)) == SQLITE_OK) {
        trickle(copy);
        if (!may_go_on(copy, err)) {
            return false;
        }
    }
    return code == SQLITE_DONE || copy_fail(copy, code, err);
}

/* The header of the original says that there is a write-ahead log; the copy has none, so its header changes.
 */
static bool copy_all(struct copy *copy, struct err *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(copy->to, "main", copy->from.db, "main");
    if (backup == NULL) {
        return copy_fail(copy, sqlite3_errcode(copy->to), err);
    }
    bool copied = copy_pages(copy, backup, err);
    int code = sqlite3_backup_finish(backup);
    return copied && (code == SQLITE_OK || copy_fail(copy, code, err)) &&
           connection_set(&copy->from, "COMMIT", err) && set(copy, "PRAGMA journal_mode = DELETE", err);
}

static bool close_target(struct copy *copy, bool copied, struct err *err)
{
    int code = sqlite3_close(copy->to);
    pages_destroy(copy->to_pages);
    bool synced = !copied || fsync(copy->fd) == 0 || err_errno(err, "cannot sync %s", copy->path);
    cleanup_close(&copy->fd);
    return copied && (code == SQLITE_OK || copy_fail(copy, code, err)) && synced;
}

/* --- reading back --------------------------------------------------------------------------------------- */

static int over(void *closure)
{
    return stopped(closure);
}

static bool look_whole(struct connection *copy, const char *path, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(copy->db, "PRAGMA integrity_check(1)", -1, &statement, NULL);
    code = code == SQLITE_OK ? sqlite3_step(statement) : code;
    const char *finding = code == SQLITE_ROW ? connection_text(statement, 0) : sqlite3_errstr(code);
    bool whole = strcmp(finding, "ok") == 0;
    if (!whole && (code & 0xff) == SQLITE_INTERRUPT) {
        stop_error(err);
    } else if (code == SQLITE_NOMEM) {
        connection_fail(copy, err); /* which says nothing about the database */
    } else if (!whole) {
        err_set(err, ERR_IO, "the database %s is damaged: %s", path, finding);
        err_hint(err, "put a backup in its place: gpuctl admin restore");
    }
    sqlite3_finalize(statement);
    return whole;
}

static bool read_back(const char *from, const char *to, const struct copy_watch *watch, struct err *err)
{
    struct connection copy;
    bool good = connection_open(&copy, to, CONNECTION_COPIER, NULL, err);
    if (good) {
        sqlite3_progress_handler(copy.db, 100000, over, (void *)(uintptr_t)watch);
        good = look_whole(&copy, from, err);
    }
    connection_close(&copy);
    return good;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static bool make_copy(const char *from, const char *to, const struct copy_watch *watch, struct err *err)
{
    autofree char *log = xprintf("%s-wal", from);
    struct copy copy = {.log = log, .path = to, .fd = -1, .watch = watch};
    bool copied = connection_open(&copy.from, from, CONNECTION_COPIER, NULL, err) &&
                  take_snapshot(&copy, err) && open_target(&copy, err) && copy_all(&copy, err);
    connection_close(&copy.from);
    return close_target(&copy, copied, err);
}

bool copy_database(const char *from, const char *to, const struct copy_watch *watch, struct err *err)
{
    if (access(to, F_OK) == 0) {
        return err_set(err, ERR_CONFLICT, "%s is there already", to);
    }
    if (make_copy(from, to, watch, err) && read_back(from, to, watch, err)) {
        return true;
    }
    unlink(to);
    return false;
}
