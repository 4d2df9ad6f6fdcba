/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a write-ahead log before SQLite opens it. SQLite reads a log up to the first frame that is not
 * whole. That is right after a power failure, because the transaction in progress was never acknowledged. But
 * a single bit that flips in the middle would also silently drop all transactions committed behind it. Two
 * facts tell these cases apart. The log's index, if it belongs to this log, counts frames only once they are
 * on disk. And at most one transaction is ever in progress, so there is at most one commit behind a frame
 * that a power failure left. A log whose header is not whole passes if the database has all of it. The check
 * refuses nothing that a crash can leave, and changes nothing but such a header. SQLite defines both files:
 * "WAL-mode File Format". */
#include "daemon/store/database/wal_check.h"

#include <endian.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/database/pages.h"
#include "daemon/store/database/wal.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

enum {
    SECTOR_BYTES = 512,
    HEADER_BYTES = 32,
    FRAME_HEADER_BYTES = 24,
    FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES
};

#define MAGIC 0x377f0682 /* the lowest bit: sums are of big-endian words */

/* The header of the index, twice at its beginning, in the byte order of the machine. */
struct index_header {
    uint32_t version, unused, change;
    uint8_t initialized, big_endian;
    uint16_t page_bytes;
    uint32_t frames; /* that are committed */
    uint32_t pages;
    uint32_t frame_sums[2];
    uint8_t salts[8]; /* as in the log */
    uint32_t sums[2];
};

struct sums {
    uint32_t a, b;
};

/* The log from its beginning: its sums are a chain. */
struct walk {
    sqlite3_file *file;
    bool failed; /* to read */
    bool big_endian;
    uint32_t salts[2];
    struct sums sums;
    uint32_t pages; /* of the database, as of the last commit that fits */
};

