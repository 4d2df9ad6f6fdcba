/* SPDX-License-Identifier: Apache-2.0 */
/* The helper that calls NVML, and its protocol with the agent: whole packets over a socket, each one of these
 * structs. Both ends are the same binary. */
#ifndef AGENT_DEVICES_HELPER_H
#define AGENT_DEVICES_HELPER_H

#include <stdbool.h>

#include "agent/devices/nvml.h"
#include "proto/limits_agent.h"

#define HELPER_WORD "devices-helper" /* gpuagent devices-helper LIBRARY */
#define HELPER_FD   3

enum helper_kind {
    HELPER_OPEN, /* opens the driver's library; answered by a helper_state */
    HELPER_LIST, /* answered by a helper_state, and by as many nvml_gpu as it counts, one a packet */
    HELPER_LOOK, /* answered by a device_sight */
};

struct helper_ask {
    enum helper_kind kind;
    char uuid[NVML_TEXT_BYTES];
};

struct helper_state {
    size_t count;
    char problem[LIMIT_DEVICE_REASON + 1]; /* not empty: the driver cannot be used */
};

/* Whether the arguments make this process a helper. devices_helper_run serves, and ends with the agent. */
bool devices_helper_is_meant(int argc, char **argv);
int devices_helper_run(char **argv);

#endif
