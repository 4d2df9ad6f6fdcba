/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl open`: opens the web page of a job's run, or of all experiments, in the person's browser, signed
 * in by a code that works once. client/web has the page. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/transport/api.h"
#include "client/cli/common/browser.h"
#include "client/cli/common/jobs.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

struct open_options {
    bool link;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct open_options, link, 0, "link", "print a link that signs in once, and open nothing"),
    ROWS_END};

/* --- the page --- */

/* A view of the page, or a page of another server. */
struct target {
    char *fragment; /* owned: "/experiments/1/runs/..."; NULL: elsewhere */
    char *elsewhere;
};

static void target_finish(struct target *target)
{
    free(target->fragment);
    free(target->elsewhere);
}

static bool choose_run(const char *id, const json_t *run, struct target *target, struct err *err)
{
    const char *uri = json_string_of(run, "tracking_uri");
    const char *url = json_string_of(run, "url");
    const char *fragment = url != NULL ? strchr(url, '#') : NULL;
    if (uri != NULL && url == NULL) {
        return err_set(err, ERR_NOT_FOUND, "job %s tracks at %s, which has no page that gpuctl knows", id,
                       uri);
    }
    if (uri != NULL) {
        target->elsewhere = xstrdup(url);
    } else if (fragment != NULL) {
        target->fragment = xstrdup(fragment + 1);
    } else {
        target->fragment = xprintf("/jobs/%s", id); /* no run yet */
    }
    return true;
}

static bool choose(struct api *api, const struct call *call, struct target *target, struct err *err)
{
    char id[RESOLVED_BYTES];
    if (call->rest_count == 0) {
        autojson json_t *version = api_get(api, err, "/version"); /* is the token good? */
        target->fragment = xstrdup("/");
        return version != NULL;
    }
    if (!resolve_job(api, call->rest[0], id, err)) {
        return false;
    }
    autojson json_t *runs = runs_get(api, id, err);
    return runs != NULL && choose_run(id, json_array_get(runs, 0), target, err);
}

/* The caller frees it. */
static char *address_of(const struct context *context, const struct target *target)
{
    return target->fragment != NULL ? xprintf("%s/#%s", context->url, target->fragment)
                                    : xstrdup(target->elsewhere);
}

/* The same with a new code, for our own page alone. The caller frees it; NULL on failure. */
static char *link_of(struct api *api, const struct target *target, struct err *err)
{
    struct text link = {0};
    autojson json_t *code = api_ask(api, "POST", NULL, err, "/v1/session/codes");
    if (code == NULL) {
        return NULL;
    }
    text_printf(&link, "%s/#code=", api_context(api)->url);
    api_part(&link, json_string_of(code, "code"));
    text_append(&link, "&to=");
    api_part(&link, target->fragment);
    return text_take(&link);
}

/* --- the browser --- */

static bool open_page(struct api *api, const struct target *target, struct err *err)
{
    autofree char *link = target->fragment != NULL ? link_of(api, target, err) : NULL;
    if (target->fragment != NULL && link == NULL) {
        return false;
    }
    struct err why;
    if (!(link != NULL ? browser_open_link(api_context(api)->state, link, &why)
                       : browser_open(target->elsewhere, &why))) {
        print_note("%s: open the address in a browser%s", why.text,
                   target->fragment != NULL ? "; gpuctl open --link prints one that signs you in" : "");
    }
    return true;
}

/* --- the verb --- */

static bool tell_link(struct api *api, const struct target *target, struct err *err)
{
    autotext struct text out = {0};
    autofree char *link = target->fragment != NULL ? link_of(api, target, err) : xstrdup(target->elsewhere);
    if (link == NULL) {
        return false;
    }
    text_printf(&out, "%s\n", link);
    return print_out(&out, err);
}

static bool tell_address(struct api *api, const struct target *target, struct err *err)
{
    autotext struct text out = {0};
    autofree char *address = address_of(api_context(api), target);
    text_printf(&out, "%s\n", address);
    return print_out(&out, err) && open_page(api, target, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct open_options *options = call->options;
    struct target target = {0};
    bool good = choose(call->api, call, &target, err) &&
                (options->link ? tell_link(call->api, &target, err) : tell_address(call->api, &target, err));
    target_finish(&target);
    return good;
}

const struct verb verb_open = {
    .name = "open",
    .arguments = "[ID]",
    .summary = "Open the web page of a job's run, or of all experiments, in your browser.",
    .details =
        "You are signed in there by a code that works once; six hours after you last looked you may have to\n"
        "sign in again. Where no browser can be started, as over ssh, the address is printed; --link prints\n"
        "a link with such a code for a browser of yours elsewhere, to be opened within a minute. Whoever\n"
        "opens it can do what you can do.",
    .argument = ARGUMENT_JOB,
    .least = 0,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct open_options),
    .rows = {rows},
    .run = run,
};
