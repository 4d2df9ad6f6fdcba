/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl preempt`: makes a running job give back its GPUs, or says which jobs would have to for a job that
 * waits. */
#include "client/cli/common/answer.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

struct preempt_options {
    bool rehearse;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct preempt_options, rehearse, 0, "rehearse",
             "ID waits: say who would have to go for it, and stop nobody"),
    ROW_FORMAT, ROWS_END};

/* --- rehearsal ------------------------------------------------------------------------------------------ */

static void show_loss(const json_t *victim, const char *member, struct text *out)
{
    cell_seconds(victim, member, out);
    text_append(out, " of GPU time");
}

static const struct column columns[] = {
    COLUMN("WOULD GO", "id", cell_plain),       COLUMN("GPUS", "gpus", cell_plain),
    COLUMN("PRIORITY", "priority", cell_plain), COLUMN("RAN", "ran_s", cell_seconds),
    COLUMN("LOSES", "loss_gpu_s", show_loss),   COLUMN("NODES", "nodes", cell_words)};

static void print_rehearsal(const struct call *call, const json_t *answer, struct text *out)
{
    const json_t *victims = json_object_get(answer, "victims");
    const char *text = json_string_of(answer, "text");
    if (json_array_size(victims) > 0) {
        grid_show(columns, sizeof columns / sizeof columns[0], victims, false, 0, print_colour(), out);
        text_append(out, "\n");
    }
    text_printf(out, "%s\n", text != NULL ? text : "");
    if (json_is_true(json_object_get(answer, "possible"))) {
        bool automatic = json_is_true(json_object_get(answer, "automatic"));
        text_append(out, automatic ? "the policy does that by itself\n"
                                   : "the policy does not do that by itself: gpuctl preempt ID stops one\n");
    }
}

static bool rehearse(const struct call *call, struct err *err)
{
    autojson json_t *answer = api_get(call->api, err, "/v1/jobs/%s/preemption", call->id);
    return answer_show(call, answer, print_rehearsal, err);
}

/* --- the verb ------------------------------------------------------------------------------------------- */

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct preempt_options *options = call->options;
    if (options->rehearse) {
        return rehearse(call, err);
    }
    autojson json_t *answer = api_ask(call->api, "POST", NULL, err, "/v1/jobs/%s/preemption", call->id);
    return answer_note(call, answer, err, "job %s gives back its GPUs, and waits again at its old place",
                       call->id);
}

const struct verb verb_preempt = {
    .name = "preempt",
    .arguments = "ID",
    .summary = "Have a running job give back its GPUs and wait again.",
    .details = "It gets SIGTERM, its grace, then SIGKILL, and is requeued at its old place; that costs no\n"
               "retry. It is your own job, or you are an operator.\n"
               "\n"
               "Examples:\n"
               "  gpuctl preempt x7k2             x7k2 runs: stop it, to see whether it can go on later\n"
               "  gpuctl preempt --rehearse b3qa  b3qa waits: who would have to go for it, and what is lost",
    OF_A_JOB,
    .options_size = sizeof(struct preempt_options),
    .rows = {rows},
    .run = run,
};
