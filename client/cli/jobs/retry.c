/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl retry`: submits jobs that have ended again, and prints the ids of the new ones. With --failed it
 * chooses the tasks of arrays, and the jobs of a list, that failed. It promises to submit no job of a list
 * again that was submitted again already. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/common/jobs.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/api.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"
#include "proto/states.h"

#define FAILED_STATES "FAILED,TIMED_OUT"

struct retry_options {
    bool failed, mine, yes, fresh;
    const char *label;
    int64_t since_ms;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct retry_options, failed, 0, "failed", "of an array only the tasks that failed; see below"),
    ROW_FLAG(struct retry_options, mine, 0, "mine", "with --failed: the jobs of yours that failed"),
    ROW_TEXT(struct retry_options, label, 0, "label", "KEY=VALUE",
             "with --failed: those of yours that have this label"),
    ROW_DURATION(struct retry_options, since_ms, 0, "since",
                 "with --mine or --label: only those made so long ago at most (default 1d)",
                 .absent = 24 * 3600 * 1000LL),
    ROW_FLAG(struct retry_options, fresh, 0, "fresh", "without the last checkpoint of the old job"),
    ROW_FLAG(struct retry_options, yes, 'y', "yes", "do not ask how many may be submitted again"),
    ROW_FORMAT,
    ROWS_END};

static bool asks_for_list(const struct retry_options *options)
{
    return options->mine || options->label != NULL;
}

static bool check(const struct call *call, struct err *err)
{
    const struct retry_options *options = call->options;
    bool list = asks_for_list(options);
    if (list && !options->failed) {
        const char *name = options->mine ? "mine" : "label";
        return err_field(err, ERR_USAGE, name, "add --failed", "--%s is for jobs that failed", name);
    }
    if (list && call->rest_count > 0) {
        return err_field(err, ERR_USAGE, "id", "give ids, or --mine or --label",
                         "\"%s\" is an id beside a list", call->rest[0]);
    }
    if (!list && call->rest_count == 0) {
        err_set(err, ERR_USAGE, "gpuctl retry needs ID..., or --failed with --mine or --label");
        return err_hint(err, "see gpuctl retry --help");
    }
    return jobs_check_label(options->label, err) &&
           (!list || answer_may_ask(options->yes, "submitted again", err));
}

/* --- one job --- */

/* tasks: of an array, only these; NULL: all. */
static bool retry_one(const struct call *call, const char *id, const char *tasks, struct err *err)
{
    const struct retry_options *options = call->options;
    autojson json_t *body = json_object();
    member_put_text(body, "tasks", tasks);
    if (options->fresh) {
        member_put_bool(body, "fresh", true);
    }
    autojson json_t *job = api_ask(call->api, "POST", body, err, "/v1/jobs/%s/retry", id);
    return job != NULL && answer_member(call, job, "id", err);
}

static bool is_in(const json_t *retried, const json_t *job)
{
    return json_object_get(retried, print_text_of(job, "id")) != NULL;
}

/* Tasks come newest first, so a range grows at its beginning. */
struct ranges {
    int64_t first, last; /* of the range that is open; -1: none is */
    struct text list;    /* those behind it */
};

static void end_range(struct ranges *ranges)
{
    autotext struct text rest = ranges->list;
    ranges->list = (struct text){0};
    if (ranges->first >= 0) {
        text_printf(&ranges->list, "%lld", (long long)ranges->first);
        if (ranges->last > ranges->first) {
            text_printf(&ranges->list, "-%lld", (long long)ranges->last);
        }
        text_append(&ranges->list, rest.length > 0 ? "," : "");
    }
    text_append_bytes(&ranges->list, rest.bytes, rest.length);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The tasks of an array that failed, but those of retried: "3,7,10-20"; "" when there is none. */
static bool failed_tasks(const struct call *call, const char *id, const json_t *retried, struct text *out,
                         struct err *err)
{
    autofree char *path = xprintf("/v1/jobs?array=%s&state=" FAILED_STATES "&limit=%d", id, LIMIT_LIST_ROWS);
    autojson json_t *tasks = api_list(call->api, path, "jobs", "cursor", LIMIT_ARRAY_TASKS, err);
    autofree int64_t *numbers = xzalloc((json_array_size(tasks) + 1) * sizeof *numbers);
    struct ranges ranges = {.first = -1};
    size_t count = 0, i;
    json_t *task;
    json_array_foreach (tasks, i, task) {
        if (!is_in(retried, task)) {
            numbers[count++] = json_integer_value(json_object_get(task, "task"));
        }
    }
    qsort(numbers, count, sizeof *numbers, by_number);
    for (i = 0; i < count; i++) {
        if (ranges.first < 0 || numbers[i] != ranges.first - 1) {
            end_range(&ranges);
            ranges.last = numbers[i];
        }
        ranges.first = numbers[i];
    }
    end_range(&ranges);
    *out = ranges.list;
    return tasks != NULL;
}

/* A job that failed again as it is; of an array the tasks that failed. *ret_none: there is nothing of it. */
static bool retry_failed(const struct call *call, const json_t *job, const json_t *retried, bool *ret_none,
                         struct err *err)
{
    const char *id = print_text_of(job, "id"), *state = print_text_of(job, "state");
    autotext struct text tasks = {0};
    if (!json_is_object(json_object_get(job, "array"))) {
        *ret_none = strcmp(state, job_state_text(JOB_FAILED)) != 0 &&
                    strcmp(state, job_state_text(JOB_TIMED_OUT)) != 0;
        return *ret_none || retry_one(call, id, NULL, err);
    }
    if (!failed_tasks(call, id, retried, &tasks, err)) {
        return false;
    }
    *ret_none = tasks.length == 0;
    return *ret_none || retry_one(call, id, tasks.bytes, err);
}

static bool retry_named(const struct call *call, const char *argument, struct err *err)
{
    const struct retry_options *options = call->options;
    char id[RESOLVED_BYTES];
    bool none = false;
    if (!resolve_job(call->api, argument, id, err)) {
        return false;
    }
    if (!options->failed) {
        return retry_one(call, id, NULL, err);
    }
    autojson json_t *job = api_get(call->api, err, "/v1/jobs/%s", id);
    if (job == NULL || !retry_failed(call, job, NULL, &none, err)) {
        return false;
    }
    if (none) {
        err_set(err, ERR_CONFLICT, "nothing of job %s failed: it is %s", id, print_text_of(job, "state"));
        return err_hint(err, "leave out --failed to submit all of it again");
    }
    return true;
}

/* --- several --- */

/* Goes on after a failure, so that one wrong id keeps no other job from it; the first error is the verb's. */
static void keep_first(bool *good, struct err *err, const struct err *one)
{
    if (*good) {
        *err = *one;
    } else {
        print_error(one);
    }
    *good = false;
}

static json_t *list_mine(const struct call *call, struct err *err)
{
    const struct retry_options *options = call->options;
    autotext struct text path = {0};
    text_printf(&path, "/v1/jobs?limit=%d", LIMIT_LIST_ROWS);
    pages_number(&path, "since", clock_wall_ms() - options->since_ms);
    if (!jobs_query_mine(call->api, &path, err)) {
        return NULL;
    }
    return api_list(call->api, path.bytes, "jobs", "cursor", LIMIT_LISTED, err);
}

static bool has_label(const json_t *job, const char *label)
{
    size_t length = label != NULL ? strcspn(label, "=") : 0;
    autofree char *key = label != NULL ? xstrndup(label, length) : NULL;
    const char *value = label != NULL ? json_string_of(json_object_get(job, "labels"), key) : NULL;
    return label == NULL || (value != NULL && strcmp(value, label + length + 1) == 0);
}

/* The jobs of the list that failed and were not submitted again. All ids that were are put into retried. New
 * reference. */
static json_t *choose(const struct retry_options *options, const json_t *jobs, json_t *retried)
{
    json_t *chosen = json_array();
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        const char *of = json_string_of(job, "retry_of");
        if (of != NULL) {
            json_object_set_new(retried, of, json_true());
        }
    }
    json_array_foreach (jobs, i, job) {
        const char *state = print_text_of(job, "state");
        bool failed = strcmp(state, job_state_text(JOB_FAILED)) == 0 ||
                      strcmp(state, job_state_text(JOB_TIMED_OUT)) == 0;
        if (failed && has_label(job, options->label) && !is_in(retried, job)) {
            json_array_append(chosen, job);
        }
    }
    return chosen;
}

static bool retry_list(const struct call *call, int *ret_exit, struct err *err)
{
    const struct retry_options *options = call->options;
    autojson json_t *jobs = list_mine(call, err);
    if (jobs == NULL) {
        return false;
    }
    autojson json_t *retried = json_object();
    autojson json_t *chosen = choose(options, jobs, retried);
    bool good = true;
    size_t i;
    json_t *job;
    if (json_array_size(chosen) == 0 ||
        !answer_agrees(options->yes, "Submit again", json_array_size(chosen))) {
        print_note("no job was submitted again");
        *ret_exit = json_array_size(chosen) == 0 ? 0 : 1;
        return true;
    }
    json_array_foreach (chosen, i, job) {
        struct err one;
        bool none = false;
        if (!retry_failed(call, job, retried, &none, &one)) {
            keep_first(&good, err, &one);
        }
    }
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    bool good = true;
    if (asks_for_list(call->options)) {
        return retry_list(call, ret_exit, err);
    }
    for (size_t i = 0; i < call->rest_count; i++) {
        struct err one;
        if (!retry_named(call, call->rest[i], &one)) {
            keep_first(&good, err, &one);
        }
    }
    return good;
}

const struct verb verb_retry = {
    .name = "retry",
    .arguments = "[ID...]",
    .summary = "Submit jobs that have ended again, and print the new ids.",
    .details =
        "A new job has the spec of the old one, with its bundle and its files, and is yours. It begins with "
        "the last\n"
        "checkpoint of a job of yours. An array runs again as a whole, and without checkpoints,\n"
        "ARRAY.17 as an array of this task alone, with its number and its values.\n"
        "--failed ARRAY makes one array of the tasks that failed or reached their time limit. --failed with "
        "--mine or --label\n"
        "does so for all jobs of yours, leaves out those that were submitted again already, and asks first "
        "how "
        "many they are.\n"
        "\n"
        "Examples:\n"
        "  gpuctl retry x7k2 b3qa.17               a job, and one task of an array\n"
        "  gpuctl retry --failed b3qa              its tasks that failed\n"
        "  gpuctl retry --failed --label phase=2   yours with this label that failed within a day",
    .argument = ARGUMENT_JOB,
    .most = SIZE_MAX,
    .reach = REACH_CONTROLLER,
    .need = NEED_API,
    .options_size = sizeof(struct retry_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
