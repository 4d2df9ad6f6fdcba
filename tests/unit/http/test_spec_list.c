/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/submit/spec_list: where the specs of a batch begin and end. */
#include <string.h>

#include "daemon/http/submit/spec_list.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/unit/http/http_suites.h"

/* The specs in a body, each between < and >; behind them ! where the body is refused. */
static const char *split(const char *body, size_t length, bool lines)
{
    static char out[400];
    autotext struct text text = {0};
    struct spec_list list;
    struct err err;
    const char *spec = "";
    size_t spec_length;
    bool good = spec_list_open(&list, body, length, lines, &err);
    while (good && spec != NULL) {
        good = spec_list_next(&list, &spec, &spec_length, &err);
        if (good && spec != NULL) {
            text_append(&text, "<");
            text_append_bytes(&text, spec, spec_length);
            text_append(&text, ">");
        }
    }
    text_append(&text, good ? "" : "!");
    if (!good) {
        ck_assert_int_eq(err.code, ERR_MALFORMED);
        ck_assert_str_ne(err.hint, "");
    }
    snprintf(out, sizeof out, "%s", text.bytes);
    return out;
}

static const char *lines(const char *body)
{
    return split(body, strlen(body), true);
}

static const char *list(const char *body)
{
    return split(body, strlen(body), false);
}

START_TEST(each_line_is_a_spec_but_empty_ones)
{
    ck_assert_str_eq(lines(""), "");
    ck_assert_str_eq(lines("\n \r\n\t\n"), "");
    ck_assert_str_eq(lines("{\"a\":1}"), "<{\"a\":1}>");
    ck_assert_str_eq(lines("\n{\"a\":1} \r\n\n  {\"b\":[2,\n3]}\n"), "<{\"a\":1}><{\"b\":[2,><3]}>");
    ck_assert_str_eq(lines("[{}]\n,"), "<[{}]><,>");
}
END_TEST

START_TEST(each_value_of_a_list_is_a_spec)
{
    ck_assert_str_eq(list("[]"), "");
    ck_assert_str_eq(list(" [ ] \n"), "");
    ck_assert_str_eq(list("[{}]"), "<{}>");
    ck_assert_str_eq(list("[{\"a\":[1,{\"b\":2}]} ,\n{\"c\":3}\n]\n"), "<{\"a\":[1,{\"b\":2}]}><{\"c\":3}>");
    ck_assert_str_eq(list("[1,\"x\",null,[]]"), "<1><\"x\"><null><[]>");
}
END_TEST

START_TEST(commas_and_brackets_in_texts_end_nothing)
{
    ck_assert_str_eq(list("[\"],[\",\"\\\"],\",\"\\\\\"]"), "<\"],[\"><\"\\\"],\"><\"\\\\\">");
    ck_assert_str_eq(list("[{\"a\":\"}\"},{\"]\":1}]"), "<{\"a\":\"}\"}><{\"]\":1}>");
}
END_TEST

START_TEST(a_broken_spec_is_a_text_like_the_others)
{
    ck_assert_str_eq(list("[{\"a\":},nonsense,{}]"), "<{\"a\":}><nonsense><{}>");
    ck_assert_str_eq(list("[{} {},]"), "<{} {}><>");
    ck_assert_str_eq(list("[,{}]"), "<><{}>");
    ck_assert_str_eq(list("[},{}]"), "<}><{}>");
}
END_TEST

START_TEST(a_list_that_does_not_begin_or_end_as_one_is_refused)
{
    ck_assert_str_eq(list(""), "!");
    ck_assert_str_eq(list("{}"), "!");
    ck_assert_str_eq(list("["), "!");
    ck_assert_str_eq(list("[{}"), "!");
    ck_assert_str_eq(list("[{},"), "<{}>!");
    ck_assert_str_eq(list("[{},{\"a\":\"]"), "<{}>!");
    ck_assert_str_eq(list("[{\"a\":\"\\"), "!");
    ck_assert_str_eq(list("[[{}]"), "!");
    ck_assert_str_eq(list("[{}]]"), "<{}>!");
    ck_assert_str_eq(list("[{}] x"), "<{}>!");
}
END_TEST

START_TEST(a_nul_byte_ends_nothing)
{
    ck_assert_str_eq(split("[\0]", 3, false), "<");
    ck_assert_str_eq(split("{}\n{}\0", 5, true), "<{}><{}>");
}
END_TEST

Suite *spec_list_suite(void)
{
    Suite *suite = suite_create("spec_list");
    TCase *cases = tcase_create("spec_list");
    tcase_add_test(cases, each_line_is_a_spec_but_empty_ones);
    tcase_add_test(cases, each_value_of_a_list_is_a_spec);
    tcase_add_test(cases, commas_and_brackets_in_texts_end_nothing);
    tcase_add_test(cases, a_broken_spec_is_a_text_like_the_others);
    tcase_add_test(cases, a_list_that_does_not_begin_or_end_as_one_is_refused);
    tcase_add_test(cases, a_nul_byte_ends_nothing);
    suite_add_tcase(suite, cases);
    return suite;
}
