/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a disk, for disk.c and the files that implement SQLite's interfaces. */
#ifndef SIM_DISK_STATE_H
#define SIM_DISK_STATE_H

#include <sqlite3.h>

#include "tests/sim/disk/content.h"
#include "tests/sim/disk/disk.h"

/* The index of a log, in memory that its connections share. */
struct shared_memory;

struct disk_file {
    char *name; /* NULL: a temporary file */
    struct content content;
    bool exists, kept; /* kept: it exists after a loss of power */
    int handles;
    struct shared_memory *shared; /* NULL: no connection has mapped it */
    struct disk_file *next;
};

/* One open file of a connection, in SQLite's memory. A void one has neither disk nor file. */
struct disk_handle {
    sqlite3_file base;
    struct disk *disk;
    struct disk_file *file;
    struct disk_handle *next; /* in the list of the disk */
    int lock;                 /* SQLITE_LOCK_* */
    struct shared_memory *shared;
    unsigned shared_locks, exclusive_locks; /* bits: slots of the shared memory */
};

struct disk {
    sqlite3_vfs vfs;
    char *vfs_name;
    struct chance chance;        /* decides about power and failures */
    struct chance sqlite_chance; /* SQLite's randomness */
    int64_t now_us;
    struct disk_file *files;
    struct disk_handle *handles;

    int64_t operations;
    int64_t failures;
    int64_t crash_left; /* operations until the crash; -1: none */
    bool crashed;
    int64_t fail_left; /* operations before the one that fails; -1: none */
    int fail_code;
    bool fail_lasts;
    int64_t read_fail_left;
    int read_fail_code;
    int64_t limit;
    bool lies;
    size_t early_sectors;
    void (*before)(enum disk_operation operation, void *closure);
    void *before_closure;
};

/* Counts an operation. SQLITE_OK: it must be done. Otherwise it fails with the returned code, done in part or
 * not at all. */
int disk_begin(struct disk *disk, enum disk_operation operation);
/* Whether a write up to this end fits. */
bool disk_has_room(const struct disk *disk, const struct disk_file *file, int64_t end);

/* NULL: the file does not exist. */
struct disk_file *disk_find(const struct disk *disk, const char *name);
/* name NULL: a temporary file. */
struct disk_file *disk_make(struct disk *disk, const char *name);
/* No handle may be left of a temporary file that is removed. */
void disk_forget(struct disk *disk, struct disk_file *file);
/* A sync of any file makes the folder durable, too. */
void disk_keep_names(struct disk *disk);

/* Fills the function table. */
void disk_vfs_init(sqlite3_vfs *vfs);

/* The methods of shared memory. */
int shared_map(sqlite3_file *base, int region, int region_bytes, int extend, void volatile **ret_at);
int shared_lock(sqlite3_file *base, int offset, int count, int flags);
void shared_barrier(sqlite3_file *base);
int shared_unmap(sqlite3_file *base, int delete_it);
/* Makes the handle void: its memory lives as long as the handle, and no longer belongs to the file. */
void shared_detach(struct disk_handle *handle);

#endif
