/* SPDX-License-Identifier: Apache-2.0 */
/* Removes folders piece by piece, whatever jobs have left in them. */
#ifndef AGENT_TRASH_H
#define AGENT_TRASH_H

#include <stdbool.h>

#include "proto/base/err.h"

struct trash;

/* folder is made if it does not exist; the leftovers of an earlier agent in it are removed, too. */
struct trash *trash_create(const char *folder, struct err *err);
void trash_destroy(struct trash *trash);

/* Takes a folder or a file of the same file system; it is gone from its path at once. False: it is still
 * there. */
bool trash_take(struct trash *trash, const char *path);

/* Removes a piece; true while there is more. */
bool trash_step(struct trash *trash);

#endif
