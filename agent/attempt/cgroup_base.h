/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroup of version 2 in which this agent may make those of its attempts. */
#ifndef AGENT_CGROUP_BASE_H
#define AGENT_CGROUP_BASE_H

#include <stdbool.h>

/* What the agent may do with its base. */
enum cgroup_hold {
    HOLD_PLAIN,     /* make cgroups in it, but leave its controllers: another program manages them */
    HOLD_TOP,       /* the top of the kernel's hierarchy, on a host without systemd: it may hold processes */
    HOLD_SHARED,    /* no systemd manages it; processes of other programs may be in it */
    HOLD_DELEGATED, /* systemd gave it away: each process in it belongs to the agent's unit */
};

struct cgroup_base {
    char *path; /* owned; NULL: there is none */
    enum cgroup_hold hold;
    bool counts; /* its controllers are on: attempts in it have pids.max and memory.events */
};

/* Chooses among the cgroup that this process is in (own, a folder; NULL where that is unknown) and the top of
 * what it sees (mount). systemd: whether systemd manages this host, and with it each cgroup that it has not
 * given away. */
void cgroup_base_choose(const char *mount, const char *own, bool systemd, struct cgroup_base *ret_base);

/* Turns the controllers on, after the processes that are in the base went into a leaf of it: a cgroup that
 * gives controllers to its children may hold no process. False where that cannot be; then all is as before,
 * but for processes that stay in the leaf. */
bool cgroup_base_count(struct cgroup_base *base);

/* Turns them off again, and takes this process out of the leaf. systemd 252 starts the next agent in the base
 * itself, which fails while the controllers are on. */
void cgroup_base_uncount(struct cgroup_base *base);

void cgroup_base_finish(struct cgroup_base *base);

#endif
