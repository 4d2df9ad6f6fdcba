/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of this agent's attempts, one folder per attempt. Only version 2 of cgroups is used. */
#ifndef AGENT_CGROUP_H
#define AGENT_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/launch/cgroup_base.h"
#include "agent/launch/device_rule.h"
#include "proto/base/err.h"
#include "proto/states.h"

#define CGROUP_SPARES 2

struct cgroup_root {
    enum isolation isolation;
    struct cgroup_base base;  /* the cgroup in which those of attempts lie */
    char *path;               /* owned; prefix of the attempts' cgroups; NULL with ISOLATION_NONE */
    bool counts;              /* attempts' cgroups have pids.max */
    int64_t processes;        /* limit of an attempt for each of its devices; 0: no limit */
    int64_t most;             /* limit of an attempt in all */
    struct device_rule *rule; /* keeps attempts to their GPUs; NULL: they open all */
    struct err open_why;      /* why */
    struct cgroup_spare {
        char *path; /* owned */
        int folder;
    } spares[CGROUP_SPARES]; /* for the next attempts, so that no start waits for the kernel to make one */
    size_t spare_count;
    int64_t spare_number; /* of the last that was tried */
};

/* Where cgroups are mounted, and the folder there of this process's own; NULL and false where there is none.
 * The caller frees both. */
bool cgroup_own(char **ret_mount, char **ret_own);

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

struct cgroup_limits {
    int64_t devices;                 /* that processes are counted by */
    int64_t millicpus, memory_bytes; /* share of the CPUs, and most memory; 0: no matter */
    const int64_t *gpus;             /* minor numbers of its GPUs, for which a new cgroup is made */
    size_t gpu_count;
};

/* Lets attempts open all GPUs. */
void cgroup_open_gpus(struct cgroup_root *root, const char *why);

/* Looks which drivers the kernel has now, for the attempts that begin later. */
void cgroup_look_at_drivers(struct cgroup_root *root);

/* Writes the limits of an attempt into its cgroup; those of controllers that are not there are left out. */
bool cgroup_limit_set(struct cgroup_root *root, const char *path, const struct cgroup_limits *limits,
                      struct err *err);

/* Gives an attempt a folder, limits it, and keeps it to its GPUs. The caller frees *ret_path; NULL if there
 * is no isolation. */
bool cgroup_make(struct cgroup_root *root, const struct cgroup_limits *limits, char **ret_path,
                 struct err *err);

/* Makes a folder for an attempt to come, unless enough are there. True: call again. */
bool cgroup_refill(struct cgroup_root *root);

/* Removes what a killed agent has made for attempts to come; of those that some attempt has, is_used says
 * so. */
void cgroup_remove_spares(const struct cgroup_root *root, bool (*is_used)(void *closure, const char *path),
                          void *closure);

/* The same as cgroup_make for what is no attempt. The name does not begin with "a". */
bool cgroup_make_named(struct cgroup_root *root, const char *name, const struct cgroup_limits *limits,
                       char **ret_path, struct err *err);

/* What takes more memory than it may is killed with all else in the cgroup, where memory is counted. */
void cgroup_end_as_whole(const char *path);
/* Whether something in it was killed for that. */
bool cgroup_ran_out(const char *path);

/* Kills the processes in a cgroup and below it, and removes the cgroups. False while something is left; true
 * if the path does not exist. */
bool cgroup_clear(const char *path);

#endif
