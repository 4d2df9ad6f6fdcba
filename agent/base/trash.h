/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are to go away, piece by piece, whatever jobs have left in them. */
#ifndef AGENT_TRASH_H
#define AGENT_TRASH_H

#include <stdbool.h>

#include "proto/base/err.h"

struct trash;

/* folder is made if need be; what an earlier agent left in it goes too. */
struct trash *trash_create(const char *folder, struct err *err);
void trash_destroy(struct trash *trash);

/* Takes a folder of the same file system; it is gone from its place at once. */
void trash_take(struct trash *trash, const char *path);

/* Removes a piece; true while there is more. */
bool trash_step(struct trash *trash);

#endif
