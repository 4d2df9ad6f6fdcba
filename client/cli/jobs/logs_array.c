/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl logs` of an array: the output of its tasks, each line with the number of its task. It promises that
 * a follower sees every task, in the order of their placement, and has at most CLIENT_ARRAY_FEEDS streams
 * open. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/common/follow.h"
#include "client/cli/jobs/logs.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/feed.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

/* A task whose output is followed. */
struct live {
    struct output *output;
    struct feed *feed; /* NULL: the place is free */
};

struct tasks {
    struct api *api;
    const struct logs_options *options;
    const struct job_view *array;
    int64_t since_ms;
    json_t *found;  /* [{id, task}] in the order of their placement */
    size_t begun;   /* of these */
    char *newest;   /* id of the last of them, or NULL */
    size_t removed; /* tasks whose output is gone */
    bool over;      /* no task will be placed any more */
    int64_t look_at_ms;
    struct live live[CLIENT_ARRAY_FEEDS];
};

/* --- which tasks there are --- */

static bool refuse_many(const struct tasks *tasks, struct err *err)
{
    err_set(err, ERR_TOO_LARGE, "array %s has more than %d tasks with output", tasks->array->id,
            CLIENT_ARRAY_TASKS);
    return err_hint(err, "name a task: %s.0 for instance", tasks->array->id);
}

/* Adds the tasks of a page, newest first, to those that are new. *ret_more: there may be new ones behind. */
static bool take_page(const struct tasks *tasks, const json_t *page, json_t *fresh, bool *ret_more,
                      struct err *err)
{
    const json_t *jobs = pages_list(page, "jobs", err);
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        const char *id = json_string_of(job, "id");
        if (tasks->newest != NULL && id != NULL && strcmp(id, tasks->newest) == 0) {
            *ret_more = false;
            return true;
        }
        json_array_append(fresh, job);
    }
    *ret_more = json_string_of(page, "next") != NULL;
    return jobs != NULL && (json_array_size(fresh) + json_array_size(tasks->found) <= CLIENT_ARRAY_TASKS ||
                            refuse_many(tasks, err));
}

/* Finds the tasks that were placed since the last look. */
static bool find_new(struct tasks *tasks, struct err *err)
{
    autojson json_t *fresh = json_array();
    autofree char *cursor = NULL;
    for (bool more = true; more;) {
        autotext struct text path = {0};
        text_printf(&path, "/v1/jobs?array=%s&limit=%d", tasks->array->id, LIMIT_LIST_ROWS);
        api_query(&path, "cursor", cursor);
        autojson json_t *page = api_send_json(
            tasks->api, &(struct request){.method = "GET", .path = path.bytes, .retry = true}, err);
        if (page == NULL || !take_page(tasks, page, fresh, &more, err)) {
            return false;
        }
        free(cursor);
        cursor = more ? xstrdup(json_string_of(page, "next")) : NULL;
    }
    for (size_t i = json_array_size(fresh); i-- > 0;) {
        json_array_append(tasks->found, json_array_get(fresh, i));
    }
    if (json_array_size(fresh) > 0) {
        free(tasks->newest);
        tasks->newest = xstrdup(print_text_of(json_array_get(fresh, 0), "id"));
    }
    return true;
}

/* --- one after the other --- */

/* Output that went before its job is counted, and no failure. */
static bool forgive_gone(struct tasks *tasks, const struct err *err)
{
    tasks->removed += err->code == ERR_GONE;
    return err->code == ERR_GONE;
}

static bool show_one(struct tasks *tasks, const json_t *task, bool *ret_found, char **ret_last_id,
                     struct output *output, struct err *err)
{
    const struct logs_options *options = tasks->options;
    autotext struct text path = {0};
    logs_path(options, print_text_of(task, "id"), tasks->since_ms, &path);
    bool searched = options->grep != NULL || options->errors;
    bool good = searched ? logs_search(tasks->api, options, &path, output, ret_found, err)
                         : logs_read_stored(tasks->api, path.bytes, output, ret_last_id, err);
    output_release(output);
    return output_flush(output, err) && (good || forgive_gone(tasks, err));
}

static bool show_all(struct tasks *tasks, bool *ret_found, struct err *err)
{
    size_t i;
    json_t *task;
    json_array_foreach (tasks->found, i, task) {
        autofree char *last_id = NULL;
        autooutput struct output *output =
            logs_output(tasks->options, tasks->array, json_integer_value(json_object_get(task, "task")));
        if (!show_one(tasks, task, ret_found, &last_id, output, err)) {
            return false;
        }
    }
    return true;
}

/* --- as it comes --- */

/* With --tail the last lines of the task come first. */
static bool begin(struct tasks *tasks, struct live *live, const json_t *task, struct err *err)
{
    autofree char *last_id = NULL;
    autotext struct text path = {0};
    bool found = false; /* by a search, which is not followed */
    live->output =
        logs_output(tasks->options, tasks->array, json_integer_value(json_object_get(task, "task")));
    if (tasks->options->tail >= 0 && !show_one(tasks, task, &found, &last_id, live->output, err)) {
        return false;
    }
    logs_path(tasks->options, print_text_of(task, "id"), tasks->since_ms, &path);
    live->feed = feed_create(tasks->api, path.bytes, last_id);
    return true;
}

static void end(struct live *live)
{
    feed_destroy(live->feed);
    output_destroy(live->output);
    *live = (struct live){0};
}

static bool begin_waiting(struct tasks *tasks, struct err *err)
{
    for (size_t i = 0; i < CLIENT_ARRAY_FEEDS && tasks->begun < json_array_size(tasks->found); i++) {
        if (tasks->live[i].feed == NULL &&
            !begin(tasks, &tasks->live[i], json_array_get(tasks->found, tasks->begun++), err)) {
            return false;
        }
    }
    return true;
}

/* Shows all that has come of one task; the place of one that has ended is free again. */
static bool drain(struct tasks *tasks, struct live *live, struct err *err)
{
    struct sse_event event;
    while (feed_next(live->feed, &event)) {
        if (!output_write_event(live->output, event.data, event.data_length, err)) {
            return false;
        }
    }
    bool gone = !feed_tend(live->feed, err);
    if (gone && !forgive_gone(tasks, err)) {
        return false;
    }
    if (gone || feed_ended(live->feed)) {
        end(live);
        return true;
    }
    return output_flush(live->output, err);
}

/* *ret_live: how many places are taken afterwards. */
static bool drain_all(struct tasks *tasks, size_t *ret_live, struct err *err)
{
    *ret_live = 0;
    for (size_t i = 0; i < CLIENT_ARRAY_FEEDS; i++) {
        if (tasks->live[i].feed != NULL && !drain(tasks, &tasks->live[i], err)) {
            return false;
        }
        *ret_live += tasks->live[i].feed != NULL;
    }
    return true;
}

/* Looks now and then for tasks that were placed; an array that has ended gets no more of them. */
static bool look(struct tasks *tasks, struct err *err)
{
    if (tasks->over || clock_boot_ms() < tasks->look_at_ms) {
        return true;
    }
    autofree char *path = xprintf("/v1/jobs/%s", tasks->array->id);
    json_t *json =
        api_send_json(tasks->api, &(struct request){.method = "GET", .path = path, .retry = true}, err);
    struct job_view view;
    if (json == NULL || !job_view_decode(json, &view, err)) {
        return false;
    }
    tasks->over = job_state_terminal(view.state);
    job_view_finish(&view);
    tasks->look_at_ms = clock_boot_ms() + CLIENT_WATCH_MS;
    return find_new(tasks, err);
}

static int64_t patience_ms(const struct tasks *tasks)
{
    int64_t patience = tasks->over ? CLIENT_REPLY_MS : tasks->look_at_ms - clock_boot_ms();
    for (size_t i = 0; i < CLIENT_ARRAY_FEEDS; i++) {
        if (tasks->live[i].feed != NULL && feed_patience_ms(tasks->live[i].feed) < patience) {
            patience = feed_patience_ms(tasks->live[i].feed);
        }
    }
    return patience > 0 ? patience : 0;
}

static bool follow_all(struct tasks *tasks, struct err *err)
{
    size_t live = 0;
    while (look(tasks, err) && begin_waiting(tasks, err) && drain_all(tasks, &live, err)) {
        bool waiting = tasks->begun < json_array_size(tasks->found);
        if (live == 0 && !waiting && tasks->over) {
            return true;
        }
        api_turn(tasks->api, waiting && live < CLIENT_ARRAY_FEEDS ? 0 : patience_ms(tasks));
    }
    return false;
}

/* --- all --- */

static void finish(struct tasks *tasks)
{
    for (size_t i = 0; i < CLIENT_ARRAY_FEEDS; i++) {
        end(&tasks->live[i]);
    }
    free(tasks->newest);
    json_decref(tasks->found);
}

bool logs_array(struct api *api, const struct logs_options *options, const struct job_view *array,
                int64_t since_ms, bool *ret_found, struct err *err)
{
    if (options->attempt >= 0) {
        return err_field(err, ERR_USAGE, "attempt", "name a task with it",
                         "job %s is an array, and each of its tasks has attempts of its own", array->id);
    }
    struct tasks tasks = {
        .api = api, .options = options, .array = array, .since_ms = since_ms, .found = json_array()};
    bool good =
        options->follow ? follow_all(&tasks, err) : find_new(&tasks, err) && show_all(&tasks, ret_found, err);
    if (good && tasks.removed > 0) {
        print_note("the output of %zu task%s was removed (retention)", tasks.removed,
                   tasks.removed == 1 ? "" : "s");
    }
    finish(&tasks);
    return good;
}
