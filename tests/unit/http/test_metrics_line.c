/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/metric_line: what a line may say. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/metric_line.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "tests/unit/http/http_suites.h"

static void expect_shown(const char *line, const char *shown)
{
    struct metric_line read;
    autotext struct text out = {0};
    ck_assert_msg(metric_line_read(line, strlen(line), &read), "not understood: %s", line);
    metric_line_encode(&read, &out);
    ck_assert_str_eq(out.bytes, shown);
    metric_line_finish(&read);
}

static void expect_refused(const char *line)
{
    struct metric_line read;
    ck_assert_msg(!metric_line_read(line, strlen(line), &read), "understood: %s", line);
}

#define AT   "\"rank\": 2, \"time\": 1763731200.123}"
#define MARK "\"time\":\"2025-11-21T13:20:00.123Z\"}"

START_TEST(a_point_is_shown_with_its_time)
{
    expect_shown("{\"metric\": \"loss\", \"value\": 0.25, \"step\": 3, " AT,
                 "{\"rank\":2,\"name\":\"loss\",\"value\":0.25,\"step\":3," MARK);
    expect_shown("{\"metric\": \"loss\", \"value\": 1, " AT,
                 "{\"rank\":2,\"name\":\"loss\",\"value\":1," MARK);
    expect_shown(" {\"metric\": \"l\", \"value\": 1, \"step\": null, \"rank\": 0, \"time\": 1} ",
                 "{\"rank\":0,\"name\":\"l\",\"value\":1,\"time\":\"1970-01-01T00:00:01.000Z\"}");
}
END_TEST

START_TEST(numbers_keep_their_value_and_kind)
{
    static const char *const numbers[][2] = {
        {"1.0", "1.0"},
        {"0.1", "0.1"},
        {"1e300", "1e+300"},
        {"-0.0", "-0.0"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"5e-324", "4.94065645841247e-324"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"\"NaN\"", "\"NaN\""},
        {"\"Infinity\"", "\"Infinity\""},
        {"\"-Infinity\"", "\"-Infinity\""},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        autofree char *line = xprintf("{\"metric\": \"m\", \"value\": %s, " AT, numbers[i][0]);
        autofree char *shown = xprintf("{\"rank\":2,\"name\":\"m\",\"value\":%s," MARK, numbers[i][1]);
        expect_shown(line, shown);
    }
}
END_TEST

START_TEST(what_is_no_number_is_no_value)
{
    static const char *const values[] = {"true",     "null",  "\"1\"",
                                         "\"nan\"",  "[1]",   "{}",
                                         "NaN",      "1e999", "\"inf\"",
                                         "\"NaN \"", "0x1",   "\"\"",
                                         "-",        "+1",    "Infinity",
                                         "1 2",      "'1'",   "\"NaN\\u0000\"",
                                         "",         "1.",    "92233720368547758080"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        autofree char *line = xprintf("{\"metric\": \"m\", \"value\": %s, " AT, values[i]);
        expect_refused(line);
    }
    expect_refused("{\"metric\": \"m\", " AT);
}
END_TEST

START_TEST(steps_are_whole_numbers_of_64_bits)
{
    expect_shown("{\"metric\": \"m\", \"value\": 1, \"step\": 9223372036854775807, " AT,
                 "{\"rank\":2,\"name\":\"m\",\"value\":1,\"step\":9223372036854775807," MARK);
    expect_shown("{\"metric\": \"m\", \"value\": 1, \"step\": -1, " AT,
                 "{\"rank\":2,\"name\":\"m\",\"value\":1,\"step\":-1," MARK);
    expect_refused("{\"metric\": \"m\", \"value\": 1, \"step\": 9223372036854775808, " AT);
    expect_refused("{\"metric\": \"m\", \"value\": 1, \"step\": 1.0, " AT);
    expect_refused("{\"metric\": \"m\", \"value\": 1, \"step\": \"1\", " AT);
}
END_TEST

static char *named(const char *part, int count)
{
    struct text line = {0};
    text_append(&line, "{\"metric\": \"");
    for (int i = 0; i < count; i++) {
        text_append(&line, part);
    }
    text_append(&line, "\", \"value\": 1, " AT);
    return text_take(&line);
}

START_TEST(a_name_has_1_to_250_characters_of_any_kind)
{
    static const char *const parts[] = {"x", "\xc3\xa9", "\xf0\x9f\x94\xa5", "\\u0001", "\\ud83d\\udd25"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct metric_line read;
        autofree char *longest = named(parts[i], LIMIT_METRIC_NAME);
        autofree char *longer = named(parts[i], LIMIT_METRIC_NAME + 1);
        ck_assert_msg(metric_line_read(longest, strlen(longest), &read), "%s", parts[i]);
        metric_line_finish(&read);
        expect_refused(longer);
    }
    autofree char *none = named("x", 0);
    expect_refused(none);
    expect_refused("{\"metric\": 1, \"value\": 1, " AT);
    expect_refused("{\"metric\": null, \"value\": 1, " AT);
}
END_TEST

