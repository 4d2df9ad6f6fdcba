/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of automatic backups, named by the time at which they were taken. */
#ifndef BACKUP_SHELF_H
#define BACKUP_SHELF_H

#include "daemon/backup/backup.h"

#define SHELF_NAME_BYTES 32

struct shelved {
    char name[SHELF_NAME_BYTES]; /* "20261121T093000Z", "20261121T093000Z-2" */
    struct backup backup;
};

/* Makes a backup of the state folder on the shelf, and the shelf if it does not exist. Then removes the
 * oldest beyond `keep`, never the new one. */
bool shelf_add(const char *shelf, const char *state, int64_t keep, const struct copy_watch *watch,
               struct shelved *ret_shelved, struct err *err);

/* Lists the shelf, the newest first; the caller frees the array. A missing shelf is empty. Folders that are
 * not backups of shelf_add are left out. */
bool shelf_list(const char *shelf, struct shelved **ret_items, size_t *ret_count, struct err *err);

#endif
