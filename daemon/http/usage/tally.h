/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of who used what: by steps of time, and by project, owner, pool, GPU type and kind of pool, as
 * somebody asks for. */
#ifndef HTTP_TALLY_H
#define HTTP_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/http/usage/prices.h"
#include "daemon/store/store.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct tally;

/* What rows are told apart by, beside what the question has. */
struct tally_by {
    bool pool, gpu_type;
};

/* The question and the prices are borrowed. now_ms: up to then live attempts have held their GPUs, wall
 * clock. */
struct tally *tally_create(const struct use_question *question, struct tally_by by,
                           const struct prices *prices, int64_t now_ms);
void tally_destroy(struct tally *tally);

/* ERR_TOO_LARGE beyond LIMIT_USAGE_ROWS rows. */
bool tally_add(struct tally *tally, const struct use_record *record, struct err *err);

/* Appends "usage":[...],"total":{...}: the rows in the order of time and names. */
void tally_write(struct tally *tally, struct text *out);

#endif
