/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether memory ran out, or whether the attempt reached its limit of processes. The kernel ends
 * processes for want of memory with SIGKILL, so only a counter shows the reason: `oom_kill` of the attempt's
 * cgroup where that counts memory, else of the whole host. The attempt's own cgroup counts only the job. The
 * host's counter explains only the end of a rank that was itself killed. Processes are counted only in the
 * attempt's own cgroup. shim_attempt.c decides the cause. */
#include "agent/shim/shim.h"

#include <fcntl.h>
#include <signal.h>

#include "agent/common/cgroup_tree.h"

#define OOM_KILL "oom_kill "

/* Opened each time: the agent turns the memory controller off when it ends, and the next agent turns on a new
 * counter that starts at zero. -1: the attempt's cgroup does not count memory. */
static int64_t own_kills(const struct shim *shim)
{
    return shim->cgroup >= 0 ? cgroup_counter(shim->cgroup, "memory.events", OOM_KILL) : -1;
}

static int64_t host_kills(void)
{
    return cgroup_counter(AT_FDCWD, "/proc/vmstat", OOM_KILL);
}

void memory_begin(struct shim *shim)
{
    int64_t own = own_kills(shim);
    shim->memory = (struct memory){.own = own >= 0, .before = own >= 0 ? own : host_kills()};
}

bool memory_ran_out(const struct shim *shim, const struct rank *rank)
{
    const struct memory *memory = &shim->memory;
    if (!memory->own) {
        return rank->signal == SIGKILL && host_kills() > memory->before;
    }
    int64_t number = own_kills(shim);
    return number > (number < memory->before ? 0 : memory->before);
}

/* The cgroup was made for this attempt, so its counter began at zero. */
bool processes_ran_out(const struct shim *shim)
{
    return shim->cgroup >= 0 && cgroup_counter(shim->cgroup, "pids.events", "max ") > 0;
}
