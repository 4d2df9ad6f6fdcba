/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the margin of free space: what people add stops while there is still room for what must go on, the
 * exits and logs of running jobs. It asks the file system now and then, not for each request. What counts as
 * adding is the resources' part. */
#include "daemon/http/space.h"

#include <stdlib.h>
#include <sys/statvfs.h>

#include "proto/base/text.h"
#include "proto/limits.h"

struct space {
    const char *folder;
    int64_t min_free_bytes;
    int64_t free_bytes; /* as of the last look, less what was taken in since */
    int64_t look_ms;    /* when to look again */
};

struct space *space_create(const char *folder, int64_t min_free_bytes)
{
    struct space *space = xzalloc(sizeof *space);
    space->folder = folder;
    space->min_free_bytes = min_free_bytes;
    return space;
}

void space_destroy(struct space *space)
{
    free(space);
}

static bool look(struct space *space, struct err *err)
{
    struct statvfs state;
    if (statvfs(space->folder, &state) != 0) {
        return err_errno(err, "cannot ask how much space is free in %s", space->folder);
    }
    space->free_bytes = (int64_t)state.f_bavail * (int64_t)state.f_frsize;
    return true;
}

bool space_allows(struct space *space, int64_t length, int64_t now_ms, struct err *err)
{
    if (space->min_free_bytes == 0) {
        return true;
    }
    if (now_ms >= space->look_ms) {
        if (!look(space, err)) {
            return false;
        }
        space->look_ms = now_ms + SPACE_LOOK_MS;
    }
    if (space->free_bytes - length < space->min_free_bytes) {
        err_set(err, ERR_DISK_FULL, "the controller's disk has %lld MiB left, less than its margin",
                (long long)(space->free_bytes / MIB));
        return err_hint(err, "free space there, or lower gpuctld --min-free");
    }
    space->free_bytes -= length;
    return true;
}
