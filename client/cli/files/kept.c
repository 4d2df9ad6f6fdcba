/* SPDX-License-Identifier: Apache-2.0 */
/* Lists kept files. A name that a controller should not give is refused: files are written under it. */
#include "client/cli/files/kept.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/common/jobs.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/wire/files/kept_files.h"

/* Behind its folder, or the same name. */
static bool is_at(const char *name, const char *path)
{
    size_t length = strlen(path);
    return length == 0 || (strncmp(name, path, length) == 0 && (name[length] == '/' || name[length] == '\0'));
}

static bool take_file(struct kept *kept, json_t *file, struct err *err)
{
    const char *name = json_string_of(file, "path");
    if (name == NULL || strchr(name, '/') == NULL || !kept_path_is_good(name)) {
        return err_set(err, ERR_MALFORMED, "the controller names a file that cannot be written");
    }
    if (is_at(name, kept->path)) {
        json_array_append(kept->files, file);
        kept->complete = kept->complete && json_is_true(json_object_get(file, "complete"));
        kept->is_file = kept->is_file || strcmp(name, kept->path) == 0;
    }
    return true;
}

static bool take_page(const json_t *page, void *closure, struct err *err)
{
    struct kept *kept = closure;
    const json_t *files = pages_list(page, "files", err), *left = json_object_get(page, "left_out");
    bool good = files != NULL;
    size_t i;
    json_t *file;
    json_array_foreach (files, i, file) {
        good = good && take_file(kept, file, err);
    }
    kept->complete = kept->complete && (json_is_true(json_object_get(page, "complete")) || !kept->ended);
    return good && json_read_int(left, "files", 0, INT64_MAX, &kept->left_files, err) &&
           json_read_int(left, "bytes", 0, INT64_MAX, &kept->left_bytes, err);
}

static bool read_state(struct api *api, struct kept *kept, struct err *err)
{
    struct job_view job;
    if (!ranks_get_job(api, kept->id, true, &job, err)) {
        return false;
    }
    kept->ended = job_state_terminal(job.state);
    job_view_finish(&job);
    return true;
}

bool kept_renew(struct api *api, struct kept *kept, struct err *err)
{
    autotext struct text path = {0};
    json_decref(kept->files);
    kept->files = json_array();
    kept->complete = true;
    kept->is_file = false;
    if (!read_state(api, kept, err)) {
        return false;
    }
    text_printf(&path, "/v1/jobs/%s/files", kept->id);
    pages_number(&path, "attempt", kept->attempt);
    pages_number(&path, "limit", LIMIT_KEPT_FILES);
    return pages_each(api, path.bytes, "cursor", take_page, kept, err);
}

static bool refuse_nothing(const struct kept *kept, struct err *err)
{
    if (*kept->path != '\0') {
        err_set(err, ERR_NOT_FOUND, "job %s has kept nothing at %s", kept->id, kept->path);
        return err_hint(err,
                        kept->ended ? "`gpuctl ls %s` lists what it has"
                                    : "%s.RANK:PATH is a file of a rank that runs",
                        kept->id);
    }
    if (!kept->ended) {
        err_set(err, ERR_CONFLICT, "job %s has not ended, and its files come then", kept->id);
        return err_hint(err, "wait for it with `gpuctl wait %s`; %s.RANK:PATH is a file of a rank that runs",
                        kept->id, kept->id);
    }
    err_set(err, ERR_NOT_FOUND, "job %s has kept no files", kept->id);
    return err_hint(err, "each rank keeps what it writes to the folder $GPUCTL_OUTPUT_DIR");
}

static bool cut_name(struct api *api, const char *name, struct kept *kept, struct err *err)
{
    const char *colon = strchr(name, ':');
    autofree char *job = xstrndup(name, colon != NULL ? (size_t)(colon - name) : strlen(name));
    const char *path = colon != NULL ? colon + 1 : "";
    path += strncmp(path, "./", 2) == 0 ? 2 : 0;
    size_t length = strcmp(path, ".") == 0 ? 0 : strlen(path);
    while (length > 0 && path[length - 1] == '/') {
        length--;
    }
    kept->path = xstrndup(path, length);
    return resolve_job(api, job, kept->id, err);
}

bool kept_read(struct api *api, const char *name, int64_t attempt, struct kept *ret_kept, struct err *err)
{
    *ret_kept = (struct kept){.attempt = attempt};
    if (!cut_name(api, name, ret_kept, err) || !kept_renew(api, ret_kept, err)) {
        return false;
    }
    bool pending = ret_kept->ended && !ret_kept->complete;
    return json_array_size(ret_kept->files) > 0 || pending || refuse_nothing(ret_kept, err);
}

void kept_finish(struct kept *kept)
{
    json_decref(kept->files);
    free(kept->path);
}

void kept_say_left(const struct kept *kept)
{
    if (kept->left_files > 0) {
        print_note(
            "%lld more, of %lld bytes, were left out: links, special files, names that are not UTF-8, or "
            "what is "
            "above gpuagent --files-limit or %d files a rank",
            (long long)kept->left_files, (long long)kept->left_bytes, LIMIT_KEPT_FILES);
    }
}
