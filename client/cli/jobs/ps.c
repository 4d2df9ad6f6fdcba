/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl ps`: lists jobs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/controller/clusters.h"
#include "client/cli/controller/connect.h"
#include "client/cli/transport/api.h"
#include "client/cli/spec/short_forms.h"
#include "client/cli/common/answer.h"
#include "client/cli/transport/pages.h"
#include "client/cli/common/jobs.h"
#include "client/cli/common/task_metrics.h"
#include "client/cli/common/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"

struct ps_options {
    bool all, wide, all_contexts;
    const char *state, *name, *project, *owner, *label, *node, *array;
    const char *sort; /* a column, a sweep parameter or a metric, "-" before it: the largest first; or NULL */
    int64_t since_ms; /* 0: not given */
    int64_t limit;
    struct clusters *clusters; /* of --all-contexts; no option */
};

static const struct option_row rows[] = {
    ROW_FLAG(struct ps_options, all, 'a', "all", "those that have ended, too"),
    ROW_TEXT(struct ps_options, state, 's', "state", "STATE,...", "only those in these states"),
    ROW_TEXT(struct ps_options, name, 'n', "name", "NAME", "only those of this name"),
    ROW_TEXT(struct ps_options, project, 0, "project", "NAME", "only those of this project"),
    ROW_TEXT(struct ps_options, owner, 0, "owner", "NAME", "only those of this person"),
    ROW_TEXT(struct ps_options, label, 0, "label", "KEY=VALUE", "only those with this label"),
    ROW_TEXT(struct ps_options, node, 0, "node", "NAME",
             "only those that were placed on this node, tasks too"),
    ROW_TEXT(struct ps_options, array, 0, "array", "ID", "the tasks of an array"),
    ROW_DURATION(struct ps_options, since_ms, 0, "since", "only those made so long ago at most"),
    ROW_FLAG(struct ps_options, all_contexts, 0, "all-contexts",
             "those of all controllers that `gpuctl context` lists, with its name"),
    ROW_INT(struct ps_options, limit, 0, "limit", "N", "at most so many, newest first (default 200)", 1,
            LIMIT_LISTED, .absent = LIMIT_LIST_ROWS),
    ROW_TEXT(struct ps_options, sort, 0, "sort", "[-]COLUMN",
             "by this column, of an array also by a parameter or a metric; -: the largest first"),
    ROW_FLAG(struct ps_options, wide, 0, "wide", "all columns, as -o wide"),
    ROW_QUIET("ids alone"),
    ROW_WATCH,
    ROW_FORMAT,
    ROWS_END};

/* array: whole, or NULL. */
static void make_path(const struct ps_options *options, const char *array, struct text *path)
{
    autofree char *wanted = options->state != NULL ? states_in_capitals(options->state) : NULL;
    text_printf(path, "/v1/jobs?limit=%lld",
                (long long)(options->limit < LIMIT_LIST_ROWS ? options->limit : LIMIT_LIST_ROWS));
    api_query(path, "state", wanted);
    if (wanted == NULL && !options->all) {
        pages_states(path, false);
    }
    api_query(path, "name", options->name);
    api_query(path, "project", options->project);
    api_query(path, "owner", options->owner);
    api_query(path, "label", options->label);
    api_query(path, "node", options->node);
    api_query(path, "array", array);
    if (options->since_ms > 0) {
        text_printf(path, "&since=%lld", (long long)(clock_wall_ms() - options->since_ms));
    }
}

/* How far it is, of an array; then why. */
static void show_reason(const json_t *job, const char *member, struct text *out)
{
    array_say(json_object_get(job, "array"), out);
    text_append(out, out->length > 0 && json_string_of(job, member) != NULL ? "; " : "");
    cell_plain(job, member, out);
}

static void show_span(const json_t *job, const char *member, struct text *out)
{
    char span[32];
    print_span(print_time_of(job, member), print_time_of(job, "ended_at"), span);
    text_append(out, span);
}

/* Of what the node had of it last. */
static void show_there(const json_t *job, const char *member, struct text *out)
{
    cell_plain(json_object_get(job, "on_node"), member, out);
}

static void show_time_there(const json_t *job, const char *member, struct text *out)
{
    cell_time(json_object_get(job, "on_node"), member, out);
}

/* "lr=0.1 seed=2" of one task; nothing of an array without a sweep. */
static void show_values(const json_t *job, const char *member, struct text *out)
{
    const json_t *sweep = json_object_get(job, member);
    struct task_values values;
    if (json_is_object(sweep)) {
        task_values_make(sweep, task_values_count(sweep), json_integer_value(json_object_get(job, "task")),
                         &values);
        for (size_t i = 1; i < values.count; i++) {
            text_printf(out, "%s%s=%s", i > 1 ? " " : "", values.items[i].name, values.items[i].text);
        }
        task_values_finish(&values);
    }
}

/* A job without a name is called by its program. */
static void show_name(const json_t *job, const char *member, struct text *out)
{
    cell_plain(job, json_string_of(job, member) != NULL ? member : "program", out);
}

#define OF_ALL                                                                                               \
    COLUMN("NAME", "name", show_name), COLUMN("STATE", "state", cell_plain),                                 \
        COLUMN("GPUS", "gpus", cell_plain), COLUMN("TYPE", "gpu_type", cell_plain),                          \
        WIDE_COLUMN("OWNER", "owner", cell_plain), WIDE_COLUMN("PROJECT", "project", cell_plain),            \
        WIDE_COLUMN("POOL", "pool", cell_plain), WIDE_COLUMN("TRY", "attempt", cell_plain),                  \
        COLUMN("CREATED", "created_at", cell_time), COLUMN("TIME", "started_at", show_span),                 \
        COLUMN("EXIT", "exit_code", cell_plain),                                                             \
    {                                                                                                        \
        "REASON", false, "reason", show_reason                                                               \
    }

static const struct column everywhere_columns[] = {COLUMN("CONTEXT", "context", cell_plain),
                                                   COLUMN("ID", "id", cell_plain), OF_ALL};
static const struct column job_columns[] = {COLUMN("ID", "id", cell_plain), OF_ALL};
static const struct column task_columns[] = {COLUMN("ID", "id", cell_plain),
                                             COLUMN("TASK", "task", cell_plain),
                                             COLUMN("VALUES", "sweep", show_values), OF_ALL};

static const struct column node_columns[] = {COLUMN("ID", "id", cell_plain),
                                             COLUMN("NAME", "name", show_name),
                                             COLUMN("STATE", "state", cell_plain),
                                             COLUMN("OWNER", "owner", cell_plain),
                                             WIDE_COLUMN("PROJECT", "project", cell_plain),
                                             COLUMN("DEVICES", "devices", show_there),
                                             COLUMN("FROM", "created_at", show_time_there),
                                             COLUMN("UNTIL", "ended_at", show_time_there),
                                             COLUMN("TRY", "attempt", show_there),
                                             COLUMN("CAUSE", "cause", show_there),
                                             WIDE_COLUMN("REASON", "reason", show_there)};

static const struct listing jobs = {.name = "jobs", LIST_COLUMNS(job_columns), .key = "id"};
static const struct listing everywhere = {.name = "jobs", LIST_COLUMNS(everywhere_columns), .key = "id"};
static const struct listing on_node = {.name = "jobs", LIST_COLUMNS(node_columns), .key = "id"};
static const struct listing tasks = {.name = "jobs", LIST_COLUMNS(task_columns), .key = "id"};

/* Each task learns of the sweep of its array. */
static bool tell_sweep(const struct call *call, const char *array, json_t *items, struct err *err)
{
    autojson json_t *whole = api_get(call->api, err, "/v1/jobs/%s", array);
    json_t *sweep = json_object_get(json_object_get(whole, "spec"), "sweep");
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        json_object_set(item, "sweep", sweep);
    }
    return whole != NULL;
}

/* --- order --- */

#define COLUMNS_MOST 32

static void show_metric(const json_t *job, const char *member, struct text *out)
{
    cell_number(json_object_get(job, "metrics"), member, out);
}

/* The value of a sweep's parameter. */
static void show_parameter(const json_t *job, const char *member, struct text *out)
{
    const json_t *sweep = json_object_get(job, "sweep");
    struct task_values values;
    task_values_make(sweep, task_values_count(sweep), json_integer_value(json_object_get(job, "task")),
                     &values);
    for (size_t i = 1; i < values.count; i++) {
        text_append(out, strcmp(values.items[i].name, member) == 0 ? values.items[i].text : "");
    }
    task_values_finish(&values);
}

/* What a job is sorted by. A job without a value comes last, whatever the order. */
struct sort_key {
    json_t *job;
    char *text; /* "": no value */
    double number;
    bool is_number;
    size_t place; /* in the list, which decides between equal ones */
    bool backwards;
};

static int compare_keys(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;
    bool x_none = x->text[0] == '\0', y_none = y->text[0] == '\0';
    if (x_none != y_none) {
        return x_none ? 1 : -1;
    }
    int order = x->is_number && y->is_number ? (x->number > y->number) - (x->number < y->number)
                                             : strcmp(x->text, y->text);
    order = x->backwards ? -order : order;
    return order != 0 ? order : x->place < y->place ? -1 : 1;
}

/* Times and numbers as the API has them; what has no member of its own, as it is shown. */
static void sort_text(const struct column *column, const json_t *job, struct text *out)
{
    const json_t *value = json_object_get(job, column->member);
    bool shown = column->show == show_metric || column->show == show_parameter ||
                 column->show == show_values || column->show == show_name || column->show == show_there;
    text_append(out, "");
    if (shown) {
        column->show(job, column->member, out);
    } else if (json_is_real(value)) {
        text_printf(out, "%.17g", json_real_value(value));
    } else {
        cell_plain(job, column->member, out);
    }
}

static void sort_by(const struct column *column, bool backwards, json_t *items)
{
    size_t count = json_array_size(items), i;
    autofree struct sort_key *keys = xzalloc((count + 1) * sizeof *keys);
    for (i = 0; i < count; i++) {
        autotext struct text text = {0};
        char *end;
        json_t *job = json_array_get(items, i);
        const json_t *metric = json_object_get(json_object_get(job, "metrics"), column->member);
        sort_text(column, job, &text);
        keys[i] = (struct sort_key){.job = json_incref(job), .place = i, .backwards = backwards};
        keys[i].text = xstrdup(text.bytes);
        keys[i].number = strtod(keys[i].text, &end);
        keys[i].is_number = end != keys[i].text && *end == '\0';
        if (column->show == show_metric && json_is_number(metric)) {
            keys[i].number = json_number_value(metric); /* the cell is rounded */
        }
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    json_array_clear(items);
    for (i = 0; i < count; i++) {
        json_array_append_new(items, keys[i].job);
        free(keys[i].text);
    }
}

static const struct column *find_column(const struct listing *listing, const char *name)
{
    for (size_t i = 0; i < listing->count; i++) {
        if (strcasecmp(listing->columns[i].title, name) == 0) {
            return &listing->columns[i];
        }
    }
    return NULL;
}

static bool has_metric(const json_t *items, const char *name)
{
    size_t i;
    json_t *job;
    json_array_foreach (items, i, job) {
        if (json_object_get(json_object_get(job, "metrics"), name) != NULL) {
            return true;
        }
    }
    return false;
}

static bool refuse_sort(const struct listing *listing, const char *name, bool array, struct err *err)
{
    autotext struct text titles = {0};
    for (size_t i = 0; i < listing->count; i++) {
        text_printf(&titles, "%s%s", i > 0 ? ", " : "", listing->columns[i].title);
    }
    return err_field(err, ERR_USAGE, "sort", titles.bytes,
                     array ? "\"%s\" is no column, no parameter of the sweep, and no metric of these tasks"
                           : "\"%s\" is no column",
                     name);
}

/* Sorts the jobs. A parameter or a metric becomes a column behind the numbers of the tasks: *ret_listing,
 * whose columns are put into `columns`. */
static bool sort_items(const struct call *call, const char *array, json_t *items, struct listing *ret_listing,
                       struct column columns[COLUMNS_MOST], struct err *err)
{
    const struct ps_options *options = call->options;
    bool backwards = options->sort[0] == '-';
    const char *name = options->sort + backwards;
    const struct column *column = find_column(ret_listing, name);
    if (column != NULL) {
        sort_by(column, backwards, items);
        return true;
    }
    if (array == NULL) {
        return refuse_sort(ret_listing, name, false, err);
    }
    const json_t *sweep = json_object_get(json_array_get(items, 0), "sweep");
    struct column own = {.title = name, .member = name, .show = show_parameter};
    if (json_object_get(sweep, name) == NULL) {
        own.show = show_metric;
        if (!task_metrics_add(call->api, items, err)) {
            return false;
        }
        if (json_array_size(items) > 0 && !has_metric(items, name)) {
            return refuse_sort(ret_listing, name, true, err);
        }
    }
    const size_t front = 2; /* ID and TASK */
    memcpy(columns, ret_listing->columns, front * sizeof *columns);
    columns[front] = own;
    memcpy(columns + front + 1, ret_listing->columns + front, (ret_listing->count - front) * sizeof *columns);
    ret_listing->columns = columns;
    ret_listing->count++;
    sort_by(&own, backwards, items);
    return true;
}

/* --- all controllers --- */

/* Adds the jobs of one. */
static void add_jobs(const struct cluster *cluster, json_t *items)
{
    size_t i;
    json_t *job;
    json_array_foreach (json_object_get(cluster->answer, "jobs"), i, job) {
        json_object_set_new(job, "context", json_string(cluster->name));
        json_array_append(items, job);
    }
}

/* The jobs of all that answer; notes name the others. NULL: none answers. */
static json_t *list_everywhere(struct clusters *clusters, const char *path, struct err *err)
{
    autojson json_t *items = json_array();
    size_t answers = 0;
    clusters_ask(clusters, &(struct request){.method = "GET", .path = path});
    for (size_t i = 0; i < clusters->count; i++) {
        struct cluster *cluster = &clusters->items[i];
        if (cluster->answer != NULL) {
            answers++;
            add_jobs(cluster, items);
        } else {
            if (!cluster->away) {
                print_note("%s: %s", cluster->name, cluster->err.text);
            }
            *err = cluster->err;
        }
        cluster->away = cluster->answer == NULL;
    }
    return answers > 0 ? give(items) : NULL;
}

static const struct listing *listing_of(const struct ps_options *options)
{
    return options->array != NULL  ? &tasks
           : options->node != NULL ? &on_node
           : options->all_contexts ? &everywhere
                                   : &jobs;
}

static bool show(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    const struct ps_options *options = call->options;
    const char *array = options->array != NULL ? call->id : NULL;
    autotext struct text path = {0};
    make_path(options, array, &path);
    autojson json_t *items = options->clusters != NULL
                                 ? list_everywhere(options->clusters, path.bytes, err)
                                 : api_list(call->api, path.bytes, "jobs", "cursor", options->limit, err);
    bool table = (!call->common->quiet && !print_is_json(call->format)) || options->sort != NULL;
    struct listing listing = *listing_of(options);
    struct column columns[COLUMNS_MOST];
    *ret_last = false;
    if (items == NULL || (array != NULL && table && !tell_sweep(call, array, items, err))) {
        return false;
    }
    if (options->sort != NULL && !sort_items(call, array, items, &listing, columns, err)) {
        return false;
    }
    list_print(call, &listing, items, out);
    return true;
}

static bool check(const struct call *call, struct err *err)
{
    const struct ps_options *options = call->options;
    const char *of_one = options->array != NULL ? "array" : options->node != NULL ? "node" : NULL;
    if (!options->all_contexts) {
        return true;
    }
    if (of_one != NULL) {
        return err_field(err, ERR_USAGE, of_one, "name its controller with --context",
                         "--%s is of one controller, and --all-contexts lists all", of_one);
    }
    return options->limit <= LIMIT_LIST_ROWS ||
           err_field(err, ERR_USAGE, "limit", "list one of them with --context",
                     "--all-contexts lists up to %d jobs of each controller", LIMIT_LIST_ROWS);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    struct ps_options options = *(const struct ps_options *)call->options;
    struct call own = *call;
    autoclusters struct clusters clusters = {0};
    autoapi struct api *api = NULL;
    own.options = &options;
    own.format = options.wide && !print_is_json(call->format) ? FORMAT_WIDE : call->format;
    if (options.all_contexts) {
        options.clusters = &clusters;
        return clusters_open(call, &clusters, err) && clusters_first(&clusters, &own.api, err) &&
               watch_run(&own, show, err);
    }
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    own.api = api;
    return (options.array == NULL || resolve_job(api, options.array, own.id, err)) &&
           watch_run(&own, show, err);
}

const struct verb verb_ps = {
    .name = "ps",
    .summary = "List running and waiting jobs, or all jobs.",
    .details = "--sort takes the title of a column. With --array it also takes a parameter of the sweep, or "
               "a metric that "
               "the tasks have\n"
               "logged, with the last value of each as a column. Jobs without a value come last.\n"
               "\n"
               "Examples:\n"
               "  gpuctl ps --all --sort -gpus\n"
               "  gpuctl ps --all --array b3qa --sort loss   the best task of a sweep first\n"
               "  gpuctl ps --all-contexts                   of all your controllers",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct ps_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
