/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lists, side by side and each page by page. It promises that a list has at most LIMIT_TOP_ROWS
 * rows and takes at most CLIENT_TOP_PAGES requests, and that the lists are replaced together, when all were
 * read. */
#include "client/cli/top/data/top_data.h"

#include <stdlib.h>

#include "client/cli/show/print.h"
#include "client/cli/top/data/top_requests.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/states.h"

#define LISTS 3 /* TOP_NODES, TOP_JOBS and TOP_QUEUE */

struct list {
    struct top_data *data; /* borrowed */
    enum top_table_id table;
    json_t *rows; /* those that were read whole; NULL: none yet */
    bool cut;
    json_t *coming; /* NULL: it is not being read */
    int pages;      /* of these */
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
        data->lists[i] = (struct list){.data = data, .table = (enum top_table_id)i};
    }
    return data;
}

static void drop_coming(struct top_data *data)
{
    top_requests_drop(&data->requests);
    data->left = 0;
    for (int i = 0; i < LISTS; i++) {
        json_decref(data->lists[i].coming);
        data->lists[i].coming = NULL;
    }
}

void top_data_destroy(struct top_data *data)
{
    if (data == NULL) {
        return;
    }
    drop_coming(data);
    for (int i = 0; i < LISTS; i++) {
        json_decref(data->lists[i].rows);
    }
    free(data);
}

/* The lists of jobs come with the newest first. */
static json_t *reversed(const json_t *rows)
{
    json_t *turned = json_array();
    for (size_t i = json_array_size(rows); i-- > 0;) {
        json_array_append(turned, json_array_get(rows, i));
    }
    return turned;
}

static void replace(struct list *list)
{
    json_decref(list->rows);
    list->rows = list->table == TOP_NODES ? json_incref(list->coming) : reversed(list->coming);
    json_decref(list->coming);
    list->coming = NULL;
}

static void end_list(struct top_data *data)
{
    data->left--;
    if (data->left > 0) {
        return;
    }
    for (int i = 0; i < LISTS; i++) {
        replace(&data->lists[i]);
    }
    data->state = TOP_DATA_NEW;
}

static void take_page(void *closure, const struct text *body, const struct err *err);

static void ask_for_page(struct list *list, const char *cursor)
{
    autotext struct text path = {0};
    text_append(&path, sources[list->table].path);
    api_query(&path, "cursor", cursor);
    top_requests_get(&list->data->requests, path.bytes, (struct top_taker){take_page, list});
}

static bool add_rows(struct list *list, const json_t *page, struct err *err)
{
    const json_t *rows = pages_list(page, sources[list->table].name, err);
    for (size_t i = 0; i < json_array_size(rows) && json_array_size(list->coming) < LIMIT_TOP_ROWS; i++) {
        json_array_append(list->coming, json_array_get(rows, i));
    }
    return rows != NULL;
}

/* err: why there is no body. */
static void take_page(void *closure, const struct text *body, const struct err *err)
{
    struct list *list = closure;
    struct top_data *data = list->data;
    struct err why = *err;
    autojson json_t *page = body != NULL ? json_parse(body->bytes, body->length, &why) : NULL;
    if (page == NULL || !add_rows(list, page, &why)) {
        data->err = why;
        data->state = TOP_DATA_FAILED;
        return;
    }
    const char *next = json_string_of(page, "next");
    list->pages++;
    list->cut =
        next != NULL && (json_array_size(list->coming) >= LIMIT_TOP_ROWS || list->pages == CLIENT_TOP_PAGES);
    if (next != NULL && !list->cut) {
        ask_for_page(list, next);
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
        data->lists[i].coming = json_array();
        data->lists[i].pages = 0;
        ask_for_page(&data->lists[i], NULL);
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

bool top_data_cut(const struct top_data *data, enum top_table_id table)
{
    return table < LISTS && data->lists[table].cut;
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
