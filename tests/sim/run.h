/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the simulator, from a seed to a verdict. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include <stdbool.h>
#include <stdint.h>

struct verdict {
    uint64_t seed;
    uint64_t hash; /* of the trace */
    int64_t faults, checks, jobs;
    int64_t simulated_ms;
    bool violated;
    char violation[512];
};

/* folder: an existing one, for this process alone. tracing: prints the whole trace on stdout. */
void run_seed(uint64_t seed, const char *folder, bool tracing, struct verdict *ret_verdict);

#endif
