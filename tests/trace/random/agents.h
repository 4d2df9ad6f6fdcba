/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated agents for the random walk: they poll, claim, prepare, run, fail, lose messages, restart and
 * reboot, as chance wants. They know what really runs, and abort when two attempts of one job do, or two on
 * one device, or one that needs what was never made ready there. */
#ifndef TRACE_AGENTS_H
#define TRACE_AGENTS_H

#include <stdint.h>

#include "tests/trace/harness/chance.h"
#include "tests/trace/harness/cluster.h"

#define AGENT_COUNT 7

/* What the job of this number needs on its nodes; NULL: nothing. */
const char *agents_need(int number);

struct agents;

/* All registered. */
struct agents *agents_create(struct cluster *cluster, struct chance *chance);
void agents_destroy(struct agents *agents);

/* One agent does something: mostly polls or goes on with an attempt. kind: 0 poll, 1 go on, 2 repeat an old
 * report, 3 restart, 4 reboot, 5 get something ready, or fail to. */
void agents_act(struct agents *agents, size_t which, unsigned kind);
/* The controller has forgotten lazy changes: what was told may have to be told again. */
void agents_forget_reports(struct agents *agents);
/* Time has passed: most agents send a heartbeat; ranks whose lease is over are killed. */
void agents_heartbeat(struct agents *agents, unsigned percent);
/* The operator asserts that this node is dead, and sees to it. */
void agents_fence(struct agents *agents, size_t which);
/* The same, and the node is removed, if nothing holds it. */
void agents_remove(struct agents *agents, size_t which);
const char *agents_name(const struct agents *agents, size_t which);
const char *agents_host(const struct agents *agents, size_t which);

/* From now on nothing goes wrong. */
void agents_heal(struct agents *agents);

#endif
