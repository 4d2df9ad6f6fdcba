/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a database keeps the promises between its rows; for a copy that nobody else uses. */
#ifndef STORE_CHECK_H
#define STORE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/change.h"
#include "proto/base/err.h"

struct checker;

/* Opens a database of the newest schema for reading. */
struct checker *checker_open(const char *path, struct err *err);
void checker_close(struct checker *checker);

struct check_counts {
    int64_t jobs, events, attempts, blobs;
};
bool checker_count(struct checker *checker, struct check_counts *ret_counts, struct err *err);

/* Looks at each promise in turn: looked is told each with how many rows break it, found each such row in
 * words, LIMIT_CHECK_FINDINGS a promise at most. */
struct check_visitor {
    void (*looked)(const char *promise, int64_t broken, void *closure);
    void (*found)(const char *finding, void *closure);
    void *closure;
};
bool checker_look(struct checker *checker, const struct check_visitor *visitor, struct err *err);

/* Every blob that there is; bytes NULL: they are a file. */
bool checker_blobs(struct checker *checker, void (*visit)(const struct blob_row *row, void *closure),
                   void *closure, struct err *err);

#endif
