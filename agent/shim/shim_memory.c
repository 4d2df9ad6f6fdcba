/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether memory ran out, or whether the attempt reached its limit of processes. The kernel ends
 * processes for want of memory with SIGKILL, so only a counter shows the reason: `oom_kill` of the cgroup
 * that counts the ranks' memory, or of the whole host where no cgroup does. The attempt's own cgroup counts
 * only the job. A shared counter explains only the end of a rank that was itself killed. The shim opens the
 * counter before there is an attempt, because a person waits for the start. shim_attempt.c decides the cause.
 * Processes are counted only in the attempt's own cgroup. */
#include "agent/shim/shim.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_COUNTER    "memory.events"      /* of a version 2 cgroup that counts memory */
#define SHARED_COUNTER "memory.oom_control" /* of version 1 */
#define HOST_COUNTER   "/proc/vmstat"
#define OOM_KILL       "oom_kill "
#define PIDS_COUNTER   "pids.events"
#define PIDS_MAX       "max "
#define LINE_BYTES     4096
#define COUNTER_BYTES  16384 /* vmstat has 5 KiB */

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

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* /proc/self/cgroup: "id:controllers:PATH". */
static bool own_path(char path[LINE_BYTES])
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[LINE_BYTES], controllers[LINE_BYTES];
    bool found = false;
    while (!found && file != NULL && fgets(line, sizeof line, file) != NULL) {
        found = sscanf(line, "%*d:%4095[^:]:%4095[^\n]", controllers, path) == 2 &&
                has_word(controllers, "memory");
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* mountinfo: "id parent dev ROOT POINT options ... - TYPE source SUPER". */
static bool mount_find(char root[LINE_BYTES], char point[LINE_BYTES])
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[LINE_BYTES], type[64], super[LINE_BYTES];
    bool found = false;
    while (!found && file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *tail = strstr(line, " - ");
        found = tail != NULL && sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2 &&
                sscanf(tail, " - %63s %*s %4095s", type, super) == 2 && strcmp(type, "cgroup") == 0 &&
                has_word(super, "memory");
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* A container sees only a part of the hierarchy, but its /proc may show its path from the top. */
static int shared_open(void)
{
    char path[LINE_BYTES], root[LINE_BYTES], point[LINE_BYTES], name[PATH_MAX];
    if (!own_path(path) || !mount_find(root, point)) {
        return -1;
    }
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    const char *below = strncmp(path, root, length) == 0 ? path + length : path;
    int written = snprintf(name, sizeof name, "%s%s/" SHARED_COUNTER, point, below);
    return written < PATH_MAX ? open(name, O_RDONLY | O_CLOEXEC) : -1;
}

void memory_find(struct memory *memory)
{
    *memory = (struct memory){.counter = shared_open()};
    if (memory->counter < 0) {
        memory->counter = open(HOST_COUNTER, O_RDONLY | O_CLOEXEC);
    }
}

static int own_open(const struct shim *shim, const char *name)
{
    return shim->cgroup >= 0 && shim->launch.cgroup_version == 2
               ? openat(shim->cgroup, name, O_RDONLY | O_CLOEXEC)
               : -1;
}

void memory_begin(struct shim *shim)
{
    struct memory *memory = &shim->memory;
    int own = own_open(shim, OWN_COUNTER);
    memory->own = own >= 0;
    memory->before = counter_read(memory->own ? own : memory->counter, OOM_KILL);
    if (own >= 0) {
        close(own);
    }
}

/* Opened each time: the agent turns the memory controller off when it ends, and the next agent turns on a new
 * counter that starts at zero. */
static bool own_grew(const struct shim *shim)
{
    int own = own_open(shim, OWN_COUNTER);
    int64_t number = counter_read(own, OOM_KILL), before = shim->memory.before;
    if (own >= 0) {
        close(own);
    }
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
    int own = own_open(shim, PIDS_COUNTER);
    int64_t number = counter_read(own, PIDS_MAX);
    if (own >= 0) {
        close(own);
    }
    return number > 0;
}
