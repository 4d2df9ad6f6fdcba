/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the words in which people read why a job waits. It promises a line for each part that there is, times
 * both as they are and from now. What is true is the controller's to say. */
#include "client/cli/explanation.h"

#include <string.h>

#include "client/cli/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

#define LABEL_WIDTH 8

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static int64_t int_of(const json_t *object, const char *name)
{
    return (int64_t)json_number_value(json_object_get(object, name));
}

/* Text of others, on one line. */
static void append_safely(struct text *out, const char *text)
{
    autofree char *copy = xstrdup(text != NULL ? text : "?");
    print_disarm(copy);
    text_append(out, copy);
}

void explanation_label(struct text *out, const char *name)
{
    text_printf(out, "%-*s", LABEL_WIDTH, name);
}

static const char *several(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* --- times ---------------------------------------------------------------------------------------------- */

static bool moment_of(const json_t *object, const char *name, int64_t *ret_ms)
{
    const char *text = text_of(object, name);
    return text != NULL && text_to_wall_ms(text, ret_ms);
}

static void append_span(struct text *out, int64_t ms)
{
    char span[32];
    text_from_duration_ms(ms > 0 ? ms : 0, span, sizeof span);
    text_append(out, span);
}

static void append_time(struct text *out, int64_t wall_ms)
{
    char at[32];
    print_time(wall_ms, at);
    text_append(out, at);
}

/* --- the parts ------------------------------------------------------------------------------------------ */

static void print_state(const json_t *answer, struct text *out)
{
    const char *id = text_of(answer, "id");
    if (id != NULL) {
        explanation_label(out, "job");
        append_safely(out, id);
        text_append(out, " is ");
        append_safely(out, text_of(answer, "state"));
        text_append(out, "\n");
    }
}

static void print_refusal(const json_t *answer, struct text *out)
{
    const json_t *refusal = json_object_get(answer, "refusal");
    const char *hint = text_of(refusal, "hint");
    if (!json_is_object(refusal)) {
        return;
    }
    explanation_label(out, "refused");
    append_safely(out, text_of(refusal, "detail"));
    text_append(out, hint != NULL && hint[0] != '\0' ? "; " : "");
    append_safely(out, hint != NULL ? hint : "");
    text_append(out, "\n");
}

static void print_reason(const json_t *answer, struct text *out)
{
    const json_t *reason = json_object_get(answer, "reason");
    bool plan = json_object_get(answer, "admitted") != NULL;
    if (json_is_object(reason)) {
        explanation_label(out, "why");
        append_safely(out, text_of(reason, "text"));
        text_append(out, " (");
        append_safely(out, text_of(reason, "code"));
        text_append(out, ")\n");
    } else if (!plan) {
        explanation_label(out, "why");
        text_append(out, "it waits for nothing\n");
    }
}

static void print_turn(const json_t *answer, int64_t now_ms, struct text *out)
{
    const json_t *turn = json_object_get(answer, "turn");
    int64_t ahead = int_of(turn, "ahead");
    int64_t at_ms;
    if (!json_is_object(turn)) {
        return;
    }
    explanation_label(out, "turn");
    text_printf(out, "%lld%s job%s ahead, priority %lld", (long long)ahead,
                json_is_true(json_object_get(turn, "ahead_more")) ? " or more" : "", several(ahead),
                (long long)int_of(turn, "priority"));
    if (text_of(answer, "id") != NULL && moment_of(turn, "submitted_at", &at_ms)) {
        text_append(out, ", submitted ");
        append_span(out, now_ms - at_ms);
        text_append(out, " ago");
    }
    text_append(out, "\n");
}

static void print_estimate(const json_t *answer, struct text *out)
{
    const json_t *turn = json_object_get(answer, "turn");
    const json_t *from = json_object_get(turn, "estimate_from");
    int64_t runs = int_of(from, "runs");
    if (!json_is_object(turn)) {
        return;
    }
    explanation_label(out, "runs");
    text_append(out, "for about ");
    append_span(out, (int64_t)(json_number_value(json_object_get(turn, "estimate_s")) * 1000));
    if (runs > 0) {
        text_printf(out, ", as %lld like it did; estimates were off by %lld %%", (long long)runs,
                    (long long)int_of(from, "error_percent"));
    } else {
        text_append(out, ", which is a guess: none like it has run");
    }
    text_append(out, "\n");
}

static void print_window(const json_t *start, int64_t now_ms, int64_t at_ms, struct text *out)
{
    int64_t earliest_ms = at_ms, latest_ms = at_ms;
    moment_of(start, "earliest_at", &earliest_ms);
    moment_of(start, "latest_at", &latest_ms);
    if (at_ms <= now_ms && latest_ms <= now_ms) {
        text_append(out, "now");
        return;
    }
    append_time(out, at_ms);
    text_append(out, ", in about ");
    append_span(out, at_ms - now_ms);
    text_append(out, "; from ");
    append_span(out, earliest_ms - now_ms);
    text_append(out, " to ");
    append_span(out, latest_ms - now_ms);
    text_append(out, ", confidence ");
    append_safely(out, text_of(start, "confidence"));
}

static void print_start(const json_t *answer, int64_t now_ms, struct text *out)
{
    const json_t *start = json_object_get(answer, "start");
    int64_t at_ms;
    if (!json_is_object(start)) {
        return;
    }
    explanation_label(out, "start");
    if (moment_of(start, "at", &at_ms)) {
        print_window(start, now_ms, at_ms, out);
    } else if (moment_of(start, "later_than", &at_ms)) {
        text_append(out, "later than ");
        append_time(out, at_ms);
        text_append(out, ", which is in ");
        append_span(out, at_ms - now_ms);
    }
    text_append(out, "\n");
}

static void print_change(const json_t *answer, struct text *out)
{
    const json_t *change = json_object_get(answer, "smallest_change");
    if (json_is_object(change)) {
        explanation_label(out, "change");
        append_safely(out, text_of(change, "text"));
        text_append(out, "\n");
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

static void print_failed(const json_t *failed, struct text *out)
{
    int64_t nodes = int_of(failed, "nodes");
    const json_t *names = json_object_get(failed, "names");
    size_t i;
    const json_t *name;
    text_printf(out, "%lld ", (long long)nodes);
    append_safely(out, words_for(text_of(failed, "test")));
    text_append(out, " (");
    json_array_foreach (names, i, name) {
        text_append(out, i > 0 ? ", " : "");
        append_safely(out, json_string_value(name));
    }
    text_append(out, (int64_t)json_array_size(names) < nodes ? ", ...)" : ")");
}

static void print_nodes(const json_t *answer, struct text *out)
{
    const json_t *nodes = json_object_get(answer, "nodes");
    const json_t *failed = json_object_get(nodes, "failed");
    size_t i;
    const json_t *one;
    if (!json_is_object(nodes)) {
        return;
    }
    explanation_label(out, "nodes");
    text_printf(out, "%lld of %lld could take it now", (long long)int_of(nodes, "usable"),
                (long long)int_of(nodes, "total"));
    json_array_foreach (failed, i, one) {
        text_append(out, i > 0 ? ", " : ": ");
        print_failed(one, out);
    }
    text_append(out, "\n");
}

void explanation_print(const json_t *answer, int64_t now_ms, struct text *out)
{
    print_state(answer, out);
    print_refusal(answer, out);
    print_reason(answer, out);
    print_start(answer, now_ms, out);
    print_change(answer, out);
    print_turn(answer, now_ms, out);
    print_estimate(answer, out);
    print_nodes(answer, out);
}
