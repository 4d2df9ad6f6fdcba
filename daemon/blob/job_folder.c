/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the marks of a job's folder, and exchanges it for another one. */
#include "daemon/blob/job_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

bool job_folder_is_mark(const char *name)
{
    return strcmp(name, JOB_FOLDER_AWAY) == 0 || strcmp(name, JOB_FOLDER_STORED) == 0;
}

static bool has_file(const char *folder, const char *name)
{
    autofree char *path = xprintf("%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

bool job_folder_is_away(const char *folder)
{
    return has_file(folder, JOB_FOLDER_AWAY);
}

bool job_folder_is_stored(const char *folder)
{
    return job_folder_is_away(folder) || has_file(folder, JOB_FOLDER_STORED);
}

bool job_folder_extent(const char *folder, struct job_folder_extent *ret_extent, struct err *err)
{
    autonames struct file_names names = {0};
    struct stat status;
    *ret_extent = (struct job_folder_extent){0};
    if (!file_list(folder, &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count; i++) {
        autofree char *path = xprintf("%s/%s", folder, names.items[i]);
        if (strcmp(names.items[i], JOB_FOLDER_STORED) == 0 || stat(path, &status) != 0) {
            continue;
        }
        int64_t changed_ns = status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec;
        ret_extent->files++;
        ret_extent->bytes += status.st_size;
        ret_extent->changed_ns = changed_ns > ret_extent->changed_ns ? changed_ns : ret_extent->changed_ns;
    }
    return true;
}

static bool is_as_before(const char *folder, const struct job_folder_extent *extent)
{
    struct job_folder_extent now;
    struct err ignored;
    return job_folder_extent(folder, &now, &ignored) && now.files == extent->files &&
           now.bytes == extent->bytes && now.changed_ns == extent->changed_ns;
}

/* The job's folder may be gone by now: with retention, or with a disk that was replaced. */
static bool exchange(const char *folder, const char *to, const struct job_folder_extent *extent,
                     struct err *err)
{
    autofree char *above = file_folder_of(folder);
    if (access(folder, F_OK) == 0) {
        bool keeps = extent == NULL ? !job_folder_is_away(folder) : !is_as_before(folder, extent);
        return keeps || renameat2(AT_FDCWD, to, AT_FDCWD, folder, RENAME_EXCHANGE) == 0 ||
               err_errno(err, "cannot replace the folder %s", folder);
    }
    return extent != NULL ||
           (file_make_directories(above, 0700, err) &&
            (rename(to, folder) == 0 || err_errno(err, "cannot make the folder %s", folder)));
}

bool job_folder_replace(pthread_mutex_t *mutex, const char *folder, const char *to,
                        const struct job_folder_extent *extent, struct err *err)
{
    autofree char *above = file_folder_of(folder);
    struct err ignored;
    pthread_mutex_lock(mutex);
    bool ok = exchange(folder, to, extent, err);
    pthread_mutex_unlock(mutex);
    ok = ok && (access(above, F_OK) != 0 || file_sync_folder(above, err));
    file_remove_tree(to, &ignored); /* what the job's folder was, or what nobody needs */
    return ok;
}
