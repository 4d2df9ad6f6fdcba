/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of this agent's attempts, one folder per attempt. */
#ifndef AGENT_CGROUP_H
#define AGENT_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/attempt/cgroup_base.h"
#include "proto/base/err.h"
#include "proto/states.h"

#define HINT_DELEGATE                                                                                        \
    "give the agent a cgroup of its own: Delegate=yes in its systemd unit, or a writable cgroup in its "     \
    "container"

struct cgroup_root {
    enum isolation isolation;
    struct cgroup_base base; /* with ISOLATION_CGROUP2: the cgroup in which those of attempts lie */
    char *path;              /* owned; prefix of the attempts' cgroups; NULL with ISOLATION_NONE */
    bool counts;             /* attempts' cgroups have pids.max */
    char *pids;  /* owned; the agent's original cgroup of version 1 with the pids controller, or NULL */
    char *guard; /* owned; the cgroup below `pids` that limits the agent and all its children, or NULL */
    int64_t processes; /* limit of an attempt for each of its devices; 0: no limit per attempt */
    int64_t most;      /* limit of an attempt in all */
};

/* Finds a hierarchy in which a process can enter a cgroup like that of an attempt: version 2 with
 * controllers, else version 2 without, else version 1, else none. cgroup_finish undoes the changes to the
 * agent's own cgroups; the cgroups of attempts stay. */
void cgroup_find(const char *agent_name, struct cgroup_root *ret_root);
void cgroup_finish(struct cgroup_root *root);

/* 1 or 2; 2 if there is no isolation. */
int cgroup_version(const struct cgroup_root *root);

/* cgroup_find below given mounts: of version 2 (with this process in `own`), and of version 1. NULL: there is
 * none. For cgroup_find and for tests. */
struct cgroup_mounts {
    const char *unified, *own, *freezer, *pids;
    bool systemd; /* systemd manages version 2 */
};
void cgroup_find_below(const struct cgroup_mounts *mounts, const char *agent_name,
                       struct cgroup_root *ret_root);

/* The path of an attempt's folder, which need not exist. The caller frees it; NULL if there is no
 * isolation. */
char *cgroup_path(const struct cgroup_root *root, uint64_t attempt_id);

/* Makes the folder of an attempt with this many devices. The caller frees *ret_path; NULL if there is no
 * isolation. */
bool cgroup_make(struct cgroup_root *root, uint64_t attempt_id, int64_t devices, char **ret_path,
                 struct err *err);

/* cgroup_limit.c. cgroup_limit sets how many processes and threads an attempt may have for each of its
 * devices, never more than half of the kernel's limit. Where an attempt's cgroup cannot count them, the limit
 * holds for the whole node, for all its devices together. cgroup_limit_set is for cgroup_make, cgroup_unguard
 * for cgroup_finish. */
void cgroup_limit(struct cgroup_root *root, const char *agent_name, int64_t processes, int64_t devices);
bool cgroup_limit_set(struct cgroup_root *root, const char *path, int64_t devices, struct err *err);
void cgroup_unguard(struct cgroup_root *root);

/* Kills the processes in a cgroup and below it, and removes the cgroups. False while something is left; true
 * if the path does not exist. */
bool cgroup_clear(const char *path, int version);

#endif
