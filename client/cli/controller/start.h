/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing up the embedded instance: gpuctld first, then its agents. */
#ifndef CLI_START_H
#define CLI_START_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct start_options {
    int64_t nodes;
    int64_t cpu_slots;    /* of each node; 0: the cores, divided by the nodes */
    const char *devices;  /* "0,1,2", divided between the nodes; "none": CPU slots; NULL: what there is */
    const char *gpu_type; /* NULL: as found, "cpu" for slots */
    const char *python;   /* of jobs; NULL: the agent's default */
    int64_t idle_exit_ms;
};

void start_defaults(struct start_options *options);

/* Starts what does not run and waits until the nodes are READY; does nothing to what runs. What it started is
 * ended again when that fails. *ret_started tells whether the controller was started. */
bool start_instance(const char *state, const struct start_options *options, bool *ret_started,
                    struct err *err);

#endif
