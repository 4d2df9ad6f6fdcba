/* SPDX-License-Identifier: Apache-2.0 */
/* The node filter: the nodes that a job could run on, and the test that each other node fails. */
#ifndef CORE_EXPLAIN_NODE_FILTER_H
#define CORE_EXPLAIN_NODE_FILTER_H

struct core;
struct job;
struct reservations;
struct text;

/* Appends {"total", "usable", "failed": [{"test", "nodes", "names"}]}: each node counts only in the first
 * test that it fails. reservations may be NULL. */
void node_filter_write(struct core *core, const struct job *job, const struct reservations *reservations,
                       struct text *out);

#endif
