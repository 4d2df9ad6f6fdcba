/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl schedule`: makes, lists, changes and removes schedules, and runs one now. A schedule is named by
 * its id, the beginning of it, or its name. */
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/controller/connect.h"
#include "client/cli/jobs/submit.h"
#include "client/cli/show/notes.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "proto/spec/program.h"

static json_t *find(const struct call *call, struct err *err)
{
    return answer_find(call, "/v1/schedules?limit=200", "schedules", "schedule", "see gpuctl schedule list",
                       err);
}

/* --- list, show --- */

static const struct option_row list_rows[] = {ROW_QUIET("ids alone"), ROW_FORMAT, ROWS_END};

static void show_next(const json_t *schedule, const char *member, struct text *out)
{
    if (json_is_true(json_object_get(schedule, "paused"))) {
        text_append(out, "paused");
    } else {
        cell_time(schedule, member, out);
    }
}

/* "nightly SUCCEEDED", or why there is no job. */
static void show_last(const json_t *schedule, const char *member, struct text *out)
{
    const char *outcome = json_string_of(schedule, member);
    if (outcome != NULL && strcmp(outcome, "submitted") != 0) {
        text_append(out, outcome);
        return;
    }
    cell_plain(schedule, "last_job", out);
    if (json_string_of(schedule, "last_job_state") != NULL) {
        text_append(out, " ");
        cell_plain(schedule, "last_job_state", out);
    }
}

static const struct column columns[] = {
    COLUMN("ID", "id", cell_plain),
    COLUMN("NAME", "name", cell_plain),
    COLUMN("CRON", "cron", cell_plain),
    COLUMN("NEXT", "next_at", show_next),
    COLUMN("RAN", "last_run_at", cell_time),
    COLUMN("LAST", "last_outcome", show_last),
    COLUMN("ERROR", "last_error", cell_plain),
    WIDE_COLUMN("ZONE", "time_zone", cell_plain),
    WIDE_COLUMN("OVERLAP", "overlap", cell_plain),
    WIDE_COLUMN("MISSED", "missed", cell_plain),
    WIDE_COLUMN("PROJECT", "project", cell_plain),
    WIDE_COLUMN("OWNER", "owner", cell_plain),
    WIDE_COLUMN("CREATED", "created_at", cell_time),
    WIDE_COLUMN("REASON", "reason", cell_plain),
};

static const struct listing schedules = {
    .path = "/v1/schedules", .name = "schedules", LIST_COLUMNS(columns), .key = "id"};

static const struct verb verb_list = {
    .name = "list",
    .summary = "List your schedules; an operator sees all.",
    LISTS(schedules),
    .rows = {list_rows},
};

static void print_schedule(const struct call *call, const json_t *schedule, struct text *out)
{
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        autotext struct text cell = {0};
        columns[i].show(schedule, columns[i].member, &cell);
        text_printf(out, "%-8s %s\n", columns[i].title, cell.length > 0 ? cell.bytes : "-");
    }
}

static bool show_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *found = find(call, err);
    if (found == NULL) {
        return false;
    }
    autojson json_t *schedule = api_get(call->api, err, "/v1/schedules/%s", json_string_of(found, "id"));
    return answer_show(call, schedule, print_schedule, err);
}

static const struct verb verb_show = {
    .name = "show",
    .arguments = "ID",
    .summary = "Show one schedule; with -o json also the spec of its jobs.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = show_run,
};

/* --- create --- */

struct create_options {
    struct spec_options spec; /* first: its rows count from here */
    const char *time_zone, *missed, *overlap;
    bool paused;
};

#define ROWS_OF_WHEN(options)                                                                                \
    ROW_TEXT(options, time_zone, 0, "time-zone", "NAME", "of the times: Europe/Berlin (default UTC)",        \
             .sent_as = "time_zone"),                                                                        \
        ROW_CHOICE(options, missed, 0, "missed", "WHAT",                                                     \
                   "runs that were due while the controller was down: none of them (the default), or one "   \
                   "for all",                                                                                \
                   "skip|last", .sent_as = "missed"),                                                        \
        ROW_CHOICE(options, overlap, 0, "overlap", "WHAT",                                                   \
                   "when the job before has not ended: submit all the same (the default), leave the run "    \
                   "out, or cancel that job",                                                                \
                   "allow|forbid|replace", .sent_as = "overlap")

static const struct option_row create_rows[] = {
    ROWS_OF_WHEN(struct create_options),
    ROW_FLAG(struct create_options, paused, 0, "paused", "no runs until it is resumed", .sent_as = "paused"),
    ROW_FORMAT, ROWS_END};

/* The first word of an expression; a name has neither. */
static bool is_cron(const char *word)
{
    return word[0] == '@' || word[0] == '*' || strpbrk(word, " \t") != NULL;
}

/* The name that was given, or that of the job, or of its program. */
static void set_name(json_t *body, const char *given, const json_t *spec)
{
    char program[PROGRAM_BYTES];
    program_of(json_object_get(spec, "command"), program);
    const char *name = given != NULL ? given : json_string_of(spec, "name");
    json_object_set_new(body, "name", json_string(name != NULL ? name : program));
}

static json_t *make_body(struct api *api, const struct jobfile *file, const struct call *call,
                         const struct call *command, struct err *err)
{
    const struct create_options *options = call->options;
    struct notes notes = {0};
    json_t *spec = submit_spec(api, file, &options->spec, command, &notes, err);
    notes_print(&notes, "bundle");
    notes_finish(&notes);
    if (spec == NULL) {
        return NULL;
    }
    json_t *body = json_object();
    option_send(create_rows, options, body);
    bool named = command->rest == call->rest + 2;
    set_name(body, named ? call->rest[0] : NULL, spec);
    json_object_set_new(body, "cron", json_string(call->rest[named]));
    json_object_set_new(body, "spec", spec);
    return body;
}

static bool send_schedule(const struct call *call, const struct call *command, const struct jobfile *file,
                          struct err *err)
{
    autoapi struct api *api = NULL;
    if (!connect_controller(call, true, &api, err)) {
        return false;
    }
    autojson json_t *body = make_body(api, file, call, command, err);
    autojson json_t *schedule = body != NULL ? api_ask(api, "POST", body, err, "/v1/schedules") : NULL;
    return answer_member(call, schedule, "id", err);
}

static bool create_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct create_options *options = call->options;
    struct call command = *call; /* without name and expression */
    autojobfile struct jobfile file = {0};
    size_t words = is_cron(call->rest[0]) ? 1 : 2;
    if (call->rest_count < words) {
        return err_field(err, ERR_USAGE, "cron",
                         "gpuctl schedule create nightly \"0 3 * * *\" -- python train.py",
                         "the expression that says when it runs is missing");
    }
    command.rest += words;
    command.rest_count -= words;
    if (options->spec.key != NULL) {
        return err_field(err, ERR_USAGE, "key", "leave it out: there is one schedule of a name",
                         "a schedule takes no --key");
    }
    return submit_read(&options->spec, &command, &file, err) && send_schedule(call, &command, &file, err);
}

static const struct verb verb_create = {
    .name = "create",
    .arguments = "[NAME] CRON [-f FILE] [--] [COMMAND [ARGUMENT]...]",
    .summary = "Have a job submitted by the clock, and print the id of the schedule.",
    .details =
        "CRON has five fields: minute, hour, day of the month, month, day of the week. \"0 3 * * "
        "mon-fri\" is 03:00\n"
        "from Monday to Friday; \"*/15 * * * *\" each quarter of an hour. Where both fields of days are "
        "given, one of\n"
        "them is enough. @hourly, @daily, @weekly, @monthly and @yearly stand for expressions.\n"
        "Without NAME it is called like its job or the job's program. `gpuctl schedule CRON ...` is short "
        "for "
        "this.\n"
        "The job is described as for `gpuctl submit`. Files and folders that it brings along are those "
        "of now. Its\n"
        "jobs have the label schedule=NAME: `gpuctl ps --label schedule=NAME` lists them.",
    .argument = ARGUMENT_COMMAND,
    .least = 1,
    .most = SIZE_MAX,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct create_options),
    .rows = {spec_rows, create_rows},
    .run = create_run,
};

/* --- update, pause, resume --- */

struct update_options {
    const char *cron, *time_zone, *missed, *overlap;
};

static const struct option_row update_rows[] = {
    ROW_TEXT(struct update_options, cron, 0, "cron", "CRON", "when it runs", .sent_as = "cron"),
    ROWS_OF_WHEN(struct update_options), ROW_FORMAT, ROWS_END};

static json_t *change(const struct call *call, const json_t *body, struct err *err)
{
    autojson json_t *found = find(call, err);
    return found != NULL
               ? api_ask(call->api, "PATCH", body, err, "/v1/schedules/%s", json_string_of(found, "id"))
               : NULL;
}

static bool update_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *body = json_object();
    option_send(update_rows, call->options, body);
    autojson json_t *schedule = change(call, body, err);
    return answer_show(call, schedule, print_schedule, err);
}

static const struct verb verb_update_schedule = {
    .name = "update",
    .arguments = "ID",
    .summary = "Change when a schedule runs. Its job stays: make another schedule for another job.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct update_options),
    .rows = {update_rows},
    .run = update_run,
};

static bool set_paused(const struct call *call, bool paused, struct err *err)
{
    autojson json_t *body = json_pack("{s:b}", "paused", paused);
    autojson json_t *schedule = change(call, body, err);
    return answer_note(call, schedule, err, "schedule %s is %s", call->rest[0],
                       paused ? "paused; jobs that there are go on" : "resumed");
}

static bool pause_run(const struct call *call, int *ret_exit, struct err *err)
{
    return set_paused(call, true, err);
}

static bool resume_run(const struct call *call, int *ret_exit, struct err *err)
{
    return set_paused(call, false, err);
}

static const struct verb verb_pause = {
    .name = "pause",
    .arguments = "ID",
    .summary = "Submit no jobs of a schedule until it is resumed.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = pause_run,
};

static const struct verb verb_resume = {
    .name = "resume",
    .arguments = "ID",
    .summary = "Submit jobs of a schedule again, from its next time on.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = resume_run,
};

/* --- run, remove --- */

static bool run_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *found = find(call, err);
    if (found == NULL) {
        return false;
    }
    autojson json_t *job =
        api_ask(call->api, "POST", NULL, err, "/v1/schedules/%s/run", json_string_of(found, "id"));
    return answer_member(call, job, "id", err);
}

static const struct verb verb_run_schedule = {
    .name = "run",
    .arguments = "ID",
    .summary = "Submit a job of a schedule now, also when it is paused, and print the job's id.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = run_run,
};

static bool remove_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *found = find(call, err);
    const char *id = json_string_of(found, "id");
    autofree char *path = xprintf("/v1/schedules/%s", id != NULL ? id : "");
    if (found == NULL ||
        !api_send(call->api, &(struct request){.method = "DELETE", .path = path}, NULL, err)) {
        return false;
    }
    print_note("schedule %s is removed; jobs that there are go on", call->rest[0]);
    return true;
}

static const struct verb verb_remove = {
    .name = "remove",
    .arguments = "ID",
    .summary = "Remove a schedule.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .run = remove_run,
};

static const struct verb *const nested[] = {
    &verb_list,         &verb_create, &verb_show, &verb_update_schedule, &verb_pause, &verb_resume,
    &verb_run_schedule, &verb_remove, NULL};

static const struct verb *choose(const char *word)
{
    return is_cron(word) ? &verb_create : NULL;
}

const struct verb verb_schedule = {
    .name = "schedule",
    .summary = "Submit jobs by the clock.",
    .nested = nested,
    .choose = choose,
};
