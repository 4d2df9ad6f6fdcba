/* SPDX-License-Identifier: Apache-2.0 */
/* The states of jobs and the reasons to wait, as Slurm names them. */
#ifndef CLI_SLURM_JOB_STATES_H
#define CLI_SLURM_JOB_STATES_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* X(name, code, spelling) */
#define SLURM_STATES(X)                                                                                      \
    X(PENDING, "PD", "PENDING")                                                                              \
    X(RUNNING, "R", "RUNNING")                                                                               \
    X(COMPLETING, "CG", "COMPLETING")                                                                        \
    X(COMPLETED, "CD", "COMPLETED")                                                                          \
    X(CANCELLED, "CA", "CANCELLED")                                                                          \
    X(FAILED, "F", "FAILED")                                                                                 \
    X(TIMEOUT, "TO", "TIMEOUT")                                                                              \
    X(NODE_FAIL, "NF", "NODE_FAIL")                                                                          \
    X(PREEMPTED, "PR", "PREEMPTED")                                                                          \
    X(OUT_OF_MEMORY, "OOM", "OUT_OF_MEMORY")

#define AS_SLURM_STATE(name, ...) SLURM_##name,
enum slurm_state { SLURM_STATES(AS_SLURM_STATE) SLURM_STATE_COUNT };

#define SLURM_LIVE (1U << SLURM_PENDING | 1U << SLURM_RUNNING | 1U << SLURM_COMPLETING)
#define SLURM_ALL  ((1U << SLURM_STATE_COUNT) - 1)

const char *slurm_state_code(enum slurm_state state);
const char *slurm_state_text(enum slurm_state state);

/* Of a job as the API shows it; alone with its nodes, one whose processes have all ended is completing. */
enum slurm_state slurm_state_of(const json_t *job);

/* "PD,running" or "all" to a bit for each state. Slurm's other states are known, and no job is in them.
 * ERR_USAGE names a word that is no state. */
bool slurm_states_read(const char *list, unsigned *ret_states, struct err *err);

/* Why a job waits, in Slurm's word where it has one; of one that has ended, why it ended so; "None". queued:
 * the job's row of GET /v1/queue, empty where it is too far behind to have one; NULL: not known. */
const char *slurm_reason_of(const json_t *job, const json_t *queued);

#endif
