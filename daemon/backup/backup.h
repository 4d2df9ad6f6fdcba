/* SPDX-License-Identifier: Apache-2.0 */
/* One backup: a folder with one moment of the controller's databases, the key of its ranks' tokens, and a
 * manifest with the size and hash of every file. Blobs, logs and artifacts are not part of a backup: their
 * files only ever grow in number or length, so operators copy them as they are, after the backup was made. */
#ifndef BACKUP_BACKUP_H
#define BACKUP_BACKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/database/copy.h"
#include "proto/base/err.h"

#define BACKUP_MANIFEST "backup.json"
#define BACKUP_DATABASE "gpuctl.db"

/* The files of a state folder that a backup contains, in the order of copying; ends with NULL. */
struct backup_part {
    const char *name;
    bool database; /* false: copied byte by byte */
    bool needed;   /* required: without it the folder is no state folder */
};
extern const struct backup_part backup_parts[];

struct backup {
    int64_t taken_ms; /* wall clock; 0: the folder has no manifest */
    int64_t bytes;    /* of all its files */
    int64_t took_ms;
};

/* Makes the folder `target`, which must not exist, from the state folder, which a controller may be using.
 * watch as in copy_database. True: the backup is on disk. False: no target is left. */
bool backup_make(const char *state, const char *target, const struct copy_watch *watch,
                 struct backup *ret_backup, struct err *err);

/* ERR_DISK_FULL if a backup of the state folder in `folder` would leave less than margin_bytes there. */
bool backup_fits(const char *state, const char *folder, int64_t margin_bytes, struct err *err);

/* Reads the manifest of a backup. */
bool backup_read(const char *folder, struct backup *ret_backup, struct err *err);

/* Checks every file of the manifest against its size and hash. The error names the first mismatch. */
bool backup_verify(const char *folder, struct err *err);

#endif
