/* SPDX-License-Identifier: Apache-2.0 */
/* Controls the size of the write-ahead log. The file is never shorter than WAL_GROWN_BYTES. Everything
 * that an earlier writer left in it is on the disk before anything follows it. The log moves into the
 * database only when wal_checkpoint is called. A file that grows makes fdatasync write the inode as well,
 * which doubles its time; therefore the file begins with room, is never deleted, and is cut back only
 * after a forced checkpoint, to twice WAL_PASSIVE_BYTES. */
#include "daemon/store/database/wal.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* Of SQLite's format: a header of the log, then frames, each a header and a page. Both headers hold the salts
 * of the log; frames of an older log have others. */
enum {
    HEADER_BYTES = 32,
    FRAME_BYTES = PAGE_BYTES + 24,
    HEADER_SALTS = 16,
    FRAME_SALTS = 8,
    SALTS_BYTES = 8
};

static int count_pages(void *closure, sqlite3 *db, const char *name, int pages)
{
    struct wal *wal = closure;
    if (pages < wal->pages) { /* SQLite has begun the log anew */
        wal->moved = 0;
    }
    wal->pages = pages;
    return SQLITE_OK;
}

void wal_watch(struct wal *wal, struct connection *connection)
{
    sqlite3_wal_hook(connection->db, count_pages, wal);
}

static int journal_of(struct connection *connection, sqlite3_file **ret_file, sqlite3_int64 *ret_size)
{
    *ret_file = NULL;
    *ret_size = 0;
    int code = sqlite3_file_control(connection->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, ret_file);
    return code != SQLITE_OK || (*ret_file)->pMethods == NULL
               ? code
               : (*ret_file)->pMethods->xFileSize(*ret_file, ret_size);
}

static bool fail(int code, const char *what, struct err *err)
{
    if (code == SQLITE_FULL) {
        return err_set(err, ERR_DISK_FULL, "the disk has no room for the write-ahead log of the database");
    }
    return err_set(err, ERR_IO, "cannot %s the write-ahead log of the database: %s", what,
                   sqlite3_errstr(code));
}

/* Frames of this log, the first first. */
static int rewrite_frames(sqlite3_file *file, sqlite3_int64 size)
{
    char header[HEADER_BYTES], frame[FRAME_BYTES];
    int code = file->pMethods->xRead(file, header, sizeof header, 0);
    if (code == SQLITE_OK) {
        code = file->pMethods->xWrite(file, header, sizeof header, 0);
    }
    for (sqlite3_int64 at = HEADER_BYTES; at + FRAME_BYTES <= size && code == SQLITE_OK; at += FRAME_BYTES) {
        code = file->pMethods->xRead(file, frame, sizeof frame, at);
        if (code == SQLITE_OK && memcmp(frame + FRAME_SALTS, header + HEADER_SALTS, SALTS_BYTES) != 0) {
            return SQLITE_OK;
        }
        if (code == SQLITE_OK) {
            code = file->pMethods->xWrite(file, frame, sizeof frame, at);
        }
    }
    return code;
}

bool wal_renew(struct connection *connection, struct err *err)
{
    sqlite3_file *file;
    sqlite3_int64 size;
    int code = journal_of(connection, &file, &size);
    if (code == SQLITE_OK && size >= HEADER_BYTES) {
        code = rewrite_frames(file, size);
        code = code == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : code;
    }
    return code == SQLITE_OK || fail(code, "renew", err);
}

static int wipe_frames(sqlite3_file *file, sqlite3_int64 at, sqlite3_int64 size)
{
    static const char nothing[FRAME_BYTES - 4096];
    char header[HEADER_BYTES], frame[sizeof nothing];
    int code = file->pMethods->xRead(file, header, sizeof header, 0);
    for (; at + (sqlite3_int64)sizeof frame <= size && code == SQLITE_OK; at += FRAME_BYTES) {
        code = file->pMethods->xRead(file, frame, sizeof frame, at); /* its page may be cut off */
        if (code == SQLITE_OK && memcmp(frame + FRAME_SALTS, header + HEADER_SALTS, SALTS_BYTES) == 0) {
            code = file->pMethods->xWrite(file, nothing, sizeof nothing, at);
        }
    }
    return code == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : code;
}

bool wal_cut(struct connection *connection, int64_t frame, struct err *err)
{
    sqlite3_file *file;
    sqlite3_int64 size;
    int code = journal_of(connection, &file, &size);
    if (code == SQLITE_OK && size >= HEADER_BYTES) {
        code = wipe_frames(file, HEADER_BYTES + frame * FRAME_BYTES, size);
    }
    return code == SQLITE_OK || fail(code, "cut", err);
}

/* The last pages of a database. */
struct last_pages {
    int64_t first, count; /* the first counts from 0 */
    uint8_t *seen;        /* bits */
    int64_t seen_count;
};

static void see(struct last_pages *pages, const char *frame)
{
    uint32_t number;
    memcpy(&number, frame, sizeof number);
    int64_t index = (int64_t)be32toh(number) - 1 - pages->first;
    if (index < 0 || index >= pages->count) {
        return;
    }
    uint8_t bit = (uint8_t)(1U << index % 8);
    pages->seen_count += (pages->seen[index / 8] & bit) == 0;
    pages->seen[index / 8] |= bit;
}

