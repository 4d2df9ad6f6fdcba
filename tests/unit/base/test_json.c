/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/json: what the strict parser refuses, and the readers of members. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "tests/unit/base/base_suites.h"

static json_t *parse(const char *text)
{
    struct err err;
    json_t *value = json_parse(text, strlen(text), &err);
    ck_assert_msg(value != NULL, "%s: %s", text, err.text);
    return value;
}

static struct err parse_error(const char *bytes, size_t length)
{
    struct err err;
    ck_assert_ptr_null(json_parse(bytes, length, &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    return err;
}

static void assert_refused(const char *text, const char *expected)
{
    struct err err = parse_error(text, strlen(text));
    ck_assert_msg(strstr(err.text, expected) != NULL, "%s: %s", text, err.text);
}

/* "[[[...1...]]]", which the caller frees. */
static char *nested(int depth, const char *open, const char *close)
{
    struct text text = {0};
    for (int i = 0; i < depth; i++) {
        text_append(&text, open);
    }
    text_append(&text, "1");
    for (int i = 0; i < depth; i++) {
        text_append(&text, close);
    }
    return text_take(&text);
}

/* --- parsing -------------------------------------------------------------------------------------------- */

START_TEST(any_single_value_is_parsed_and_printed_compactly)
{
    static const char *const pairs[][2] = {
        {" {\"a\" : [1, 2.5, true, null], \"b\" : \"\\u00e9\\n\"} ",
         "{\"a\":[1,2.5,true,null],\"b\":\"\xc3\xa9\\n\"}"},
        {"\n7\n", "7"},
        {"{\"a\": [0.1, 0.30000000000000004, 1e300]}",
         "{\"a\":[0.10000000000000001,0.30000000000000004,1.0000000000000001e300]}"},
        {"{\"a\": [0.1, {\"b\": 0.969}]}", "{\"a\":[0.1,{\"b\":0.969}]}"},
        {"\"x\"", "\"x\""},
        {"null", "null"},
        {"[]", "[]"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        autojson json_t *value = parse(pairs[i][0]);
        autofree char *text = json_text(value);
        ck_assert_str_eq(text, pairs[i][1]);
    }
}
END_TEST

START_TEST(a_fault_is_named_with_its_line_and_column)
{
    struct err err = parse_error("{\n \"a\": }", 9);
    ck_assert_msg(strncmp(err.text, "line 2, column 7: ", 18) == 0, "%s", err.text);
}
END_TEST

START_TEST(what_follows_the_value_is_refused)
{
    assert_refused("{} x", "line 1");
    assert_refused("1 2", "line 1");
    assert_refused("{}{}", "line 1");
}
END_TEST

START_TEST(nothing_is_no_value)
{
    parse_error("", 0);
    parse_error(NULL, 0);
    parse_error("  ", 2);
}
END_TEST

START_TEST(a_key_that_comes_twice_is_refused)
{
    assert_refused("{\"a\":1,\"a\":2}", "duplicate");
    assert_refused("{\"x\":{\"a\":1,\"\\u0061\":2}}", "duplicate");
}
END_TEST

START_TEST(nul_bytes_are_refused_raw_and_escaped)
{
    parse_error("{}\0", 3);
    parse_error("\"a\0b\"", 5);
    assert_refused("\"a\\u0000b\"", "line 1");
}
END_TEST

START_TEST(text_that_is_not_utf8_is_refused)
{
    assert_refused("\"\xff\"", "line 1");
    assert_refused("\"\\ud800\"", "line 1");
}
END_TEST

START_TEST(nesting_is_parsed_up_to_the_limit_and_refused_beyond)
{
    autofree char *deepest = nested(LIMIT_JSON_DEPTH, "[", "]");
    autojson json_t *value = parse(deepest);
    ck_assert_uint_eq(json_array_size(value), 1);
    autofree char *too_deep = nested(LIMIT_JSON_DEPTH + 1, "[", "]");
    assert_refused(too_deep, "line 1, column 33: JSON is nested deeper than 32 levels");
    autofree char *objects = nested(LIMIT_JSON_DEPTH + 1, "{\"a\":\n", "}");
    assert_refused(objects, "line 33, column 1: JSON is nested deeper");
}
END_TEST

START_TEST(nesting_counts_what_is_open_and_not_what_was_closed)
{
    autotext struct text text = {0};
    text_append(&text, "[");
    for (int i = 0; i < 1000; i++) {
        text_append(&text, "[],{},");
    }
    text_append(&text, "1]");
    autojson json_t *value = parse(text.bytes);
    ck_assert_uint_eq(json_array_size(value), 2001);
}
END_TEST

START_TEST(brackets_in_strings_do_not_count_as_nesting)
{
    autojson json_t *value = parse(
        "[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\\\",\"{{{\"]");
    ck_assert_uint_eq(json_array_size(value), 2);
}
END_TEST

START_TEST(a_string_that_does_not_end_is_refused)
{
    assert_refused("[\"abc", "line 1");
    assert_refused("[\"abc\\", "line 1");
    assert_refused("\"", "line 1");
}
END_TEST

START_TEST(deep_nesting_of_any_length_is_refused_before_it_is_parsed)
{
    autofree char *huge = nested(1000000, "[", "]");
    assert_refused(huge, "nested deeper");
    autofree char *unopened = nested(1000, "]", "[");
    assert_refused(unopened, "line 1, column 1");
}
END_TEST

/* --- members -------------------------------------------------------------------------------------------- */

static const char spec[] =
    "{\"name\":\"x\",\"gpus\":8,\"big\":9223372036854775807,\"remote\":true,\"grace\":1.5,\"wait\":60,"
    "\"none\":null,\"half\":8.5,\"wrap\":18446744073709552,\"far\":1e300,\"tiny\":0.0004}";

static void assert_field(const struct err *err, const char *field, const char *text)
{
    ck_assert_int_eq(err->code, ERR_FIELD);
    ck_assert_str_eq(err->field, field);
    ck_assert_str_eq(err->text, text);
}

START_TEST(members_of_the_right_type_are_read)
{
    autojson json_t *object = parse(spec);
    struct err err;
    const char *name = NULL;
    int64_t gpus = 0;
    bool remote = false;
    ck_assert(json_read_text(object, "name", &name, &err));
    ck_assert_str_eq(name, "x");
    ck_assert(json_read_int(object, "gpus", 1, 8, &gpus, &err));
    ck_assert_int_eq(gpus, 8);
    ck_assert(json_need_int(object, "big", 0, INT64_MAX, &gpus, &err));
    ck_assert_int_eq(gpus, INT64_MAX);
    ck_assert(json_read_bool(object, "remote", &remote, &err));
    ck_assert(remote);
    ck_assert(json_need_text(object, "name", &name, &err));
}
END_TEST

/* A16: to JSON Schema 1.0 is an integer. */
START_TEST(a_whole_number_may_be_written_with_a_fraction_of_nothing)
{
    autojson json_t *object =
        parse("{\"a\": 8.0, \"b\": -2e3, \"c\": 8.5, \"d\": 1e300, \"e\": 9007199254740994.0}");
    struct err err;
    int64_t number = 0;
    ck_assert(json_read_int(object, "a", 1, 8, &number, &err));
    ck_assert_int_eq(number, 8);
    ck_assert(json_need_int(object, "b", -2000, 8, &number, &err));
    ck_assert_int_eq(number, -2000);
    ck_assert(!json_read_int(object, "c", 1, 8, &number, &err));
    ck_assert(!json_read_int(object, "d", 1, INT64_MAX, &number, &err));
    ck_assert(!json_read_int(object, "e", 1, INT64_MAX, &number, &err));
    ck_assert(!json_read_int(object, "a", 9, 10, &number, &err));
}
END_TEST

START_TEST(absent_and_null_members_leave_the_value_alone)
{
    autojson json_t *object = parse(spec);
    static const char *const names[] = {"none", "absent"};
    for (int i = 0; i < 2; i++) {
        const char *text = "old";
        int64_t number = 42;
        bool flag = true;
        ck_assert(json_read_text(object, names[i], &text, NULL));
        ck_assert(json_read_int(object, names[i], 0, 1, &number, NULL));
        ck_assert(json_read_seconds(object, names[i], 0, 1, &number, NULL));
        ck_assert(json_read_bool(object, names[i], &flag, NULL));
        ck_assert_str_eq(text, "old");
        ck_assert_int_eq(number, 42);
        ck_assert(flag);
    }
}
END_TEST

START_TEST(members_of_another_type_are_refused_by_name)
{
    autojson json_t *object = parse(spec);
    struct err err;
    const char *text = "old";
    int64_t number = 42;
    bool flag = false;
    ck_assert(!json_read_text(object, "gpus", &text, &err));
    assert_field(&err, "gpus", "gpus must be a string");
    ck_assert(!json_read_int(object, "half", 1, 9, &number, &err));
    assert_field(&err, "half", "half must be a whole number from 1 to 9");
    ck_assert(!json_read_bool(object, "gpus", &flag, &err));
    assert_field(&err, "gpus", "gpus must be true or false");
    ck_assert(!json_read_seconds(object, "name", 0, 1000, &number, &err));
    assert_field(&err, "name", "name must be a number of seconds from 0 to 1");
    ck_assert_int_eq(number, 42);
}
END_TEST

START_TEST(numbers_outside_their_range_are_refused_with_the_range)
{
    autojson json_t *object = parse(spec);
    struct err err;
    int64_t number = 42;
    ck_assert(!json_read_int(object, "gpus", 9, 10, &number, &err));
    ck_assert(!json_read_int(object, "gpus", 0, 7, &number, &err));
    assert_field(&err, "gpus", "gpus must be a whole number from 0 to 7");
    ck_assert_int_eq(number, 42);
}
END_TEST

START_TEST(seconds_are_read_whole_or_fractional)
{
    autojson json_t *object = parse(spec);
    int64_t ms = 0;
    ck_assert(json_read_seconds(object, "grace", 0, 1500, &ms, NULL));
    ck_assert_int_eq(ms, 1500);
    ck_assert(json_read_seconds(object, "wait", 60000, INT64_MAX, &ms, NULL));
    ck_assert_int_eq(ms, 60000);
    ck_assert(json_read_seconds(object, "tiny", 0, 1, &ms, NULL));
    ck_assert_int_eq(ms, 0);
}
END_TEST

START_TEST(seconds_that_do_not_fit_are_refused)
{
    autojson json_t *object = parse(spec);
    struct err err;
    int64_t ms = 42;
    ck_assert(!json_read_seconds(object, "grace", 2000, LIMIT_TIME_MS, &ms, &err));
    assert_field(&err, "grace", "grace must be a number of seconds from 2 to 31622400");
    ck_assert(!json_read_seconds(object, "big", 0, INT64_MAX, &ms, &err));
    ck_assert(!json_read_seconds(object, "wrap", 0, INT64_MAX, &ms, &err));
    ck_assert(!json_read_seconds(object, "far", 0, INT64_MAX, &ms, &err));
    ck_assert_int_eq(ms, 42);
}
END_TEST

START_TEST(a_member_that_is_needed_must_be_there)
{
    autojson json_t *object = parse(spec);
    struct err err;
    const char *text = NULL;
    int64_t number = 0;
    ck_assert(!json_need_text(object, "absent", &text, &err));
    assert_field(&err, "absent", "absent is missing");
    ck_assert(!json_need_int(object, "none", 0, 1, &number, &err));
    assert_field(&err, "none", "none is missing");
    ck_assert(!json_need_text(object, "gpus", &text, &err));
    assert_field(&err, "gpus", "gpus must be a string");
}
END_TEST

static TCase *parsing_tests(void)
{
    TCase *cases = tcase_create("parsing");
    tcase_add_test(cases, any_single_value_is_parsed_and_printed_compactly);
    tcase_add_test(cases, a_fault_is_named_with_its_line_and_column);
    tcase_add_test(cases, what_follows_the_value_is_refused);
    tcase_add_test(cases, nothing_is_no_value);
    tcase_add_test(cases, a_key_that_comes_twice_is_refused);
    tcase_add_test(cases, nul_bytes_are_refused_raw_and_escaped);
    tcase_add_test(cases, text_that_is_not_utf8_is_refused);
    tcase_add_test(cases, nesting_is_parsed_up_to_the_limit_and_refused_beyond);
    tcase_add_test(cases, nesting_counts_what_is_open_and_not_what_was_closed);
    tcase_add_test(cases, brackets_in_strings_do_not_count_as_nesting);
    tcase_add_test(cases, a_string_that_does_not_end_is_refused);
    tcase_add_test(cases, deep_nesting_of_any_length_is_refused_before_it_is_parsed);
    return cases;
}

static TCase *member_tests(void)
{
    TCase *cases = tcase_create("members");
    tcase_add_test(cases, members_of_the_right_type_are_read);
    tcase_add_test(cases, a_whole_number_may_be_written_with_a_fraction_of_nothing);
    tcase_add_test(cases, absent_and_null_members_leave_the_value_alone);
    tcase_add_test(cases, members_of_another_type_are_refused_by_name);
    tcase_add_test(cases, numbers_outside_their_range_are_refused_with_the_range);
    tcase_add_test(cases, seconds_are_read_whole_or_fractional);
    tcase_add_test(cases, seconds_that_do_not_fit_are_refused);
    tcase_add_test(cases, a_member_that_is_needed_must_be_there);
    return cases;
}

Suite *json_suite(void)
{
    Suite *suite = suite_create("json");
    suite_add_tcase(suite, parsing_tests());
    suite_add_tcase(suite, member_tests());
    return suite;
}
