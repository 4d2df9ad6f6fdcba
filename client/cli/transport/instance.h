/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded instance as it lies on disk: a private gpuctld and its gpuagents on loopback, all in one state
 * folder. Files there: lock, endpoint, node.token, controller/ (with admin.token), controller.log,
 * controller.pid, node<i>/, node<i>.log, node<i>.pid. */
#ifndef CLI_INSTANCE_H
#define CLI_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* Where the instance of that state folder serves; the caller frees it. NULL when its controller does not run.
 */
char *instance_url(const char *state);
/* The file with its token; the caller frees it. */
char *instance_token_file(const char *state);
/* STATE/NAME; the caller frees it. */
char *instance_file(const char *state, const char *name);
/* STATE/node<number>SUFFIX; the caller frees it. */
char *instance_node_file(const char *state, int64_t number, const char *suffix);

/* Makes the folder and takes its lock, which ends with the descriptor. Starts and stops exclude each other by
 * it. */
bool instance_lock(const char *state, int *ret_fd, struct err *err);

/* How many of its agents run. */
int64_t instance_agents(const char *state);

/* Whether the agent of that number runs. */
bool instance_has_agent(const char *state, int64_t number);
/* Ends it, if it does. */
void instance_end_agent(const char *state, int64_t number);
/* One more than the largest number of a node whose agent was started and not ended by `gpuctl down`: it may
 * have died with its controller. 0: none. */
int64_t instance_nodes(const char *state);

/* Waits patience_ms for its processes, which have been told to end, and ends those that stay. Forgets them.
 */
bool instance_stop(const char *state, int64_t patience_ms, struct err *err);

#endif
