/* SPDX-License-Identifier: Apache-2.0 */
/* Removes the output and metrics of jobs, and measures them. Readers that have a file open can read it to its
 * end. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/log_file.h"
#include "daemon/blob/logs.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

/* Adds the sizes of the files in a folder. */
static bool measure(const char *folder, int64_t *bytes, struct err *err)
{
    autonames struct file_names names = {0};
    struct stat status;
    if (access(folder, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_list(folder, &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count; i++) {
        autofree char *path = xprintf("%s/%s", folder, names.items[i]);
        *bytes += lstat(path, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
    }
    return true;
}

bool logs_remove(const struct logs *logs, const char *job_id, bool dry, int64_t *ret_bytes, struct err *err)
{
    autofree char *folder = log_folder_path(logs, job_id);
    *ret_bytes = 0;
    return measure(folder, ret_bytes, err) && (dry || file_remove_tree(folder, err));
}

static bool measure_part(const char *part, int64_t *bytes, struct err *err)
{
    autonames struct file_names jobs = {0};
    if (!file_list(part, &jobs, err)) {
        return false;
    }
    for (size_t i = 0; i < jobs.count; i++) {
        autofree char *folder = xprintf("%s/%s", part, jobs.items[i]);
        if (!measure(folder, bytes, err)) {
            return false;
        }
    }
    return true;
}

bool logs_measure(const struct logs *logs, bool (*go_on)(void *closure), void *closure, int64_t *ret_bytes,
                  struct err *err)
{
    autonames struct file_names parts = {0};
    *ret_bytes = 0;
    if (!file_list(log_root(logs), &parts, err)) {
        return false;
    }
    for (size_t i = 0; i < parts.count && go_on(closure); i++) {
        autofree char *part = xprintf("%s/%s", log_root(logs), parts.items[i]);
        if (!measure_part(part, ret_bytes, err)) {
            return false;
        }
    }
    return true;
}
