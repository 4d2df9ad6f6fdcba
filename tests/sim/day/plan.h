/* SPDX-License-Identifier: Apache-2.0 */
/* What a job wants and how its program behaves. */
#ifndef SIM_DAY_PLAN_H
#define SIM_DAY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/table.h"
#include "proto/states.h"
#include "proto/wire/views.h"

/* How a program ends that is let run for its time. */
enum fate {
    FATE_WELL,
    FATE_FAILS,
    FATE_OUT_OF_MEMORY,
    FATE_CRASHES,
    FATE_NOT_THERE, /* its command cannot be executed */
    FATE_TOO_LONG,  /* it would run beyond its time limit */
    FATE_COUNT
};

/* Jobs that are alike. */
struct kind {
    const char *names[4];
    int count;                    /* of submissions in the day */
    const char *projects[3];      /* NULL: no more */
    const char *types[3];         /* as a spec names GPU types; NULL: no more */
    int64_t gpus[4];              /* 0: no more */
    int64_t tasks_min, tasks_max; /* 0: no array */
    int64_t minutes_min, minutes_max;
    int64_t busy_percent, memory_percent; /* of its GPUs */
    bool function, trains, environment;
};

struct plan {
    const struct kind *kind;
    int64_t at_ms; /* submission */
    const char *name, *owner, *project, *type;
    int64_t gpus, tasks, lasts_ms, limit_ms;
    int64_t held_ms;   /* 0: not held; -1: not released this day */
    int64_t cancel_ms; /* after the submission; 0: not */
    int64_t priority;
    enum fate fate;
    bool retried; /* the next attempt after a failure ends well */
    bool broken;  /* its environment cannot be made */
    char id[ID_LENGTH + 1];
    UT_hash_handle hh;
};

#endif
