/* SPDX-License-Identifier: Apache-2.0 */
/* Owns STATE/spare. It promises that an attempt's folder is there whole or not at all. */
#include "agent/spares.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define FIRST_OUT "0.stdout"
#define FIRST_ERR "0.stderr"

struct spares {
    char *folder;
    uint64_t first, next; /* those with numbers from first to below next are ready */
};

struct spares *spares_create(const char *folder, struct trash *trash, struct err *err)
{
    trash_take(trash, folder);
    if (!file_make_directories(folder, 0700, err)) {
        return NULL;
    }
    struct spares *spares = xzalloc(sizeof *spares);
    spares->folder = xstrdup(folder);
    return spares;
}

void spares_destroy(struct spares *spares)
{
    if (spares != NULL) {
        free(spares->folder);
        free(spares);
    }
}

static char *path_of(const struct spares *spares, uint64_t number)
{
    return xprintf("%s/%llu", spares->folder, (unsigned long long)number);
}

static bool make_file(int folder, const char *name)
{
    autoclose int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return file >= 0;
}

static bool make(const char *path, struct err *err)
{
    autoclose int folder = mkdir(path, 0700) == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder < 0 || mkdirat(folder, SHIM_WORK_FOLDER, 0700) != 0 ||
        mkdirat(folder, SHIM_ERRORS_FOLDER, 0700) != 0 || mkdirat(folder, SHIM_RESULTS_FOLDER, 0700) != 0 ||
        !make_file(folder, SHIM_EXIT_NEW_FILE) || !make_file(folder, FIRST_OUT) ||
        !make_file(folder, FIRST_ERR)) {
        return err_errno(err, "cannot make %s", path);
    }
    return true;
}

static bool name_for(const char *path, int64_t rank, const char *from, const char *stream)
{
    autofree char *old = xprintf("%s/%s", path, from);
    autofree char *new = xprintf("%s/%lld.%s", path, (long long)rank, stream);
    return rename(old, new) == 0;
}

bool spares_take(struct spares *spares, const char *path, int64_t first_rank, struct err *err)
{
    if (spares->first == spares->next) {
        autofree char *made = path_of(spares, spares->next);
        if (!make(made, err)) {
            return false;
        }
        spares->next++;
    }
    autofree char *ready = path_of(spares, spares->first++);
    bool named = first_rank == 0 || (name_for(ready, first_rank, FIRST_OUT, "stdout") &&
                                     name_for(ready, first_rank, FIRST_ERR, "stderr"));
    return (named && rename(ready, path) == 0) || err_errno(err, "cannot make %s", path);
}

bool spares_refill(struct spares *spares)
{
    if (spares->next - spares->first == LIMIT_IDLE_SHIMS) {
        return false;
    }
    autofree char *path = path_of(spares, spares->next);
    if (!make(path, NULL)) {
        return false;
    }
    spares->next++;
    return spares->next - spares->first < LIMIT_IDLE_SHIMS;
}
