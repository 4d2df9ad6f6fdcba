/* SPDX-License-Identifier: Apache-2.0 */
/* Manages STATE/trash. Removing a million files does not block the loop, no link is followed and no other
 * file system entered. Files that cannot be removed stay until the next folder comes in. */
#include "agent/base/trash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"

#define STEP_ENTRIES 64    /* about 1 ms */
#define DEPTH_MAX    1000  /* folders that are open at once on the way down */
#define TRASH_NAME   "100" /* bytes of the old name, for people */

struct trash {
    char *path;
    int folder;
    uint64_t taken; /* makes names unique */
    bool full;      /* it may contain entries that were not tried yet */
};

struct trash *trash_create(const char *folder, struct err *err)
{
    if (!file_make_directories(folder, 0700, err)) {
        return NULL;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        err_errno(err, "cannot open %s", folder);
        return NULL;
    }
    struct trash *trash = xzalloc(sizeof *trash);
    *trash = (struct trash){.path = xstrdup(folder), .folder = fd, .full = true};
    return trash;
}

void trash_destroy(struct trash *trash)
{
    if (trash != NULL) {
        close(trash->folder);
        free(trash->path);
        free(trash);
    }
}

static bool take_as_next(struct trash *trash, const char *path)
{
    const char *slash = strrchr(path, '/');
    autofree char *name =
        xprintf("%." TRASH_NAME "s.%d.%llu", slash + 1, (int)getpid(), (unsigned long long)trash->taken++);
    return renameat(AT_FDCWD, path, trash->folder, name) == 0;
}

/* In a container each agent has the same process number, and an earlier one may have left its trash. */
bool trash_take(struct trash *trash, const char *path)
{
    bool taken;
    do {
        taken = take_as_next(trash, path);
    } while (!taken && (errno == EEXIST || errno == ENOTEMPTY));
    if (taken) {
        trash->full = true;
    } else if (errno != ENOENT) {
        log_warning("folder kept", "path=%s problem=\"%s\"", path, strerror(errno));
        return false;
    }
    return true;
}

static void empty_folder(int folder, dev_t device, int depth, int *budget);

/* Each removed entry takes one unit of the budget. */
static void remove_entry(int folder, const char *name, dev_t device, int depth, int *budget)
{
    if (unlinkat(folder, name, 0) == 0) {
        *budget -= 1;
        return;
    }
    if ((errno != EISDIR && errno != EPERM) || depth == DEPTH_MAX) {
        return;
    }
    autoclose int below = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0 && errno == EACCES && fchmodat(folder, name, 0700, 0) == 0) { /* as overlayfs makes one */
        below = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    struct stat status;
    if (below >= 0 && fstat(below, &status) == 0 && status.st_dev == device) {
        empty_folder(give_fd(&below), device, depth + 1, budget);
    }
    if (*budget > 0 && unlinkat(folder, name, AT_REMOVEDIR) == 0) {
        *budget -= 1;
    }
}

/* Takes over the descriptor. */
static void empty_folder(int folder, dev_t device, int depth, int *budget)
{
    fchmod(folder, 0700); /* a job may have removed the right to write */
    DIR *listing = fdopendir(folder);
    if (listing == NULL) {
        close(folder);
        return;
    }
    for (struct dirent *entry; *budget > 0 && (entry = readdir(listing)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            remove_entry(dirfd(listing), entry->d_name, device, depth, budget);
        }
    }
    closedir(listing);
}

bool trash_step(struct trash *trash)
{
    if (!trash->full) {
        return false;
    }
    int budget = STEP_ENTRIES;
    struct stat status;
    int folder = openat(trash->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && fstat(folder, &status) == 0) {
        empty_folder(folder, status.st_dev, 0, &budget);
    }
    trash->full = budget < STEP_ENTRIES;
    return trash->full;
}
