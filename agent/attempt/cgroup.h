/* SPDX-License-Identifier: Apache-2.0 */
/* Where this agent keeps the cgroups of its attempts, one folder an attempt. */
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
    struct cgroup_base base; /* with ISOLATION_CGROUP2: what the cgroups of attempts lie in */
    char *path;              /* owned; what their paths begin with; NULL with ISOLATION_NONE */
    bool counts;             /* each of them has pids.max */
    char *pids;  /* owned; where the agent was born among those of version 1 that count processes, or NULL */
    char *guard; /* owned; folder in it that limits the agent with all that it starts, or NULL */
    int64_t processes; /* limit of an attempt, for each of its devices; 0: none of its own */
    int64_t most;      /* and in all */
};

/* Finds a hierarchy in which a process could be put into a cgroup like that of an attempt: version 2 with
 * controllers, else without, else version 1, else none. cgroup_finish gives back what was taken of it; the
 * cgroups of attempts stay. */
void cgroup_find(const char *agent_name, struct cgroup_root *ret_root);
void cgroup_finish(struct cgroup_root *root);

/* 1 or 2; 2 where there is none. */
int cgroup_version(const struct cgroup_root *root);

/* cgroup_find below other mounts than the host's: of version 2 (with this process in own), of version 1.
 * NULL: there is none. For it, and for tests. */
struct cgroup_mounts {
    const char *unified, *own, *freezer, *pids;
    bool systemd; /* manages version 2 */
};
void cgroup_find_below(const struct cgroup_mounts *mounts, const char *agent_name,
                       struct cgroup_root *ret_root);

/* Where the folder of an attempt is, or would be; the caller's, NULL where there is no isolation. */
char *cgroup_path(const struct cgroup_root *root, uint64_t attempt_id);

/* Makes the folder of an attempt with so many devices. *ret_path is the caller's, NULL where there is no
 * isolation. */
bool cgroup_make(struct cgroup_root *root, uint64_t attempt_id, int64_t devices, char **ret_path,
                 struct err *err);

/* cgroup_limit.c: from now on an attempt has at most so many processes and threads for each of its devices,
 * and never more than half of what the kernel can give; where its cgroup cannot count them, the whole node is
 * held to that, for all its devices together. cgroup_limit_set is for cgroup_make, cgroup_unguard for
 * cgroup_finish. */
void cgroup_limit(struct cgroup_root *root, const char *agent_name, int64_t processes, int64_t devices);
bool cgroup_limit_set(struct cgroup_root *root, const char *path, int64_t devices, struct err *err);
void cgroup_unguard(struct cgroup_root *root);

/* Kills what is in a cgroup and below it, and removes it all. False while something is left. A path that is
 * not there is empty.
 */
bool cgroup_clear(const char *path, int version);

#endif
