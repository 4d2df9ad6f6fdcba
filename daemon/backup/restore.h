/* SPDX-License-Identifier: Apache-2.0 */
/* Restores a backup into a state folder. The caller holds the folder's lock. */
#ifndef BACKUP_RESTORE_H
#define BACKUP_RESTORE_H

#include "daemon/backup/backup.h"

/* Restores the backup `from`: a folder of backup_make, or a single database file such as
 * backups/before-schema-4.db, which leaves the other files as they are. The backup is verified and marked
 * first (store/incarnation.h). The replaced files are kept in the folder *ret_replaced, which the caller
 * frees. An interrupted restore has either changed nothing or is finished by the next restore_finish. */
bool restore_run(const char *from, const char *state, char **ret_replaced, struct err *err);

/* Finishes an interrupted restore; *ret_finished: there was one. Call it before the databases of a state
 * folder are opened. */
bool restore_finish(const char *state, bool *ret_finished, struct err *err);

#endif