START_TEST(names_cannot_leave_their_quotes)
{
    expect_shown("{\"metric\": \"a\\\"},{\\\\\\n\\u007f\xe2\x80\xa8\", \"value\": 1, " AT,
                 "{\"rank\":2,\"name\":\"a\\\"},{\\\\\\n\x7f\xe2\x80\xa8\",\"value\":1," MARK);
}
END_TEST

START_TEST(bytes_that_are_not_utf8_are_no_line)
{
    static const char *const names[] = {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xc3", "\\ud800", "\\u0000"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        autofree char *line = named(names[i], 1);
        expect_refused(line);
    }
    struct metric_line read;
    static const char nul[] = "{\"metric\": \"a\0b\", \"value\": 1, " AT;
    ck_assert(!metric_line_read(nul, sizeof nul - 1, &read));
}
END_TEST

START_TEST(what_is_not_an_object_of_ours_is_no_line)
{
    static const char *const lines[] = {
        "",     "{",  "[1]",    "1",      "\"text\"", "null", "{}{}", "garbage", "{\"rank\": 0, \"time\": 1}",
        "{} x", "[]", "{\"a\"", "{'a':1}"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        expect_refused(lines[i]);
    }
    autofree char *deep = xzalloc(20001);
    memset(deep, '[', 20000);
    expect_refused(deep);
    expect_refused("{\"metric\": \"m\", \"metric\": \"n\", \"value\": 1, " AT);
}
END_TEST

START_TEST(rank_and_time_must_be_there_and_make_sense)
{
    static const char *const ends[] = {
        "\"time\": 1}",
        "\"rank\": 0}",
        "\"rank\": -1, \"time\": 1}",
        "\"rank\": 65536, \"time\": 1}",
        "\"rank\": \"0\", \"time\": 1}",
        "\"rank\": 0.5, \"time\": 1}",
        "\"rank\": null, \"time\": 1}",
        "\"rank\": 0, \"time\": -1}",
        "\"rank\": 0, \"time\": 1e300}",
        "\"rank\": 0, \"time\": 253402300800}",
        "\"rank\": 0, \"time\": \"1\"}",
        "\"rank\": 0, \"time\": null}",
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        autofree char *line = xprintf("{\"metric\": \"m\", \"value\": 1, %s", ends[i]);
        expect_refused(line);
    }
    expect_shown("{\"metric\": \"m\", \"value\": 1, \"rank\": 65535, \"time\": 253402300799.9994}",
                 "{\"rank\":65535,\"name\":\"m\",\"value\":1,\"time\":\"9999-12-31T23:59:59.999Z\"}");
}
END_TEST

START_TEST(members_that_nobody_knows_are_ignored)
{
    expect_shown("{\"unit\": [{}], \"metric\": \"m\", \"value\": 1, \"progress\": 7, \"text\": 1, " AT,
                 "{\"rank\":2,\"name\":\"m\",\"value\":1," MARK);
    expect_shown("{\"progress\": 1, \"value\": true, \"step\": \"x\", " AT,
                 "{\"rank\":2,\"fraction\":1,\"text\":null," MARK);
}
END_TEST

START_TEST(progress_is_a_fraction_or_null_with_or_without_text)
{
    expect_shown("{\"progress\": 0.5, \"text\": \"epoch \\\"3\\\"\", " AT,
                 "{\"rank\":2,\"fraction\":0.5,\"text\":\"epoch \\\"3\\\"\"," MARK);
    expect_shown("{\"progress\": null, \"text\": null, " AT,
                 "{\"rank\":2,\"fraction\":null,\"text\":null," MARK);
    expect_shown("{\"progress\": 0, " AT, "{\"rank\":2,\"fraction\":0,\"text\":null," MARK);
    static const char *const wrong[] = {"-0.1", "1.001", "\"0.5\"", "true", "[]", "2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        autofree char *line = xprintf("{\"progress\": %s, " AT, wrong[i]);
        expect_refused(line);
    }
    expect_refused("{\"progress\": 0.5, \"text\": 3, " AT);
}
END_TEST

Suite *metrics_line_suite(void)
{
    Suite *suite = suite_create("metrics line");
    TCase *cases = tcase_create("lines");
    tcase_add_test(cases, a_point_is_shown_with_its_time);
    tcase_add_test(cases, numbers_keep_their_value_and_kind);
    tcase_add_test(cases, what_is_no_number_is_no_value);
    tcase_add_test(cases, steps_are_whole_numbers_of_64_bits);
    tcase_add_test(cases, a_name_has_1_to_250_characters_of_any_kind);
    tcase_add_test(cases, names_cannot_leave_their_quotes);
    tcase_add_test(cases, bytes_that_are_not_utf8_are_no_line);
    tcase_add_test(cases, what_is_not_an_object_of_ours_is_no_line);
    tcase_add_test(cases, rank_and_time_must_be_there_and_make_sense);
    tcase_add_test(cases, members_that_nobody_knows_are_ignored);
    tcase_add_test(cases, progress_is_a_fraction_or_null_with_or_without_text);
    suite_add_tcase(suite, cases);
    return suite;
}
