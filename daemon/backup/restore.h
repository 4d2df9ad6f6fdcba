/* SPDX-License-Identifier: Apache-2.0 */
/* Putting a backup back in the place of what a state folder holds. For whoever holds the folder's lock. */
#ifndef BACKUP_RESTORE_H
#define BACKUP_RESTORE_H

#include "daemon/backup/backup.h"

/* Puts back the backup `from`: a folder of backup_make, or a single database file such as
 * backups/before-schema-4.db, which leaves the other files as they are. It is verified and marked first
 * (store/incarnation.h); what it replaces is kept in the folder *ret_replaced, which the caller frees. A
 * restore that is cut short has either changed nothing or is finished by the next restore_finish. */
bool restore_run(const char *from, const char *state, char **ret_replaced, struct err *err);

/* Finishes a restore that was cut short in the middle; *ret_finished: there was one. Called before the
 * databases of a state folder are opened. */
bool restore_finish(const char *state, bool *ret_finished, struct err *err);

#endif
