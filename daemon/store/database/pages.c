/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between SQLite and its files. A page of the database is read as it was written there, at that place,
 * or not at all: each page has a sum of its content and its number, which is set when the page goes into the
 * database and checked when it comes out. Pages in the write-ahead log have SQLite's own sums, see
 * wal_check.c. A write that finds the disk full is tried once more with the space of the reserve file.
 * SQLite writes each frame of the log in two pieces, and a commit is a dozen frames: pieces that follow each
 * other become one write. Everything else is SQLite's unix VFS: its tables of methods are copied, and some
 * methods are replaced. */
#include "daemon/store/database/pages.h"

#include <endian.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define RESERVE_OFFSET (PAGES_HEADER_BYTES - 1) /* how much of each page is reserved */
#define FRAME_BYTES    (24 + PAGE_BYTES)        /* of the log: its head and its page */
#define HEAD_MOST      32                       /* of a frame 24, of the log itself 32 */
#define GATHERED       16                       /* frames */

enum summed { SUMMED_UNKNOWN, SUMMED_NO, SUMMED_YES };

struct pages {
    sqlite3_vfs vfs; /* first: a VFS of this kind is its pages */
    sqlite3_vfs *real;
    struct reserve_file *reserve_file;
    bool strict, failed, gathers;
    enum summed summed; /* of files that do not say it yet */
    char name[32];
};

/* Stands behind SQLite's own struct of the file. */
struct guard {
    sqlite3_io_methods methods; /* of the file: real's but for ours */
    const sqlite3_io_methods *real;
    struct pages *pages;
    bool database, log;
    enum summed summed;
    uint8_t *held; /* what follows each other of a log, until it is written */
    int held_bytes;
    sqlite3_int64 held_offset;
};

static struct guard *guard_of(const sqlite3_file *file)
{
    return (struct guard *)((uintptr_t)file->pMethods - offsetof(struct guard, methods));
}

/* --- sums ----------------------------------------------------------------------------------------------- */

/* One to one in word, so that no change of a single word goes unseen. */
static uint64_t stir(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * 0x9E3779B185EBCA87U;
    return lane ^ lane >> 32;
}

static uint64_t word_at(const uint8_t *page, size_t index)
{
    uint64_t word;
    memcpy(&word, page + index * sizeof word, sizeof word);
    return le64toh(word);
}

uint64_t page_sum(const void *page, uint32_t number)
{
    enum { WORDS = (PAGE_BYTES - PAGE_SUM_BYTES) / 8, LANES = 4 }; /* four lanes keep a processor busy */
    uint64_t lanes[LANES] = {number, 1, 2, 3};
    size_t i = 0;
    for (; i + LANES <= WORDS; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            lanes[lane] = stir(lanes[lane], word_at(page, i + lane));
        }
    }
    for (; i < WORDS; i++) {
        lanes[0] = stir(lanes[0], word_at(page, i));
    }
    uint64_t sum = lanes[0];
    for (size_t lane = 1; lane < LANES; lane++) {
        sum = stir(sum, lanes[lane]);
    }
    return sum;
}

static uint32_t number_of(sqlite3_int64 offset)
{
    return (uint32_t)(offset / PAGE_BYTES) + 1;
}

static bool is_page(int amount, sqlite3_int64 offset)
{
    return amount == PAGE_BYTES && offset % PAGE_BYTES == 0;
}

static bool fits(const uint8_t *page, uint32_t number)
{
    uint64_t stored;
    memcpy(&stored, page + PAGE_BYTES - PAGE_SUM_BYTES, sizeof stored);
    return le64toh(stored) == page_sum(page, number);
}

static void set_sum(uint8_t *page, uint32_t number)
{
    uint64_t sum = htole64(page_sum(page, number));
    memcpy(page + PAGE_BYTES - PAGE_SUM_BYTES, &sum, sizeof sum);
}

bool pages_header_is_summed(const uint8_t *header)
{
    return header[RESERVE_OFFSET] == PAGE_SUM_BYTES;
}

static void learn_summed(struct guard *guard, const uint8_t *header)
{
    guard->summed = pages_header_is_summed(header) ? SUMMED_YES : SUMMED_NO;
}

