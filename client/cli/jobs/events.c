/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl events`: shows the history of a job, or follows the events of all jobs. */
#include "client/cli/jobs/events.h"

#include "client/cli/show/event.h"
#include "client/cli/transport/feed.h"
#include "client/cli/common/answer.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

struct events_options {
    bool follow;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct events_options, follow, 'f', "follow",
             "wait for more, until the job has ended; without a job for ever"),
    ROW_FORMAT, ROWS_END};

static void show_detail(const json_t *event, const char *member, struct text *out)
{
    event_members(json_object_get(event, member), out);
}

static const struct column columns[] = {WIDE_COLUMN("SEQ", "seq", cell_plain),
                                        COLUMN("TIME", "at", cell_time), COLUMN("EVENT", "kind", cell_plain),
                                        COLUMN("TRY", "attempt", cell_plain),
                                        COLUMN("DETAIL", "detail", show_detail)};

void events_table(const json_t *events, bool wide, size_t width, struct text *out)
{
    grid_show(columns, sizeof columns / sizeof columns[0], events, wide, width, false, out);
}

json_t *events_get(struct api *api, const char *id, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s/events?limit=200", id);
    return api_list(api, path, "events", "after", LIMIT_LISTED, err);
}

static bool show_all(const struct call *call, struct err *err)
{
    autotext struct text out = {0};
    autojson json_t *events = events_get(call->api, call->id, err);
    if (events == NULL) {
        return false;
    }
    if (print_is_json(call->format)) {
        print_list(call->format, "events", events, &out);
    } else {
        events_table(events, call->format == FORMAT_WIDE, print_width(), &out);
    }
    return print_out(&out, err);
}

/* --- -f --- */

/* One line as soon as it comes: a table cannot know its widths yet. */
static bool show_one(const struct sse_event *received, void *closure, struct err *err)
{
    const struct call *call = closure;
    autojson json_t *event = json_parse(received->data, received->data_length, err);
    autotext struct text out = {0}, detail = {0};
    if (event == NULL) {
        return false;
    }
    if (call->format == FORMAT_JSONL) {
        print_json(event, &out);
    } else {
        show_detail(event, "detail", &detail);
        cell_time(event, "at", &out);
        text_printf(&out, "  %-12s  %s\n", print_text_of(event, "kind"),
                    detail.length > 0 ? detail.bytes : "-");
    }
    return print_out(&out, err);
}

/* The same with the job, of a stream of all jobs. */
static bool show_any(const struct sse_event *received, void *closure, struct err *err)
{
    const struct call *call = closure;
    autojson json_t *event = json_parse(received->data, received->data_length, err);
    autotext struct text out = {0}, detail = {0};
    if (event == NULL) {
        return false;
    }
    const char *job = json_string_of(event, "job_id");
    if (job == NULL) {
        print_note("%s", print_text_of(event, "reason"));
        return true;
    }
    if (call->format == FORMAT_JSONL) {
        print_json(event, &out);
    } else {
        show_detail(event, "detail", &detail);
        cell_time(event, "at", &out);
        text_printf(&out, "  %s  %-12s  %s\n", job, print_text_of(event, "kind"),
                    detail.length > 0 ? detail.bytes : "-");
    }
    return print_out(&out, err);
}

static bool check(const struct call *call, struct err *err)
{
    const struct events_options *options = call->options;
    if (call->rest_count == 0 && !options->follow) {
        return err_field(err, ERR_USAGE, "ID", "name a job, or follow all jobs with --follow",
                         "events needs a job or --follow");
    }
    return !options->follow || call->format != FORMAT_JSON ||
           err_field(err, ERR_USAGE, "output", "use -o jsonl",
                     "-o json is one document and cannot be followed");
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct events_options *options = call->options;
    if (!options->follow) {
        return show_all(call, err);
    }
    struct call whole = *call;
    autofree char *path =
        call->rest_count > 0 ? xprintf("/v1/jobs/%s/events", call->id) : xstrdup("/v1/events");
    autofeed struct feed *stream = feed_create(call->api, path, NULL);
    return feed_read(stream, call->rest_count > 0 ? show_one : show_any, NULL, &whole, err);
}

const struct verb verb_events = {
    .name = "events",
    .arguments = "[ID]",
    .summary = "Show the history of a job, or follow the events of all jobs.",
    .argument = ARGUMENT_JOB,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .need = NEED_JOB,
    .options_size = sizeof(struct events_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
