/* SPDX-License-Identifier: Apache-2.0 */
/* Where this agent keeps the cgroups of its attempts, one folder an epoch. */
#ifndef AGENT_CGROUP_H
#define AGENT_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/states.h"

struct cgroup_root {
    enum isolation isolation;
    char *path; /* owned; NULL with ISOLATION_NONE */
};

/* Finds a usable hierarchy and makes the agent's folder in it: a delegated or root cgroup of version 2, else
 * version 1, else none. */
void cgroup_find(const char *agent_name, struct cgroup_root *ret_root);
/* Removes that folder, unless attempts are in it. */
void cgroup_finish(struct cgroup_root *root);

/* 1 or 2; 2 where there is none. */
int cgroup_version(const struct cgroup_root *root);

/* Where the folder of an epoch is, or would be; the caller's, NULL where there is no isolation. */
char *cgroup_path(const struct cgroup_root *root, uint64_t epoch);

/* Makes the folder of an epoch. *ret_path is the caller's, NULL where there is no isolation. */
bool cgroup_make(const struct cgroup_root *root, uint64_t epoch, char **ret_path, struct err *err);

/* Kills what is in a cgroup and below it, and removes it all. False while something is left. A path that is
 * not there is empty.
 */
bool cgroup_clear(const char *path, int version);

#endif
