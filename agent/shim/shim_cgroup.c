/* SPDX-License-Identifier: Apache-2.0 */
/* The attempt's cgroup, which the agent made: kills its processes, and removes it together with the cgroups
 * that the job made below it. Where the kernel cannot kill a cgroup in one step, the kill ladder repeats
 * until its list of processes is empty. Ranks enter the cgroup in shim_rank.c. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/common/cgroup_tree.h"

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

static void add_process(void *list, pid_t pid)
{
    pid_list_add(list, pid);
}

void cgroup_collect(const struct shim *shim, struct pid_list *list)
{
    if (shim->cgroup >= 0) {
        cgroup_tree_each(shim->cgroup, add_process, list);
    }
}

void cgroup_kill(const struct shim *shim)
{
    if (shim->cgroup >= 0) {
        cgroup_tree_kill(shim->cgroup);
    }
}

bool cgroup_is_empty(const struct shim *shim)
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
        cgroup_tree_clear(shim->cgroup);
        if (rmdir(shim->launch.cgroup) != 0 && errno != ENOENT && !cgroup_is_empty(shim)) {
            return false;
        }
    }
    close(shim->cgroup);
    shim->cgroup = -1;
    return true;
}
