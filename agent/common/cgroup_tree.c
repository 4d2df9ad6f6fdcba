/* SPDX-License-Identifier: Apache-2.0 */
/* Kills, lists and removes the cgroup of an attempt, and reads its counters, for the agent and for the shim.
 * The kernel does not remove a cgroup that has children, so the innermost goes first. Links are not followed,
 * and the depth is limited: the job made the folders below. */
#include "agent/common/cgroup_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/limits_agent.h"

#define COUNTER_BYTES 16384 /* of a file of counters; /proc/vmstat has 5 KiB */

bool cgroup_tree_kill(int folder)
{
    autoclose int file = openat(folder, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    return file >= 0 && write(file, "1", 1) == 1;
}

/* Calls visit for each folder below, which visit may remove by its name in the parent. */
static void each_below(int parent, int depth,
                       void (*visit)(int parent, const char *name, int below, int depth, void *closure),
                       void *closure)
{
    autoclose int own = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = own >= 0 && depth < LIMIT_CGROUP_DEPTH ? fdopendir(own) : NULL;
    if (listing == NULL) {
        return;
    }
    give_fd(&own); /* it is the listing's now */
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            autoclose int below =
                openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            visit(parent, entry->d_name, below, depth + 1, closure);
        }
    }
    closedir(listing);
}

struct visitor {
    void (*visit)(void *closure, pid_t pid);
    void *closure;
};

static void visit_processes(int parent, const char *name, int folder, int depth, void *closure)
{
    const struct visitor *visitor = closure;
    int pid, fd = openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    autofclose FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (file != NULL && fscanf(file, "%d", &pid) == 1) {
        if (pid > 0) { /* 0: a process of another PID namespace */
            visitor->visit(visitor->closure, pid);
        }
    }
    each_below(folder, depth, visit_processes, closure);
}

void cgroup_tree_each(int folder, void (*visit)(void *closure, pid_t pid), void *closure)
{
    struct visitor visitor = {visit, closure};
    visit_processes(-1, NULL, folder, 0, &visitor);
}

static void remove_below(int parent, const char *name, int folder, int depth, void *closure)
{
    each_below(folder, depth, remove_below, closure);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void cgroup_tree_clear(int folder)
{
    each_below(folder, 0, remove_below, NULL);
}

int64_t cgroup_counter(int folder, const char *name, const char *key)
{
    char text[COUNTER_BYTES];
    autoclose int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    text[length > 0 ? length : 0] = '\0';
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, strlen(key)) == 0) {
            return strtoll(line + strlen(key), NULL, 10);
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return -1;
}
