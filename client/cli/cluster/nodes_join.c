/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl nodes join-command` and `gpuctl nodes remove`. It makes the command line by which a machine joins;
 * gpuagent carries that out, and nodes_add.c brings it to machines by ssh. */
#include "client/cli/cluster/nodes_join.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/transport/context.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

const struct option_row join_rows[] = {
    ROW_TEXT(struct join_options, pool, 0, "pool", "NAME", "that the node is to be in", .sent_as = "pool"),
    ROW_FLAG(struct join_options, reserved, 0, "reserved", "the pool is a reserved one",
             .sent_as = "reserved"),
    ROW_DURATION(struct join_options, ttl_ms, 0, "ttl",
                 "after which the token is no longer good (default 1h)"),
    ROWS_END};

bool join_make_token(struct api *api, const struct join_options *options, struct join_token_view *ret_view,
                     struct err *err)
{
    autojson json_t *wanted = json_object();
    option_send(join_rows, options, wanted);
    if (options->ttl_ms > 0) {
        json_object_set_new(wanted, "expires_in_s", json_integer((options->ttl_ms + 999) / 1000));
    }
    json_t *made = api_ask(api, "POST", wanted, err, "/v1/nodes/join-tokens");
    return made != NULL && join_token_view_decode(made, ret_view, err);
}

char *join_url(const struct api *api, const struct join_token_view *view)
{
    const char *mine = api_context(api)->url;
    return xstrdup(
        view->url != NULL && context_is_loopback(mine) && !context_is_loopback(view->url) ? view->url : mine);
}

void join_append_trust(const char *url, const struct join_token_view *view, struct text *line)
{
    bool plain = strncmp(url, "http://", 7) == 0;
    if (plain && !context_is_loopback(url)) {
        text_append(line, " --insecure-plain-http");
    } else if (!plain && view->ca_pin != NULL) {
        text_printf(line, " --ca-pin %s", view->ca_pin);
    }
}

/* --- join-command --- */

static bool show_command(const struct call *call, const struct join_token_view *view, struct err *err)
{
    autofree char *url = join_url(call->api, view);
    autotext struct text line = {0};
    char until[32];
    text_printf(&line, "gpuagent join %s --token %s", url, view->token);
    join_append_trust(url, view, &line);
    autojson json_t *shown =
        json_pack("{s:s, s:s, s:s}", "command", line.bytes, "url", url, "token", view->token);
    if (!print_is_json(call->format)) {
        print_time(view->expires_ms, until);
        print_note("run this on the machine that is to be a node; it is good for one machine, until %s",
                   until);
    }
    return answer_member(call, shown, "command", err);
}

static bool command_run(const struct call *call, int *ret_exit, struct err *err)
{
    struct join_token_view view;
    if (!join_make_token(call->api, call->options, &view, err)) {
        return false;
    }
    bool shown = show_command(call, &view, err);
    join_token_view_finish(&view);
    return shown;
}

const struct verb verb_nodes_join_command = {
    .name = "join-command",
    .summary = "Print the line that makes a machine a node; it is good once.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct join_options),
    .rows = {join_rows, rows_format},
    .run = command_run,
};

/* --- remove --- */

#define REMOVE_WAIT_MS 60000 /* for the other nodes of its gangs: grace, kill and flush */

struct remove_options {
    bool force;
};

static const struct option_row remove_rows[] = {
    ROW_FLAG(struct remove_options, force, 0, "force",
             "it is dead: its jobs go to others, or run twice if it is not"),
    ROWS_END};

static bool remove_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct remove_options *options = call->options;
    const char *path = options->force ? "/v1/nodes/%s?force=true" : "/v1/nodes/%s";
    int64_t deadline = clock_boot_ms() + REMOVE_WAIT_MS;
    bool removed = false;
    while (!removed) {
        autojson json_t *reply = api_ask(call->api, "DELETE", NULL, err, path, call->rest[0]);
        if (reply == NULL) {
            return false;
        }
        removed = json_is_true(json_object_get(reply, "removed"));
        if (!removed && clock_boot_ms() > deadline) {
            err_set(err, ERR_CONFLICT, "node %s is fenced, but its jobs are still being ended on other nodes",
                    call->rest[0]);
            return err_hint(err, "repeat this in a while");
        }
        if (!removed) {
            api_pause(call->api, CLIENT_WATCH_MS);
        }
    }
    print_note("node %s is removed; what it joined with is good no longer", call->rest[0]);
    return true;
}

const struct verb verb_nodes_remove = {
    .name = "remove",
    .arguments = "NAME",
    .summary = "Forget a node that is drained, and what it joined with.",
    OF_A_NODE,
    .options_size = sizeof(struct remove_options),
    .rows = {remove_rows},
    .run = remove_run,
};
