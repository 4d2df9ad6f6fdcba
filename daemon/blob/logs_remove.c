/* SPDX-License-Identifier: Apache-2.0 */
/* Removes the output, metrics and kept files of jobs, and measures and lists them. Readers that have a file
 * open can read it to its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blob/log_file.h"
#include "daemon/blob/logs.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

static bool remove_folder(const char *folder, bool dry, int64_t *ret_bytes, struct err *err)
{
    *ret_bytes = 0;
    return file_measure(folder, ret_bytes, err) && (dry || file_remove_tree(folder, err));
}

bool logs_remove(const struct logs *logs, const char *job_id, bool dry, int64_t *ret_bytes, struct err *err)
{
    autofree char *folder = log_folder_path(logs, job_id);
    return remove_folder(folder, dry, ret_bytes, err);
}

bool logs_remove_kept(const struct logs *logs, const char *job_id, bool dry, int64_t *ret_bytes,
                      struct err *err)
{
    autofree char *folder = log_kept_path(logs, job_id);
    return remove_folder(folder, dry, ret_bytes, err);
}

/* "ATTEMPT.RANK.files" of this attempt; -1: another name. */
static int64_t rank_of(char *name, int64_t attempt)
{
    char *rest = name;
    const char *number = strsep(&rest, "."), *rank_text = strsep(&rest, ".");
    int64_t found, rank;
    bool kept = rest != NULL && strcmp(rest, stream_text(STREAM_FILES)) == 0;
    bool good = kept && text_to_int(number, 1, INT64_MAX, &found) && found == attempt &&
                text_to_int(rank_text, 0, LIMIT_GPUS, &rank);
    return good ? rank : -1;
}

static int by_number(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

bool logs_kept_ranks(const struct logs *logs, const char *job_id, int64_t attempt, int64_t **ret_ranks,
                     size_t *ret_count, struct err *err)
{
    autofree char *folder = log_kept_path(logs, job_id);
    autonames struct file_names names = {0};
    *ret_ranks = NULL;
    *ret_count = 0;
    if (access(folder, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_list(folder, &names, err)) {
        return false;
    }
    *ret_ranks = xzalloc((names.count + 1) * sizeof **ret_ranks);
    for (size_t i = 0; i < names.count; i++) {
        int64_t rank = rank_of(names.items[i], attempt);
        if (rank >= 0) {
            (*ret_ranks)[(*ret_count)++] = rank;
        }
    }
    qsort(*ret_ranks, *ret_count, sizeof **ret_ranks, by_number);
    return true;
}

static bool measure_part(const char *part, int64_t *bytes, struct err *err)
{
    autonames struct file_names jobs = {0};
    if (!file_list(part, &jobs, err)) {
        return false;
    }
    for (size_t i = 0; i < jobs.count; i++) {
        autofree char *folder = xprintf("%s/%s", part, jobs.items[i]);
        if (!file_measure(folder, bytes, err)) {
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
