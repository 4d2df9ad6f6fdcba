/* SPDX-License-Identifier: Apache-2.0 */
/* sacct: lists jobs, those that have ended among them, as Slurm's does. A job is one line: gpuctl has no
 * steps. */
#include <string.h>
#include <strings.h>
#include <time.h>

#include "client/cli/show/print.h"
#include "client/cli/slurm/commands/commands.h"
#include "client/cli/slurm/commands/job_rows.h"
#include "client/cli/slurm/commands/job_states.h"
#include "client/cli/slurm/commands/squeue.h"
#include "client/cli/slurm/slurm_values.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"

#define FORMAT_DEFAULT "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
#define WIDTH_MOST     1000 /* characters of a field */

struct sacct_options {
    struct job_filter filter;
    const char *jobs, *states, *format, *start;
    bool all_users, allocations, no_header, parsable, parsable2;
};

static const struct option_row rows[] = {
    ROW_TEXT(struct sacct_options, jobs, 'j', "jobs", "ID,...", "only these", .spec.alias = "job"),
    ROW_TEXT(struct sacct_options, filter.users, 'u', "user", "NAME,...",
             "jobs of these people in place of yours", .spec.alias = "users"),
    ROW_FLAG(struct sacct_options, all_users, 'a', "allusers", "jobs of everybody"),
    ROW_TEXT(struct sacct_options, filter.account, 'A', "accounts", "NAME,...",
             "only those of these projects", .spec.alias = "account"),
    ROW_TEXT(struct sacct_options, filter.names, 0, "name", "NAME,...", "only those of these names"),
    ROW_TEXT(struct sacct_options, filter.partitions, 'r', "partition", "NAME,...",
             "only those in these pools"),
    ROW_TEXT(struct sacct_options, states, 's', "state", "STATE,...",
             "only those in these states: CD, FAILED"),
    ROW_TEXT(struct sacct_options, start, 'S', "starttime", "TIME",
             "only those submitted since then, and those that have not ended (default today)"),
    ROW_TEXT(struct sacct_options, format, 'o', "format", "FIELD,...", "the columns, such as JobID,State%12"),
    ROW_FLAG(struct sacct_options, no_header, 'n', "noheader", "no lines of titles"),
    ROW_FLAG(struct sacct_options, parsable, 'p', "parsable", "with | behind each value"),
    ROW_FLAG(struct sacct_options, parsable2, 'P', "parsable2", "with | between the values"),
    ROW_FLAG(struct sacct_options, allocations, 'X', "allocations", "no steps: so it is anyway"),
    ROWS_END};

/* --- fields --- */

static const json_t *job_of(const json_t *row)
{
    return json_object_get(row, "job");
}

static int64_t elapsed_s(const json_t *row)
{
    int64_t start_ms = print_time_of(job_of(row), "started_at");
    int64_t end_ms = print_time_of(job_of(row), "ended_at");
    end_ms = end_ms != 0 ? end_ms : clock_wall_ms();
    return start_ms != 0 && end_ms > start_ms ? (end_ms - start_ms) / 1000 : 0;
}

static void show_elapsed(const json_t *row, struct text *out)
{
    format_span(elapsed_s(row), true, out);
}

static void show_elapsed_raw(const json_t *row, struct text *out)
{
    text_append_int(out, elapsed_s(row));
}

static void show_limit(const json_t *row, struct text *out)
{
    int64_t limit_s = (int64_t)json_number_value(json_object_get(job_of(row), "time_limit_s"));
    if (limit_s == 0) {
        text_append(out, "UNLIMITED");
    } else {
        format_span(limit_s, true, out);
    }
}

static void put_moment(const json_t *row, const char *member, struct text *out)
{
    int64_t at_ms = print_time_of(job_of(row), member);
    if (at_ms == 0) {
        text_append(out, "Unknown");
    } else {
        format_moment(at_ms, out);
    }
}

static void show_start(const json_t *row, struct text *out)
{
    put_moment(row, "started_at", out);
}

static void show_end(const json_t *row, struct text *out)
{
    put_moment(row, "ended_at", out);
}

/* "3:0", and "0:9" of one that a signal ended. */
static void show_exit(const json_t *row, struct text *out)
{
    long long code = json_integer_value(json_object_get(job_of(row), "exit_code"));
    bool failed = slurm_state_of(job_of(row)) == SLURM_FAILED;
    text_printf(out, "%lld:%lld",
                failed && code > 128 ? 0
                : failed             ? code
                                     : 0,
                failed && code > 128 ? code - 128 : 0);
}

