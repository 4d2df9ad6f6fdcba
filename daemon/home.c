/* SPDX-License-Identifier: Apache-2.0 */
/* Locks the state folder. Only the holder of the lock changes the folder; readers of the databases need no
 * lock. */
#include "daemon/home.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

int home_lock(const char *state, struct err *err)
{
    if (!file_make_directories(state, 0700, err)) {
        return -1;
    }
    autofree char *path = xprintf("%s/lock", state);
    autoclose int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) {
        err_errno(err, "cannot open %s", path);
        return -1;
    }
    if (!file_give_to_owner_of(state, path, err)) {
        return -1;
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        err_field(err, ERR_CONFLICT, "--state", "end it first, or name another folder",
                  "another gpuctld uses %s", state);
        return -1;
    }
    return give_fd(&lock);
}
