/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl nodes window`: makes, lists and removes maintenance windows. */
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/controller/connect.h"
#include "client/cli/show/moment.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

#define MOMENT_HINT "write it as 2026-11-21T09:30:00Z or +2h"

/* --- list --- */

static const struct option_row list_rows[] = {ROW_QUIET("ids alone"), ROW_FORMAT, ROWS_END};

/* "a b c", "pool mine" or "all". */
static void show_whose(const json_t *window, const char *member, struct text *out)
{
    const char *pool = json_string_of(window, "pool");
    cell_words(window, member, out);
    if (pool != NULL) {
        text_printf(out, "pool %s", pool);
    }
    text_append(out, out->length > 0 ? "" : "all");
}

static const struct column columns[] = {COLUMN("ID", "id", cell_plain),
                                        COLUMN("NODES", "nodes", show_whose),
                                        COLUMN("FROM", "from", cell_time),
                                        COLUMN("UNTIL", "until", cell_time),
                                        COLUMN("HARD", "hard", cell_yes),
                                        COLUMN("REASON", "reason", cell_plain),
                                        WIDE_COLUMN("OWNER", "owner", cell_plain),
                                        WIDE_COLUMN("CREATED", "created_at", cell_time)};

static const struct listing windows = {
    .path = "/v1/windows", .name = "windows", LIST_COLUMNS(columns), .key = "id"};

static const struct verb verb_list = {
    .name = "list",
    .summary = "List the windows that are not over.",
    LISTS(windows),
    .rows = {list_rows},
};

/* --- add --- */

struct add_options {
    const char *pool, *from, *until, *reason;
    bool all, hard;
};

static const struct option_row add_rows[] = {
    ROW_TEXT(struct add_options, pool, 0, "pool", "NAME", "all nodes of a pool, also those that come later",
             .sent_as = "pool"),
    ROW_FLAG(struct add_options, all, 0, "all", "all nodes, also those that come later", .sent_as = "all"),
    ROW_TEXT(struct add_options, from, 0, "from", "TIME", "2026-11-21T09:30:00Z or +2h (default: now)"),
    ROW_TEXT(struct add_options, until, 0, "until", "TIME", "when the nodes take work again"),
    ROW_FLAG(struct add_options, hard, 0, "hard", "stop what still runs, its grace before the beginning",
             .sent_as = "hard"),
    ROW_TEXT(struct add_options, reason, 0, "reason", "TEXT", "shown to people", .sent_as = "reason"),
    ROW_FORMAT,
    ROWS_END};

/* Whose window it is: exactly one of the three ways. */
static bool put_whose(const struct call *call, json_t *body, struct err *err)
{
    const struct add_options *options = call->options;
    if ((call->rest_count > 0) + (options->pool != NULL) + options->all != 1) {
        return err_field(err, ERR_USAGE, "NAME", NULL, "name nodes, or give --pool, or --all");
    }
    json_t *names = json_array();
    for (size_t i = 0; i < call->rest_count; i++) {
        json_array_append_new(names, json_string(call->rest[i]));
    }
    if (call->rest_count > 0) {
        json_object_set(body, "nodes", names);
    }
    json_decref(names);
    return true;
}

static bool put_times(const struct add_options *options, json_t *body, struct err *err)
{
    int64_t from_ms, until_ms;
    if (options->until == NULL) {
        return err_field(err, ERR_USAGE, "until", "say when the nodes take work again", "--until is missing");
    }
    if (!moment_read("from", options->from != NULL ? options->from : "+0s", MOMENT_HINT, &from_ms, err) ||
        !moment_read("until", options->until, MOMENT_HINT, &until_ms, err)) {
        return false;
    }
    json_object_set_new(body, "from", moment_json(from_ms));
    json_object_set_new(body, "until", moment_json(until_ms));
    return true;
}

static json_t *make_body(const struct call *call, struct err *err)
{
    autojson json_t *body = json_object();
    option_send(add_rows, call->options, body);
    return put_whose(call, body, err) && put_times(call->options, body, err) ? give(body) : NULL;
}

static bool add_run(const struct call *call, int *ret_exit, struct err *err)
{
    autoapi struct api *api = NULL;
    autojson json_t *body = make_body(call, err);
    if (body == NULL || !connect_controller(call, false, &api, err)) {
        return false;
    }
    autojson json_t *window = api_ask(api, "POST", body, err, "/v1/windows");
    return answer_member(call, window, "id", err);
}

static const struct verb verb_add = {
    .name = "add",
    .arguments = "NAME...|--pool POOL|--all --until TIME",
    .summary = "Give nodes no work for a time, and print the window's id.",
    .details = "Before the window, its nodes get only jobs that end before it: by their time limit. Jobs "
               "that have none\n"
               "are kept off nodes whose window begins within 24 hours, unless no other nodes could ever "
               "hold them.\n"
               "What runs when it begins may end, or with --hard is stopped and goes back to the queue, "
               "which costs no\n"
               "retry. When it ends the nodes take work again by themselves.",
    .argument = ARGUMENT_NODE,
    .most = LIMIT_WINDOW_NODES,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct add_options),
    .rows = {add_rows},
    .run = add_run,
};

/* --- remove --- */

/* The whole id of which this is the beginning, borrowed from them. */
static const char *find(const json_t *all, const char *prefix, struct err *err)
{
    const char *found = NULL;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *id = json_string_of(json_array_get(all, i), "id");
        if (id != NULL && strncmp(id, prefix, strlen(prefix)) == 0) {
            if (found != NULL) {
                err_field(err, ERR_USAGE, "ID", "write more of it", "more than one window begins with %s",
                          prefix);
                return NULL;
            }
            found = id;
        }
    }
    if (found == NULL) {
        err_field(err, ERR_NOT_FOUND, "ID", "see gpuctl nodes window list",
                  "no present or future window has the id %s", prefix);
    }
    return found;
}

static bool remove_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *all = api_list(call->api, "/v1/windows", "windows", "cursor", LIMIT_WINDOWS, err);
    const char *id = all != NULL ? find(all, call->rest[0], err) : NULL;
    if (id == NULL) {
        return false;
    }
    autofree char *path = xprintf("/v1/windows/%s", id);
    if (!api_send(call->api, &(struct request){.method = "DELETE", .path = path}, NULL, err)) {
        return false;
    }
    print_note("window %s is removed", id);
    return true;
}

static const struct verb verb_remove = {
    .name = "remove",
    .arguments = "ID",
    .summary = "Remove a window; its nodes take work again if it is on.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .run = remove_run,
};

static const struct verb *const nested[] = {&verb_list, &verb_add, &verb_remove, NULL};

const struct verb verb_windows = {
    .name = "window",
    .summary = "Add, list and remove maintenance windows.",
    .nested = nested,
};
