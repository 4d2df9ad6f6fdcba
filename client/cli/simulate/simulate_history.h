/* SPDX-License-Identifier: Apache-2.0 */
/* A controller's own past and present, for a simulation. */
#ifndef CLI_SIMULATE_HISTORY_H
#define CLI_SIMULATE_HISTORY_H

#include "client/cli/transport/api.h"
#include "daemon/simulate/replay.h"
#include "proto/base/err.h"

/* The jobs that ran and have ended, those made in the last since_ms alone; 0: all. Who is no administrator
 * gets those of its own. */
bool simulate_history(struct api *api, int64_t since_ms, struct trace *ret_trace, struct err *err);
/* The nodes that take work now. Pools are not told apart. */
bool simulate_fleet(struct api *api, struct fleet *ret_fleet, struct err *err);

#endif
