/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of attempts, made ahead of need, with what earlier attempts did not use: on some file systems
 * making one takes longer than starting a process. */
#ifndef AGENT_SPARES_H
#define AGENT_SPARES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/trash.h"
#include "proto/base/err.h"

struct spares;

/* folder is made if need be; what an earlier agent left in it goes to the trash. */
struct spares *spares_create(const char *folder, struct trash *trash, struct err *err);
void spares_destroy(struct spares *spares);

/* Puts the folder of an attempt at a path on the same file system: the folders of its ranks, and empty files
 * for the output of its first rank and for its exit record. */
bool spares_take(struct spares *spares, const char *path, int64_t first_rank, struct err *err);

/* Takes the folder of an attempt that is over: it is gone from its place at once. What is in it as the
 * attempt got it may serve the next one, the rest goes to the trash. */
void spares_return(struct spares *spares, const char *path);

/* Makes one if too few are ready; true when one more is to be made. */
bool spares_refill(struct spares *spares);

#endif