/* Sees the pages of all frames of this log. */
static int see_frames(sqlite3_file *log, struct last_pages *pages)
{
    char header[HEADER_BYTES], frame[FRAME_BYTES - PAGE_BYTES];
    int code = log->pMethods->xRead(log, header, sizeof header, 0);
    for (sqlite3_int64 at = HEADER_BYTES; code == SQLITE_OK; at += FRAME_BYTES) {
        code = log->pMethods->xRead(log, frame, sizeof frame, at);
        if (code == SQLITE_OK && memcmp(frame + FRAME_SALTS, header + HEADER_SALTS, SALTS_BYTES) != 0) {
            return SQLITE_OK;
        }
        if (code == SQLITE_OK) {
            see(pages, frame);
        }
    }
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

static int count_lacking(struct connection *connection, struct last_pages *ret_pages)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0, pages = 0;
    int code = sqlite3_prepare_v2(connection->db, "PRAGMA page_count", -1, &statement, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        pages = sqlite3_column_int64(statement, 0);
        code = sqlite3_file_control(connection->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    }
    sqlite3_finalize(statement);
    code = code == SQLITE_OK ? file->pMethods->xFileSize(file, &size) : code;
    *ret_pages = (struct last_pages){.first = size / PAGE_BYTES, .count = pages - size / PAGE_BYTES};
    return code;
}

bool wal_completes(struct connection *connection, bool *ret_completes, struct err *err)
{
    sqlite3_file *log;
    sqlite3_int64 size;
    struct last_pages pages;
    int code = count_lacking(connection, &pages);
    if (code != SQLITE_OK) {
        return connection_fail(connection, err);
    }
    *ret_completes = pages.count <= 0;
    if (*ret_completes) {
        return true;
    }
    autofree uint8_t *seen = xzalloc((size_t)pages.count / 8 + 1);
    pages.seen = seen;
    code = journal_of(connection, &log, &size);
    code = code == SQLITE_OK && size > 0 ? see_frames(log, &pages) : code;
    *ret_completes = pages.seen_count == pages.count;
    return code == SQLITE_OK || fail(code, "read", err);
}

/* Zeros behind the log are no frames of it: the salts in their headers are not those of the log. */
static int extend(sqlite3_file *file, sqlite3_int64 size)
{
    static const char zeros[64 * KIB];
    int code = SQLITE_OK;
    while (size < WAL_GROWN_BYTES && code == SQLITE_OK) {
        sqlite3_int64 left = WAL_GROWN_BYTES - size;
        int piece = left < (sqlite3_int64)sizeof zeros ? (int)left : (int)sizeof zeros;
        code = file->pMethods->xWrite(file, zeros, piece, size);
        size += piece;
    }
    return code == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : code;
}

bool wal_grow(struct connection *connection, struct err *err)
{
    sqlite3_file *file;
    sqlite3_int64 size;
    int code = journal_of(connection, &file, &size);
    if (code == SQLITE_OK && size < WAL_GROWN_BYTES) {
        code = extend(file, size);
    }
    return code == SQLITE_OK || fail(code, "grow", err);
}

static bool checkpoint(struct wal *wal, struct connection *connection, int mode, struct err *err)
{
    int pages = 0;
    int moved = 0;
    int code = sqlite3_wal_checkpoint_v2(connection->db, "main", mode, &pages, &moved);
    if (code == SQLITE_BUSY || code == SQLITE_FULL) { /* a reader is in the way, or no room: next time */
        return true;
    }
    wal->moved = moved;
    return code == SQLITE_OK || connection_fail(connection, err);
}

void wal_finish(struct connection *connection)
{
    static_assert(sizeof WAL_FINISHED - 1 == HEADER_BYTES, "it takes the place of a header");
    sqlite3_file *file;
    sqlite3_int64 size;
    int pages = 0, moved = 0;
    int code = sqlite3_wal_checkpoint_v2(connection->db, "main", SQLITE_CHECKPOINT_RESTART, &pages, &moved);
    if (code == SQLITE_OK && pages == moved && journal_of(connection, &file, &size) == SQLITE_OK &&
        size >= HEADER_BYTES && file->pMethods->xWrite(file, WAL_FINISHED, HEADER_BYTES, 0) == SQLITE_OK) {
        file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
    }
}

bool wal_checkpoint(struct wal *wal, struct connection *connection, bool idle, struct err *err)
{
    int64_t log_bytes = (int64_t)wal->pages * FRAME_BYTES;
    int64_t waiting_bytes = (int64_t)(wal->pages - wal->moved) * FRAME_BYTES;
    if (log_bytes >= WAL_FORCED_BYTES) {
        sqlite3_busy_timeout(connection->db, WAL_FORCED_WAIT_MS);
        bool ok = checkpoint(wal, connection, SQLITE_CHECKPOINT_RESTART, err);
        sqlite3_busy_timeout(connection->db, 0);
        if (wal->moved == wal->pages) {
            *wal = (struct wal){0}; /* the next commit begins the log anew */
        }
        return ok;
    }
    if (waiting_bytes >= (idle ? WAL_IDLE_BYTES : WAL_PASSIVE_BYTES)) {
        return checkpoint(wal, connection, SQLITE_CHECKPOINT_PASSIVE, err);
    }
    return true;
}
