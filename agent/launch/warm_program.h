/* SPDX-License-Identifier: Apache-2.0 */
/* How gpuctl_warm.py is started, by the agent as a forkserver, or by a shim for workers of another user. */
#ifndef AGENT_WARM_PROGRAM_H
#define AGENT_WARM_PROGRAM_H

#include <stdbool.h>

#include "agent/launch/warm.h"
#include "agent/launch/warm_key.h"
#include "proto/base/err.h"

#define WARM_BOOT                                                                                            \
    "import sys; sys.path.insert(0, sys.argv[1]); import gpuctl_warm; from gpuctl_warm import main; main()"

/* An argument and a variable that reserve room for those that ranks show in /proc: the kernel keeps both at
 * their first place. The caller frees them. */
char *warm_room_for_arguments(void);
char *warm_room_for_variables(void);

/* Writes the launch file for `breed` (agent/shim/shimwire.h) into config->launch. cgroup: NULL, or in which
 * it is to run. */
bool warm_breeder_write(const struct warm_config *config, const struct warm_key *key, const char *cgroup,
                        struct err *err);

#endif