static void show_nodes(const json_t *row, struct text *out)
{
    size_t length = out->length;
    format_show(squeue_columns, 'N', row, out);
    text_append(out, out->length == length ? "None assigned" : "");
}

static void show_resources(const json_t *row, struct text *out)
{
    text_append(out, "cpu=");
    format_show(squeue_columns, 'C', row, out);
    text_append(out, ",node=");
    format_show(squeue_columns, 'D', row, out);
    long long gpus = json_integer_value(json_object_get(job_of(row), "gpus"));
    if (gpus > 0) {
        text_printf(out, ",gres/gpu=%lld", gpus);
    }
}

/* A field with a show of its own, or with that of a column of squeue. */
struct sacct_field {
    const char *name;
    size_t width;
    char code;
    void (*show)(const json_t *row, struct text *out);
};

static const struct sacct_field fields[] = {
    {"JobID", 12, 'i', NULL},
    {"JobIDRaw", 12, 'A', NULL},
    {"JobName", 10, 'j', NULL},
    {"Partition", 10, 'P', NULL},
    {"Account", 10, 'a', NULL},
    {"User", 9, 'u', NULL},
    {"State", 10, 'T', NULL},
    {"ExitCode", 8, 0, show_exit},
    {"Submit", 19, 'V', NULL},
    {"Start", 19, 0, show_start},
    {"End", 19, 0, show_end},
    {"Elapsed", 10, 0, show_elapsed},
    {"ElapsedRaw", 10, 0, show_elapsed_raw},
    {"Timelimit", 10, 0, show_limit},
    {"NNodes", 8, 'D', NULL},
    {"NodeList", 15, 0, show_nodes},
    {"AllocCPUS", 10, 'C', NULL},
    {"NCPUS", 10, 'C', NULL},
    {"AllocTRES", 10, 0, show_resources},
    {"ReqTRES", 10, 0, show_resources},
    {"Priority", 10, 'Q', NULL},
    {"WorkDir", 20, 'Z', NULL},
};

#define FIELDS (sizeof fields / sizeof fields[0])

static bool refuse_field(const char *name, struct err *err)
{
    autotext struct text known = {0};
    for (size_t i = 0; i < FIELDS; i++) {
        text_printf(&known, "%s%s", i > 0 ? ", " : "the fields are ", fields[i].name);
    }
    return err_field(err, ERR_USAGE, "format", known.bytes, "--format: %s is not known", name);
}

/* "State%12": right in 12 characters, "State%-12" left. */
static bool read_field(char *word, struct format_column *column, struct format_field *ret_field,
                       struct err *err)
{
    char *width = word;
    const char *name = strsep(&width, "%");
    for (size_t i = 0; i < FIELDS; i++) {
        int64_t given = 0;
        if (strcasecmp(fields[i].name, name) != 0) {
            continue;
        }
        if (width != NULL && (!text_to_int(width, -WIDTH_MOST, WIDTH_MOST, &given) || given == 0)) {
            return err_field(err, ERR_USAGE, "format", "State%12 for instance",
                             "--format: \"%s\" is no width", width);
        }
        *column = (struct format_column){fields[i].code, fields[i].name, fields[i].show};
        if (column->show == NULL) {
            column->show = format_find(squeue_columns, fields[i].code)->show;
        }
        *ret_field = (struct format_field){.column = column,
                                           .width = given != 0 ? (size_t)(given > 0 ? given : -given)
                                                               : fields[i].width,
                                           .right = given >= 0,
                                           .grows = given == 0};
        return true;
    }
    return refuse_field(name, err);
}

/* columns has room for FORMAT_FIELDS and outlives the format. */
static bool read_format(const struct sacct_options *options, struct format_column *columns,
                        struct format *ret_format, struct err *err)
{
    autofree char *copy = xstrdup(options->format != NULL ? options->format : FORMAT_DEFAULT);
    bool parsable = options->parsable || options->parsable2;
    char *rest = copy;
    *ret_format = (struct format){.after = options->parsable ? "|" : "", .rule = !parsable};
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        struct format_field *field = &ret_format->fields[ret_format->count];
        if (ret_format->count == FORMAT_FIELDS) {
            return err_field(err, ERR_USAGE, "format", NULL, "--format has at most %d fields", FORMAT_FIELDS);
        }
        if (!read_field(word, &columns[ret_format->count], field, err)) {
            return false;
        }
        field->before = parsable ? "|" : " ";
        field->before_length = ret_format->count++ > 0 ? 1 : 0;
        if (parsable) {
            field->width = 0;
            field->grows = false;
        }
    }
    return true;
}

