/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the controller about the job that a command line names: finds the one job whose id begins as the
 * person wrote, counts its ranks, and lists its runs. */

#include "client/cli/common/jobs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/spec/tasks.h"

/* --- ids --- */

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

static bool is_array(struct api *api, const char *id, bool *ret_array, struct err *err)
{
    struct job_view job;
    if (!ranks_get_job(api, id, false, &job, err)) {
        return false;
    }
    *ret_array = job.array.tasks > 0;
    job_view_finish(&job);
    return true;
}

bool resolve_rank(struct api *api, const char *word, char ret_id[RESOLVED_BYTES], int64_t *ret_rank,
                  struct err *err)
{
    const char *dot = strrchr(word, '.');
    int64_t rank;
    bool array = false;
    if (dot == NULL || !text_to_int(dot + 1, 0, LIMIT_GPUS - 1, &rank)) {
        return resolve_job(api, word, ret_id, err);
    }
    autofree char *job = xstrndup(word, (size_t)(dot - word));
    if (!resolve_job(api, job, ret_id, err) ||
        (strchr(job, '.') == NULL && !is_array(api, ret_id, &array, err))) {
        return false;
    }
    if (array) {
        return resolve_job(api, word, ret_id, err);
    }
    *ret_rank = rank;
    return true;
}

/* --- states --- */

char *states_in_capitals(const char *states)
{
    char *capitals = xstrdup(states);
    for (char *at = capitals; *at != '\0'; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    return capitals;
}

/* --- lists --- */

bool jobs_query_mine(struct api *api, struct text *path, struct err *err)
{
    autojson json_t *session = api_get(api, err, "/v1/session");
    api_query(path, "owner", json_string_of(session, "owner"));
    return session != NULL;
}

bool jobs_check_label(const char *label, struct err *err)
{
    const char *equals = label != NULL ? strchr(label, '=') : NULL;
    return label == NULL || (equals != NULL && equals > label) ||
           err_field(err, ERR_USAGE, "label", "write --label KEY=VALUE", "--label \"%s\" is none", label);
}

/* --- ranks --- */

bool ranks_get_job(struct api *api, const char *id, bool retry, struct job_view *ret_job, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s", id);
    json_t *json = api_send_json(api, &(struct request){.method = "GET", .path = path, .retry = retry}, err);
    return json != NULL && job_view_decode(json, ret_job, err);
}

bool ranks_by_node(const struct job_view *job)
{
    autojson json_t *spec = job->spec != NULL ? json_parse(job->spec, strlen(job->spec), NULL) : NULL;
    const char *mode = NULL;
    json_read_text(spec, "launch_mode", &mode, NULL);
    return mode != NULL && strcmp(mode, launch_mode_text(LAUNCH_NODE)) == 0;
}

int64_t ranks_count(const struct job_view *job)
{
    return ranks_by_node(job) && job->placement_count > 0 ? (int64_t)job->placement_count : job->gpus;
}

bool ranks_check(const struct job_view *job, int64_t rank, struct err *err)
{
    int64_t count = ranks_count(job);
    if (rank < count) {
        return true;
    }
    autofree char *hint =
        count == 1 ? xstrdup("its only rank is 0") : xprintf("its ranks are 0 to %lld", (long long)count - 1);
    return err_field(err, ERR_USAGE, "rank", hint, "job %s has no rank %lld", job->id, (long long)rank);
}

/* --- runs --- */

json_t *runs_get(struct api *api, const char *id, struct err *err)
{
    autojson json_t *answer = api_get(api, err, "/v1/jobs/%s/runs", id);
    if (answer == NULL || pages_list(answer, "runs", err) == NULL) {
        return NULL;
    }
    return json_incref(json_object_get(answer, "runs"));
}

void runs_say(const json_t *run, struct text *out)
{
    const char *experiment = json_string_of(run, "experiment");
    const char *uri = json_string_of(run, "tracking_uri");
    const char *url = json_string_of(run, "url");
    const char *place = url != NULL ? url : uri;
    text_printf(out, "MLflow run %s", print_text_of(run, "run_id"));
    if (experiment != NULL) {
        text_printf(out, " in experiment %s", experiment);
    }
    if (place != NULL) {
        text_printf(out, " at %s", place);
    }
}
