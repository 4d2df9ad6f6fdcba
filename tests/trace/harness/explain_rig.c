/* SPDX-License-Identifier: Apache-2.0 */
/* Reads answers to questions about jobs. The tests say what they expect. */
#include "tests/trace/harness/explain_rig.h"

#include <check.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

json_t *answer_of(const struct cluster *c)
{
    struct err err;
    ck_assert(c->step.ok);
    json_t *answer = json_parse(c->step.answer, strlen(c->step.answer), &err);
    ck_assert_msg(answer != NULL, "%s in %s", err.text, c->step.answer);
    return answer;
}

json_t *explain(struct cluster *c, const char *id)
{
    ck_assert_int_eq(cluster_ask(c, ASK_EXPLAIN, id), ERR_NONE);
    return answer_of(c);
}

const char *text_at(const json_t *answer, const char *name, const char *member)
{
    const char *text = json_string_value(json_object_get(json_object_get(answer, name), member));
    return text != NULL ? text : "";
}

int64_t number_at(const json_t *answer, const char *name, const char *member)
{
    const json_t *value = json_object_get(json_object_get(answer, name), member);
    ck_assert(json_is_number(value));
    return (int64_t)json_number_value(value);
}

void expect_reason_in(const json_t *answer, const char *code, const char *text)
{
    ck_assert_str_eq(text_at(answer, "reason", "code"), code);
    ck_assert_str_eq(text_at(answer, "reason", "text"), text);
}

void expect_reason(struct cluster *c, const char *id, const char *code, const char *text)
{
    autojson json_t *answer = explain(c, id);
    expect_reason_in(answer, code, text);
}

void expect_change_in(const json_t *answer, const char *field, const char *text)
{
    const json_t *change = json_object_get(answer, "smallest_change");
    if (field == NULL) {
        ck_assert(json_is_null(change));
        return;
    }
    ck_assert_str_eq(text_at(answer, "smallest_change", "field"), field);
    ck_assert_str_eq(text_at(answer, "smallest_change", "text"), text);
}

void expect_change(struct cluster *c, const char *id, const char *field, const char *text)
{
    autojson json_t *answer = explain(c, id);
    expect_change_in(answer, field, text);
}

/* In seconds from now. */
int64_t seconds_until(const struct cluster *c, const json_t *answer, const char *member)
{
    int64_t at_ms;
    ck_assert(text_to_wall_ms(text_at(answer, "start", member), &at_ms));
    return (at_ms - c->wall_ms - c->now_ms) / 1000;
}

void expect_nodes(struct cluster *c, const char *id, int64_t usable, const char *failed)
{
    autojson json_t *answer = explain(c, id);
    autotext struct text text = {0};
    size_t i, j;
    const json_t *test, *name;
    json_array_foreach (json_object_get(json_object_get(answer, "nodes"), "failed"), i, test) {
        text_printf(&text, "%s%s %lld:", i > 0 ? "; " : "", json_string_value(json_object_get(test, "test")),
                    (long long)json_integer_value(json_object_get(test, "nodes")));
        json_array_foreach (json_object_get(test, "names"), j, name) {
            text_printf(&text, " %s", json_string_value(name));
        }
    }
    ck_assert_int_eq(number_at(answer, "nodes", "usable"), usable);
    ck_assert_str_eq(text.bytes != NULL ? text.bytes : "", failed);
}
