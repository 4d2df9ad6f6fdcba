/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by judge.c and audit.c alone. */
#ifndef SIM_JUDGE_PARTS_H
#define SIM_JUDGE_PARTS_H

#include <uthash.h>

#include "proto/states.h"
#include "tests/sim/node/host.h"
#include "tests/sim/checks/judge.h"

/* The state of a job that a reader saw last. */
struct seen {
    char id[17];
    enum job_state state; /* JOB_STATE_COUNT: nothing yet */
    int64_t seq;
    bool removal_asked, removed; /* the latter: and acknowledged */
    bool removed_now;            /* and its end is perhaps not told yet */
    bool excused;                /* its end need not have been told */
    UT_hash_handle hh;
};

struct judge {
    struct seen *seen;
    bool removals; /* some are removed_now */
    uint32_t incarnation;
    int64_t limit; /* of the limited project, for each type; -1: none */
    int64_t
        allowed[HOST_TYPES]; /* devices from before the limit count as allowed until they are given back */
};

struct seen *judge_seen(struct judge *judge, const char *id);
void judge_saw(struct sim *sim, struct judge *judge, const char *id, enum job_state state, int64_t seq);

#endif
