/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of each kind in a store, and all that is read of them. */
#ifndef TESTS_FUZZ_STORE_ROWS_H
#define TESTS_FUZZ_STORE_ROWS_H

#include <stdbool.h>

#include "daemon/store/store.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* Writes the first half of the rows or the second. */
bool store_rows_write(struct store *store, bool first, struct err *err);

/* Reads them by each query for live rows and for people, a line a row. false: the store says why not. */
bool store_rows_read(struct store *store, struct reader *reader, struct text *out, struct err *err);

#endif
