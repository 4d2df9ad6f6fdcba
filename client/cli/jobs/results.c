/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl results`: shows the values that the ranks of a job returned, or the exceptions that ended them. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/transport/pages.h"
#include "client/cli/common/jobs.h"
#include "client/cli/show/result.h"
#include "client/cli/common/save.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

struct results_options {
    int64_t rank, attempt; /* -1: not given */
    const char *save;      /* a file; or NULL */
};

/* One invocation. */
struct question {
    const struct call *call;
    const struct job_view *job;
    int64_t rank, attempt;
};

static const struct option_row results_rows[] = {
    ROW_INT(struct results_options, rank, 'r', "rank", "N", "only of this rank", 0, LIMIT_GPUS,
            .absent = NOT_GIVEN),
    ROW_TEXT(struct results_options, save, 0, "save", "FILE",
             "write the pickle of --rank (default 0) to FILE; - is stdout"),
    ROW_INT(struct results_options, attempt, 0, "attempt", "N", "of an earlier attempt (default: the newest)",
            1, INT32_MAX, .absent = NOT_GIVEN),
    ROW_FORMAT, ROWS_END};

/* --- reading --- */

/* The rows of all pages. They are bounded: an exit report has room for few of their bytes. */
struct found {
    int64_t attempt;
    json_t *rows;
};

static bool take_rows(const json_t *page, void *closure, struct err *err)
{
    struct found *found = closure;
    const json_t *rows = pages_list(page, "results", err);
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row) {
        json_array_append(found->rows, row);
    }
    return rows != NULL && json_read_int(page, "attempt", 0, INT64_MAX, &found->attempt, err);
}

static bool take_one_page(const struct question *question, const char *path, struct found *found,
                          struct err *err)
{
    autojson json_t *page = api_read(question->call->api, path, err);
    return page != NULL && take_rows(page, found, err);
}

/* Of all ranks, or of the one that was asked for. The caller releases the rows. */
static bool find(const struct question *question, struct found *ret_found, struct err *err)
{
    autotext struct text path = {0};
    *ret_found = (struct found){.rows = json_array()};
    text_printf(&path, "/v1/jobs/%s/results", question->job->id);
    pages_number(&path, "attempt", question->attempt);
    if (question->rank == NOT_GIVEN) {
        pages_number(&path, "limit", LIMIT_LIST_ROWS);
        return pages_each(question->call->api, path.bytes, "after", take_rows, ret_found, err);
    }
    pages_number(&path, "limit", 1);
    pages_number(&path, "after", question->rank - 1);
    if (!take_one_page(question, path.bytes, ret_found, err)) {
        return false;
    }
    const json_t *rank = json_object_get(json_array_get(ret_found->rows, 0), "rank");
    if (json_integer_value(rank) != question->rank) {
        json_array_clear(ret_found->rows); /* of the next rank that has one */
    }
    return true;
}

static bool runs_command(const struct job_view *job)
{
    autojson json_t *spec = job->spec != NULL ? json_parse(job->spec, strlen(job->spec), NULL) : NULL;
    return json_object_get(spec, "command") != NULL;
}

/* Says why there is no result. */
static bool explain_nothing(const struct question *question, struct err *err)
{
    const struct job_view *job = question->job;
    const char *state = job_state_text(job->state);
    if (runs_command(job)) {
        err_set(err, ERR_NOT_FOUND, "job %s runs a command, and commands return nothing", job->id);
        return err_hint(err, "its output is in `gpuctl logs %s`", job->id);
    }
    if (!job_state_terminal(job->state)) {
        err_set(err, ERR_CONFLICT, "job %s is %s: there are no results yet", job->id, state);
        return err_hint(err, "wait for it with `gpuctl wait %s`", job->id);
    }
    if (question->rank != NOT_GIVEN) {
        err_set(err, ERR_NOT_FOUND, "rank %lld of job %s, which is %s, has left no result",
                (long long)question->rank, job->id, state);
    } else {
        err_set(err, ERR_NOT_FOUND, "job %s is %s and has left no results", job->id, state);
    }
    return err_hint(err, "see why with `gpuctl get %s`", job->id);
}

/* --- showing --- */

static void show_json(const struct found *found, enum print_format format, struct text *out)
{
    if (format == FORMAT_JSONL) {
        print_list(format, "results", found->rows, out);
    } else {
        autojson json_t *document =
            json_pack("{s:I,s:O}", "attempt", (json_int_t)found->attempt, "results", found->rows);
        print_json(document, out);
    }
}

static bool show(const struct question *question, const struct found *found, struct err *err)
{
    const struct job_view *job = question->job;
    enum print_format format = question->call->format;
    autotext struct text out = {0};
    if (print_is_json(format)) {
        show_json(found, format, &out);
        return print_out(&out, err);
    }
    if (!job_state_terminal(job->state)) {
        print_note("job %s is %s: more may come", job->id, job_state_text(job->state));
    }
    size_t i;
    json_t *row;
    json_array_foreach (found->rows, i, row) {
        struct result result;
        if (!result_read(row, &result, err)) {
            return false;
        }
    }
    grid_show(result_columns, RESULT_COLUMNS, found->rows, format == FORMAT_WIDE, print_width(),
              print_colour(), &out);
    return print_out(&out, err);
}

static bool save(const struct question *question, const struct found *found, const char *place,
                 struct err *err)
{
    struct result result;
    if (!result_read(json_array_get(found->rows, 0), &result, err)) {
        return false;
    }
    if (result.sha256 == NULL) {
        err_set(err, ERR_NOT_FOUND, "rank %lld of job %s has left a message, but no pickle",
                (long long)result.rank, question->job->id);
        return err_hint(err, "see it with `gpuctl results %s`", question->job->id);
    }
    if (!save_blob(question->call->api, result.sha256, place, err)) {
        return false;
    }
    char size[32];
    print_bytes(result.size, size);
    print_note("saved the %s of rank %lld, a pickle of %s%s%s", result.kind, (long long)result.rank, size,
               strcmp(place, "-") != 0 ? ", as " : "", strcmp(place, "-") != 0 ? place : "");
    return true;
}

/* --- the verb --- */

static bool check(const struct call *call, struct err *err)
{
    const struct results_options *options = call->options;
    if (options->save != NULL && print_is_json(call->format)) {
        return err_field(err, ERR_USAGE, "output", "leave out one of the two",
                         "--save writes a pickle and goes with no -o %s", call->common->format);
    }
    return options->save == NULL || save_check(options->save, err);
}

static bool answer(struct question *question, const char *place, struct err *err)
{
    struct found found;
    if (!ranks_check(question->job, question->rank, err)) {
        return false;
    }
    bool good = find(question, &found, err);
    if (good && json_array_size(found.rows) == 0) {
        good = explain_nothing(question, err);
    } else if (good) {
        good = place != NULL ? save(question, &found, place, err) : show(question, &found, err);
    }
    json_decref(found.rows);
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct results_options *options = call->options;
    struct job_view job;
    if (!ranks_get_job(call->api, call->id, false, &job, err)) {
        return false;
    }
    bool first = options->save != NULL && options->rank == NOT_GIVEN;
    struct question question = {
        .call = call, .job = &job, .rank = first ? 0 : options->rank, .attempt = options->attempt};
    bool good = answer(&question, options->save, err);
    job_view_finish(&job);
    return good;
}

const struct verb verb_results = {
    .name = "results",
    .arguments = "ID",
    .summary = "Show what the ranks of a job returned, or the exceptions that ended them.",
    .details =
        "VALUE is the value as JSON, where it can be written so, and the message of an exception. Every\n"
        "value is there as a pickle, which --save writes: load it only if you trust the job that made\n"
        "it. Commands return nothing; they appear here only with an error that they reported.",
    OF_A_JOB,
    .options_size = sizeof(struct results_options),
    .rows = {results_rows},
    .check = check,
    .run = run,
};
