/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of this agent's attempts, one folder per attempt. Only version 2 of cgroups is used. */
#ifndef AGENT_CGROUP_H
#define AGENT_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/launch/cgroup_base.h"
#include "proto/base/err.h"
#include "proto/states.h"

struct cgroup_root {
    enum isolation isolation;
    struct cgroup_base base; /* the cgroup in which those of attempts lie */
    char *path;              /* owned; prefix of the attempts' cgroups; NULL with ISOLATION_NONE */
    bool counts;             /* attempts' cgroups have pids.max */
    int64_t processes;       /* limit of an attempt for each of its devices; 0: no limit */
    int64_t most;            /* limit of an attempt in all */
};

/* Finds a place in which a process can enter a cgroup like that of an attempt: with controllers, else
 * without, else none. cgroup_finish undoes the changes to the agent's own cgroups; the cgroups of attempts
 * stay. */
void cgroup_find(const char *agent_name, struct cgroup_root *ret_root);
void cgroup_finish(struct cgroup_root *root);

/* cgroup_find with a given mount and the folder of this process's cgroup; NULL: there is none. systemd: it
 * manages the cgroups of this host. For cgroup_find and for tests. */
void cgroup_find_below(const char *mount, const char *own, bool systemd, const char *agent_name,
                       struct cgroup_root *ret_root);

/* Sets how many processes and threads an attempt may have for each of its devices, never more than half of
 * the kernel's limit. Without the pids controller nothing limits them, and the log says so. */
void cgroup_limit(struct cgroup_root *root, int64_t processes);

/* Writes the limit of an attempt with this many devices into its cgroup. */
bool cgroup_limit_set(struct cgroup_root *root, const char *path, int64_t devices, struct err *err);

/* The path of an attempt's folder, which need not exist. The caller frees it; NULL if there is no
 * isolation. */
char *cgroup_path(const struct cgroup_root *root, uint64_t attempt_id);

/* Makes the folder of an attempt with this many devices, and limits it. The caller frees *ret_path; NULL if
 * there is no isolation. */
bool cgroup_make(struct cgroup_root *root, uint64_t attempt_id, int64_t devices, char **ret_path,
                 struct err *err);

/* The same for what is no attempt. The name is no number. */
bool cgroup_make_named(struct cgroup_root *root, const char *name, int64_t devices, char **ret_path,
                       struct err *err);

/* Limits the memory of what is in the cgroup; what takes more is killed as a whole. Where memory is not
 * counted nothing is limited. */
void cgroup_limit_memory(const char *path, int64_t bytes);
/* Whether something in it was killed for that. */
bool cgroup_ran_out(const char *path);

/* Kills the processes in a cgroup and below it, and removes the cgroups. False while something is left; true
 * if the path does not exist. */
bool cgroup_clear(const char *path);

#endif
