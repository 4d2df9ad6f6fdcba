/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the whole id of the one job whose id begins as the person wrote. */
#include "client/cli/common/resolve.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/spec/tasks.h"

#define LISTED 6 /* matches that a message has room for */

static bool may_be_prefix(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length <= ID_LENGTH && strspn(text, "abcdefghijklmnopqrstuvwxyz234567") == length;
}

static bool refuse_ambiguous(const char *prefix, const json_t *jobs, struct err *err)
{
    autotext struct text list = {0};
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        if (i == LISTED) {
            text_append(&list, ", ...");
            break;
        }
        const char *name = json_string_of(job, "name");
        text_printf(&list, "%s%s", i > 0 ? ", " : "", print_text_of(job, "id"));
        if (name != NULL) {
            text_printf(&list, " (%.24s)", name);
        }
    }
    err_set(err, ERR_AMBIGUOUS, "\"%s\" fits more than one job: %s", prefix, list.bytes);
    return err_hint(err, "give more characters of the id");
}

static bool resolve(struct api *api, const char *prefix, char ret_id[ID_LENGTH + 1], struct err *err)
{
    if (text_is_id(prefix)) {
        snprintf(ret_id, ID_LENGTH + 1, "%s", prefix);
        return true;
    }
    if (!may_be_prefix(prefix)) {
        err_set(err, ERR_NOT_FOUND, "\"%s\" is not the id of a job, nor the start of one", prefix);
        return err_hint(err, "see `gpuctl ps --all` for ids; --name finds a job by its name");
    }
    autotext struct text path = {0};
    text_printf(&path, "/v1/jobs?id_prefix=%s&limit=%d", prefix, LISTED + 1);
    autojson json_t *jobs = api_list(api, path.bytes, "jobs", "cursor", LISTED + 1, err);
    if (jobs == NULL) {
        return false;
    }
    const char *id = json_string_of(json_array_get(jobs, 0), "id");
    if (id == NULL || !text_is_id(id)) {
        err_set(err, ERR_NOT_FOUND, "no job's id starts with \"%s\"", prefix);
        return err_hint(err, "see `gpuctl ps --all`");
    }
    if (json_array_size(jobs) > 1) {
        return refuse_ambiguous(prefix, jobs, err);
    }
    snprintf(ret_id, ID_LENGTH + 1, "%s", id);
    return true;
}

bool resolve_job(struct api *api, const char *prefix, char ret_id[RESOLVED_BYTES], struct err *err)
{
    size_t length;
    int64_t task;
    if (!task_reference(prefix, &length, &task)) {
        return resolve(api, prefix, ret_id, err);
    }
    autofree char *array = xstrndup(prefix, length);
    if (!resolve(api, array, ret_id, err)) {
        return false;
    }
    snprintf(ret_id + ID_LENGTH, RESOLVED_BYTES - ID_LENGTH, ".%lld", (long long)task);
    return true;
}
