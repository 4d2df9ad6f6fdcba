/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroup in which this agent may make the cgroups of its attempts. */
#ifndef AGENT_CGROUP_BASE_H
#define AGENT_CGROUP_BASE_H

#include <stdbool.h>

/* What the agent may do with its base. */
enum cgroup_hold {
    HOLD_PLAIN,     /* make cgroups in it, but leave its controllers alone: another program manages them */
    HOLD_TOP,       /* the top of the kernel's hierarchy, on a host without systemd: it may hold processes */
    HOLD_SHARED,    /* systemd does not manage the host; processes of other programs may be in it */
    HOLD_DELEGATED, /* systemd delegated it: each process in it belongs to the agent's unit */
};

struct cgroup_base {
    char *path; /* owned; NULL: there is none */
    enum cgroup_hold hold;
    bool counts; /* its controllers are on: attempts' cgroups have pids.max and memory.events */
};

/* Chooses the base: the cgroup of this process (own, a folder; NULL if unknown) or the top of the visible
 * hierarchy (mount). systemd: whether systemd manages this host, and so each cgroup that it has not
 * delegated. */
void cgroup_base_choose(const char *mount, const char *own, bool systemd, struct cgroup_base *ret_base);

/* Turns the controllers on, after it has moved the base's processes into a leaf: a cgroup that gives
 * controllers to its children may hold no process. On failure it returns false and leaves the controllers
 * off, but processes stay in the leaf. */
bool cgroup_base_count(struct cgroup_base *base);

/* Turns the controllers off again, and takes this process out of the leaf. systemd 252 starts the next agent
 * in the base itself, which fails while the controllers are on. */
void cgroup_base_uncount(struct cgroup_base *base);

void cgroup_base_finish(struct cgroup_base *base);

/* Writes a word into a file of a cgroup; false with errno. */
bool cgroup_write(const char *folder, const char *name, const char *word);

#endif
