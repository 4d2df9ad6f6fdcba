/* SPDX-License-Identifier: Apache-2.0 */
/* One backup: a folder with one moment of the controller's databases, the key of its ranks' tokens, and a
 * manifest that names every file with its size and hash. Blobs, logs and artifacts are files that are only
 * ever added to: they are copied as they are, after the backup was made, and are no part of it. */
#ifndef BACKUP_BACKUP_H
#define BACKUP_BACKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/copy.h"
#include "proto/base/err.h"

#define BACKUP_MANIFEST "backup.json"
#define BACKUP_DATABASE "gpuctl.db"

/* The files of a state folder that a backup holds, in the order in which they are copied; ends with NULL. */
struct backup_part {
    const char *name;
    bool database; /* else copied byte by byte */
    bool needed;   /* a state folder without it is none */
};
extern const struct backup_part backup_parts[];

struct backup {
    int64_t taken_ms; /* wall clock; 0: the folder has no manifest */
    int64_t bytes;    /* of all its files */
    int64_t took_ms;
};

/* Makes the folder `target`, which must not be there yet, from the state folder, which a controller may be
 * using. watch as copy_database has it. The backup is on disk when this returns true; else no target is left.
 */
bool backup_make(const char *state, const char *target, const struct copy_watch *watch,
                 struct backup *ret_backup, struct err *err);

/* ERR_DISK_FULL when a backup of the state folder in `folder` would leave less than margin_bytes there. */
bool backup_fits(const char *state, const char *folder, int64_t margin_bytes, struct err *err);

/* What the manifest of a backup says. */
bool backup_read(const char *folder, struct backup *ret_backup, struct err *err);

/* Holds every file of the manifest against its size and hash. The first that is not right is named. */
bool backup_verify(const char *folder, struct err *err);

#endif
