/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl whoami`: says who the controller takes the caller for, what that person may do, and which settings
 * led there. */
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/login/saved_context.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/states.h"
#include "proto/wire/token.h"

/* Of people and their roles; docs/admin/security.md has the whole table. */
static const char *rights_of(const char *role)
{
    if (strcmp(role, role_text(ROLE_ADMIN)) == 0) {
        return "everything, of all people and nodes";
    }
    if (strcmp(role, role_text(ROLE_USER)) == 0) {
        return "submit jobs, and change your own";
    }
    return "look, and change nothing";
}

/* The names of the projects in an answer with accounts. */
static json_t *projects_of(const json_t *accounts)
{
    json_t *projects = json_array();
    size_t i;
    json_t *account;
    json_array_foreach (accounts, i, account) {
        const char *kind = json_string_of(account, "kind");
        if (kind != NULL && strcmp(kind, "project") == 0) {
            json_array_append(projects, json_object_get(account, "name"));
        }
    }
    return projects;
}

/* "work" where the URL of the context in use led here, else NULL; the caller frees it. */
static char *context_of(const struct context *context)
{
    autosaved_context struct saved_context used = {.name = NULL};
    bool same = saved_context_used(&used) && used.name != NULL && used.token_file != NULL &&
                context->token_file != NULL && strcmp(used.token_file, context->token_file) == 0;
    return same ? xstrdup(used.name) : NULL;
}

static json_t *gather(const struct call *call, struct err *err)
{
    const struct context *context = api_context(call->api);
    autojson json_t *session = api_get(call->api, err, "/v1/session");
    autojson json_t *accounts =
        session != NULL ? api_list(call->api, "/v1/accounts", "accounts", "cursor", LIMIT_LISTED, err) : NULL;
    if (accounts == NULL) {
        return NULL;
    }
    const char *rest = token_after_prefix(context->token, TOKEN_PREFIX);
    autofree char *id = rest != NULL ? xstrndup(rest, TOKEN_ID_LENGTH) : NULL;
    autofree char *name = context_of(context);
    return json_pack("{s:O, s:O, s:o, s:s?, s:s, s:O?, s:s, s:s, s:s?}", "owner",
                     json_object_get(session, "owner"), "role", json_object_get(session, "role"), "projects",
                     projects_of(accounts), "token", id, "token_file", context->token_file, "expires_at",
                     json_object_get(session, "expires_at"), "url", context->url, "url_from", context->cause,
                     "context", name);
}

static void print_whoami(const struct call *call, const json_t *who, struct text *out)
{
    const char *role = print_text_of(who, "role"), *name = json_string_of(who, "context");
    char ends[32];
    autotext struct text projects = {0};
    print_time(print_time_of(who, "expires_at"), ends);
    cell_words(who, "projects", &projects);
    bool all = strcmp(role, role_text(ROLE_ADMIN)) == 0;
    const char *named = projects.length > 0 ? projects.bytes : "none yet";
    bool lasts = json_is_null(json_object_get(who, "expires_at"));
    text_printf(out, "user        %s\n", print_text_of(who, "owner"));
    text_printf(out, "role        %s: may %s\n", role, rights_of(role));
    text_printf(out, "projects    %s\n", all ? "all" : named);
    text_printf(out, "token       %s in %s, %s%s\n", print_text_of(who, "token"),
                print_text_of(who, "token_file"), lasts ? "without an end" : "until ", lasts ? "" : ends);
    text_printf(out, "controller  %s, from %s%s%s\n", print_text_of(who, "url"),
                print_text_of(who, "url_from"), name != NULL ? ", context " : "", name != NULL ? name : "");
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *who = gather(call, err);
    return who != NULL && answer_show(call, who, print_whoami, err);
}

const struct verb verb_whoami = {
    .name = "whoami",
    .summary = "Show your name, role, projects and token at the controller, and what chose it.",
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = run,
};