static uint32_t big(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t little(const uint8_t *bytes)
{
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static void add(struct walk *walk, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i += 8) {
        uint32_t first = walk->big_endian ? big(bytes + i) : little(bytes + i);
        uint32_t second = walk->big_endian ? big(bytes + i + 4) : little(bytes + i + 4);
        walk->sums.a += first + walk->sums.b;
        walk->sums.b += second + walk->sums.a;
    }
}

static bool sums_are(const struct walk *walk, const uint8_t *bytes)
{
    return walk->sums.a == big(bytes) && walk->sums.b == big(bytes + 4);
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool begin(struct walk *walk, const uint8_t *header)
{
    uint32_t magic = big(header);
    walk->big_endian = (magic & 1) != 0;
    walk->salts[0] = big(header + 16);
    walk->salts[1] = big(header + 20);
    add(walk, header, 24);
    return (magic & ~1U) == MAGIC && big(header + 8) == PAGE_BYTES && sums_are(walk, header + 24);
}

/* Whether the frame belongs to this log, whole or not. */
static bool is_ours(const struct walk *walk, const uint8_t *frame)
{
    return big(frame + 8) == walk->salts[0] && big(frame + 12) == walk->salts[1];
}

/* The size of the database, if the frame commits; else 0. */
static uint32_t pages_after(const uint8_t *frame)
{
    return big(frame + 4);
}

static bool is_commit(const uint8_t *frame)
{
    return pages_after(frame) != 0;
}

static bool is_next(struct walk *walk, const uint8_t *frame)
{
    add(walk, frame, 8);
    add(walk, frame + FRAME_HEADER_BYTES, PAGE_BYTES);
    return big(frame) != 0 && is_ours(walk, frame) && sums_are(walk, frame + 16);
}

/* False: the log ends before, or cannot be read. */
static bool read_at(struct walk *walk, void *bytes, int length, int64_t offset)
{
    int code = walk->file->pMethods->xRead(walk->file, bytes, length, offset);
    walk->failed = walk->failed || (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ);
    return code == SQLITE_OK;
}

static int64_t offset_of(int64_t frame)
{
    return HEADER_BYTES + frame * FRAME_BYTES;
}

/* Goes over the frames that fit, from one on; returns how many fit in all. *ret_committed: of these, up to
 * the last commit. */
static int64_t skip_whole(struct walk *walk, int64_t from, int64_t *ret_committed)
{
    uint8_t frame[FRAME_BYTES];
    int64_t count = from;
    while (read_at(walk, frame, sizeof frame, offset_of(count)) && is_next(walk, frame)) {
        count++;
        *ret_committed = is_commit(frame) ? count : *ret_committed;
        walk->pages = is_commit(frame) ? pages_after(frame) : walk->pages;
    }
    return count;
}

/* Checks a frame against the one before it alone. */
static bool follows(struct walk *walk, int64_t frame)
{
    uint8_t before[FRAME_HEADER_BYTES], bytes[FRAME_BYTES];
    if (!read_at(walk, before, sizeof before, offset_of(frame - 1)) ||
        !read_at(walk, bytes, sizeof bytes, offset_of(frame))) {
        return false;
    }
    walk->sums = (struct sums){big(before + 16), big(before + 20)};
    return is_next(walk, bytes);
}

/* A loss of power may leave the first words of a header as they were in an older log, which is likely
 * where the database was smaller, and possible where a sector ends behind them. */
static bool is_older(const struct walk *walk, int64_t frame, const uint8_t *header)
{
    return pages_after(header) < walk->pages || offset_of(frame) % SECTOR_BYTES == SECTOR_BYTES - 8;
}

/* Commits of this log from a frame on. *ret_any: there are frames of it. */
static int64_t count_commits(struct walk *walk, int64_t frame, bool *ret_any)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int64_t count = 0;
    *ret_any = false;
    for (; read_at(walk, header, sizeof header, offset_of(frame)); frame++) {
        *ret_any = *ret_any || is_ours(walk, header);
        count += is_ours(walk, header) && is_commit(header) &&
                 (!is_older(walk, frame, header) || follows(walk, frame));
    }
    return count;
}

/* How many frames the index counts; 0: it is of another log, or not whole. */
static int64_t count_in_index(const char *path, const uint8_t *log_header)
{
    autofree char *name = xprintf("%s-shm", path);
    autoclose int fd = open(name, O_RDONLY | O_CLOEXEC);
    struct index_header copies[2];
    struct walk walk = {.big_endian = htobe32(1) == 1};
    if (fd < 0 || pread(fd, copies, sizeof copies, 0) != (ssize_t)sizeof copies ||
        memcmp(&copies[0], &copies[1], sizeof copies[0]) != 0 ||
        memcmp(copies[0].salts, log_header + 16, sizeof copies[0].salts) != 0) {
        return 0;
    }
    add(&walk, (const uint8_t *)copies, offsetof(struct index_header, sums));
    bool whole = walk.sums.a == copies[0].sums[0] && walk.sums.b == copies[0].sums[1];
    return whole && copies[0].initialized == 1 ? copies[0].frames : 0;
}

static bool refuse(const char *path, const char *what, struct err *err)
{
    err_set(err, ERR_DAMAGED, "the write-ahead log %s-wal is damaged: %s", path, what);
    return err_hint(err, PAGES_REMEDY);
}

/* --- a log without a header ----------------------------------------------------------------------------- */

/* The header is on disk before the first frame is written. So frames without a header belong to a log that
 * was moved into the database and whose next header was torn, or to a damaged log. Frames of transactions
 * that were never finished are wiped (wal_cut) before a next header is written. -1: there are no others. */
static int64_t find_first(struct walk *walk)
{
    uint8_t header[FRAME_HEADER_BYTES];
    for (int64_t frame = 0; read_at(walk, header, sizeof header, offset_of(frame)); frame++) {
        if (!is_zero(header, sizeof header)) {
            return frame;
        }
    }
    return -1;
}

/* Pages of a database that were compared. */
struct likeness {
    sqlite3_file *database;
    int64_t pages; /* that it has */
    bool summed;
    uint8_t *seen; /* bits */
};

static bool begin_likeness(struct likeness *likeness, sqlite3_file *database)
{
    uint8_t header[PAGES_HEADER_BYTES];
    sqlite3_int64 size;
    if (database->pMethods->xFileSize(database, &size) != SQLITE_OK ||
        database->pMethods->xRead(database, header, sizeof header, 0) != SQLITE_OK) {
        return false;
    }
    *likeness = (struct likeness){.database = database,
                                  .pages = size / PAGE_BYTES,
                                  .summed = pages_header_is_summed(header),
                                  .seen = xzalloc((size_t)(size / PAGE_BYTES / 8 + 1))};
    return true;
}

/* Compares the page of a frame with the database, unless a later frame of the page was seen. Sums are set
 * when the page goes into the database. */
static bool is_alike(struct likeness *likeness, const uint8_t *frame)
{
    uint8_t page[PAGE_BYTES];
    int64_t index = (int64_t)big(frame) - 1;
    if (index < 0 || index >= likeness->pages) {
        return false;
    }
    uint8_t bit = (uint8_t)(1U << index % 8), *seen = &likeness->seen[index / 8];
    if (*seen & bit) {
        return true;
    }
    *seen |= bit;
    size_t length = likeness->summed ? PAGE_BYTES - PAGE_SUM_BYTES : PAGE_BYTES;
    return likeness->database->pMethods->xRead(likeness->database, page, PAGE_BYTES, index * PAGE_BYTES) ==
               SQLITE_OK &&
           memcmp(page, frame + FRAME_HEADER_BYTES, length) == 0;
}

/* Whether the database has all that was committed: then a log without its header takes nothing away. Frames
 * are held against the one before them, the first against the database alone. What moves into the database is
 * a log from its beginning up to some commit, so what stood before the first frame is there, too. */
static bool is_moved(struct walk *walk, sqlite3_file *database, int64_t first)
{
    bool any;
    struct likeness likeness;
    uint8_t frame[FRAME_BYTES];
    if (!read_at(walk, frame, sizeof frame, offset_of(first)) || !begin_likeness(&likeness, database)) {
        return false;
    }
    *walk = (struct walk){.file = walk->file,
                          .big_endian = htobe32(1) == 1,
                          .salts = {big(frame + 8), big(frame + 12)},
                          .sums = {big(frame + 16), big(frame + 20)},
                          .pages = pages_after(frame)};
    int64_t committed = is_commit(frame) ? first + 1 : 0;
    bool moved = count_commits(walk, skip_whole(walk, first + 1, &committed), &any) <= 1 && committed > 0;
    for (int64_t i = committed - 1; moved && i >= first; i--) {
        moved = read_at(walk, frame, sizeof frame, offset_of(i)) &&
                (big(frame) > walk->pages || is_alike(&likeness, frame));
    }
    free(likeness.seen);
    return moved;
}

/* SQLite would take the salts of a header that is not whole for those of the next log, in whose place the
 * frames of the last one would then seem to be. */
static bool drop_header(struct walk *walk)
{
    static const uint8_t nothing[HEADER_BYTES];
    return walk->file->pMethods->xWrite(walk->file, nothing, sizeof nothing, 0) == SQLITE_OK &&
           walk->file->pMethods->xSync(walk->file, SQLITE_SYNC_NORMAL) == SQLITE_OK;
}

static bool check_moved(struct walk *walk, sqlite3_file *database, const char *path, struct err *err)
{
    int64_t first = find_first(walk);
    if (first < 0) {
        return true;
    }
    if (!is_moved(walk, database, first)) {
        return refuse(path, "its header is not whole", err);
    }
    walk->failed = walk->failed || !drop_header(walk);
    return true;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static bool check(struct walk *walk, sqlite3_file *database, const char *path, int64_t *ret_torn_at,
                  struct err *err)
{
    uint8_t header[HEADER_BYTES];
    if (!read_at(walk, header, sizeof header, 0)) {
        return true; /* shorter than a header: it never held anything */
    }
    if (memcmp(header, WAL_FINISHED, sizeof header) == 0) {
        return true;
    }
    if (!begin(walk, header)) {
        return check_moved(walk, database, path, err);
    }
    int64_t committed = 0;
    bool any;
    int64_t whole = skip_whole(walk, 0, &committed);
    int64_t lost = count_commits(walk, whole, &any);
    *ret_torn_at = any || whole > committed ? committed : -1;
    if (committed < count_in_index(path, header)) {
        return refuse(path, "transactions at its end are gone", err);
    }
    return lost <= 1 || refuse(path, "there are transactions behind a frame that is not whole", err);
}

static bool fail(const char *path, struct err *err)
{
    return err_set(err, ERR_IO, "cannot use the write-ahead log of %s", path);
}

static sqlite3_file *open_file(sqlite3_vfs *vfs, const char *name, int kind_flags)
{
    int flags;
    sqlite3_file *file = xzalloc((size_t)vfs->szOsFile);
    if (vfs->xOpen(vfs, name, file, kind_flags, &flags) != SQLITE_OK) {
        free(file);
        return NULL;
    }
    return file;
}

static void close_file(sqlite3_file *file)
{
    if (file != NULL) {
        file->pMethods->xClose(file);
        free(file);
    }
}

/* Checks an existing log; the names are as SQLite's VFS has them. */
static bool check_files(sqlite3_vfs *vfs, const char *database, const char *log, int64_t *ret_torn_at,
                        struct err *err)
{
    struct walk walk = {.file = open_file(vfs, log, SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL)};
    sqlite3_file *file = open_file(vfs, database, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB);
    bool opened = walk.file != NULL && file != NULL;
    bool ok = opened && check(&walk, file, database, ret_torn_at, err);
    close_file(file);
    close_file(walk.file);
    return opened && !walk.failed ? ok : fail(database, err);
}

bool wal_check(const char *path, int64_t *ret_torn_at, struct err *err)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    autofree char *database = xzalloc((size_t)vfs->mxPathname + 1);
    int code = vfs->xFullPathname(vfs, path, vfs->mxPathname + 1, database);
    *ret_torn_at = -1;
    if (code != SQLITE_OK && code != SQLITE_OK_SYMLINK) {
        return fail(path, err);
    }
    autofree char *log = xprintf("%s-wal", database);
    /* SQLite's VFS looks for parameters behind the name of a database. */
    sqlite3_filename name = sqlite3_create_filename(database, "", log, 0, NULL);
    int there = 0;
    bool ok = (vfs->xAccess(vfs, log, SQLITE_ACCESS_EXISTS, &there) == SQLITE_OK || fail(path, err)) &&
              (!there || check_files(vfs, name, log, ret_torn_at, err));
    sqlite3_free_filename(name);
    return ok;
}
