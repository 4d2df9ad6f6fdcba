/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lists, side by side and each page by page. It promises that a reading takes at most
 * CLIENT_TOP_PAGES requests of a list, that the lists change together, when the reading of each is over, and
 * that a job is in one of them at most. */
#include "client/cli/top/data/top_data.h"

#include <stdlib.h>

#include "client/cli/show/print.h"
#include "client/cli/top/data/top_requests.h"
#include "client/cli/top/data/top_walk.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/states.h"

#define LISTS 3 /* TOP_NODES, TOP_JOBS and TOP_QUEUE */

struct list {
    struct top_data *data; /* borrowed */
    enum top_table_id table;
    struct top_walk walk;
    json_t *rows; /* as they are shown; NULL: none yet */
};

struct top_data {
    struct top_requests requests;
    struct list lists[LISTS];
    size_t left; /* lists that are being read */
    enum top_data_state state;
    struct err err;
};

static const struct {
    const char *path, *name;
} sources[LISTS] = {
    [TOP_NODES] = {"/v1/nodes?limit=200", "nodes"},
    [TOP_JOBS] = {"/v1/jobs?limit=200&state=STAGING,PLACED,RUNNING", "jobs"},
    [TOP_QUEUE] = {"/v1/jobs?limit=200&state=QUEUED,HELD,BLOCKED", "jobs"},
};

struct top_data *top_data_create(struct api *api)
{
    struct top_data *data = xzalloc(sizeof *data);
    data->requests.api = api;
    for (int i = 0; i < LISTS; i++) {
        data->lists[i] = (struct list){
            .data = data, .table = (enum top_table_id)i, .walk.key = i == TOP_NODES ? "name" : "id"};
    }
    return data;
}

static void drop_coming(struct top_data *data)
{
    top_requests_drop(&data->requests);
    data->left = 0;
    for (int i = 0; i < LISTS; i++) {
        top_walk_drop(&data->lists[i].walk);
    }
}

void top_data_destroy(struct top_data *data)
{
    if (data == NULL) {
        return;
    }
    drop_coming(data);
    for (int i = 0; i < LISTS; i++) {
        top_walk_finish(&data->lists[i].walk);
        json_decref(data->lists[i].rows);
    }
    free(data);
}

/* How often the job has changed; -1: it is not there. */
static json_int_t seq_of(const json_t *job)
{
    return job != NULL ? json_integer_value(json_object_get(job, "seq")) : -1;
}

/* {"ID": job} */
static json_t *by_id(const json_t *jobs)
{
    json_t *found = json_object();
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        json_object_set(found, print_text_of(job, "id"), job);
    }
    return found;
}

/* The jobs of which no other list tells something newer. They come with the newest first. */
static json_t *oldest_first(const json_t *jobs, const json_t *others)
{
    json_t *turned = json_array();
    for (size_t i = json_array_size(jobs); i-- > 0;) {
        json_t *job = json_array_get(jobs, i);
        if (seq_of(json_object_get(others, print_text_of(job, "id"))) < seq_of(job)) {
            json_array_append(turned, job);
        }
    }
    return turned;
}

static void show_lists(struct top_data *data)
{
    struct list *lists = data->lists;
    autojson json_t *running = by_id(lists[TOP_JOBS].walk.rows);
    autojson json_t *waiting = by_id(lists[TOP_QUEUE].walk.rows);
    for (int i = 0; i < LISTS; i++) {
        const json_t *others = i == TOP_JOBS ? waiting : running;
        json_decref(lists[i].rows);
        lists[i].rows =
            i == TOP_NODES ? json_incref(lists[i].walk.rows) : oldest_first(lists[i].walk.rows, others);
    }
}

static void end_list(struct top_data *data)
{
    data->left--;
    if (data->left > 0) {
        return;
    }
    for (int i = 0; i < LISTS; i++) {
        top_walk_settle(&data->lists[i].walk);
    }
    show_lists(data);
    data->state = TOP_DATA_NEW;
}

static void take_page(void *closure, const struct text *body, const struct err *err);

static void ask_for_page(struct list *list)
{
    autotext struct text path = {0};
    text_append(&path, sources[list->table].path);
    api_query(&path, "cursor", top_walk_cursor(&list->walk));
    top_requests_get(&list->data->requests, path.bytes, (struct top_taker){take_page, list});
}

/* err: why there is no body. */
static void take_page(void *closure, const struct text *body, const struct err *err)
{
    struct list *list = closure;
    struct top_data *data = list->data;
    struct err why = *err;
    autojson json_t *page = body != NULL ? json_parse(body->bytes, body->length, &why) : NULL;
    const json_t *rows = page != NULL ? pages_list(page, sources[list->table].name, &why) : NULL;
    if (rows == NULL) {
        data->err = why;
        data->state = TOP_DATA_FAILED;
        return;
    }
    if (top_walk_take(&list->walk, rows, json_string_of(page, "next"))) {
        ask_for_page(list);
    } else {
        end_list(data);
    }
}

void top_data_begin(struct top_data *data)
{
    if (data->left > 0) {
        return;
    }
    data->left = LISTS;
    for (int i = 0; i < LISTS; i++) {
        ask_for_page(&data->lists[i]);
    }
}

enum top_data_state top_data_step(struct top_data *data, struct err *err)
{
    top_requests_step(&data->requests);
    enum top_data_state state = data->state;
    data->state = TOP_DATA_READING;
    if (state == TOP_DATA_FAILED) {
        drop_coming(data);
        *err = data->err;
    }
    return state;
}

bool top_data_idle(const struct top_data *data)
{
    return data->left == 0;
}

json_t *top_data_rows(const struct top_data *data, enum top_table_id table)
{
    return table < LISTS ? data->lists[table].rows : NULL;
}

enum top_extent top_data_extent(const struct top_data *data, enum top_table_id table)
{
    return table < LISTS ? data->lists[table].walk.extent : TOP_WHOLE;
}

bool top_job_waits(const json_t *job)
{
    enum job_state state;
    const char *text = json_string_of(job, "state");
    return text != NULL && job_state_from_text(text, &state) && !job_state_terminal(state) &&
           state != JOB_PLACED && state != JOB_RUNNING;
}

static void add_reasons(json_t *jobs, const struct top_details *details)
{
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        const json_t *reason = top_details_reason(details, print_text_of(job, "id"));
        if (top_job_waits(job) && reason != NULL) {
            json_object_set_new(job, "reason", json_string(json_string_value(reason)));
        }
    }
}

void top_data_add_details(const struct top_data *data, const struct top_details *details)
{
    size_t i;
    json_t *node;
    json_array_foreach (data->lists[TOP_NODES].rows, i, node) {
        json_t *use = top_details_use(details, print_text_of(node, "name"), NULL);
        if (use != NULL) {
            json_object_set_new(node, "use", use);
        }
    }
    add_reasons(data->lists[TOP_JOBS].rows, details);
    add_reasons(data->lists[TOP_QUEUE].rows, details);
}
