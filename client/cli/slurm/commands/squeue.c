/* SPDX-License-Identifier: Apache-2.0 */
/* squeue: lists jobs as Slurm's does. */
#include "client/cli/slurm/commands/squeue.h"

#include <string.h>
#include <time.h>

#include "client/cli/show/print.h"
#include "client/cli/slurm/commands/commands.h"
#include "client/cli/slurm/commands/job_rows.h"
#include "client/cli/slurm/commands/job_states.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

#define FORMAT_SHORT "%#.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#define FORMAT_LONG  "%#.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"

struct squeue_options {
    struct job_filter filter;
    const char *jobs, *states, *format, *long_format, *iterate;
    bool no_header, long_;
};

static const struct option_row rows[] = {
    ROW_TEXT(struct squeue_options, filter.users, 'u', "user", "NAME,...", "only jobs of these people",
             .spec.alias = "users"),
    ROW_FLAG(struct squeue_options, filter.me, 0, "me", "only yours"),
    ROW_TEXT(struct squeue_options, jobs, 'j', "jobs", "ID,...", "only these", .spec.alias = "job"),
    ROW_TEXT(struct squeue_options, states, 't', "states", "STATE,...",
             "only those in these states: PD, RUNNING, all; without it, those that have not ended",
             .spec.alias = "state"),
    ROW_TEXT(struct squeue_options, filter.partitions, 'p', "partition", "NAME,...",
             "only those in these pools"),
    ROW_TEXT(struct squeue_options, filter.names, 'n', "name", "NAME,...", "only those of these names"),
    ROW_TEXT(struct squeue_options, filter.account, 'A', "account", "NAME,...",
             "only those of these projects"),
    ROW_FLAG(struct squeue_options, no_header, 'h', "noheader", "no line of titles"),
    ROW_TEXT(struct squeue_options, format, 'o', "format", "FORMAT", "the columns, such as \"%i %.9P %T\""),
    ROW_TEXT(struct squeue_options, long_format, 'O', "Format", "FIELDS", "not supported: use --format"),
    ROW_TEXT(struct squeue_options, iterate, 'i', "iterate", "SECONDS", "not supported: use watch squeue"),
    ROW_FLAG(struct squeue_options, long_, 'l', "long", "more columns"),
    ROWS_END};

static bool check(const struct call *call, struct err *err)
{
    const struct squeue_options *options = call->options;
    struct format format;
    unsigned states;
    if (options->long_format != NULL) {
        return err_field(err, ERR_USAGE, "Format", "--format has the same as letters: %i %t %M",
                         "--Format is not supported");
    }
    if (options->iterate != NULL) {
        return err_field(err, ERR_USAGE, "iterate", "watch -n SECONDS squeue does the same",
                         "--iterate is not supported");
    }
    return (options->states == NULL || slurm_states_read(options->states, &states, err)) &&
           (options->format == NULL || format_parse(options->format, squeue_columns, &format, err));
}

static bool read_ids(const struct call *call, struct text_list *ids, struct err *err)
{
    const struct squeue_options *options = call->options;
    autofree char *copy = xstrdup(options->jobs);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        char id[RESOLVED_BYTES];
        if (!job_rows_id(call->api, word, id, err)) {
            return false;
        }
        text_list_add(ids, xstrdup(id));
    }
    return true;
}

/* The line above the long form. */
static void put_moment(struct text *out)
{
    time_t now = time(NULL);
    struct tm parts;
    char line[64];
    if (localtime_r(&now, &parts) != NULL && strftime(line, sizeof line, "%a %b %d %T %Y", &parts) > 0) {
        text_printf(out, "%s\n", line);
    }
}

static bool show(const struct call *call, const struct text_list *ids, struct err *err)
{
    const struct squeue_options *options = call->options;
    const char *wanted = options->format != NULL ? options->format
                         : options->long_        ? FORMAT_LONG
                                                 : FORMAT_SHORT;
    struct job_filter filter = options->filter;
    struct format format;
    autotext struct text out = {0};
    filter.states = SLURM_LIVE;
    if (!format_parse(wanted, squeue_columns, &format, err) ||
        (options->states != NULL && !slurm_states_read(options->states, &filter.states, err))) {
        return false;
    }
    bool waits = format_has(&format, 'r') || format_has(&format, 'R') || format_has(&format, 'S');
    autojson json_t *jobs = job_rows_read(call->api, ids, &filter, waits, err);
    if (jobs == NULL) {
        return false;
    }
    if (options->long_ && !options->no_header) {
        put_moment(&out);
    }
    format_rows(&format, jobs, !options->no_header, &out);
    return print_out(&out, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct squeue_options *options = call->options;
    struct text_list ids = {0};
    bool good = (options->jobs == NULL || read_ids(call, &ids, err)) &&
                show(call, options->jobs != NULL ? &ids : NULL, err);
    text_list_finish(&ids);
    if (!good && err->code == ERR_NOT_FOUND) {
        struct err inner = *err;
        err_set(err, ERR_NOT_FOUND, "Invalid job id specified: %s", inner.text);
    }
    return good;
}

const struct verb command_squeue = {
    .name = "squeue",
    .summary = "List jobs of gpuctl as Slurm's squeue does.",
    .details =
        "The partition is the pool, the account the project. Codes of --format: %i id, %F array, %K task, "
        "%A id of the task, %P partition,\n"
        "%j name, %u user, %a account, %t and %T state, %M time used, %l limit, %L time left, %D nodes, "
        "%C CPUs, %R nodes or reason,\n"
        "%N nodes, %r reason, %b GPUs of a node, %Q priority, %V submitted, %S start (expected, of one that "
        "waits), %e end, %Z folder.\n"
        "%.10u is ten characters wide, from the right. --version says which gpuctl this is.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct squeue_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
