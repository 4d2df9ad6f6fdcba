/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a trace and a fleet of the jobs and nodes of a controller. */
#ifndef SIMULATE_HISTORY_H
#define SIMULATE_HISTORY_H

#include <jansson.h>

#include "daemon/simulate/replay.h"
#include "daemon/simulate/trace.h"
#include "proto/wire/views.h"

/* Adds a job that ran and has ended, and counts any other as left out. Call it for the newest job first, and
 * history_end after the oldest. */
void history_add_job(struct trace *trace, const struct job_view *view);
void history_end(struct trace *trace);

/* Whether a node takes work now, so that it is one of the fleet. */
bool history_takes_work(enum node_state state);
/* Adds a node by its devices, a JSON array as node_view has it. A node with several types counts as one node
 * a type: a gang is of one. */
void history_add_node(struct fleet *fleet, const json_t *devices);

#endif
