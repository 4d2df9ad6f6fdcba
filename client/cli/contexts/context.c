/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl context`: lists the controllers that the user has named, chooses one, adds and removes them. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/login/saved_context.h"
#include "client/cli/common/answer.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/context.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

struct context_options {
    const char *token_file, *cacert;
    bool plain_allowed;
};

static const struct option_row rows[] = {
    ROW_TEXT(struct context_options, token_file, 0, "token-file", "FILE", "of a context that is added"),
    ROW_TEXT(struct context_options, cacert, 0, "cacert", "FILE", "certificates that it trusts for https",
             .spec.alias = "ca-file"),
    ROW_FLAG(struct context_options, plain_allowed, 0, "insecure-plain-http",
             "it may use http to another host"),
    ROW_QUIET("names alone"),
    ROW_FORMAT,
    ROWS_END};

/* --- list --- */

static void show_mark(const json_t *context, const char *member, struct text *out)
{
    text_append(out, json_is_true(json_object_get(context, member)) ? "*" : "");
}

static const struct column columns[] = {COLUMN("USED", "used", show_mark), COLUMN("NAME", "name", cell_plain),
                                        COLUMN("URL", "url", cell_plain),
                                        COLUMN("TOKEN FILE", "token_file", cell_plain)};
static const struct listing contexts = {.name = "contexts", LIST_COLUMNS(columns), .key = "name"};

static void add_row(json_t *rows_, const struct saved_context *context, bool used)
{
    json_array_append_new(rows_, json_pack("{s:s?, s:s, s:s?, s:s?, s:b}", "name", context->name, "url",
                                           context->url, "token_file", context->token_file, "cacert",
                                           context->cacert, "used", used));
}

static bool list(const struct call *call, struct err *err)
{
    autojson json_t *items = json_array();
    autosaved_context struct saved_context used = {.name = NULL};
    autonames struct file_names names;
    autotext struct text out = {0};
    bool any = saved_context_used(&used);
    saved_context_list(&names);
    if (any && used.name == NULL) {
        used.name = names.count == 0 ? xstrdup(SAVED_CONTEXT_DEFAULT) : NULL;
        add_row(items, &used, true);
    }
    for (size_t i = 0; i < names.count; i++) {
        autosaved_context struct saved_context saved = {.name = NULL};
        if (saved_context_read(names.items[i], &saved)) {
            add_row(items, &saved, any && used.name != NULL && strcmp(used.name, saved.name) == 0);
        }
    }
    list_print(call, &contexts, items, &out);
    return print_out(&out, err);
}

/* --- choose, add, remove --- */

static void warn_of_environment(void)
{
    const char *url = getenv("GPUCTL_URL");
    if (url != NULL && url[0] != '\0') {
        print_note("GPUCTL_URL is set, and wins: %s", url);
    }
}

static bool choose(const char *name, struct err *err)
{
    autosaved_context struct saved_context saved = {.name = NULL};
    if (!saved_context_keep_used(err) || !saved_context_find(name, &saved, err) ||
        !saved_context_use(&saved, err)) {
        return false;
    }
    print_note("gpuctl speaks to %s from now on", saved.url);
    warn_of_environment();
    return true;
}

static bool add(const struct context_options *options, const char *name, const char *url, struct err *err)
{
    autosaved_context struct saved_context context = {.plain_allowed = options->plain_allowed};
    autosaved_context struct saved_context before = {.name = NULL};
    if (!saved_context_check(name, err) || !context_check_url(url, options->plain_allowed, err)) {
        return false;
    }
    if (options->token_file == NULL) {
        return err_field(err, ERR_USAGE, "token-file", "or log in: gpuctl login URL --context NAME",
                         "gpuctl context add needs --token-file");
    }
    if (saved_context_read(name, &before)) {
        err_field(err, ERR_CONFLICT, "context", NULL, "there is a context \"%s\"", name);
        return err_hint(err, "remove it first: gpuctl context remove %s", name);
    }
    context.name = xstrdup(name);
    context.url = context_trim_url(url);
    context.token_file = file_absolute(options->token_file);
    context.cacert = file_absolute(options->cacert);
    autofree char *token = context_read_token(context.token_file, err);
    if (token == NULL || !saved_context_write(&context, err)) {
        return false;
    }
    explicit_bzero(token, strlen(token));
    print_note("added; `gpuctl context %s` uses it", name);
    return true;
}

static bool remove_one(const char *name, struct err *err)
{
    autosaved_context struct saved_context saved = {.name = NULL}, used = {.name = NULL};
    if (!saved_context_find(name, &saved, err)) {
        return false;
    }
    bool in_use = saved_context_used(&used) && used.name != NULL && strcmp(used.name, name) == 0;
    if (in_use) {
        err_field(err, ERR_CONFLICT, "context", NULL, "context \"%s\" is in use", name);
        return err_hint(err, "choose another one first: gpuctl context NAME");
    }
    if (!saved_context_remove(name, err)) {
        return false;
    }
    print_note("context %s is removed", name);
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct context_options *options = call->options;
    size_t count = call->rest_count;
    const char *word = count > 0 ? call->rest[0] : "list";
    bool adds = strcmp(word, "add") == 0, removes = strcmp(word, "remove") == 0;
    size_t wanted = adds ? 3 : removes ? 2 : 1;
    if (count > 0 && count != wanted) {
        err_set(err, ERR_USAGE, "gpuctl context %s takes %s", word,
                adds      ? "a name and a URL"
                : removes ? "a name"
                          : "no more words");
        return err_hint(err, "see gpuctl context --help");
    }
    return adds                        ? add(options, call->rest[1], call->rest[2], err)
           : removes                   ? remove_one(call->rest[1], err)
           : strcmp(word, "list") == 0 ? list(call, err)
                                       : choose(word, err);
}

const struct verb verb_context = {
    .name = "context",
    .arguments = "[NAME | list | add NAME URL | remove NAME]",
    .summary = "List your controllers, choose one of them, add and remove them.",
    .details =
        "`gpuctl login URL --context NAME` logs in at a controller and names it; `add` names one whose "
        "token you\nhave in a file. Options and GPUCTL_* variables win over the context; --context NAME "
        "takes "
        "another one for one\ncommand. The contexts are in\n~/.config/gpuctl/contexts; the one in use is "
        "written to ~/.config/gpuctl/config, which the "
        "Python client\nreads, too.",
    .most = 3,
    .reach = REACH_NOTHING,
    .options_size = sizeof(struct context_options),
    .rows = {rows},
    .run = run,
};
