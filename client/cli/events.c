/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl events`: the history of a job. */
#include "client/cli/events.h"

#include <stdio.h>

#include "client/cli/connect.h"
#include "client/cli/event.h"
#include "client/cli/print.h"
#include "client/cli/resolve.h"
#include "client/cli/feed.h"
#include "client/cli/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/wire/views.h"

#define LIMIT_SHOWN 100000

struct events_options {
    bool follow;
    const char *format;
};

static void describe(void *options, struct option_table *table)
{
    struct events_options *o = options;
    option_flag(table, 'f', "follow", "wait for more, until the job has ended", &o->follow);
    option_add_format(table, &o->format);
}

static const struct column columns[] = {
    {"SEQ", true}, {"TIME", false}, {"EVENT", false}, {"TRY", false}, {"DETAIL", false}};

bool events_table(const json_t *events, bool wide, size_t width, struct text *out, struct err *err)
{
    autogrid struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    json_t *item;
    json_array_foreach (events, i, item) {
        struct event_view event;
        if (!event_view_decode(json_incref(item), &event, err)) {
            return false;
        }
        autotext struct text detail = {0};
        char at[32];
        print_time(event.at_ms, at);
        event_detail(event.detail, &detail);
        grid_addf(grid, "%lld", (long long)event.seq);
        grid_add(grid, at);
        grid_add(grid, event_kind_text(event.kind));
        grid_addf(grid, "%lld", (long long)event.attempt);
        grid_add(grid, detail.bytes);
        event_view_finish(&event);
    }
    grid_print(grid, wide, width, false, out);
    return true;
}

json_t *events_get(struct api *api, const char *id, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s/events?limit=200", id);
    return api_list(api, path, "events", "after", LIMIT_SHOWN, err);
}

static bool show_all(struct api *api, const char *id, enum print_format format, struct err *err)
{
    autotext struct text out = {0};
    autojson json_t *events = events_get(api, id, err);
    if (events == NULL) {
        return false;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_list(format, "events", events, &out);
    } else if (!events_table(events, format == FORMAT_WIDE, print_width(), &out, err)) {
        return false;
    }
    return print_out(&out, err);
}

/* --- -f --- */

/* One line as soon as it comes: a table cannot know its widths yet. */
static bool show_one(const struct sse_event *received, enum print_format format, struct err *err)
{
    json_t *json = json_parse(received->data, received->data_length, err);
    autotext struct text out = {0};
    struct event_view event;
    if (json == NULL || !event_view_decode(json, &event, err)) {
        return false;
    }
    if (format == FORMAT_JSONL) {
        print_json(json, &out);
    } else {
        autotext struct text detail = {0};
        char at[32];
        print_time(event.at_ms, at);
        event_detail(event.detail, &detail);
        text_printf(&out, "%s  %-12s  %s\n", at, event_kind_text(event.kind),
                    detail.length > 0 ? detail.bytes : "-");
    }
    event_view_finish(&event);
    return print_out(&out, err);
}

static bool follow(struct api *api, const char *id, enum print_format format, struct err *err)
{
    if (format == FORMAT_JSON) {
        return err_field(err, ERR_USAGE, "output", "use -o jsonl",
                         "-o json is one document and cannot be followed");
    }
    autofree char *path = xprintf("/v1/jobs/%s/events", id);
    autofeed struct feed *stream = feed_create(api, path, NULL);
    while (!feed_ended(stream)) {
        struct sse_event event;
        api_turn(api, feed_patience_ms(stream));
        while (feed_next(stream, &event)) {
            if (!show_one(&event, format, err)) {
                return false;
            }
        }
        if (!feed_tend(stream, err)) {
            return false;
        }
    }
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct events_options *options = call->options;
    enum print_format format = print_format(options->format);
    autoapi struct api *api = NULL;
    char id[RESOLVED_BYTES];
    if (!connect_controller(call, false, &api, err) || !resolve_job(api, call->rest[0], id, err)) {
        return false;
    }
    return options->follow ? follow(api, id, format, err) : show_all(api, id, format, err);
}

const struct verb verb_events = {
    .name = "events",
    .arguments = "ID",
    .summary = "Show the history of a job.",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct events_options),
    .describe = describe,
    .run = run,
};
