/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the jobs that squeue shows and scancel ends. It promises that tasks of arrays are rows of their own,
 * and that tasks that have not begun are one row. Lists of the API lack nodes and pools, so each job is asked
 * for by itself. */
#include "client/cli/slurm/commands/job_rows.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/common/answer.h"
#include "client/cli/common/jobs.h"
#include "client/cli/show/print.h"
#include "client/cli/slurm/commands/job_states.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"

/* --- ids --- */

bool job_rows_id(struct api *api, const char *word, char ret_id[RESOLVED_BYTES], struct err *err)
{
    autofree char *ours = xstrdup(word);
    char *task = strrchr(ours, '_');
    if (task != NULL) {
        *task = '.';
    }
    return resolve_job(api, ours, ret_id, err);
}

const char *job_rows_partition(const json_t *row)
{
    const json_t *job = json_object_get(row, "job");
    const char *pool = json_string_of(job, "pool");
    const char *asked = json_string_of(json_object_get(job, "spec"), "pool");
    return pool != NULL ? pool : asked != NULL ? asked : "any";
}

void job_rows_show_id(const json_t *row, struct text *out)
{
    const json_t *job = json_object_get(row, "job");
    const char *array = json_string_of(job, "array_id"), *tasks = json_string_of(row, "tasks");
    text_append(out, array != NULL ? array : print_text_of(job, "id"));
    if (array != NULL) {
        text_printf(out, "_%lld", (long long)json_integer_value(json_object_get(job, "task")));
    } else if (tasks != NULL) {
        text_printf(out, "_[%s]", tasks);
    }
}

/* --- the filter --- */

static bool in_list(const char *list, const char *word)
{
    size_t length = word != NULL ? strlen(word) : 0;
    for (const char *at = list; at != NULL && word != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == length && strncmp(at, word, length) == 0) {
            return true;
        }
    }
    return false;
}

/* What is the same in lists and of single jobs. */
static bool fits_early(const struct job_filter *filter, const json_t *job)
{
    return (filter->users == NULL || in_list(filter->users, json_string_of(job, "owner"))) &&
           (filter->names == NULL || in_list(filter->names, json_string_of(job, "name"))) &&
           (filter->account == NULL || in_list(filter->account, json_string_of(job, "project")));
}

/* Before its tasks and its nodes are known: an array may have tasks in any state, and one that runs may be
 * completing. */
static bool may_be_in_state(const struct job_filter *filter, const json_t *job)
{
    unsigned state = 1U << slurm_state_of(job);
    state |= state == 1U << SLURM_RUNNING ? 1U << SLURM_COMPLETING : 0;
    return json_is_object(json_object_get(job, "array")) || (filter->states & state) != 0;
}

static bool fits(const struct job_filter *filter, const json_t *row)
{
    const json_t *job = json_object_get(row, "job");
    return fits_early(filter, job) && (filter->states & 1U << slurm_state_of(job)) != 0 &&
           (filter->partitions == NULL || in_list(filter->partitions, job_rows_partition(row)));
}

/* The owners that the users are. A person's login name here stands for them, too, whatever the controller
 * calls them. The caller's; NULL with *err, or where all users are meant. */
static char *owners_of(struct api *api, const struct job_filter *filter, struct err *err)
{
    if (filter->users != NULL && filter->users[0] == '\0') { /* of a variable that is not set */
        err_field(err, ERR_USAGE, "user", "name somebody, or use --me", "--user names nobody");
        return NULL;
    }
    const struct passwd *person = filter->users != NULL ? getpwuid(getuid()) : NULL;
    bool mine = filter->me || (person != NULL && in_list(filter->users, person->pw_name));
    if (!mine) {
        return xstrdup(filter->users != NULL ? filter->users : "");
    }
    autojson json_t *session = api_get(api, err, "/v1/session");
    const char *owner = json_string_of(session, "owner");
    if (session == NULL) {
        return NULL;
    }
    return filter->users != NULL ? xprintf("%s,%s", filter->users, owner != NULL ? owner : "")
                                 : xstrdup(owner != NULL ? owner : "");
}

/* --- arrays --- */

/* The tasks of an array that have not begun, in order: the spec has them as "1,3,5-7,9". Each range that is
 * left, with its text. */
struct rest {
    char *copy, *next;
    int64_t begun;
    int64_t first, last; /* of the range that was read */
};

static void rest_begin(struct rest *rest, const json_t *array)
{
    const json_t *progress = json_object_get(array, "array");
    const char *only = json_string_of(json_object_get(json_object_get(array, "spec"), "array"), "only");
    long long tasks = json_integer_value(json_object_get(progress, "tasks"));
    *rest = (struct rest){.copy = only != NULL ? xstrdup(only) : xprintf("0-%lld", tasks - 1),
                          .begun = json_integer_value(json_object_get(progress, "placed"))};
    rest->next = rest->copy;
}