/* Whether the pages of the file have sums: its first page says so. */
static bool is_summed(struct guard *guard, sqlite3_file *file)
{
    uint8_t header[PAGES_HEADER_BYTES];
    if (guard->summed == SUMMED_UNKNOWN && guard->real->xRead(file, header, sizeof header, 0) == SQLITE_OK) {
        learn_summed(guard, header);
    }
    return guard->summed == SUMMED_YES;
}

/* --- methods -------------------------------------------------------------------------------------------- */

/* Writes; if there is no space, tries again with the space of the reserve file. */
static int write_somehow(sqlite3_file *file, const void *bytes, int amount, sqlite3_int64 offset)
{
    const struct guard *guard = guard_of(file);
    int code = guard->real->xWrite(file, bytes, amount, offset);
    if (code == SQLITE_FULL && guard->pages->reserve_file != NULL &&
        reserve_file_release(guard->pages->reserve_file)) {
        code = guard->real->xWrite(file, bytes, amount, offset);
    }
    return code;
}

/* Writes what is held. */
static int let_go(sqlite3_file *file)
{
    struct guard *guard = guard_of(file);
    const int bytes = guard->held_bytes;
    guard->held_bytes = 0;
    return bytes > 0 ? write_somehow(file, guard->held, bytes, guard->held_offset) : SQLITE_OK;
}

/* Until a page ends what may be held: one frame, or where each commit is synced, as many as there is room
 * for. */
static bool is_enough(const struct guard *guard, int amount)
{
    return guard->held_bytes > (GATHERED - 1) * FRAME_BYTES || (amount > HEAD_MOST && !guard->pages->gathers);
}

static int write_log(sqlite3_file *file, const void *bytes, int amount, sqlite3_int64 offset)
{
    struct guard *guard = guard_of(file);
    if (guard->held_bytes > 0 && offset != guard->held_offset + guard->held_bytes) {
        int code = let_go(file);
        if (code != SQLITE_OK) {
            return code;
        }
    }
    if (guard->held_bytes == 0) {
        guard->held_offset = offset;
    }
    memcpy(guard->held + guard->held_bytes, bytes, (size_t)amount);
    guard->held_bytes += amount;
    return is_enough(guard, amount) ? let_go(file) : SQLITE_OK;
}

static int read_bytes(sqlite3_file *file, void *buffer, int amount, sqlite3_int64 offset)
{
    struct guard *guard = guard_of(file);
    int code = let_go(file);
    if (code == SQLITE_OK) {
        code = guard->real->xRead(file, buffer, amount, offset);
    }
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) {
        guard->pages->failed = true;
    }
    if (!guard->database) {
        return code;
    }
    if (code == SQLITE_OK && offset == 0 && amount > RESERVE_OFFSET) {
        learn_summed(guard, buffer);
    }
    if (!is_page(amount, offset) || !is_summed(guard, file)) {
        return code;
    }
    if (code == SQLITE_IOERR_SHORT_READ && guard->pages->strict) {
        return SQLITE_CORRUPT;
    }
    return code == SQLITE_OK && !fits(buffer, number_of(offset)) ? SQLITE_CORRUPT : code;
}

static int write_page(sqlite3_file *file, const void *bytes, sqlite3_int64 offset)
{
    uint8_t page[PAGE_BYTES];
    memcpy(page, bytes, sizeof page);
    set_sum(page, number_of(offset));
    return write_somehow(file, page, sizeof page, offset);
}

/* Free pages that were never written would be zeros without a sum, and whole zeros are damage. */
static int write_empty_pages(sqlite3_file *file, sqlite3_int64 from, sqlite3_int64 to)
{
    static const uint8_t zeros[PAGE_BYTES];
    int code = SQLITE_OK;
    for (; from < to && code == SQLITE_OK; from += PAGE_BYTES) {
        code = write_page(file, zeros, from);
    }
    return code;
}

static int write_bytes(sqlite3_file *file, const void *bytes, int amount, sqlite3_int64 offset)
{
    struct guard *guard = guard_of(file);
    if (guard->log && amount <= PAGE_BYTES) {
        return write_log(file, bytes, amount, offset);
    }
    if (guard->database && offset == 0 && amount > RESERVE_OFFSET) {
        learn_summed(guard, bytes);
    }
    if (!guard->database || !is_page(amount, offset) || !is_summed(guard, file)) {
        return write_somehow(file, bytes, amount, offset);
    }
    sqlite3_int64 size;
    int code = guard->real->xFileSize(file, &size);
    if (code == SQLITE_OK && size < offset) {
        code = write_empty_pages(file, size, offset);
    }
    return code == SQLITE_OK ? write_page(file, bytes, offset) : code;
}

