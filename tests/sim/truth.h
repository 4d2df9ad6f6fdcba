/* SPDX-License-Identifier: Apache-2.0 */
/* What really runs where, whatever the controller believes; and what the ranks of each attempt really did. */
#ifndef SIM_TRUTH_H
#define SIM_TRUTH_H

#include "tests/sim/world.h"

struct truth;

struct truth *truth_create(struct world *world);
void truth_destroy(struct truth *truth);

struct truth_gang {
    uint64_t attempt_id;
    const char *job_id;
    int64_t nodes, world_size;
};

/* A node has all that its ranks need, and holds the start. */
void truth_prepared(struct truth *truth, const struct truth_gang *gang, int64_t node_rank);
/* Ranks begin on these devices of a host: no other attempt of the job lives (I5), none on the devices (I2),
 * all nodes were prepared (I8), no cancel of the job was final before (I14). */
void truth_start(struct truth *truth, const struct truth_gang *gang, size_t host, int64_t first_rank,
                 int64_t count, const int64_t *devices, size_t device_count);
/* A rank is gone. by_us: it was killed by the shim, or with its host. */
void truth_end(struct truth *truth, uint64_t attempt_id, size_t host, int64_t rank, int64_t code, bool by_us);
/* All that runs on a host is gone at once. */
void truth_host_died(struct truth *truth, size_t host);

/* The controller now gives this job, or these devices, to an attempt: nothing else of either lives (I6). */
void truth_granted(struct truth *truth, uint64_t attempt_id, const char *job_id, size_t host,
                   const int64_t *devices, size_t device_count);
/* A person has been told that the job is over: it never starts again. */
void truth_over(struct truth *truth, const char *job_id);

/* What a rank did; false: it never ended, or never began. */
bool truth_exit(const struct truth *truth, uint64_t attempt_id, int64_t rank, int64_t *ret_code,
                bool *ret_by_us);
/* How many ranks live. */
size_t truth_live(const struct truth *truth);

#endif
