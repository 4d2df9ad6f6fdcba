/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the runs of an array's experiment, and gives each task the metrics of its own. The tasks of an array
 * track in one experiment, so a page of runs has those of many tasks. */
#include "client/cli/common/task_metrics.h"

#include <string.h>

#include "client/cli/common/jobs.h"
#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_client.h"

#define MLFLOW    "/api/2.0/mlflow/"
#define TRIES     8 /* tasks that are asked for the experiment: some may not have begun to track */
#define PAGE_RUNS 200

/* The caller's; NULL without an error: none of the tasks has a run here. */
static char *find_experiment(struct api *api, const json_t *tasks, struct err *err)
{
    size_t count = json_array_size(tasks);
    err->code = ERR_NONE;
    for (size_t i = 0; i < TRIES && i < count; i++) { /* newest first, so the oldest is last */
        const json_t *task = json_array_get(tasks, count - 1 - i);
        autojson json_t *runs = runs_get(api, print_text_of(task, "id"), err);
        const char *id = json_string_of(json_array_get(runs, 0), "experiment_id");
        if (runs == NULL || id != NULL) {
            return runs != NULL ? xstrdup(id) : NULL;
        }
    }
    return NULL;
}

static const char *job_of(const json_t *run)
{
    const json_t *tags = json_object_get(json_object_get(run, "data"), "tags");
    size_t i;
    json_t *tag;
    json_array_foreach (tags, i, tag) {
        if (strcmp(print_text_of(tag, "key"), "gpuctl.job_id") == 0) {
            return json_string_of(tag, "value");
        }
    }
    return NULL;
}

/* Runs come newest first: an older one of the same task adds nothing. */
static void take_run(const json_t *run, const json_t *by_id)
{
    const char *job = job_of(run);
    json_t *task = job != NULL ? json_object_get(by_id, job) : NULL;
    if (task == NULL || json_object_get(task, "metrics") != NULL) {
        return;
    }
    json_t *metrics = json_object();
    size_t i;
    json_t *metric;
    json_array_foreach (json_object_get(json_object_get(run, "data"), "metrics"), i, metric) {
        json_object_set(metrics, print_text_of(metric, "key"), json_object_get(metric, "value"));
    }
    json_object_set_new(task, "metrics", metrics);
}

static json_t *read_page(struct api *api, const char *experiment, const char *token, struct err *err)
{
    autojson json_t *body =
        json_pack("{s:[s], s:i, s:[s], s:s*}", "experiment_ids", experiment, "max_results", PAGE_RUNS,
                  "order_by", "attributes.start_time DESC", "page_token", token);
    autofree char *text = json_text(body);
    return api_send_json(api,
                         &(struct request){.method = "POST",
                                           .path = MLFLOW "runs/search",
                                           .body = text,
                                           .length = strlen(text),
                                           .content_type = "application/json",
                                           .retry = true},
                         err);
}

bool task_metrics_add(struct api *api, json_t *tasks, struct err *err)
{
    autofree char *experiment = find_experiment(api, tasks, err);
    autojson json_t *by_id = json_object();
    autofree char *token = NULL;
    size_t i;
    json_t *item;
    if (experiment == NULL) {
        return err->code == ERR_NONE;
    }
    json_array_foreach (tasks, i, item) {
        json_object_set(by_id, print_text_of(item, "id"), item);
    }
    for (int seen = 0; seen < CLIENT_METRIC_RUNS && (seen == 0 || token != NULL); seen += PAGE_RUNS) {
        autojson json_t *page = read_page(api, experiment, token, err);
        if (page == NULL) {
            return false;
        }
        json_array_foreach (json_object_get(page, "runs"), i, item) {
            take_run(item, by_id);
        }
        const char *next = json_string_of(page, "next_page_token");
        free(token);
        token = next != NULL && next[0] != '\0' ? xstrdup(next) : NULL;
    }
    return true;
}
