/* SPDX-License-Identifier: Apache-2.0 */
/* How the rows lie in memory, for the files of rows.h alone. */
#ifndef TRACE_ROWS_TABLES_H
#define TRACE_ROWS_TABLES_H

#include "daemon/core/core.h"
#include "tests/trace/harness/ledger.h"

struct job_rows {
    struct job_birth birth;
    struct job_life life;
    struct job_spec spec;
    struct array_row array; /* tasks 0: it is none */
    int64_t *owners;        /* of an array: the key of the job that each task has become; 0: none yet */
    enum event_kind *events;
    int64_t event_count;
    uint64_t attempt_id;
    bool removed; /* nothing names it any more */
};

struct attempt_rows {
    struct attempt_row row;
    struct member_row *members;
    size_t member_count, rank_count;
    size_t result_counts[RESULT_KIND_COUNT];
};

struct rows {
    struct job_rows *jobs; /* by key, from 1 */
    size_t job_count, job_room;
    struct dependency_row *dependencies; /* in order of their making */
    size_t dependency_count, dependency_room;
    struct attempt_rows *attempts; /* by attempt id */
    size_t attempt_count, attempt_room;
    struct node_row *nodes; /* in order of appearance */
    size_t node_count;
    struct ledger ledger;
    struct window_row *windows; /* in no order */
    size_t window_count;
};

/* NULL when there is no such attempt. */
struct attempt_rows *rows_attempt_at(const struct rows *rows, uint64_t attempt_id);

#endif
