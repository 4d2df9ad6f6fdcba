/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl metrics`: shows the values that a job logged, as a table, as charts, as JSON, or as they come. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/transport/feed.h"
#include "client/cli/charts/figures.h"
#include "client/cli/transport/pages.h"
#include "client/cli/charts/point.h"
#include "client/cli/common/jobs.h"
#include "client/cli/charts/series.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

#define NAMES_LISTED 8 /* that a message has room for */

struct metrics_options {
    bool follow, plot, all_ranks;
    const char *name; /* or NULL */
    int64_t rank, attempt;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct metrics_options, follow, 'f', "follow",
             "show points as they come, until the job has ended"),
    ROW_TEXT(struct metrics_options, name, 'n', "name", "NAME", "only of this name"),
    ROW_INT(struct metrics_options, rank, 'r', "rank", "N", "only of this rank", 0, LIMIT_GPUS,
            .absent = NOT_GIVEN),
    ROW_FLAG(struct metrics_options, plot, 'p', "plot", "draw a chart of each name"),
    ROW_FLAG(struct metrics_options, all_ranks, 0, "all-ranks",
             "with --plot: a chart for each rank that logged the name"),
    ROW_INT(struct metrics_options, attempt, 0, "attempt", "N", "of an earlier attempt (default: the newest)",
            1, INT32_MAX, .absent = NOT_GIVEN),
    ROW_FORMAT,
    ROWS_END};

static bool check(const struct call *call, struct err *err)
{
    const struct metrics_options *options = call->options;
    if (options->plot && options->follow) {
        return err_field(err, ERR_USAGE, "plot", "leave out one of the two",
                         "--plot draws what is there and cannot follow");
    }
    if (options->plot && print_is_json(call->format)) {
        return err_field(err, ERR_USAGE, "output", "leave out one of the two",
                         "--plot draws for people and goes with no -o %s", call->common->format);
    }
    if (options->all_ranks && !options->plot) {
        return err_field(err, ERR_USAGE, "all-ranks", "add --plot, or leave it out",
                         "--all-ranks says what --plot draws; everything else shows all ranks anyway");
    }
    if (options->follow && call->format == FORMAT_JSON) {
        return err_field(err, ERR_USAGE, "output", "use -o jsonl",
                         "-o json is one document and cannot be followed");
    }
    return true;
}

static void make_path(const struct call *call, const char *name, int64_t rank, struct text *path)
{
    const struct metrics_options *options = call->options;
    text_printf(path, "/v1/jobs/%s/metrics", call->id);
    pages_number(path, "attempt", options->attempt);
    pages_number(path, "rank", rank);
    api_query(path, "name", name);
}

/* The same for pages as large as the controller makes them. */
static void make_pages_path(const struct call *call, const char *name, int64_t rank, struct text *path)
{
    make_path(call, name, rank, path);
    pages_number(path, "limit", LIMIT_METRIC_ROWS);
}

/* --- all points into series --- */

static bool take_points(const json_t *page, void *closure, struct err *err)
{
    struct series_set *set = closure;
    const json_t *points = pages_list(page, "metrics", err);
    size_t i;
    json_t *item;
    json_array_foreach (points, i, item) {
        struct point point;
        if (!point_read(item, &point, err) || !series_set_add(set, &point, err)) {
            return false;
        }
    }
    return points != NULL;
}

/* The names in the set, sorted: "acc, loss". */
static void list_names(const struct series_set *set, struct text *out)
{
    const char *before = "";
    size_t listed = 0;
    for (const struct series *series = series_first(set); series != NULL; series = series_next(series)) {
        if (strcmp(series->name, before) != 0 && listed < NAMES_LISTED) {
            text_printf(out, "%s%s", listed > 0 ? ", " : "", series->name);
            listed++;
        } else if (strcmp(series->name, before) != 0) {
            text_append(out, ", ...");
            return;
        }
        before = series->name;
    }
}

/* Nothing has the name: lists the names that there are. */
static bool refuse_name(const struct call *call, struct err *err)
{
    const struct metrics_options *options = call->options;
    autoseries struct series_set *set = series_set_create();
    autotext struct text path = {0};
    autotext struct text names = {0};
    make_pages_path(call, NULL, options->rank, &path);
    if (!pages_each(call->api, path.bytes, "cursor", take_points, set, err)) {
        return false;
    }
    series_set_sort(set);
    list_names(set, &names);
    autofree char *who = options->rank == NOT_GIVEN
                             ? xprintf("job %s", call->id)
                             : xprintf("rank %lld of job %s", (long long)options->rank, call->id);
    autofree char *hint = names.length > 0 ? xprintf("there are: %s", names.bytes)
                                           : xprintf("%s has logged nothing at all", who);
    return err_field(err, ERR_NOT_FOUND, "name", hint, "%s has logged no \"%.100s\"", who, options->name);
}

/* Nobody has logged anything: an error where a name was asked for, else a word beside the empty answer. */
static bool explain_nothing(const struct call *call, struct err *err)
{
    const struct metrics_options *options = call->options;
    if (options->name != NULL) {
        return refuse_name(call, err);
    }
    print_note("job %s has logged no metrics here; gpuctl get %s names its run, where it tracks elsewhere",
               call->id, call->id);
    return true;
}

/* --- for people --- */

static bool show_people(const struct call *call, struct err *err)
{
    const struct metrics_options *options = call->options;
    autoseries struct series_set *set = series_set_create();
    autotext struct text path = {0};
    autotext struct text out = {0};
    make_pages_path(call, options->name, options->rank, &path);
    if (!pages_each(call->api, path.bytes, "cursor", take_points, set, err)) {
        return false;
    }
    if (series_first(set) == NULL) {
        return explain_nothing(call, err);
    }
    series_set_sort(set);
    if (options->plot) {
        figures_charts(set, options->all_ranks, print_width(), &out);
    } else {
        figures_table(set, call->format == FORMAT_WIDE, print_width(), &out);
    }
    return print_out(&out, err);
}

/* --- as it is --- */

/* A document or lines that are written page by page. */
struct written {
    enum print_format format;
    bool begun;
};

static bool write_points(const json_t *page, void *closure, struct err *err)
{
    struct written *written = closure;
    const json_t *points = pages_list(page, "metrics", err);
    autotext struct text out = {0};
    size_t i;
    json_t *item;
    json_array_foreach (points, i, item) {
        autofree char *text = json_text(item);
        const char *before = written->format == FORMAT_JSONL ? "" : written->begun ? "," : "{\"metrics\":[";
        text_printf(&out, "%s%s%s", before, text, written->format == FORMAT_JSONL ? "\n" : "");
        written->begun = true;
    }
    return points != NULL && print_out(&out, err);
}

static bool show_json(const struct call *call, struct err *err)
{
    const struct metrics_options *options = call->options;
    struct written written = {.format = call->format};
    autotext struct text path = {0};
    autotext struct text out = {0};
    make_pages_path(call, options->name, options->rank, &path);
    if (!pages_each(call->api, path.bytes, "cursor", write_points, &written, err) ||
        (!written.begun && !explain_nothing(call, err))) {
        return false;
    }
    if (call->format == FORMAT_JSON) {
        text_append(&out, written.begun ? "]}\n" : "{\"metrics\":[]}\n");
    }
    return print_out(&out, err);
}

/* --- -f --- */

/* Progress has no name, and so none that was asked for. */
static bool wants_progress(const struct metrics_options *options, const json_t *progress)
{
    return options->name == NULL && (options->rank == NOT_GIVEN ||
                                     json_integer_value(json_object_get(progress, "rank")) == options->rank);
}

/* The points since the last flush. */
struct coming {
    const struct call *call;
    struct text out;
};

static bool take_event(const struct sse_event *event, void *closure, struct err *err)
{
    struct coming *coming = closure;
    bool is_progress = strcmp(event->name, "progress") == 0;
    if (!is_progress && strcmp(event->name, "metric") != 0) {
        return true; /* of a newer controller */
    }
    autojson json_t *json = json_parse(event->data, event->data_length, err);
    struct point point;
    if (json == NULL) {
        return false;
    }
    if (is_progress && !wants_progress(coming->call->options, json)) {
        return true;
    }
    if (coming->call->format == FORMAT_JSONL) {
        print_json(json, &coming->out);
        return true;
    }
    if (is_progress) {
        return point_progress_line(json, &coming->out, err);
    }
    if (!point_read(json, &point, err)) {
        return false;
    }
    point_line(&point, &coming->out);
    return true;
}

static bool show_coming(void *closure, struct err *err)
{
    struct coming *coming = closure;
    bool good = print_out(&coming->out, err);
    text_clear(&coming->out);
    return good;
}

static bool follow(const struct call *call, struct err *err)
{
    const struct metrics_options *options = call->options;
    autotext struct text path = {0};
    struct coming coming = {.call = call};
    make_path(call, options->name, options->rank, &path);
    autofeed struct feed *stream = feed_create(call->api, path.bytes, NULL);
    bool good = feed_read(stream, take_event, show_coming, &coming, err);
    text_finish(&coming.out);
    return good;
}

/* --- the verb --- */

static bool check_rank(const struct call *call, struct err *err)
{
    const struct metrics_options *options = call->options;
    struct job_view job;
    if (options->rank == NOT_GIVEN) {
        return true;
    }
    if (!ranks_get_job(call->api, call->id, false, &job, err)) {
        return false;
    }
    bool good = ranks_check(&job, options->rank, err);
    job_view_finish(&job);
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct metrics_options *options = call->options;
    if (!check_rank(call, err)) {
        return false;
    }
    if (options->follow) {
        return follow(call, err);
    }
    return print_is_json(call->format) ? show_json(call, err) : show_people(call, err);
}

const struct verb verb_metrics = {
    .name = "metrics",
    .arguments = "ID",
    .summary = "Show the values that a job has logged.",
    .details =
        "What ranks log by MLflow is there, too, without a rank, unless they track at another server.\n"
        "The table has a row for each name and rank; MIN and MAX leave out NaN. --plot draws a chart for\n"
        "each name, of the lowest rank that logged it, or of --rank, or of each with --all-ranks. Charts\n"
        "and trends are of UTF-8 where LC_ALL, LC_CTYPE or LANG names it, else of ASCII; values that are\n"
        "not finite leave gaps in them. With -f, words of progress are shown among the points, unless\n"
        "--name is given; in -o jsonl they are the lines with \"fraction\".",
    OF_A_JOB,
    .options_size = sizeof(struct metrics_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