static bool rest_read(struct rest *rest)
{
    for (char *part; (part = strsep(&rest->next, ",")) != NULL;) {
        char *end = part;
        rest->first = strtoll(part, &end, 10);
        rest->last = *end == '-' ? strtoll(end + 1, NULL, 10) : rest->first;
        int64_t count = rest->last - rest->first + 1;
        int64_t skipped = rest->begun < count ? rest->begun : count;
        rest->begun -= skipped;
        rest->first += skipped;
        if (rest->first <= rest->last) {
            return true;
        }
    }
    free(rest->copy);
    return false;
}

/* The array's own job becomes one of tasks that wait. */
static void make_waiting(json_t *array)
{
    if (slurm_state_of(array) != SLURM_PENDING) { /* other tasks of it run */
        json_object_set_new(array, "state", json_string("QUEUED"));
    }
    json_object_set_new(array, "started_at", json_null());
    json_object_set_new(array, "nodes", json_array());
}

/* A row for the tasks that have not begun. */
static void add_rest(json_t *rows, json_t *array)
{
    int64_t parallel = json_integer_value(json_object_get(json_object_get(array, "array"), "parallel"));
    autotext struct text text = {0};
    struct rest rest;
    rest_begin(&rest, array);
    while (rest_read(&rest)) {
        text_printf(&text, "%s%lld", text.length > 0 ? "," : "", (long long)rest.first);
        if (rest.last > rest.first) {
            text_printf(&text, "-%lld", (long long)rest.last);
        }
    }
    if (text.length == 0) {
        return;
    }
    if (parallel > 0) {
        text_printf(&text, "%%%lld", (long long)parallel);
    }
    make_waiting(array);
    json_array_append_new(rows, json_pack("{s:O, s:s}", "job", array, "tasks", text.bytes));
}

static bool is_waiting_task(const json_t *array, int64_t task)
{
    struct rest rest;
    bool found = false;
    rest_begin(&rest, array);
    while (rest_read(&rest)) {
        found |= task >= rest.first && task <= rest.last;
    }
    return found;
}

static bool is_live(const json_t *job)
{
    return (SLURM_LIVE & 1U << slurm_state_of(job)) != 0;
}

/* --- reading --- */

struct reading {
    struct api *api;
    const struct job_filter *filter;
    json_t *rows;
    struct err *err;
};

static bool add_job(struct reading *reading, const char *id, bool named);

static bool add_tasks(struct reading *reading, json_t *array)
{
    bool ended_too = (reading->filter->states & ~SLURM_LIVE) != 0;
    autotext struct text path = {0};
    text_printf(&path, "/v1/jobs?array=%s&limit=%d", print_text_of(array, "id"), LIMIT_LIST_ROWS);
    if (!ended_too) {
        pages_states(&path, false);
    }
    autojson json_t *tasks = api_list(reading->api, path.bytes, "jobs", "cursor", LIMIT_LISTED, reading->err);
    bool good = tasks != NULL;
    for (size_t i = 0; good && i < json_array_size(tasks); i++) {
        good = add_job(reading, print_text_of(json_array_get(tasks, i), "id"), false);
    }
    if (good && is_live(array)) {
        add_rest(reading->rows, array);
    }
    return good;
}

/* A task that is named, and no job yet. */
static bool add_waiting_task(struct reading *reading, const char *id)
{
    size_t length;
    int64_t task;
    struct err err;
    if (!task_reference(id, &length, &task)) {
        return false;
    }
    autofree char *array_id = xstrndup(id, length);
    autojson json_t *array = api_get(reading->api, &err, "/v1/jobs/%s", array_id);
    if (array == NULL || !is_live(array) || !is_waiting_task(array, task)) {
        return false;
    }
    make_waiting(array);
    json_object_set_new(array, "array", json_null());
    json_object_set_new(array, "array_id", json_string(array_id));
    json_object_set_new(array, "task", json_integer(task));
    json_object_set_new(array, "id", json_string(id));
    json_array_append_new(reading->rows, json_pack("{s:O}", "job", array));
    return true;
}

/* The job with its nodes and its spec becomes a row, or many. One of a list may have been removed meanwhile.
 */
static bool add_job(struct reading *reading, const char *id, bool named)
{
    autojson json_t *job = api_get(reading->api, reading->err, "/v1/jobs/%s", id);
    if (job == NULL) {
        return reading->err->code == ERR_NOT_FOUND && (!named || add_waiting_task(reading, id));
    }
    if (json_is_object(json_object_get(job, "array")) && !reading->filter->whole) {
        return add_tasks(reading, job);
    }
    json_array_append_new(reading->rows, json_pack("{s:O}", "job", job));
    return true;
}

