/* SPDX-License-Identifier: Apache-2.0 */
/* Removes the cgroups of warm workers. Those that became ranks leave theirs a moment after their shim was
 * handed out, and the shim kills the rest; of a shim that has ended nothing may stay. */
#include "agent/launch/warm_cgroups.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/launch/cgroup.h"
#include "proto/base/text/text.h"

void left_cgroup_add(struct left_cgroup **left, char *path, int64_t kill_ms)
{
    if (path != NULL) {
        struct left_cgroup *item = xzalloc(sizeof *item);
        *item = (struct left_cgroup){.path = path, .kill_ms = kill_ms};
        DL_APPEND(*left, item);
    }
}

static void forget(struct left_cgroup **left, struct left_cgroup *item)
{
    DL_DELETE(*left, item);
    free(item->path);
    free(item);
}

bool left_cgroups_step(struct left_cgroup **left, int64_t now_ms)
{
    struct left_cgroup *item, *next;
    DL_FOREACH_SAFE (*left, item, next) {
        if (rmdir(item->path) == 0 || errno == ENOENT ||
            (item->kill_ms <= now_ms && cgroup_clear(item->path))) {
            forget(left, item);
        }
    }
    return *left != NULL;
}

void left_cgroups_finish(struct left_cgroup **left)
{
    while (*left != NULL) {
        cgroup_clear((*left)->path);
        forget(left, *left);
    }
}
