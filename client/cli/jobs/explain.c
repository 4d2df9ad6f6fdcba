/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl explain` and `gpuctl plan`: say why a job waits, when it will start, and which change would start
 * it now. Plan asks the same about a job that is not submitted. The controller has the facts; this file puts
 * them into words, a line for each part of the answer, with times both as they are and from now. */

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/bundle/bundle.h"
#include "client/cli/common/watch.h"
#include "client/cli/controller/connect.h"
#include "client/cli/jobs/submit.h"
#include "client/cli/common/answer.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"

#define SPAN_BYTES 32
#define OLD_MS     2000 /* the age from which on an answer says it */

static long long int_of(const json_t *object, const char *name)
{
    return (long long)json_number_value(json_object_get(object, name));
}

/* One line behind its label, with the texts of others made harmless. */
static void add_line(struct text *out, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add_line(struct text *out, const char *label, const char *format, ...)
{
    char *line = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&line, format, args) < 0) {
        out_of_memory();
    }
    va_end(args);
    print_disarm(line);
    text_printf(out, "%-8s%s\n", label, line);
    free(line);
}

/* --- times ---------------------------------------------------------------------------------------------- */

static const char *span(int64_t ms, char buffer[SPAN_BYTES])
{
    text_from_duration_ms(ms, buffer, SPAN_BYTES);
    return buffer;
}

/* Of a member; the other where there is none. */
static int64_t time_or(const json_t *object, const char *name, int64_t other_ms)
{
    int64_t wall_ms = print_time_of(object, name);
    return wall_ms != 0 ? wall_ms : other_ms;
}

/* --- the parts ------------------------------------------------------------------------------------------ */

static void print_reason(const json_t *answer, struct text *out)
{
    const json_t *refusal = json_object_get(answer, "refusal");
    const json_t *reason = json_object_get(answer, "reason");
    const char *hint = json_string_of(refusal, "hint");
    if (json_is_object(refusal)) {
        add_line(out, "refused", "%s%s%s", print_text_of(refusal, "detail"),
                 hint != NULL && hint[0] != '\0' ? "; " : "", hint != NULL ? hint : "");
    }
    if (json_is_object(reason)) {
        add_line(out, "why", "%s (%s)", print_text_of(reason, "text"), print_text_of(reason, "code"));
    } else if (json_string_of(answer, "kept") != NULL) {
        add_line(out, "why", "%s", print_text_of(answer, "kept"));
    } else if (json_object_get(answer, "admitted") == NULL) { /* a plan's */
        add_line(out, "why", "it waits for nothing");
    }
}

static void print_window(const json_t *start, int64_t now_ms, int64_t at_ms, struct text *out)
{
    int64_t earliest_ms = time_or(start, "earliest_at", at_ms);
    int64_t latest_ms = time_or(start, "latest_at", at_ms);
    char at[32], in[SPAN_BYTES], from[SPAN_BYTES], to[SPAN_BYTES];
    if (at_ms <= now_ms && latest_ms <= now_ms) {
        add_line(out, "start", "now");
        return;
    }
    print_time(at_ms, at);
    add_line(out, "start", "%s, in about %s; from %s to %s, confidence %s", at, span(at_ms - now_ms, in),
             span(earliest_ms - now_ms, from), span(latest_ms - now_ms, to),
             print_text_of(start, "confidence"));
}

static void print_start(const json_t *answer, int64_t now_ms, struct text *out)
{
    const json_t *start = json_object_get(answer, "start");
    int64_t at_ms = print_time_of(start, "at");
    int64_t later_ms = print_time_of(start, "later_than");
    char later[32], in[SPAN_BYTES];
    if (at_ms != 0) {
        print_window(start, now_ms, at_ms, out);
    } else if (later_ms != 0) {
        print_time(later_ms, later);
        add_line(out, "start", "later than %s, which is in %s", later, span(later_ms - now_ms, in));
    } else if (json_is_object(start)) {
        add_line(out, "start", "%s", "");
    }
}

static void print_turn(const json_t *answer, int64_t now_ms, struct text *out)
{
    const json_t *turn = json_object_get(answer, "turn");
    const json_t *from = json_object_get(turn, "estimate_from");
    long long ahead = int_of(turn, "ahead");
    int64_t at_ms = json_string_of(answer, "id") != NULL ? print_time_of(turn, "submitted_at") : 0;
    char ago[SPAN_BYTES], runs[SPAN_BYTES];
    if (!json_is_object(turn)) {
        return;
    }
    add_line(out, "turn", "%lld%s job%s ahead, priority %lld%s%s%s", ahead,
             json_is_true(json_object_get(turn, "ahead_more")) ? " or more" : "", ahead == 1 ? "" : "s",
             int_of(turn, "priority"), at_ms != 0 ? ", submitted " : "",
             at_ms != 0 ? span(now_ms - at_ms, ago) : "", at_ms != 0 ? " ago" : "");
    span((int64_t)(json_number_value(json_object_get(turn, "estimate_s")) * 1000), runs);
    if (int_of(from, "runs") > 0) {
        add_line(out, "runs", "for about %s, as %lld like it did; estimates were off by %lld %%", runs,
                 int_of(from, "runs"), int_of(from, "error_percent"));
    } else {
        add_line(out, "runs", "for about %s, which is a guess: none like it has run", runs);
    }
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

/* Of a test that a node may fail, for people. */
static const struct {
    const char *test, *words;
} tests[] = {
    {"gpu_type", "of another type"},
    {"pool", "in another pool"},
    {"host", "another host"},
    {"draining", "taking no new work"},
    {"silent", "silent"},
    {"on_hold", "on hold after declining"},
    {"busy", "busy"},
    {"not_ready", "not ready for its environment"},
    {"reserved", "reserved for others"},
};

static const char *words_for(const char *test)
{
    for (size_t i = 0; test != NULL && i < sizeof tests / sizeof *tests; i++) {
        if (strcmp(tests[i].test, test) == 0) {
            return tests[i].words;
        }
    }
    return test;
}

static void append_failed(const json_t *failed, struct text *out)
{
    const json_t *names = json_object_get(failed, "names");
    const char *words = words_for(json_string_of(failed, "test"));
    size_t i;
    const json_t *name;
    text_printf(out, "%lld %s (", int_of(failed, "nodes"), words != NULL ? words : "?");
    json_array_foreach (names, i, name) {
        text_printf(out, "%s%s", i > 0 ? ", " : "", json_is_string(name) ? json_string_value(name) : "?");
    }
    text_append(out, (long long)json_array_size(names) < int_of(failed, "nodes") ? ", ...)" : ")");
}

static void print_nodes(const json_t *answer, struct text *out)
{
    const json_t *nodes = json_object_get(answer, "nodes");
    autotext struct text failures = {0};
    size_t i;
    const json_t *failed;
    json_array_foreach (json_object_get(nodes, "failed"), i, failed) {
        text_append(&failures, i > 0 ? ", " : ": ");
        append_failed(failed, &failures);
    }
    if (json_is_object(nodes)) {
        add_line(out, "nodes", "%lld of %lld could take it now%s", int_of(nodes, "usable"),
                 int_of(nodes, "total"), failures.length > 0 ? failures.bytes : "");
    }
}

/* Of an answer that is not of this moment. */
static void print_age(const json_t *answer, int64_t now_ms, struct text *out)
{
    char ago[SPAN_BYTES];
    int64_t as_of_ms = time_or(answer, "as_of", now_ms);
    if (now_ms - as_of_ms >= OLD_MS) {
        add_line(out, "as of", "%s ago", span(now_ms - as_of_ms, ago));
    }
}

static void print_answer(const struct call *call, const json_t *answer, struct text *out)
{
    int64_t now_ms = clock_wall_ms();
    const json_t *change = json_object_get(answer, "smallest_change");
    if (json_string_of(answer, "id") != NULL) {
        add_line(out, "job", "%s is %s", print_text_of(answer, "id"), print_text_of(answer, "state"));
    }
    print_reason(answer, out);
    print_start(answer, now_ms, out);
    if (json_is_object(change)) {
        add_line(out, "change", "%s", print_text_of(change, "text"));
    }
    print_turn(answer, now_ms, out);
    print_nodes(answer, out);
    print_age(answer, now_ms, out);
}

/* --- explain -----------------------------------------------------------------------------------------------
 */

static bool show(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    autojson json_t *answer = api_get(call->api, err, "/v1/jobs/%s/explanation", call->id);
    *ret_last = json_is_null(json_object_get(answer, "reason"));
    if (call->common->watch) {
        json_object_del(answer, "as_of"); /* it alone is no change */
    }
    return answer_document(call, answer, print_answer, out);
}

static bool explain_run(const struct call *call, int *ret_exit, struct err *err)
{
    return watch_run(call, show, err);
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
    OF_A_JOB,
    .rows = {rows_watched},
    .run = explain_run,
};

/* --- plan ---------------------------------------------------------------------------------------------- */

/* What a submission of this spec would be told; the caller's. */
static json_t *ask(struct api *api, const struct jobfile *file, const struct spec_options *options,
                   const struct call *call, struct err *err)
{
    autojson json_t *spec = submit_plan_spec(file, options, call, err);
    return spec != NULL ? api_ask(api, "POST", spec, err, "/v1/plan") : NULL;
}

static bool plan_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct spec_options *options = call->options;
    autojobfile struct jobfile file = {0};
    autoapi struct api *api = NULL;
    if (!submit_read(options, call, &file, err) || !connect_controller(call, true, &api, err)) {
        return false;
    }
    autojson json_t *answer = ask(api, &file, options, call, err);
    *ret_exit = json_is_false(json_object_get(answer, "admitted")) ? EXIT_FAILURE : EXIT_SUCCESS;
    return answer_show(call, answer, print_answer, err);
}

const struct verb verb_plan = {
    .name = "plan",
    .arguments = "[-f FILE] [--] [COMMAND [ARGUMENT]...]",
    .summary = "Say when a job would start if it were submitted now, and submit nothing.",
    .details = "Takes the options of submit. What travels with the job is not sent. Starts a controller and "
               "a node of\n"
               "your own where no controller is named. Exits with 1 where the job would be refused.\n"
               "\n"
               "Examples:\n"
               "  gpuctl plan --gpus 8 --gpu-type H100 -- python train.py\n"
               "  gpuctl plan -f job.yaml --time 2h\n"
               "  gpuctl plan --gpus 8 -o json -- true | jq .smallest_change",
    .argument = ARGUMENT_COMMAND,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct spec_options),
    .rows = {spec_rows, rows_format},
    .run = plan_run,
};