/* Each row gets its row of the queue. Rows whose place is too far behind get an empty one. */
static bool add_queued(struct reading *reading)
{
    autotext struct text path = {0};
    autojson json_t *by_id = json_object();
    bool any = false;
    size_t i;
    json_t *item;
    json_array_foreach (reading->rows, i, item) {
        const char *state = json_string_of(json_object_get(item, "job"), "state");
        any |= state != NULL && strcmp(state, "QUEUED") == 0;
    }
    if (!any) {
        return true;
    }
    text_printf(&path, "/v1/queue?limit=%d", LIMIT_QUEUE_ROWS);
    autojson json_t *queue = api_read(reading->api, path.bytes, reading->err);
    json_array_foreach (json_object_get(queue, "jobs"), i, item) {
        json_object_set(by_id, print_text_of(item, "id"), item);
    }
    json_array_foreach (reading->rows, i, item) {
        const json_t *job = json_object_get(item, "job");
        const char *array = json_string_of(job, "array_id");
        json_t *queued = json_object_get(by_id, print_text_of(job, "id"));
        queued = queued == NULL && array != NULL ? json_object_get(by_id, array) : queued;
        json_object_set_new(item, "queued", queued != NULL ? json_incref(queued) : json_object());
    }
    return queue != NULL;
}

/* --- order --- */

struct place {
    json_t *row;
    const char *partition;
    enum slurm_state state;
    int64_t position; /* in the queue */
    const char *created;
    int64_t task;
};

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* As Slurm: by partition, then by state, then those that come first in the queue, then the oldest. */
static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = strcmp(x->partition, y->partition);
    order = order != 0 ? order : compare_numbers(x->state, y->state);
    order = order != 0 ? order : compare_numbers(x->position, y->position);
    order = order != 0 ? order : strcmp(x->created, y->created);
    return order != 0 ? order : compare_numbers(x->task, y->task);
}

static struct place place_of(json_t *row)
{
    const json_t *job = json_object_get(row, "job");
    const json_t *position = json_object_get(json_object_get(row, "queued"), "position");
    return (struct place){.row = json_incref(row),
                          .partition = job_rows_partition(row),
                          .state = slurm_state_of(job),
                          .position = json_is_integer(position) ? json_integer_value(position) : INT64_MAX,
                          .created = print_text_of(job, "created_at"),
                          .task = json_integer_value(json_object_get(job, "task"))};
}

/* Those that fit, in order. New reference. */
static json_t *finish(const struct reading *reading)
{
    size_t count = json_array_size(reading->rows), kept = 0;
    autofree struct place *places = xzalloc((count + 1) * sizeof *places);
    json_t *sorted = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_array_get(reading->rows, i);
        if (fits(reading->filter, row)) {
            places[kept++] = place_of(row);
        }
    }
    qsort(places, kept, sizeof *places, compare);
    for (size_t i = 0; i < kept; i++) {
        json_array_append_new(sorted, places[i].row);
    }
    return sorted;
}

/* --- the whole --- */

static void make_path(const struct job_filter *filter, bool live, struct text *path)
{
    text_printf(path, "/v1/jobs?limit=%d", LIMIT_LIST_ROWS);
    if (live) {
        pages_states(path, false);
    } else if (filter->since_ms > 0) {
        pages_number(path, "since", filter->since_ms);
    }
    if (filter->users != NULL && strchr(filter->users, ',') == NULL) {
        api_query(path, "owner", filter->users);
    }
    if (filter->account != NULL && strchr(filter->account, ',') == NULL) {
        api_query(path, "project", filter->account);
    }
}

static bool read_list(struct reading *reading, bool live, json_t *seen)
{
    autotext struct text path = {0};
    make_path(reading->filter, live, &path);
    autojson json_t *jobs = api_list(reading->api, path.bytes, "jobs", "cursor", LIMIT_LISTED, reading->err);
    bool good = jobs != NULL;
    for (size_t i = 0; good && i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        const char *id = print_text_of(job, "id");
        bool wanted = json_object_get(seen, id) == NULL && fits_early(reading->filter, job) &&
                      may_be_in_state(reading->filter, job);
        json_object_set_new(seen, id, json_true());
        good = !wanted || add_job(reading, id, false);
    }
    return good;
}

/* Those that have not ended, whenever they were submitted; and the others, where they are wanted. */
static bool read_listed(struct reading *reading)
{
    autojson json_t *seen = json_object();
    bool ended = (reading->filter->states & ~SLURM_LIVE) != 0;
    return ((ended && reading->filter->since_ms == 0) || read_list(reading, true, seen)) &&
           (!ended || read_list(reading, false, seen));
}

static bool read_named(struct reading *reading, const struct text_list *ids)
{
    bool good = true;
    for (size_t i = 0; good && i < ids->count; i++) {
        good = add_job(reading, ids->items[i], true);
    }
    return good;
}

json_t *job_rows_read(struct api *api, const struct text_list *ids, const struct job_filter *filter,
                      bool waits, struct err *err)
{
    autofree char *owners = owners_of(api, filter, err);
    if (owners == NULL) {
        return NULL;
    }
    struct job_filter whole = *filter;
    whole.users = owners[0] != '\0' ? owners : NULL;
    autojson json_t *rows = json_array();
    struct reading reading = {.api = api, .filter = &whole, .rows = rows, .err = err};
    bool good =
        (ids != NULL ? read_named(&reading, ids) : read_listed(&reading)) && (!waits || add_queued(&reading));
    return good ? finish(&reading) : NULL;
}
