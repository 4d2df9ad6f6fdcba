/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl token`: who may speak to the controller. */
#include <stdint.h>
#include <string.h>

#include "client/cli/connect.h"
#include "client/cli/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/json.h"
#include "proto/wire/views.h"

#define LIMIT_SHOWN 100000

/* --- list --- */

struct list_options {
    const char *format;
};

static void list_describe(void *options, struct option_table *table)
{
    struct list_options *o = options;
    option_add_format(table, &o->format);
}

static const struct column columns[] = {{"ID", false},      {"ROLE", false},    {"OWNER", false},
                                        {"CREATED", false}, {"EXPIRES", false}, {"REVOKED", false}};

static bool show_table(const json_t *tokens, struct text *out, struct err *err)
{
    autogrid struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    json_t *item;
    json_array_foreach (tokens, i, item) {
        struct token_view token;
        char created[32], expires[32];
        if (!token_view_decode(json_incref(item), &token, err)) {
            return false;
        }
        print_time(token.created_ms, created);
        print_time(token.expires_ms, expires);
        grid_add(grid, token.id);
        grid_add(grid, role_text(token.role));
        grid_add(grid, token.owner);
        grid_add(grid, created);
        grid_add(grid, token.expires_ms != 0 ? expires : "never");
        grid_add(grid, token.revoked ? "yes" : "no");
        token_view_finish(&token);
    }
    grid_print(grid, true, print_width(), false, out);
    return true;
}

static bool list_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct list_options *options = call->options;
    enum print_format format = print_format(options->format);
    autoapi struct api *api = NULL;
    autotext struct text out = {0};
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    autojson json_t *tokens = api_list(api, "/v1/tokens", "tokens", "cursor", LIMIT_SHOWN, err);
    if (tokens == NULL) {
        return false;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_list(format, "tokens", tokens, &out);
    } else if (!show_table(tokens, &out, err)) {
        return false;
    }
    return print_out(&out, err);
}

static const struct verb verb_list = {
    .name = "list",
    .summary = "List the tokens, without their secrets.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct list_options),
    .describe = list_describe,
    .run = list_run,
};

/* --- create --- */

struct create_options {
    const char *role, *owner, *out;
    int64_t expires_ms; /* 0: not given */
    const char *format;
};

static void create_describe(void *options, struct option_table *table)
{
    struct create_options *o = options;
    o->role = role_text(ROLE_USER);
    option_choice(table, 0, "role", "ROLE", "what it may do", "user|node|admin", &o->role);
    option_text(table, 0, "owner", "NAME", "whose it is", &o->owner);
    option_duration(table, 0, "expires", "after which it is no longer valid", &o->expires_ms);
    option_text(table, 0, "out", "FILE", "write it there, for you alone, instead of to stdout", &o->out);
    option_add_format(table, &o->format);
}

static bool show_secret(const struct create_options *options, const json_t *token, struct err *err)
{
    enum print_format format = print_format(options->format);
    const char *secret = NULL;
    autotext struct text out = {0};
    if (!json_need_text(token, "secret", &secret, err)) {
        return false;
    }
    if (options->out != NULL) {
        autofree char *line = xprintf("%s\n", secret);
        return file_replace(options->out, line, strlen(line), 0600, err);
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_json(token, &out);
    } else {
        print_note(
            "this is shown once; keep it in a file that only you can read, and name that with --token-file");
        text_printf(&out, "%s\n", secret);
    }
    return print_out(&out, err);
}

static bool create_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct create_options *options = call->options;
    autoapi struct api *api = NULL;
    autojson json_t *wanted = json_pack("{s:s}", "role", options->role);
    if (options->owner == NULL) {
        return err_field(err, ERR_USAGE, "owner", "name the person, or the nodes, that it is for",
                         "token create needs --owner");
    }
    if (json_object_set_new(wanted, "owner", json_string(options->owner)) != 0) {
        return err_field(err, ERR_USAGE, "owner", NULL, "--owner is not UTF-8");
    }
    if (options->expires_ms > 0) {
        json_object_set_new(wanted, "expires_in_s", json_integer((options->expires_ms + 999) / 1000));
    }
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    autojson json_t *token = api_post(api, "/v1/tokens", wanted, NULL, err);
    return token != NULL && show_secret(options, token, err);
}

static const struct verb verb_create = {
    .name = "create",
    .arguments = "--owner NAME",
    .summary = "Make a token and print its secret.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct create_options),
    .describe = create_describe,
    .run = create_run,
};

/* --- revoke --- */

static bool revoke_run(const struct call *call, int *ret_exit, struct err *err)
{
    autoapi struct api *api = NULL;
    autotext struct text path = {0};
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    text_append(&path, "/v1/tokens/");
    api_part(&path, call->rest[0]);
    text_append(&path, "/revoke");
    autojson json_t *reply = api_post(api, path.bytes, NULL, NULL, err);
    if (reply != NULL) {
        print_note("token %s is no longer valid", call->rest[0]);
    }
    return reply != NULL;
}

static const struct verb verb_revoke = {
    .name = "revoke",
    .arguments = "ID",
    .summary = "Make a token invalid at once.",
    .argument = ARGUMENT_TOKEN,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .run = revoke_run,
};

static const struct verb *const nested[] = {&verb_list, &verb_create, &verb_revoke, NULL};

const struct verb verb_token = {
    .name = "token",
    .summary = "Create, list and revoke tokens.",
    .nested = nested,
};
