/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the simulator on the controller's own history, on a helper thread. */
#ifndef HTTP_SIMULATION_RUN_H
#define HTTP_SIMULATION_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/simulate/replay.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct simulation_question {
    enum policy policies[POLICY_COUNT]; /* each once */
    size_t policy_count;                /* at least 1 */
    enum limits limits;
    int64_t span_ms;    /* jobs submitted so long ago at most; 0: all */
    struct fleet fleet; /* owned; without nodes: the controller's */
    char *owner;        /* whose jobs; owned. NULL: everybody's */
};

struct simulation_run {
    struct simulation_question question;
    const char *store_path;
    int64_t wall_ms;  /* now */
    int64_t limit_ms; /* the time that it may take */
    atomic_bool stop; /* nobody wants the answer any more: it ends soon; any thread */
    int64_t until_ms; /* its own */

    /* Set when it has ended. */
    bool ok;
    struct text json; /* as openapi.yaml has it; owned */
    struct err err;
};

/* Reads the jobs and nodes, replays them, and writes the answer. */
void simulation_run(struct simulation_run *run);

/* false: it is larger than a run takes. */
bool simulation_fleet_fits(const struct fleet *fleet, struct err *err);

void simulation_question_finish(struct simulation_question *question);

#endif
