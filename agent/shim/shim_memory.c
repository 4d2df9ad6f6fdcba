/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether memory ran out, or whether the attempt reached its limit of processes. The kernel ends
 * processes for want of memory with SIGKILL, so only a counter shows the reason: `oom_kill` of the attempt's
 * cgroup where that counts memory, else of the whole host. The attempt's own cgroup counts only the job. The
 * host's counter explains only the end of a rank that was itself killed. The shim opens the host's counter
 * before there is an attempt, because a person waits for the start. shim_attempt.c decides the cause.
 * Processes are counted only in the attempt's own cgroup. */
#include "agent/shim/shim.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define OWN_COUNTER   "memory.events" /* of a cgroup that counts memory */
#define HOST_COUNTER  "/proc/vmstat"
#define OOM_KILL      "oom_kill "
#define PIDS_COUNTER  "pids.events"
#define PIDS_MAX      "max "
#define COUNTER_BYTES 16384 /* vmstat has 5 KiB */

/* The number behind the key, which begins a line; 0 if absent. */
static int64_t counter_read(int fd, const char *key)
{
    char text[COUNTER_BYTES];
    ssize_t length = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;
    text[length > 0 ? length : 0] = '\0';
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, strlen(key)) == 0) {
            return strtoll(line + strlen(key), NULL, 10);
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return 0;
}

void memory_find(struct memory *memory)
{
    *memory = (struct memory){.counter = open(HOST_COUNTER, O_RDONLY | O_CLOEXEC)};
}

static int own_open(const struct shim *shim, const char *name)
{
    return shim->cgroup >= 0 ? openat(shim->cgroup, name, O_RDONLY | O_CLOEXEC) : -1;
}

void memory_begin(struct shim *shim)
{
    struct memory *memory = &shim->memory;
    autoclose int own = own_open(shim, OWN_COUNTER);
    memory->own = own >= 0;
    memory->before = counter_read(memory->own ? own : memory->counter, OOM_KILL);
}

/* Opened each time: the agent turns the memory controller off when it ends, and the next agent turns on a new
 * counter that starts at zero. */
static bool own_grew(const struct shim *shim)
{
    autoclose int own = own_open(shim, OWN_COUNTER);
    int64_t number = counter_read(own, OOM_KILL), before = shim->memory.before;
    return number > (number < before ? 0 : before);
}

bool memory_ran_out(const struct shim *shim, const struct rank *rank)
{
    const struct memory *memory = &shim->memory;
    return memory->own ? own_grew(shim)
                       : rank->signal == SIGKILL && counter_read(memory->counter, OOM_KILL) > memory->before;
}

/* The cgroup was made for this attempt, so its counter began at zero. */
bool processes_ran_out(const struct shim *shim)
{
    autoclose int own = own_open(shim, PIDS_COUNTER);
    return counter_read(own, PIDS_MAX) > 0;
}
