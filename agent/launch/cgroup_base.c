/* SPDX-License-Identifier: Apache-2.0 */
/* Manages the cgroup below which attempts live, and its controllers. It turns controllers on only
 * in a cgroup that holds no process (the kernel would refuse, or make it and its children a threaded domain),
 * and only in one that no other program manages. With systemd that is only a unit with Delegate=yes. The
 * cgroups of attempts lie directly in the base: systemd turns the controllers of a unit off when it restarts
 * the unit, which fails if a folder between passes them on. */
#include "agent/launch/cgroup_base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define LEAF "gpuctl-agent"

bool cgroup_write(const char *folder, const char *name, const char *word)
{
    autofree char *path = xprintf("%s/%s", folder, name);
    autoclose int file = open(path, O_WRONLY | O_CLOEXEC);
    return file >= 0 && write(file, word, strlen(word)) == (ssize_t)strlen(word);
}

static bool move(int64_t pid, const char *to)
{
    autofree char *word = xprintf("%lld", (long long)pid);
    return cgroup_write(to, "cgroup.procs", word) || errno == ESRCH;
}

/* --- choosing ------------------------------------------------------------------------------------------- */

static bool has_mark(const char *path, const char *name)
{
    char value[2] = "";
    return getxattr(path, name, value, 1) == 1 && value[0] == '1';
}

/* systemd marks a cgroup that it delegated with an extended attribute. */
static bool is_delegated(const char *path)
{
    return has_mark(path, "user.delegate") || has_mark(path, "trusted.delegate");
}

/* Only the top of the whole hierarchy has no cgroup.type. */
static bool is_top(const char *path)
{
    autofree char *type = xprintf("%s/cgroup.type", path);
    return access(type, F_OK) != 0;
}

static bool is_writable(const char *path)
{
    autofree char *procs = xprintf("%s/cgroup.procs", path);
    return access(path, W_OK) == 0 && access(procs, W_OK) == 0;
}

static bool take(const char *path, enum cgroup_hold hold, struct cgroup_base *ret_base)
{
    if (path == NULL || !is_writable(path)) {
        return false;
    }
    *ret_base = (struct cgroup_base){.path = xstrdup(path), .hold = hold};
    return true;
}

/* The cgroup above the leaf that this agent, or an earlier one, made for its processes; else `own` itself. */
static char *above_leaf(const char *own)
{
    const char *slash = own != NULL ? strrchr(own, '/') : NULL;
    return slash != NULL && strcmp(slash + 1, LEAF) == 0 ? file_folder_of(own)
           : own != NULL                                 ? xstrdup(own)
                                                         : NULL;
}

void cgroup_base_choose(const char *mount, const char *own, bool systemd, struct cgroup_base *ret_base)
{
    autofree char *base = above_leaf(own);
    *ret_base = (struct cgroup_base){0};
    if (systemd) {
        take(base, base != NULL && is_delegated(base) ? HOLD_DELEGATED : HOLD_PLAIN, ret_base);
    } else if (!is_top(mount) || !take(mount, HOLD_TOP, ret_base)) {
        take(base, HOLD_SHARED, ret_base);
    }
}

/* --- processes ------------------------------------------------------------------------------------------ */

/* Calls visit for each process of the cgroup itself, until it returns false. */
static bool each_process(const char *path, bool (*visit)(int64_t pid, const char *leaf), const char *leaf)
{
    autofree char *name = xprintf("%s/cgroup.procs", path);
    autofclose FILE *file = fopen(name, "re");
    long long pid;
    bool well = file != NULL;
    while (well && fscanf(file, "%lld", &pid) == 1) {
        well = visit(pid, leaf);
    }
    return well;
}

static bool is_nobody(int64_t pid, const char *leaf)
{
    return false;
}

static bool is_own(int64_t pid, const char *leaf)
{
    return pid == getpid();
}

static bool into_leaf(int64_t pid, const char *leaf)
{
    return pid > 0 && move(pid, leaf); /* 0: a process of another PID namespace */
}

/* Moves all processes into the leaf. Processes that start meanwhile need another round. */
static bool clear(const struct cgroup_base *base)
{
    autofree char *leaf = xprintf("%s/" LEAF, base->path);
    if ((base->hold == HOLD_SHARED && !each_process(base->path, is_own, NULL)) ||
        (mkdir(leaf, 0755) != 0 && errno != EEXIST)) {
        return false;
    }
    for (int round = 0; round < LIMIT_CGROUP_ROUNDS; round++) {
        if (each_process(base->path, is_nobody, NULL)) {
            return true;
        }
        if (!each_process(base->path, into_leaf, leaf)) {
            return false;
        }
    }
    return false;
}

/* --- controllers ---------------------------------------------------------------------------------------- */

static bool turn(const char *path, const char *sign, const char *controller)
{
    autofree char *word = xprintf("%s%s", sign, controller);
    return cgroup_write(path, "cgroup.subtree_control", word);
}

/* False if cgroups below it have them on. A controller that is not available counts as off. */
static bool turn_off(const char *path)
{
    bool cpu = turn(path, "-", "cpu") || errno != EBUSY;
    bool memory = turn(path, "-", "memory") || errno != EBUSY;
    bool pids = turn(path, "-", "pids") || errno != EBUSY;
    return cpu && memory && pids;
}

/* A job may have made its own cgroups with controllers: turns these off first, the innermost before the
 * others. */
static void turn_off_below(const char *path, int depth)
{
    autonames struct file_names names = {0};
    file_list(path, &names, NULL); /* a folder that cannot be listed yields no names */
    for (size_t i = 0; i < names.count && depth < LIMIT_CGROUP_DEPTH; i++) {
        autofree char *below = xprintf("%s/%s", path, names.items[i]);
        autofree char *sign = xprintf("%s/cgroup.subtree_control", below);
        if (access(sign, F_OK) == 0) {
            turn_off_below(below, depth + 1);
            turn_off(below);
        }
    }
}

/* The memory controller also tells a rank that the kernel killed for want of memory from one that a person
 * killed. The agent can do without it, and without that of the CPUs. */
bool cgroup_base_count(struct cgroup_base *base)
{
    if (base->path == NULL || base->hold == HOLD_PLAIN || (base->hold != HOLD_TOP && !clear(base))) {
        return false;
    }
    base->counts = turn(base->path, "+", "pids");
    if (base->counts) {
        turn(base->path, "+", "cpu");
        turn(base->path, "+", "memory");
    }
    return base->counts;
}

/* At the top controllers do no harm, and others may use them, so they stay on. */
void cgroup_base_uncount(struct cgroup_base *base)
{
    if (!base->counts || base->hold == HOLD_TOP) {
        return;
    }
    base->counts = false;
    if (!turn_off(base->path)) {
        turn_off_below(base->path, 0);
        turn_off(base->path);
    }
    autofree char *leaf = xprintf("%s/" LEAF, base->path);
    if (move(getpid(), base->path)) {
        rmdir(leaf); /* fails while shims live in it */
    }
}

void cgroup_base_finish(struct cgroup_base *base)
{
    free(base->path);
    *base = (struct cgroup_base){0};
}
