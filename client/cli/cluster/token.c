/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl token`: makes, lists and revokes the tokens that the controller accepts. */
#include <stdint.h>
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/controller/connect.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/states.h"

/* --- list --- */

static void show_expiry(const json_t *token, const char *member, struct text *out)
{
    if (print_time_of(token, member) != 0) {
        cell_time(token, member, out);
    } else {
        text_append(out, "never");
    }
}

static const struct column columns[] = {COLUMN("ID", "id", cell_plain),
                                        COLUMN("ROLE", "role", cell_plain),
                                        COLUMN("OWNER", "owner", cell_plain),
                                        COLUMN("PROJECT", "project", cell_plain),
                                        COLUMN("CREATED", "created_at", cell_time),
                                        COLUMN("EXPIRES", "expires_at", show_expiry),
                                        COLUMN("USED", "last_used_at", cell_time),
                                        COLUMN("REVOKED", "revoked", cell_yes)};

static const struct listing tokens = {
    .path = "/v1/tokens", .name = "tokens", LIST_COLUMNS(columns), .uncut = true};

static const struct verb verb_list = {
    .name = "list",
    .summary = "List the tokens, without their secrets.",
    LISTS(tokens),
    .rows = {rows_format},
};

/* --- create --- */

struct create_options {
    const char *role, *owner, *service, *project, *out;
    int64_t expires_ms; /* 0: not given */
};

static const struct option_row create_rows[] = {
    ROW_CHOICE(struct create_options, role, 0, "role", "ROLE", "what it may do",
               "viewer|user|operator|admin|node|monitor", .absent_text = "user", .sent_as = "role"),
    ROW_TEXT(struct create_options, owner, 0, "owner", "NAME", "whose it is", .sent_as = "owner"),
    ROW_TEXT(struct create_options, service, 0, "service", "NAME",
             "a service account instead of a person, for CI: service:NAME", .sent_as = "service"),
    ROW_TEXT(struct create_options, project, 0, "project", "NAME",
             "of the service account: it submits there, and sees nothing else", .sent_as = "project"),
    ROW_DURATION(struct create_options, expires_ms, 0, "expires", "after which it is no longer valid"),
    ROW_TEXT(struct create_options, out, 0, "out", "FILE",
             "write it there, for you alone, instead of to stdout"),
    ROW_FORMAT,
    ROWS_END};

static bool show_secret(const struct call *call, const json_t *token, struct err *err)
{
    const struct create_options *options = call->options;
    return answer_secret(call, token, options->out,
                         "this is shown once; keep it in a file that only you can read, and name that with "
                         "--token-file",
                         err);
}

static bool create_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct create_options *options = call->options;
    autoapi struct api *api = NULL;
    autojson json_t *wanted = json_object();
    if (options->owner == NULL && options->service == NULL) {
        return err_field(err, ERR_USAGE, "owner", "name the person, or the nodes, that it is for",
                         "token create needs --owner, or --service with --project");
    }
    option_send(create_rows, options, wanted);
    if (options->expires_ms > 0) {
        json_object_set_new(wanted, "expires_in_s", json_integer((options->expires_ms + 999) / 1000));
    }
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    autojson json_t *token = api_ask(api, "POST", wanted, err, "/v1/tokens");
    return token != NULL && show_secret(call, token, err);
}

static const struct verb verb_create = {
    .name = "create",
    .arguments = "--owner NAME | --service NAME --project NAME",
    .summary = "Make a token and print its secret.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct create_options),
    .rows = {create_rows},
    .run = create_run,
};

/* --- revoke --- */

static bool revoke_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *reply = api_ask(call->api, "POST", NULL, err, "/v1/tokens/%s/revoke", call->rest[0]);
    if (reply != NULL) {
        print_note("token %s is no longer valid", call->rest[0]);
    }
    return reply != NULL;
}

static const struct verb verb_revoke = {
    .name = "revoke",
    .arguments = "ID",
    .summary = "Make a token invalid at once.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .run = revoke_run,
};

static const struct verb *const nested[] = {&verb_list, &verb_create, &verb_revoke, NULL};

const struct verb verb_token = {
    .name = "token",
    .summary = "Create, list and revoke tokens.",
    .nested = nested,
};
