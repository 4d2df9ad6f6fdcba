/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a folder below one in which every user may make some. No link is followed below the volume. A folder
 * of the name that another user has made is refused, because a program may execute what it finds in a
 * checkpoint: a change of the mode succeeds for the owner alone, as the file server sees it, whatever numbers
 * it has. */
#include "agent/common/checkpoint_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"

#define PARENT_MODE 01777 /* each removes only their own */
#define FOLDER_MODE 0700

/* Of the two errors the first says why there is none. */
static int make(int at, const char *name, mode_t mode, int access)
{
    int problem = mkdirat(at, name, mode) == 0 ? ENOENT : errno;
    int folder = openat(at, name, access | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    errno = folder < 0 && errno == ENOENT ? problem : errno;
    return folder;
}

bool checkpoint_folder_make(const char *volume, const char *parent, const char *name, struct err *err)
{
    mode_t before = umask(0);
    autoclose int top = open(volume, O_PATH | O_DIRECTORY | O_CLOEXEC);
    autoclose int shared = top >= 0 ? make(top, parent, PARENT_MODE, O_PATH) : -1;
    autoclose int own = shared >= 0 ? make(shared, name, FOLDER_MODE, O_RDONLY) : -1;
    bool made = own >= 0 && fchmod(own, FOLDER_MODE) == 0;
    if (own >= 0 && !made && errno == EPERM) {
        err_set(err, ERR_FORBIDDEN, "%s/%s/%s belongs to another user", volume, parent, name);
    } else if (!made) {
        err_errno(err, "%s/%s/%s", volume, parent, name);
    }
    umask(before);
    return made;
}
