/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory for SQLite, which can lose power, fail and fill up. One disk is one SQLite VFS; it serves
 * any number of files and connections of one thread. All chance comes from its seed. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk;

/* The effect of an operation on the disk. Only the first four are counted and fail; reads fail only on
 * demand. */
enum disk_operation { DISK_WRITE, DISK_SYNC, DISK_TRUNCATE, DISK_DELETE, DISK_READ };

/* Registers the VFS, on request as the default one. A default disk also becomes SQLite's source of
 * randomness. */
struct disk *disk_create(const char *vfs_name, bool as_default, uint64_t seed);
/* All connections must have been closed. NULL is allowed. */
void disk_destroy(struct disk *disk);
/* Makes this disk the default VFS. */
void disk_use(struct disk *disk);
/* Starts all chance, SQLite's included, again from this seed. */
void disk_seed(struct disk *disk, uint64_t seed);

/* The number of writes, syncs, truncations and deletions so far. */
int64_t disk_operations(const struct disk *disk);

/* Calls `before` ahead of each of these operations; NULL: no longer. It may use other disks, not this one. */
void disk_watch(struct disk *disk, void (*before)(enum disk_operation operation, void *closure),
                void *closure);

/* The machine loses power after this many more operations. The last of them is done in part or not at all;
 * from then on every operation fails with SQLITE_IOERR, until disk_restart. 0: at once; -1: never. */
void disk_crash_after(struct disk *disk, int64_t operations);
bool disk_crashed(const struct disk *disk);

/* After this many more operations the next one fails with this SQLite code (SQLITE_IOERR, SQLITE_FULL), done
 * in part or not at all. With `lasting`, all later operations fail, too, until disk_heal. -1: none. As with
 * SQLite's own VFS, only a write reports SQLITE_FULL; other operations without space report SQLITE_IOERR. A
 * failed sync may lose for good the changes that it did not keep. */
void disk_fail_after(struct disk *disk, int64_t operations, int code, bool lasting);
/* After this many more reads the next one fails, once. */
void disk_fail_read_after(struct disk *disk, int64_t reads, int code);
/* Ends both kinds of failures. A restart or a loss of power does not. */
void disk_heal(struct disk *disk);
/* How many operations have failed in either way. */
int64_t disk_failures(const struct disk *disk);

/* Writes that would make all files together larger than this fail with SQLITE_FULL. 0: no limit. */
void disk_limit(struct disk *disk, int64_t bytes);
int64_t disk_used(const struct disk *disk);

/* Makes syncs succeed without effect, for planted bugs. */
void disk_lie(struct disk *disk, bool lies);
/* Makes each sync leave out so many of the sectors (512 bytes) that were written last, for planted bugs. */
void disk_sync_early(struct disk *disk, size_t sectors);

/* The process has ended, by itself or by kill -9: open connections are void (SQLite frees their memory when
 * it closes them, and nothing reaches the files). power: the machine has lost power, too. Then every 512-byte
 * sector written since the last sync of its file is old, new or torn by chance, in any order. Files made or
 * grown since may be shorter. A file made or deleted since the last sync of any file may be missing or back.
 * Ends a countdown to a crash. */
void disk_restart(struct disk *disk, bool power);

/* Copies the database at path, with its log and its journal, to another disk as a loss of power now would
 * leave it. The copy replaces the files at to_path; the other disk's chance decides. */
void disk_image(const struct disk *disk, const char *path, struct disk *to, const char *to_path);

/* disk_copy returns the present bytes of a file, for the caller to free; NULL: no such file. disk_put writes
 * a file as if it had been synced long ago. */
uint8_t *disk_copy(const struct disk *disk, const char *path, size_t *ret_size);
void disk_put(struct disk *disk, const char *path, const uint8_t *bytes, size_t size);

#endif