/* --- the command --- */

static int64_t midnight_ms(void)
{
    time_t now = time(NULL);
    struct tm parts;
    localtime_r(&now, &parts);
    parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
    return (int64_t)mktime(&parts) * 1000;
}

/* "2026-11-30", "2026-11-30T18:00", "now-7days", and "18:00", which is the last one that there was. */
static bool read_start(const char *text, int64_t *ret_ms, struct err *err)
{
    bool back = strncmp(text, "now-", strlen("now-")) == 0;
    autofree char *forward = back ? xprintf("now+%s", text + strlen("now-")) : xstrdup(text);
    int64_t now_ms = clock_wall_ms();
    if (slurm_begin(forward, now_ms, ret_ms)) {
        bool clock = text[strspn(text, "0123456789:")] == '\0';
        *ret_ms = back                        ? 2 * now_ms - *ret_ms
                  : clock && *ret_ms > now_ms ? *ret_ms - 24 * 3600 * 1000LL
                                              : *ret_ms;
        return true;
    }
    return err_field(err, ERR_USAGE, "starttime", "2026-11-30, 2026-11-30T18:00 or now-7days",
                     "--starttime \"%s\" is no time", text);
}

static bool read_filter(const struct sacct_options *options, struct job_filter *ret_filter, struct err *err)
{
    *ret_filter = options->filter;
    ret_filter->states = SLURM_ALL;
    ret_filter->me = options->filter.users == NULL && !options->all_users && options->jobs == NULL;
    ret_filter->since_ms = midnight_ms();
    return (options->states == NULL || slurm_states_read(options->states, &ret_filter->states, err)) &&
           (options->start == NULL || read_start(options->start, &ret_filter->since_ms, err));
}

static bool check(const struct call *call, struct err *err)
{
    struct format_column columns[FORMAT_FIELDS];
    struct job_filter filter;
    struct format format;
    return read_filter(call->options, &filter, err) && read_format(call->options, columns, &format, err);
}

/* Jobs that are named. One that is not known has no line, as in Slurm. */
static json_t *read_named(const struct call *call, const struct job_filter *filter, struct err *err)
{
    const struct sacct_options *options = call->options;
    autofree char *copy = xstrdup(options->jobs);
    autojson json_t *all = json_array();
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        char id[RESOLVED_BYTES];
        struct text_list ids = {0};
        json_t *found = NULL;
        if (job_rows_id(call->api, word, id, err)) {
            text_list_add(&ids, xstrdup(id));
            found = job_rows_read(call->api, &ids, filter, false, err);
        }
        text_list_finish(&ids);
        if (found == NULL && err->code != ERR_NOT_FOUND) {
            return NULL;
        }
        json_array_extend(all, found);
        json_decref(found);
    }
    return give(all);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct sacct_options *options = call->options;
    struct format_column columns[FORMAT_FIELDS];
    struct job_filter filter;
    struct format format;
    autotext struct text out = {0};
    if (!read_filter(options, &filter, err) || !read_format(options, columns, &format, err)) {
        return false;
    }
    autojson json_t *jobs = options->jobs != NULL ? read_named(call, &filter, err)
                                                  : job_rows_read(call->api, NULL, &filter, false, err);
    if (jobs == NULL) {
        return false;
    }
    text_append(&out, "");
    format_rows(&format, jobs, !options->no_header, &out);
    return print_out(&out, err);
}

const struct verb command_sacct = {
    .name = "sacct",
    .summary = "List jobs of gpuctl, those that have ended among them, as Slurm's sacct does.",
    .details = "Yours since midnight, without options. Fields of --format: JobID, JobIDRaw, JobName, "
               "Partition, Account, "
               "User, State, ExitCode,\n"
               "Submit, Start, End, Elapsed, ElapsedRaw, Timelimit, NNodes, NodeList, AllocCPUS, NCPUS, "
               "AllocTRES, ReqTRES, "
               "Priority, WorkDir.\n"
               "A job is one line: there are no steps. --version says which gpuctl this is.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct sacct_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
