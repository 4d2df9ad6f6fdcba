/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are inserted together: STORE_INSERT_ROWS by one statement cost a third less than one by one. */
#ifndef STORE_GATHER_H
#define STORE_GATHER_H

#include <stdbool.h>

#include "daemon/core/model/rows.h"
#include "daemon/store/database/connection.h"
#include "proto/limits_controller.h"

/* The rows of a submission, and of the audit. */
enum gather_kind { GATHER_JOB, GATHER_SPEC, GATHER_EVENT, GATHER_REPLY, GATHER_AUDIT, GATHER_COUNT };

union gathered {
    struct job_row job;
    struct spec_row spec;
    struct event_row event;
    struct reply_row reply;
    struct audit_row audit;
};

/* Starts as {0}. */
struct gather {
    union gathered rows[GATHER_COUNT][STORE_INSERT_ROWS];
    int counts[GATHER_COUNT];
};

/* Adds a row of that kind, and inserts all of the kind when there are enough of them. The row's texts must
 * stay until it is inserted; that of a reply is copied. */
bool gather_add(struct gather *gather, struct connection *connection, enum gather_kind kind, const void *row,
                struct err *err);
/* Inserts what has been added. */
bool gather_flush(struct gather *gather, struct connection *connection, struct err *err);
/* Forgets it. */
void gather_finish(struct gather *gather);

#endif