/* A checkpoint that makes the file longer does so for free pages at its end. */
static int set_size(sqlite3_file *file, sqlite3_int64 size)
{
    struct guard *guard = guard_of(file);
    sqlite3_int64 before = 0;
    int code = let_go(file);
    if (guard->database && is_summed(guard, file)) {
        code = guard->real->xFileSize(file, &before);
        if (code == SQLITE_OK && before < size) {
            return write_empty_pages(file, before, size);
        }
    }
    return code == SQLITE_OK ? guard->real->xTruncate(file, size) : code;
}

static int sync_file(sqlite3_file *file, int flags)
{
    int code = let_go(file);
    return code == SQLITE_OK ? guard_of(file)->real->xSync(file, flags) : code;
}

static int get_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    int code = let_go(file);
    return code == SQLITE_OK ? guard_of(file)->real->xFileSize(file, ret_size) : code;
}

/* What is held then belongs to no commit. */
static int close_file(sqlite3_file *file)
{
    struct guard *guard = guard_of(file);
    free(give(guard->held));
    return guard->real->xClose(file);
}

/* The index of the log is a file as well, and may need the space of the reserve file. */
static int map_index(sqlite3_file *file, int region, int bytes, int extend, void volatile **ret_memory)
{
    const struct guard *guard = guard_of(file);
    int code = guard->real->xShmMap(file, region, bytes, extend, ret_memory);
    if (code == SQLITE_IOERR_SHMSIZE && guard->pages->reserve_file != NULL &&
        reserve_file_release(guard->pages->reserve_file)) {
        code = guard->real->xShmMap(file, region, bytes, extend, ret_memory);
    }
    return code;
}

/* --- the layer ------------------------------------------------------------------------------------------ */

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    struct pages *pages = (struct pages *)vfs;
    struct guard *guard = (struct guard *)((char *)file + pages->real->szOsFile);
    int code = pages->real->xOpen(pages->real, name, file, flags, ret_flags);
    if (code != SQLITE_OK) {
        return code;
    }
    *guard = (struct guard){.methods = *file->pMethods,
                            .real = file->pMethods,
                            .pages = pages,
                            .database = (flags & SQLITE_OPEN_MAIN_DB) != 0,
                            .log = (flags & SQLITE_OPEN_WAL) != 0,
                            .summed = pages->summed};
    guard->held = guard->log ? xalloc(GATHERED * FRAME_BYTES) : NULL;
    guard->methods.xClose = close_file;
    guard->methods.xRead = read_bytes;
    guard->methods.xWrite = write_bytes;
    guard->methods.xTruncate = set_size;
    guard->methods.xSync = sync_file;
    guard->methods.xFileSize = get_size;
    guard->methods.xShmMap = map_index;
    file->pMethods = &guard->methods;
    return SQLITE_OK;
}

struct pages *pages_create(struct reserve_file *reserve_file)
{
    struct pages *pages = xzalloc(sizeof *pages);
    pages->real = sqlite3_vfs_find(NULL);
    pages->reserve_file = reserve_file;
    pages->vfs = *pages->real;
    pages->vfs.szOsFile = pages->real->szOsFile + (int)sizeof(struct guard);
    pages->vfs.pNext = NULL;
    pages->vfs.xOpen = open_file;
    snprintf(pages->name, sizeof pages->name, "pages-%p", (void *)pages);
    pages->vfs.zName = pages->name;
    sqlite3_vfs_register(&pages->vfs, 0);
    return pages;
}

void pages_destroy(struct pages *pages)
{
    if (pages != NULL) {
        sqlite3_vfs_unregister(&pages->vfs);
        free(pages);
    }
}

const char *pages_name(const struct pages *pages)
{
    return pages->name;
}

bool pages_have_failed(const struct pages *pages)
{
    return pages->failed;
}

void pages_set_summed(struct pages *pages, bool summed)
{
    pages->summed = summed ? SUMMED_YES : SUMMED_NO;
}

bool pages_are_summed(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return code == SQLITE_OK && file->pMethods != NULL && is_summed(guard_of(file), file);
}

void pages_gather(struct pages *pages)
{
    pages->gathers = true;
}

void pages_set_strict(struct pages *pages, bool strict)
{
    pages->strict = strict;
}
