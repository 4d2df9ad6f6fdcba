/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a write-ahead log before SQLite opens it. */
#ifndef STORE_WAL_CHECK_H
#define STORE_WAL_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* False with ERR_DAMAGED: the log of the database at path holds transactions that SQLite would pass over in
 * silence. *ret_torn_at: the frame from which on it has a transaction that was never finished, as a power
 * failure leaves it; -1: none. No log is a sound one. */
bool wal_check(const char *path, int64_t *ret_torn_at, struct err *err);

#endif
