/* SPDX-License-Identifier: Apache-2.0 */
/* How many CPUs and how much memory this machine has for jobs. */
#ifndef AGENT_NODE_SIZE_H
#define AGENT_NODE_SIZE_H

#include <stdint.h>

struct node_size {
    int64_t millicpus; /* thousandths of CPUs */
    int64_t memory_bytes;
};

/* cpus 0: all that this process may use. memory_bytes 0: what the machine, or a cgroup that holds this
 * process, has, without a sixteenth for the system and the agent. */
void node_size_find(int64_t cpus, int64_t memory_bytes, struct node_size *ret_size);

/* The same with the folder that cgroups are mounted at, that of this process's cgroup, and what the machine
 * has. For node_size_find and for tests. */
void node_size_within(const char *mount, const char *own, struct node_size *size);

#endif
