/* SPDX-License-Identifier: Apache-2.0 */
/* Counts how often a controller was started. The count is the upper half of every attempt id, so no attempt
 * id is ever used twice, also when an older database replaces a newer one. */
#ifndef STORE_INCARNATION_H
#define STORE_INCARNATION_H

#include <stdint.h>

#include "daemon/store/database/connection.h"
#include "daemon/store/store.h"

/* The writer's start: a number above all that this database and the mark beside it know of, on disk in both
 * when this returns; and what store_restored tells. */
bool incarnation_begin(struct connection *writer, const char *path, uint32_t *ret_incarnation,
                       struct store_restored *ret_restored, struct err *err);

/* There is a mark beside the database at path: starts on it were counted. */
bool incarnation_is_marked(const char *path);

/* Marks a closed database that is to be put back in the place of another: its next start is above whatever
 * the backup, the mark beside `place` and the starts of any other machine since the backup have used. chance
 * is a random number. */
bool incarnation_leap(const char *database, const char *place, int64_t taken_ms, uint32_t chance,
                      struct err *err);

#endif
