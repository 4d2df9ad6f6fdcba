/* SPDX-License-Identifier: Apache-2.0 */
/* scancel: ends jobs. It promises to go on after a job that cannot be ended, to say nothing of those that
 * are, and to end no task that was not chosen. */
#include <stdio.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "client/cli/slurm/commands/commands.h"
#include "client/cli/slurm/commands/job_rows.h"
#include "client/cli/slurm/commands/job_states.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

struct scancel_options {
    struct job_filter filter;
    const char *states, *signal;
    bool interactive;
};

static const struct option_row rows[] = {
    ROW_TEXT(struct scancel_options, filter.users, 'u', "user", "NAME", "jobs of this person"),
    ROW_FLAG(struct scancel_options, filter.me, 0, "me", "yours"),
    ROW_TEXT(struct scancel_options, filter.names, 'n', "name", "NAME", "those of this name",
             .spec.alias = "jobname"),
    ROW_TEXT(struct scancel_options, states, 't', "state", "STATE", "those that are PENDING, or RUNNING"),
    ROW_TEXT(struct scancel_options, filter.partitions, 'p', "partition", "NAME", "those in this pool"),
    ROW_TEXT(struct scancel_options, filter.account, 'A', "account", "NAME", "those of this project"),
    ROW_FLAG(struct scancel_options, interactive, 'i', "interactive", "ask before each"),
    ROW_TEXT(struct scancel_options, signal, 's', "signal", "NAME", "not supported: jobs are ended"),
    ROWS_END};

static bool has_filter(const struct scancel_options *options)
{
    const struct job_filter *filter = &options->filter;
    return filter->users != NULL || filter->me || filter->names != NULL || options->states != NULL ||
           filter->partitions != NULL || filter->account != NULL;
}

static bool check(const struct call *call, struct err *err)
{
    const struct scancel_options *options = call->options;
    unsigned states = SLURM_LIVE;
    if (options->signal != NULL) {
        return err_field(err, ERR_USAGE, "signal",
                         "gpuctl exec JOB -- kill -s NAME PID reaches a process of a job",
                         "--signal is not supported");
    }
    if (options->states != NULL && !slurm_states_read(options->states, &states, err)) {
        return false;
    }
    return call->rest_count > 0 || has_filter(options) ||
           err_field(err, ERR_USAGE, NULL,
                     "give ids, or --me, --user, --name, --state, --partition or --account",
                     "No job identification provided");
}

/* Says that this one could not be ended, and why; returns false. */
static bool report_error(const char *id, const struct err *why)
{
    struct err err = {0};
    bool unknown = why->code == ERR_NOT_FOUND;
    err_set(&err, why->code, "Kill job error on job id %s: %s%s", id,
            unknown ? "Invalid job id specified: " : "", why->text);
    slurm_print_error("scancel", &err);
    return false;
}

static bool agrees(const json_t *row)
{
    const json_t *job = json_object_get(row, "job");
    const char *name = json_string_of(job, "name");
    char answer[16] = "";
    autotext struct text question = {0};
    text_append(&question, "Cancel job_id=");
    job_rows_show_id(row, &question);
    text_printf(&question, " name=%s partition=%s [y/n]? ", name != NULL ? name : "(null)",
                job_rows_partition(row));
    print_disarm(question.bytes);
    fputs(question.bytes, stdout);
    fflush(stdout);
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Are these the waiting tasks of an array of which others run? They cannot be ended alone. */
static bool is_part(const json_t *row)
{
    const json_t *progress = json_object_get(json_object_get(row, "job"), "array");
    return json_string_of(row, "tasks") != NULL &&
           json_integer_value(json_object_get(progress, "running")) > 0;
}

static bool end_one(const struct call *call, const json_t *row)
{
    const struct scancel_options *options = call->options;
    const char *id = print_text_of(json_object_get(row, "job"), "id");
    struct err err = {0};
    if (options->interactive && !agrees(row)) {
        return true;
    }
    if (is_part(row)) {
        err_set(&err, ERR_CONFLICT,
                "its tasks that wait cannot be ended without those that run; scancel %s ends all", id);
        return report_error(id, &err);
    }
    autojson json_t *job = api_ask(call->api, "POST", NULL, &err, "/v1/jobs/%s/cancel", id);
    return job != NULL || err.code == ERR_CONFLICT || report_error(id, &err); /* a conflict: it has ended */
}

/* The jobs that a word of the command line chooses, or with NULL the filter alone. An array is one job unless
 * the states of its tasks choose among these. */
static bool end_chosen(const struct call *call, const char *word, struct err *err)
{
    const struct scancel_options *options = call->options;
    struct job_filter filter = options->filter;
    struct text_list ids = {0};
    char id[RESOLVED_BYTES];
    filter.whole = options->states == NULL;
    filter.states = SLURM_LIVE;
    if (options->states != NULL && !slurm_states_read(options->states, &filter.states, err)) {
        return false;
    }
    if (word != NULL && !job_rows_id(call->api, word, id, err)) {
        return false;
    }
    if (word != NULL) {
        text_list_add(&ids, xstrdup(id));
    }
    autojson json_t *chosen = job_rows_read(call->api, word != NULL ? &ids : NULL, &filter, false, err);
    text_list_finish(&ids);
    bool good = chosen != NULL;
    size_t i;
    json_t *row;
    err->code = chosen != NULL ? ERR_NONE : err->code;
    json_array_foreach (chosen, i, row) {
        good = end_one(call, row) && good;
    }
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    if (call->rest_count == 0) {
        bool good = end_chosen(call, NULL, err);
        *ret_exit = good ? 0 : EXIT_OF_SLURM;
        return good || err->code == ERR_NONE;
    }
    for (size_t i = 0; i < call->rest_count; i++) {
        struct err one = {0};
        if (end_chosen(call, call->rest[i], &one)) {
            continue;
        }
        if (one.code != ERR_NONE) {
            report_error(call->rest[i], &one);
        }
        *ret_exit = EXIT_OF_SLURM;
    }
    return true;
}

const struct verb command_scancel = {
    .name = "scancel",
    .arguments = "[ID...]",
    .summary = "End jobs of gpuctl as Slurm's scancel does.",
    .details = "An id is one that squeue shows, or its beginning; ID_3 is a task of an array. Options choose "
               "among the "
               "jobs that are named, or\n"
               "among all. A job that has ended already is no error. --version says which gpuctl this is.",
    .argument = ARGUMENT_JOB,
    .most = SIZE_MAX,
    .reach = REACH_CONTROLLER,
    .need = NEED_API,
    .options_size = sizeof(struct scancel_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
