/* SPDX-License-Identifier: Apache-2.0 */
/* A cgroup together with the cgroups that a job made below it. `folder` is a descriptor of its folder, which
 * stays the caller's. */
#ifndef AGENT_CGROUP_TREE_H
#define AGENT_CGROUP_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Kills all processes in the tree in one step. False where the kernel cannot (before Linux 5.14). */
bool cgroup_tree_kill(int folder);

/* Calls visit for each process in the tree that this process can see. */
void cgroup_tree_each(int folder, void (*visit)(void *closure, pid_t pid), void *closure);

/* Removes the cgroups below, as far as they are empty. */
void cgroup_tree_clear(int folder);

/* The number behind a key that begins a line of a file in the folder, or of a file with an absolute path,
 * such as "oom_kill " in memory.events. -1 if there is none. */
int64_t cgroup_counter(int folder, const char *name, const char *key);

#endif
