/* SPDX-License-Identifier: Apache-2.0 */
/* What a step gives back. */
#ifndef CORE_MODEL_STEP_H
#define CORE_MODEL_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/model/rows.h"
#include "proto/base/err.h"
#include "proto/states.h"

struct arena;

/* The job's members for an answer; strings live as long as the step. */
struct job_touch {
    int64_t key;
    char id[17];
    enum job_state state;
    int64_t seq;
    int64_t before_seq; /* of touched ones: before the step */
};

struct step {
    bool ok;
    struct err err;                 /* the reason for a refusal; then nothing was changed */
    struct job_touch job;           /* SUBMIT, CANCEL, HOLD, RELEASE and CHANGE: the job */
    const struct job_life *life;    /* current values, changed or not; an unchanged reason is left out */
    const struct array_row *counts; /* of an array; NULL: no array */
    const char *answer; /* LIMITS, ACCOUNTS and POOLS: JSON. REGISTER: the nonce to repeat, NULL: accepted */
    uint64_t *fenced;   /* HEARTBEAT: ids of the listed attempts that the node must stop */
    size_t fenced_count;
    struct change *changes; /* in order; their strings live as long as the step */
    size_t change_count;
    bool lazy; /* changes may be applied with a later commit, within LAZY_COMMIT_MS; the answer need not wait
                */
    const char **dirty_nodes; /* nodes whose orders changed: names, borrowed from the core, each once */
    size_t dirty_count;
    struct job_touch *touched; /* jobs whose state or history changed, each once */
    size_t touched_count;
    struct arena *arena; /* owns all members above */
};

void step_finish(struct step *step);

#endif
