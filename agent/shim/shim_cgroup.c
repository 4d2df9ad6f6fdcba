/* SPDX-License-Identifier: Apache-2.0 */
/* The attempt's cgroup, which the agent made: lists and kills its processes, and removes it together with the
 * cgroups that the job made below it. Version 2 kills in one step. Version 1 has only the list of processes,
 * so the kill ladder repeats until the list is empty. Ranks enter the cgroup in shim_rank.c. */
#include "agent/shim/shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cgroup_open(struct shim *shim, struct why *why)
{
    const char *path = shim->launch.cgroup;
    if (path == NULL || shim->cgroup >= 0) {
        return true;
    }
    shim->cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (shim->cgroup < 0 || faccessat(shim->cgroup, "cgroup.procs", W_OK, AT_EACCESS) != 0) {
        return why_set(why, "cgroup %s: %s", path, strerror(errno));
    }
    return true;
}

static void procs_read(int folder, struct pid_list *list)
{
    int fd = openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    int pid;
    while (fscanf(file, "%d", &pid) == 1) {
        if (pid > 0) { /* 0: a process of another PID namespace */
            pid_list_add(list, pid);
        }
    }
    fclose(file);
}

/* Calls visit for each subfolder of the folder. The caller keeps the folder's descriptor. */
static void below_each(int folder, int depth,
                       void (*visit)(int parent, const char *name, int depth, void *context), void *context)
{
    int fd = depth < LIMIT_CGROUP_DEPTH ? openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
    if (listing == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(listing)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            visit(folder, entry->d_name, depth + 1, context);
        }
    }
    closedir(listing);
}

static void folder_collect(int folder, int depth, struct pid_list *list);

static void below_collect(int parent, const char *name, int depth, void *context)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        folder_collect(fd, depth, context);
        close(fd);
    }
}

static void folder_collect(int folder, int depth, struct pid_list *list)
{
    procs_read(folder, list);
    below_each(folder, depth, below_collect, list);
}

void cgroup_collect(const struct shim *shim, struct pid_list *list)
{
    if (shim->cgroup >= 0) {
        folder_collect(shim->cgroup, 0, list);
    }
}

void cgroup_kill(const struct shim *shim)
{
    int fd = shim->cgroup >= 0 && shim->launch.cgroup_version == 2
                 ? openat(shim->cgroup, "cgroup.kill", O_WRONLY | O_CLOEXEC)
                 : -1;
    if (fd >= 0) { /* absent before Linux 5.14; then the list of processes serves */
        ssize_t written = write(fd, "1", 1);
        (void)written;
        close(fd);
    }
}

static void below_remove(int parent, const char *name, int depth, void *context)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        below_each(fd, depth, below_remove, context);
        close(fd);
    }
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Whether no process is left in the cgroup; for a cgroup that the shim may not remove. */
static bool cgroup_empty(const struct shim *shim)
{
    struct pid_list list;
    pid_list_begin(&list);
    cgroup_collect(shim, &list);
    bool empty = list.count == 0;
    pid_list_finish(&list);
    return empty;
}

bool cgroup_vacate(struct shim *shim)
{
    if (shim->cgroup < 0) {
        return true;
    }
    if (rmdir(shim->launch.cgroup) != 0 && errno != ENOENT) {
        below_each(shim->cgroup, 0, below_remove, NULL);
        if (rmdir(shim->launch.cgroup) != 0 && errno != ENOENT && !cgroup_empty(shim)) {
            return false;
        }
    }
    close(shim->cgroup);
    shim->cgroup = -1;
    return true;
}
