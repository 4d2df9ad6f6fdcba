/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether memory ran out, or whether the attempt reached its limit of processes. The kernel ends
 * processes for want of memory with SIGKILL, so only a counter shows the reason: `oom_kill` of the attempt's
 * cgroup where that counts memory, else of the whole host. The attempt's own cgroup counts only the job. The
 * host's counter explains only the end of a rank that was itself killed. Processes are counted only in the
 * attempt's own cgroup. shim_attempt.c decides the cause. */
#include "agent/shim/shim.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "agent/common/cgroup_tree.h"
#include "proto/errors.h"

#define OOM_KILL "oom_kill "

/* The cgroup was made for this attempt, so its counter began at zero. Opened each time: the agent turns the
 * memory controller off when it ends, and the next agent turns on a new counter that starts at zero as well.
 * -1: the attempt's cgroup does not count memory. */
static int64_t own_kills(const struct shim *shim)
{
    return shim->cgroup >= 0 ? cgroup_counter(shim->cgroup, "memory.events", OOM_KILL) : -1;
}

static int64_t host_kills(void)
{
    return cgroup_counter(AT_FDCWD, "/proc/vmstat", OOM_KILL);
}

/* After the ranks have started, because the host's counters take their time: a rank that was killed for want
 * of memory before that, within a millisecond, has only its signal to say so. */
void memory_begin(struct shim *shim)
{
    shim->memory = (struct memory){.host_before = own_kills(shim) >= 0 ? INT64_MAX : host_kills()};
}

bool memory_ran_out(const struct shim *shim, const struct rank *rank)
{
    int64_t own = own_kills(shim);
    return own >= 0 ? own > 0 : rank->signal == SIGKILL && host_kills() > shim->memory.host_before;
}

/* ", out of memory: the job may use 8192 MiB on this node, and used 8192 MiB at most": as far as its cgroup
 * tells. A file with one number is a counter without a key; "max" is none. */
const char *memory_say(const struct shim *shim, char *out, size_t size)
{
    long long limit = shim->cgroup >= 0 ? cgroup_counter(shim->cgroup, "memory.max", "") : 0;
    long long peak = shim->cgroup >= 0 ? cgroup_counter(shim->cgroup, "memory.peak", "") : 0;
    int length = snprintf(out, size, SAID_OUT_OF_MEMORY);
    if (limit > 0) {
        length += snprintf(out + length, size - (size_t)length, ": the job may use %lld MiB on this node",
                           limit >> 20);
    }
    if (peak > 0) {
        snprintf(out + length, size - (size_t)length, "%s used %lld MiB at most",
                 limit > 0 ? ", and" : ": it", peak >> 20);
    }
    return out;
}

/* The cgroup was made for this attempt, so its counter began at zero. */
bool processes_ran_out(const struct shim *shim)
{
    return shim->cgroup >= 0 && cgroup_counter(shim->cgroup, "pids.events", "max ") > 0;
}
