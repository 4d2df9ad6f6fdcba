/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of attempts, made ahead of need: on some file systems making one takes longer than starting a
 * process. */
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

/* Makes one if too few are ready; true when one more is to be made. */
bool spares_refill(struct spares *spares);

#endif
