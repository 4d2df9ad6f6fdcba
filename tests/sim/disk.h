/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory for SQLite, which can lose power, fail and fill up. One disk is one SQLite VFS; it serves
 * any number of files and connections of one thread. All chance comes from its seed. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk;

/* What an operation does to the disk. Only the first four count and fail; reading fails on demand alone. */
enum disk_operation { DISK_WRITE, DISK_SYNC, DISK_TRUNCATE, DISK_DELETE, DISK_READ };

/* Registers the VFS, as the default one when it is asked to be. A default disk also becomes the source of
 * what SQLite calls random. */
struct disk *disk_create(const char *vfs_name, bool as_default, uint64_t seed);
/* All connections must have been closed. NULL: nothing. */
void disk_destroy(struct disk *disk);
/* Makes this one the default VFS from now on. */
void disk_use(struct disk *disk);
/* All chance, SQLite's included, begins anew with this seed. */
void disk_seed(struct disk *disk, uint64_t seed);

/* How many writes, syncs, truncations and deletions there have been. */
int64_t disk_operations(const struct disk *disk);

/* Calls it before each of these operations; NULL: no longer. It may use other disks, not this one. */
void disk_watch(struct disk *disk, void (*before)(enum disk_operation operation, void *closure),
                void *closure);

/* The machine loses power after this many more operations: the last of them is done in part or not at all,
 * and from then on every operation fails with SQLITE_IOERR, until disk_restart. 0: at once. -1: not at all.
 */
void disk_crash_after(struct disk *disk, int64_t operations);
bool disk_crashed(const struct disk *disk);

/* The operation that comes after this many more fails with this SQLite code (SQLITE_IOERR, SQLITE_FULL), done
 * in part or not at all; and so do all that follow while `lasting`, until disk_heal. -1: none. As with
 * SQLite's own VFS, only a write says SQLITE_FULL; what else finds no room says SQLITE_IOERR. What a sync
 * that failed did not keep may be lost for good. */
void disk_fail_after(struct disk *disk, int64_t operations, int code, bool lasting);
/* The read that comes after this many more fails, once. */
void disk_fail_read_after(struct disk *disk, int64_t reads, int code);
/* Ends both. Neither a restart nor a loss of power does that. */
void disk_heal(struct disk *disk);
/* How often either has failed. */
int64_t disk_failures(const struct disk *disk);

/* Writes that would make the files larger than this in all fail with SQLITE_FULL. 0: no bound. */
void disk_limit(struct disk *disk, int64_t bytes);
int64_t disk_used(const struct disk *disk);

/* A known lie, for planted bugs: syncs are answered and do nothing. */
void disk_lie(struct disk *disk, bool lies);

/* The process has ended, by itself or by kill -9: connections that were not closed are void (their memory is
 * freed when SQLite closes them, and nothing of that reaches the files). power: the machine has lost power,
 * too: of each file, every 512-byte sector that was written since the last sync of that file is old, new or
 * torn by chance, in any order; files made or grown since may be shorter; a file made or deleted since the
 * last sync of any file may be missing or back. Ends a countdown to a crash. */
void disk_restart(struct disk *disk, bool power);

/* What this disk would hold of the database at path, its log and its journal, if power were lost now: on
 * another disk, in the place of what is there, under another path. The chance is the other disk's. */
void disk_image(const struct disk *disk, const char *path, struct disk *to, const char *to_path);

/* A copy of a file's bytes as they are now, for the caller to free; NULL: no such file. And the way back: as
 * if written and synced long ago. */
uint8_t *disk_copy(const struct disk *disk, const char *path, size_t *ret_size);
void disk_put(struct disk *disk, const char *path, const uint8_t *bytes, size_t size);

#endif
