/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of attempts, made ahead of need, with what earlier attempts did not use: on some file systems
 * making one takes longer than starting a process. */
#ifndef AGENT_FOLDER_POOL_H
#define AGENT_FOLDER_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/trash.h"
#include "proto/base/err.h"

struct folder_pool;

/* folder is made if need be; what an earlier agent left in it goes to the trash. */
struct folder_pool *folder_pool_create(const char *folder, struct trash *trash, struct err *err);
void folder_pool_destroy(struct folder_pool *folder_pool);

/* Puts the folder of an attempt at a path on the same file system: the folders of its ranks, and empty files
 * for the output of its first rank and for its exit record. */
bool folder_pool_take(struct folder_pool *folder_pool, const char *path, int64_t first_rank, struct err *err);

/* Takes the folder of an attempt that is over: it is gone from its place at once. What is in it as the
 * attempt got it may serve the next one, the rest goes to the trash. */
void folder_pool_return(struct folder_pool *folder_pool, const char *path);

/* Makes one if too few are ready; true when one more is to be made. */
bool folder_pool_refill(struct folder_pool *folder_pool);

#endif
