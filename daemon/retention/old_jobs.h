/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the jobs that have ended long enough ago to be removed, or to lose their output. */
#ifndef RETENTION_OLD_JOBS_H
#define RETENTION_OLD_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"
#include "proto/limits.h"

/* How long things stay after the end of a job, or of a run; 0: for ever. */
struct retention_ages {
    int64_t jobs_ms, logs_ms, runs_ms;
};

/* The ages of each project. */
struct retention_rules {
    struct retention_ages ages; /* of projects that have none of their own */
    struct project_ages *projects;
    size_t count;
};

/* Reads what projects have of their own. The caller finishes the rules. */
bool retention_rules_read(struct reader *reader, const struct retention_ages *ages,
                          struct retention_rules *ret_rules, struct err *err);
void retention_rules_finish(struct retention_rules *rules);
/* Those of a project; NULL: of none. */
const struct retention_ages *retention_rules_of(const struct retention_rules *rules, const char *project);
/* Whether runs ever go. */
bool retention_rules_end_runs(const struct retention_rules *rules);

struct old_job {
    int64_t key;
    char id[ID_LENGTH + 1];
    bool array;
    bool removed; /* it is to be removed; else only its output */
};

/* The next of a walk over all jobs from the oldest to those that may not be old enough. */
struct old_jobs {
    int64_t after_key; /* where the walk is; starts at 0 */
    bool over;         /* the rest is younger */
    struct old_job items[RETENTION_STEP_JOBS];
    size_t count;
};
bool old_jobs_next(struct old_jobs *old, struct reader *reader, const struct retention_rules *rules,
                   int64_t wall_ms, struct err *err);

#endif
