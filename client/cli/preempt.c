/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl preempt`: has a running job give back its GPUs, or says which ones would have to for a job that
 * waits. */
#include <stdint.h>

#include "client/cli/connect.h"
#include "client/cli/explanation.h"
#include "client/cli/print.h"
#include "client/cli/resolve.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

struct preempt_options {
    bool rehearse;
    const char *format;
};

static void describe(void *options, struct option_table *table)
{
    struct preempt_options *o = options;
    option_flag(table, 0, "rehearse", "ID waits: say who would have to go for it, and stop nobody",
                &o->rehearse);
    option_add_format(table, &o->format);
}

/* --- rehearsal ------------------------------------------------------------------------------------------ */

static const struct column columns[] = {{"WOULD GO", false}, {"GPUS", false},  {"PRIORITY", false},
                                        {"RAN", false},      {"LOSES", false}, {"NODES", false}};

static void add_span(struct grid *grid, const json_t *victim, const char *name, const char *unit)
{
    char span[32];
    text_from_duration_ms((int64_t)(json_number_value(json_object_get(victim, name)) * 1000), span,
                          sizeof span);
    grid_addf(grid, "%s%s", span, unit);
}

static void add_victim(struct grid *grid, const json_t *victim)
{
    autotext struct text nodes = {0};
    size_t i;
    const json_t *name;
    json_array_foreach (json_object_get(victim, "nodes"), i, name) {
        text_append(&nodes, i > 0 ? " " : "");
        text_append(&nodes, json_string_value(name));
    }
    grid_add(grid, json_string_value(json_object_get(victim, "id")));
    grid_addf(grid, "%lld", (long long)json_integer_value(json_object_get(victim, "gpus")));
    grid_addf(grid, "%lld", (long long)json_integer_value(json_object_get(victim, "priority")));
    add_span(grid, victim, "ran_s", "");
    add_span(grid, victim, "loss_gpu_s", " of GPU time");
    grid_add(grid, nodes.bytes);
}

static void print_rehearsal(const json_t *answer, struct text *out)
{
    const json_t *victims = json_object_get(answer, "victims");
    const char *text = json_string_value(json_object_get(answer, "text"));
    autogrid struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    const json_t *victim;
    json_array_foreach (victims, i, victim) {
        add_victim(grid, victim);
    }
    if (json_array_size(victims) > 0) {
        grid_print(grid, false, 0, print_colour(), out);
        text_append(out, "\n");
    }
    text_printf(out, "%s\n", text != NULL ? text : "");
    if (json_is_true(json_object_get(answer, "possible"))) {
        bool automatic = json_is_true(json_object_get(answer, "automatic"));
        text_append(out, automatic ? "the policy does that by itself\n"
                                   : "the policy does not do that by itself: gpuctl preempt ID stops one\n");
    }
}

static bool rehearse(struct api *api, const char *id, enum print_format format, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s/preemption", id);
    autojson json_t *answer = api_get(api, path, err);
    autotext struct text out = {0};
    if (answer == NULL) {
        return false;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_json(answer, &out);
    } else {
        print_rehearsal(answer, &out);
    }
    return print_out(&out, err);
}

/* --- the verb ------------------------------------------------------------------------------------------- */

static bool stop(struct api *api, const char *id, enum print_format format, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s/preemption", id);
    autojson json_t *answer = api_post(api, path, NULL, NULL, err);
    autotext struct text out = {0};
    if (answer == NULL) {
        return false;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_json(answer, &out);
        return print_out(&out, err);
    }
    print_note("job %s gives back its GPUs, and waits again at its old place", id);
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct preempt_options *options = call->options;
    autoapi struct api *api = NULL;
    char id[RESOLVED_BYTES];
    if (!connect_controller(call, false, &api, err) || !resolve_job(api, call->rest[0], id, err)) {
        return false;
    }
    enum print_format format = print_format(options->format);
    return options->rehearse ? rehearse(api, id, format, err) : stop(api, id, format, err);
}

const struct verb verb_preempt = {
    .name = "preempt",
    .arguments = "ID",
    .summary = "Have a running job give back its GPUs and wait again.",
    .details = "It gets SIGTERM, its grace, then SIGKILL, and is requeued at its old place; that costs no\n"
               "retry. It is your own job, or you are an admin.\n"
               "\n"
               "Examples:\n"
               "  gpuctl preempt x7k2             x7k2 runs: stop it, to see whether it can go on later\n"
               "  gpuctl preempt --rehearse b3qa  b3qa waits: who would have to go for it, and what is lost",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct preempt_options),
    .describe = describe,
    .run = run,
};
