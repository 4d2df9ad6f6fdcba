/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that really run on each host, whatever the controller believes, and the real exits of each
 * attempt's ranks. */
#ifndef SIM_TRUTH_H
#define SIM_TRUTH_H

#include "tests/sim/world/world.h"

struct truth;

struct truth *truth_create(struct world *world);
void truth_destroy(struct truth *truth);

struct truth_gang {
    uint64_t attempt_id;
    const char *job_id;
    int64_t nodes, world_size;
};

/* A node is prepared, and waits for the start. */
void truth_prepared(struct truth *truth, const struct truth_gang *gang, int64_t node_rank);
/* Ranks start on these devices of a host. Checks that no other attempt of the job lives (I5), none uses the
 * devices (I2), all nodes were prepared (I8), and no cancel of the job was final before (I14). */
void truth_start(struct truth *truth, const struct truth_gang *gang, size_t host, int64_t first_rank,
                 int64_t count, const int64_t *devices, size_t device_count);
/* A rank is gone. by_us: killed by the shim, or lost with its host. */
void truth_end(struct truth *truth, uint64_t attempt_id, size_t host, int64_t rank, int64_t code, bool by_us);
/* All processes of a host are gone at once. */
void truth_host_died(struct truth *truth, size_t host);

/* The controller gives this job, or these devices, to an attempt: no other attempt of either lives (I6). */
void truth_granted(struct truth *truth, uint64_t attempt_id, const char *job_id, size_t host,
                   const int64_t *devices, size_t device_count);
/* A person was told that the job is over: it never starts again. */
void truth_over(struct truth *truth, const char *job_id);

/* The exit of a rank; false: it never ended, or never began. */
bool truth_exit(const struct truth *truth, uint64_t attempt_id, int64_t rank, int64_t *ret_code,
                bool *ret_by_us);
/* The number of live ranks. */
size_t truth_live(const struct truth *truth);

#endif
