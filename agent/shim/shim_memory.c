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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/common/cgroup_tree.h"
#include "proto/base/cleanup.h"
#include "proto/errors.h"

#define OOM_KILL "oom_kill "

/* Where permitted, makes the kernel's OOM killer choose any rank before the shim. The shim may have a score
 * without that, from who has started the agent. */
void oom_protect(struct shim *shim)
{
    autoclose int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    ssize_t written = file >= 0 ? write(file, "-900", 4) : 0;
    (void)written; /* refused without CAP_SYS_RESOURCE */
    ssize_t length = file >= 0 ? pread(file, shim->oom.score, sizeof shim->oom.score - 1, 0) : 0;
    shim->oom.score[length > 0 ? length : 0] = '\0';
    if (atoi(shim->oom.score) != 0) {
        shim->oom.file = give_fd(&file);
    }
}

static void set_score(const struct shim *shim, const char *score)
{
    ssize_t written = shim->oom.file >= 0 ? pwrite(shim->oom.file, score, strlen(score), 0) : 0;
    (void)written; /* one that is above 0 may be for good */
}

/* A child gets the score that the shim has when it is made. To set its own, the child would have to find its
 * folder of /proc, and the kernel to ask all processes of the host whether they share its memory. */
void oom_share(const struct shim *shim)
{
    set_score(shim, "0");
}

void oom_share_no_more(const struct shim *shim)
{
    set_score(shim, shim->oom.score);
}

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
