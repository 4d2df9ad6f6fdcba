/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a database keeps the promises between its rows; for a copy that nobody else uses. */
#ifndef STORE_CHECK_H
#define STORE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/change.h"
#include "proto/base/err.h"

struct check_counts {
    int64_t jobs, events, attempts, blobs;
};

/* Told in this order: how many rows there are; of each promise each row that breaks it, in words, at most
 * LIMIT_CHECK_FINDINGS, and then how many rows break it; and every blob, whose bytes are NULL if they are a
 * file. */
struct check_visitor {
    void (*counted)(const struct check_counts *counts, void *closure);
    void (*found)(const char *finding, void *closure);
    void (*looked)(const char *promise, int64_t broken, void *closure);
    void (*blob)(const struct blob_row *row, void *closure);
    void *closure;
};

/* Only reads the database, which must have the newest schema. False: it cannot be read. */
bool check_database(const char *path, const struct check_visitor *visitor, struct err *err);

#endif
