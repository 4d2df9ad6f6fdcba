/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl explain`: why a job waits, when it will start, and what would start it now. */
#include <stdint.h>

#include "client/cli/connect.h"
#include "client/cli/explanation.h"
#include "client/cli/print.h"
#include "client/cli/resolve.h"
#include "client/cli/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/base/clock.h"

struct explain_options {
    bool watch;
    const char *format;
};

struct look {
    const char *id;
    enum print_format format;
};

static void describe(void *options, struct option_table *table)
{
    struct explain_options *o = options;
    watch_option(table, &o->watch);
    option_add_format(table, &o->format);
}

static bool show(struct api *api, const void *closure, struct text *out, bool *ret_last, struct err *err)
{
    const struct look *look = closure;
    autofree char *path = xprintf("/v1/jobs/%s/explanation", look->id);
    autojson json_t *answer = api_get(api, path, err);
    if (answer == NULL) {
        return false;
    }
    *ret_last = json_is_null(json_object_get(answer, "reason"));
    switch (look->format) {
    case FORMAT_JSON:
    case FORMAT_JSONL:
        print_json(answer, out);
        break;
    case FORMAT_TABLE:
    case FORMAT_WIDE:
        explanation_print(answer, clock_wall_ms(), out);
        break;
    }
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct explain_options *options = call->options;
    autoapi struct api *api = NULL;
    char id[RESOLVED_BYTES];
    if (!connect_controller(call, false, &api, err) || !resolve_job(api, call->rest[0], id, err)) {
        return false;
    }
    struct look look = {.id = id, .format = print_format(options->format)};
    struct watch watch = {.show = show, .options = &look, .format = look.format};
    return watch_run(api, &watch, options->watch, err);
}

const struct verb verb_explain = {
    .name = "explain",
    .arguments = "ID",
    .summary = "Say why a job waits, when it will start, and what would start it now.",
    .details =
        "The start is estimated from how long such jobs have run; jobs that come later are not in it.\n"
        "\n"
        "Examples:\n"
        "  gpuctl explain x7k2          one look; the first characters of an id are enough\n"
        "  gpuctl explain x7k2 --watch  again whenever it changes, until the job has its GPUs\n"
        "  gpuctl explain x7k2 -o json | jq -r .reason.text",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct explain_options),
    .describe = describe,
    .run = run,
};
