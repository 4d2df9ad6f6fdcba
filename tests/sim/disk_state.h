/* SPDX-License-Identifier: Apache-2.0 */
/* What a disk is made of: for disk.c and the files beside it that speak SQLite's language. */
#ifndef SIM_DISK_STATE_H
#define SIM_DISK_STATE_H

#include <sqlite3.h>

#include "tests/sim/content.h"
#include "tests/sim/disk.h"

/* The index of a log, in memory that its connections share. */
struct shared_memory;

struct disk_file {
    char *name; /* NULL: of a temporary file */
    struct content content;
    bool exists, kept; /* kept: there after a loss of power */
    int handles;
    struct shared_memory *shared; /* NULL: no connection has mapped it */
    struct disk_file *next;
};

/* One open file of a connection; the memory is SQLite's. A void one has neither disk nor file. */
struct disk_handle {
    sqlite3_file base;
    struct disk *disk;
    struct disk_file *file;
    struct disk_handle *next; /* of the disk */
    int lock;                 /* SQLITE_LOCK_* */
    struct shared_memory *shared;
    unsigned shared_locks, exclusive_locks; /* bits: slots of the shared memory */
};

struct disk {
    sqlite3_vfs vfs;
    char *vfs_name;
    struct chance chance;        /* of power and failures */
    struct chance sqlite_chance; /* what SQLite is given as random */
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
    void (*before)(enum disk_operation operation, void *closure);
    void *before_closure;
};

/* Counts an operation. SQLITE_OK: to be done. Else it fails with that code: to be done in part, or not at
 * all. */
int disk_begin(struct disk *disk, enum disk_operation operation);
/* Whether a write that ends here fits. */
bool disk_has_room(const struct disk *disk, const struct disk_file *file, int64_t end);

/* NULL: it does not exist. */
struct disk_file *disk_find(const struct disk *disk, const char *name);
/* name NULL: a temporary one. */
struct disk_file *disk_make(struct disk *disk, const char *name);
/* No handle may be left of a temporary file that goes. */
void disk_forget(struct disk *disk, struct disk_file *file);
/* A sync of any file keeps the folder, too. */
void disk_keep_names(struct disk *disk);

/* Fills the table of functions. */
void disk_vfs_init(sqlite3_vfs *vfs);

/* The methods of shared memory. */
int shared_map(sqlite3_file *base, int region, int region_bytes, int extend, void volatile **ret_at);
int shared_lock(sqlite3_file *base, int offset, int count, int flags);
void shared_barrier(sqlite3_file *base);
int shared_unmap(sqlite3_file *base, int delete_it);
/* The handle is void from now on: its memory stays as long as it does, and is no longer the file's. */
void shared_detach(struct disk_handle *handle);

#endif
