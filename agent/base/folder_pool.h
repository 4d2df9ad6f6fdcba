/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of attempts, made ahead of need, with the unused parts of earlier attempts: on some file systems
 * making one takes longer than starting a process. */
#ifndef AGENT_FOLDER_POOL_H
#define AGENT_FOLDER_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/trash.h"
#include "proto/base/err.h"

struct folder_pool;

/* folder is made if it does not exist; the leftovers of an earlier agent in it go to the trash. */
struct folder_pool *folder_pool_create(const char *folder, struct trash *trash, struct err *err);
void folder_pool_destroy(struct folder_pool *folder_pool);

/* Puts a folder for an attempt at a path on the same file system. It contains the folders of its ranks, and
 * for its first rank a folder for files that it keeps, and empty files for its output; and one for the exit
 * record. */
bool folder_pool_take(struct folder_pool *folder_pool, const char *path, int64_t first_rank, struct err *err);

/* Takes the folder of an attempt that is over: it is gone from its path at once. Unused parts may serve the
 * next attempt, the rest goes to the trash. */
void folder_pool_return(struct folder_pool *folder_pool, const char *path);

/* Makes one folder if too few are ready; true when another one should be made. */
bool folder_pool_refill(struct folder_pool *folder_pool);

#endif
