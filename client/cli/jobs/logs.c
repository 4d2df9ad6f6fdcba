/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl logs`: shows the output of a job, merged or of one stream, so far or as it comes; or the lines of
 * it that have a pattern. logs_array.c does so for all tasks of an array. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/jobs/logs.h"
#include "client/cli/transport/feed.h"
#include "client/cli/common/follow.h"
#include "client/cli/common/jobs.h"
#include "client/cli/show/output.h"
#include "client/cli/transport/pages.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

#define LIMIT_TAIL_LINES 1000000 /* that are kept in memory */

static const struct option_row rows[] = {
    ROW_FLAG(struct logs_options, follow, 'f', "follow", "wait for more, until the job has ended"),
    ROW_INT(struct logs_options, rank, 'r', "rank", "N", "only of this rank", 0, LIMIT_GPUS,
            .absent = NOT_GIVEN),
    ROW_CHOICE(struct logs_options, stream, 0, "stream", "NAME", "only one of the two", "stdout|stderr"),
    ROW_INT(struct logs_options, tail, 'n', "tail", "LINES", "only the last lines of what is there", 0,
            LIMIT_TAIL_LINES, .absent = NOT_GIVEN),
    ROW_INT(struct logs_options, attempt, 0, "attempt", "N", "of an earlier attempt (default: the newest)", 1,
            INT32_MAX, .absent = NOT_GIVEN),
    ROW_TEXT(struct logs_options, since, 0, "since", "WHEN",
             "only what came in so long ago at most (10m), or since a moment (2026-11-21T09:30:00Z)"),
    ROW_FLAG(struct logs_options, timestamps, 't', "timestamps",
             "begin each line with when it came in, in UTC"),
    ROW_TEXT(struct logs_options, grep, 0, "grep", "PATTERN",
             "only lines that match an extended regular expression"),
    ROW_FLAG(struct logs_options, errors, 0, "errors", "only lines that look like an error"),
    ROW_FLAG(struct logs_options, ignore_case, 0, "ignore-case", "with --grep: letters match in both cases"),
    ROW_FLAG(struct logs_options, fixed_strings, 0, "fixed-strings", "with --grep: a text, no expression"),
    ROWS_END};

static bool searches(const struct logs_options *options)
{
    return options->grep != NULL || options->errors;
}

/* *ret_since_ms: -1 without --since. */
static bool read_since(const struct logs_options *options, int64_t *ret_since_ms, struct err *err)
{
    int64_t ms;
    *ret_since_ms = -1;
    if (options->since == NULL || text_to_wall_ms(options->since, ret_since_ms)) {
        return true;
    }
    if (!text_to_duration_ms(options->since, &ms)) {
        return err_field(err, ERR_USAGE, "since", "write 10m, or 2026-11-21T09:30:00Z",
                         "\"%s\" is neither a duration nor a moment", options->since);
    }
    int64_t now_ms = clock_wall_ms();
    *ret_since_ms = ms < now_ms ? now_ms - ms : 0;
    return true;
}

static bool check(const struct call *call, struct err *err)
{
    const struct logs_options *options = call->options;
    if (options->grep != NULL && options->errors) {
        return err_field(err, ERR_USAGE, "errors", "give one of the two",
                         "--grep and --errors exclude each other");
    }
    if (searches(options) && (options->follow || options->tail != NOT_GIVEN)) {
        return err_field(err, ERR_USAGE, options->follow ? "follow" : "tail",
                         "leave it out, or pipe into grep", "--%s does not go with a search",
                         options->follow ? "follow" : "tail");
    }
    int64_t since_ms;
    if (!read_since(options, &since_ms, err)) {
        return false;
    }
    return options->grep != NULL || (!options->ignore_case && !options->fixed_strings) ||
           err_field(err, ERR_USAGE, "grep", "add --grep PATTERN",
                     "--ignore-case and --fixed-strings are about --grep");
}

void logs_path(const struct logs_options *options, const char *id, int64_t since_ms, struct text *path)
{
    text_printf(path, "/v1/jobs/%s/logs%s", id, searches(options) ? "/search" : "");
    pages_number(path, "rank", options->rank);
    pages_number(path, "attempt", options->attempt);
    pages_number(path, "since", since_ms);
    api_query(path, "stream", options->stream);
}

struct output *logs_output(const struct logs_options *options, const struct job_view *job, int64_t task)
{
    struct output *output = output_create(stdout, stderr, options->tail);
    if (options->rank == NOT_GIVEN && follow_many_ranks(job)) {
        output_prefix(output);
    }
    if (options->timestamps) {
        output_stamp(output);
    }
    output_task(output, task);
    return output;
}

/* One stream that is not followed comes as it is, byte by byte. */
static bool copy_stream(struct api *api, const char *path, const char *stream, struct err *err)
{
    FILE *out = strcmp(stream, stream_text(STREAM_STDERR)) == 0 ? stderr : stdout;
    bool copied = api_send(
        api, &(struct request){.method = "GET", .path = path, .sink = out, .timeout_ms = -1}, NULL, err);
    return copied && (fflush(out) == 0 || err_errno(err, "cannot write the job's output"));
}

/* --- merged --- */

bool logs_read_stored(struct api *api, const char *path, struct output *output, char **ret_last_id,
                      struct err *err)
{
    autotext struct text stored = {0};
    text_append(&stored, path);
    api_query(&stored, "follow", "0");
    autofeed struct feed *stream = feed_create(api, stored.bytes, NULL);
    if (!follow_output(stream, output, err)) {
        return false;
    }
    *ret_last_id = xstrdup(feed_last_id(stream));
    return true;
}

static bool merge_streams(struct api *api, const struct logs_options *options, const struct job_view *job,
                          const char *path, struct err *err)
{
    autooutput struct output *output = logs_output(options, job, -1);
    autofree char *last_id = NULL;
    bool stored_first = !options->follow || options->tail != NOT_GIVEN;
    if (stored_first && !logs_read_stored(api, path, output, &last_id, err)) {
        return false;
    }
    output_release(output);
    if (!options->follow) {
        return output_flush(output, err);
    }
    autofeed struct feed *stream = feed_create(api, path, last_id);
    return follow_output(stream, output, err);
}

/* --- searched --- */

struct search {
    struct output *output;
    bool found;
};

static bool take_page(const json_t *page, void *closure, struct err *err)
{
    struct search *search = closure;
    const json_t *matches = pages_list(page, "matches", err);
    size_t i;
    json_t *match;
    if (matches == NULL) {
        return false;
    }
    json_array_foreach (matches, i, match) {
        const json_t *line = json_object_get(match, "text");
        int64_t rank = json_integer_value(json_object_get(match, "rank"));
        const char *at = json_string_of(match, "at");
        output_write(search->output, rank, STREAM_STDOUT, at, json_string_value(line),
                     json_string_length(line));
        output_write(search->output, rank, STREAM_STDOUT, at, "\n", 1);
        search->found = true;
    }
    return output_flush(search->output, err);
}

bool logs_search(struct api *api, const struct logs_options *options, struct text *path,
                 struct output *output, bool *ret_found, struct err *err)
{
    struct search search = {.output = output};
    api_query(path, "q", options->grep);
    api_query(path, options->errors ? "errors" : "regex", options->fixed_strings ? "0" : "1");
    api_query(path, "case", options->ignore_case ? "0" : "1");
    pages_number(path, "limit", LIMIT_LIST_ROWS);
    bool good = pages_each(api, path->bytes, "cursor", take_page, &search, err);
    *ret_found = *ret_found || search.found;
    return good;
}

/* --- all --- */

static bool show_job(const struct call *call, const struct job_view *job, int64_t since_ms, bool *ret_found,
                     struct err *err)
{
    const struct logs_options *options = call->options;
    autotext struct text path = {0};
    logs_path(options, call->id, since_ms, &path);
    if (searches(options)) {
        autooutput struct output *output = logs_output(options, job, -1);
        return logs_search(call->api, options, &path, output, ret_found, err);
    }
    bool as_it_is = options->rank != NOT_GIVEN && options->stream != NULL && !options->follow &&
                    options->tail == NOT_GIVEN && options->since == NULL && !options->timestamps;
    return as_it_is ? copy_stream(call->api, path.bytes, options->stream, err)
                    : merge_streams(call->api, options, job, path.bytes, err);
}

/* Of a search the exit code is grep's: 1 when no line matches. */
static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct logs_options *options = call->options;
    int64_t since_ms;
    struct job_view job;
    if (!read_since(options, &since_ms, err) || !ranks_get_job(call->api, call->id, false, &job, err)) {
        return false;
    }
    bool found = false;
    bool good = job.array.tasks > 0 ? logs_array(call->api, options, &job, since_ms, &found, err)
                                    : show_job(call, &job, since_ms, &found, err);
    job_view_finish(&job);
    *ret_exit = searches(options) && !found ? 1 : 0;
    return good;
}

const struct verb verb_logs = {
    .name = "logs",
    .arguments = "ID",
    .summary = "Show the output of a job, or of all tasks of an array.",
    .details =
        "Without --rank the ranks are merged, and each line says whose it is. What ranks wrote to "
        "stderr goes to stderr.\n"
        "Lines of an array begin with [TASK], or [TASK:RANK], one task after the other; with --follow as "
        "they "
        "come.\n"
        "--tail counts the lines of each task. A line's time is that of its beginning at the controller.\n"
        "--grep and --errors print matching lines of all streams on stdout, in the order of their arrival.\n"
        "The exit code is 0 when there is one, and 1 when there is none.",
    OF_A_JOB,
    .options_size = sizeof(struct logs_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
