/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuagent join`: makes this machine a node of a cluster. */
#ifndef AGENT_JOIN_H
#define AGENT_JOIN_H

#include <stdbool.h>

#include "agent/base/config.h"
#include "proto/base/err.h"

/* argv[0] is "join". look says whether there is anything to offer; it is asked before the token is spent. */
bool join_run(int argc, char **argv, bool (*look)(struct config *config, struct err *err), struct err *err);

#endif
