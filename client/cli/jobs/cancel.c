/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl cancel`: ends the jobs that are named, or with --mine and --all those of a list. It promises to end
 * no more of a list than it has counted, and only after somebody has agreed to the number. */
#include <stdint.h>
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/common/jobs.h"
#include "client/cli/common/wait.h"
#include "client/cli/transport/api.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/states.h"

struct cancel_options {
    bool wait, mine, all, yes;
    const char *state, *name, *project, *label;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct cancel_options, wait, 0, "wait", "until they have ended"),
    ROW_FLAG(struct cancel_options, mine, 0, "mine", "all jobs of yours, in place of ID"),
    ROW_FLAG(struct cancel_options, all, 0, "all", "all jobs that you may end, also those of others"),
    ROW_TEXT(struct cancel_options, state, 's', "state", "STATE,...", "of these, only those in these states"),
    ROW_TEXT(struct cancel_options, name, 'n', "name", "NAME", "of these, only those of this name"),
    ROW_TEXT(struct cancel_options, project, 0, "project", "NAME", "of these, only those of this project"),
    ROW_TEXT(struct cancel_options, label, 0, "label", "KEY=VALUE",
             "all jobs of yours with this label; with --all those of others, too"),
    ROW_FLAG(struct cancel_options, yes, 'y', "yes", "do not ask how many may be ended"),
    ROW_FORMAT,
    ROWS_END};

/* --- what was asked for --- */

static bool asks_for_list(const struct cancel_options *options)
{
    return options->mine || options->all || options->label != NULL;
}

static bool refuse_words(const struct call *call, struct err *err)
{
    const struct cancel_options *options = call->options;
    bool list = asks_for_list(options);
    if (options->mine && options->all) {
        return err_field(err, ERR_USAGE, "all", "give one of the two", "--mine and --all exclude each other");
    }
    if (list && call->rest_count > 0) {
        return err_field(err, ERR_USAGE, "id", "give ids, or --mine, --label or --all",
                         "\"%s\" is an id beside --%s", call->rest[0],
                         options->mine  ? "mine"
                         : options->all ? "all"
                                        : "label");
    }
    if (!list && call->rest_count == 0) {
        err_set(err, ERR_USAGE, "gpuctl cancel needs ID..., --mine, --label or --all");
        return err_hint(err, "see gpuctl cancel --help");
    }
    const char *filter = options->state != NULL     ? "state"
                         : options->name != NULL    ? "name"
                         : options->project != NULL ? "project"
                                                    : NULL;
    return list || filter == NULL ||
           err_field(err, ERR_USAGE, filter, "add --mine or --all",
                     "--%s chooses among --mine, --label or --all", filter);
}

/* States in which a job has ended choose nothing; the controller refuses words that are no states. */
static bool refuse_ended(const char *states, struct err *err)
{
    autofree char *copy = states != NULL ? states_in_capitals(states) : xstrdup("");
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        enum job_state state;
        if (job_state_from_text(word, &state) && job_state_terminal(state)) {
            return err_field(err, ERR_USAGE, "state", "name states of jobs that go on: QUEUED,RUNNING",
                             "jobs that are %s have ended", word);
        }
    }
    return true;
}

static bool check(const struct call *call, struct err *err)
{
    const struct cancel_options *options = call->options;
    return refuse_words(call, err) && refuse_ended(options->state, err) &&
           jobs_check_label(options->label, err) &&
           (!asks_for_list(options) || answer_may_ask(options->yes, "ended", err));
}

/* --- the list --- */

/* Takes the ids of a page; ids is an array. */
static bool take_page(const json_t *page, void *closure, struct err *err)
{
    json_t *ids = closure;
    const json_t *jobs = pages_list(page, "jobs", err);
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        if (json_array_size(ids) == LIMIT_LISTED) {
            return err_field(err, ERR_TOO_LARGE, "name", "choose fewer with --name, --project or --state",
                             "there are more than %d such jobs", LIMIT_LISTED);
        }
        json_array_append(ids, json_object_get(job, "id"));
    }
    return jobs != NULL;
}

static json_t *find(const struct call *call, struct err *err)
{
    const struct cancel_options *options = call->options;
    autotext struct text path = {0};
    autofree char *states = options->state != NULL ? states_in_capitals(options->state) : NULL;
    text_printf(&path, "/v1/jobs?limit=%d", LIMIT_LIST_ROWS);
    if (states != NULL) {
        api_query(&path, "state", states);
    } else {
        pages_states(&path, false);
    }
    if (!options->all && !jobs_query_mine(call->api, &path, err)) {
        return NULL;
    }
    api_query(&path, "label", options->label);
    api_query(&path, "name", options->name);
    api_query(&path, "project", options->project);
    autojson json_t *ids = json_array();
    return pages_each(call->api, path.bytes, "cursor", take_page, ids, err) ? give(ids) : NULL;
}

/* --- their end --- */

struct tally {
    json_t *jobs;   /* that were ended */
    size_t refused; /* the caller may see them, and may not end them */
};

/* A job that is gone, or that its reader may only see, is no failure: the list is of a moment ago, and of all
 * that the caller sees. */
static bool end_one(const struct call *call, const char *id, struct tally *tally, struct err *err)
{
    json_t *job = api_ask(call->api, "POST", NULL, err, "/v1/jobs/%s/cancel", id);
    if (job == NULL) {
        tally->refused += err->code == ERR_FORBIDDEN;
        return err->code == ERR_FORBIDDEN || err->code == ERR_NOT_FOUND || err->code == ERR_GONE;
    }
    json_array_append_new(tally->jobs, job);
    return true;
}

static bool wait_all(const struct call *call, json_t *jobs, struct err *err)
{
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        json_t *job = wait_job(call->api, print_text_of(json_array_get(jobs, i), "id"), -1, err);
        if (job == NULL) {
            return false;
        }
        json_array_set_new(jobs, i, job);
    }
    return true;
}

static bool show(const struct call *call, const struct tally *tally, struct err *err)
{
    const struct cancel_options *options = call->options;
    autotext struct text out = {0};
    size_t count = json_array_size(tally->jobs);
    if (tally->refused > 0) {
        print_note("%zu job%s you may see, and not end", tally->refused, tally->refused == 1 ? "" : "s");
    }
    if (print_is_json(call->format)) {
        print_list(call->format, "jobs", tally->jobs, &out);
        return print_out(&out, err);
    }
    print_note("%zu job%s %s", count, count == 1 ? "" : "s",
               options->wait ? "ended" : "canceled; ranks get the job's grace");
    return true;
}

static bool end_all(const struct call *call, const json_t *ids, int *ret_exit, struct err *err)
{
    const struct cancel_options *options = call->options;
    autojson json_t *jobs = json_array();
    struct tally tally = {.jobs = jobs};
    if (json_array_size(ids) > 0 && !answer_agrees(options->yes, "End", json_array_size(ids))) {
        print_note("no job was ended");
        *ret_exit = 1;
        return true;
    }
    struct err failure;
    bool good = true;
    for (size_t i = 0; good && i < json_array_size(ids); i++) {
        good = end_one(call, json_string_value(json_array_get(ids, i)), &tally, &failure);
    }
    good = good && (!options->wait || wait_all(call, jobs, &failure));
    if (!show(call, &tally, good ? err : NULL)) {
        return false;
    }
    if (!good) {
        *err = failure;
    }
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct cancel_options *options = call->options;
    if (call->rest_count > 0) {
        return for_each_job(call, "POST", ": cancel is asked for; now it is ", options->wait, err);
    }
    autojson json_t *ids = find(call, err);
    return ids != NULL && end_all(call, ids, ret_exit, err);
}

const struct verb verb_cancel = {
    .name = "cancel",
    .arguments = "[ID...]",
    .summary = "End jobs: those named, or all of yours.",
    .details = "--mine, --label and --all end what waits and runs at this moment, and ask first how many "
               "that is. Without a "
               "terminal they need\n"
               "--yes. An array counts as one job.\n"
               "\n"
               "Examples:\n"
               "  gpuctl cancel x7k2 b3qa              the first characters of an id are enough\n"
               "  gpuctl cancel --mine --state QUEUED  what has not begun\n"
               "  gpuctl cancel --label phase=2        yours with this label\n"
               "  gpuctl cancel --all --project vision --yes",
    .argument = ARGUMENT_JOB,
    .most = SIZE_MAX,
    .reach = REACH_CONTROLLER,
    .need = NEED_API,
    .options_size = sizeof(struct cancel_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
