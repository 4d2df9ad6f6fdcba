/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/query: the parameters of a request. */
#include <stdio.h>
#include <string.h>

#include "daemon/http/request/query.h"
#include "proto/limits_controller.h"
#include "tests/unit/http/http_suites.h"

static char text[512];
static struct query query;
static struct err err;

static bool parse(const char *string, const char *known)
{
    snprintf(text, sizeof text, "%s", string);
    return query_parse(text, known, &query, &err);
}

START_TEST(values_are_decoded)
{
    ck_assert(parse("name=a%20b+c%2B&empty=&bare&&x=1", "name empty bare x"));
    ck_assert_str_eq(query_text(&query, "name"), "a b c+");
    ck_assert_str_eq(query_text(&query, "empty"), "");
    ck_assert_str_eq(query_text(&query, "bare"), "");
    ck_assert_ptr_null(query_text(&query, "nam"));
    ck_assert_uint_eq(query.count, 4);
}
END_TEST

START_TEST(an_unknown_parameter_is_named_with_those_that_are_known)
{
    ck_assert(!parse("stat=QUEUED", "state name"));
    ck_assert_int_eq(err.code, ERR_UNKNOWN_FIELD);
    ck_assert_str_eq(err.field, "stat");
    ck_assert_ptr_nonnull(strstr(err.hint, "state name"));
    ck_assert(!parse("x=1", NULL));
    ck_assert(!parse("ate=1", "state name"));
    ck_assert(!parse("=1", "state"));
    ck_assert(parse("whatever=1", "*"));
}
END_TEST

START_TEST(too_many_parameters_are_refused)
{
    char many[3 * (LIMIT_QUERY_PARAMETERS + 1) + 1] = "";
    for (int i = 0; i < LIMIT_QUERY_PARAMETERS; i++) {
        strcat(many, "a&");
    }
    ck_assert(parse(many, "a"));
    strcat(many, "a");
    ck_assert(!parse(many, "a"));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
}
END_TEST

START_TEST(numbers_are_whole_and_in_range)
{
    int64_t value = 7;
    ck_assert(parse("limit=200", "limit"));
    ck_assert(query_int(&query, "other", 1, 200, &value, &err));
    ck_assert_int_eq(value, 7);
    ck_assert(query_int(NULL, "limit", 1, 200, &value, &err));
    ck_assert_int_eq(value, 7);
    ck_assert(query_int(&query, "limit", 1, 200, &value, &err));
    ck_assert_int_eq(value, 200);
    ck_assert(!query_int(&query, "limit", 1, 199, &value, &err));
    ck_assert_str_eq(err.field, "limit");
    ck_assert(parse("limit=2x", "limit"));
    ck_assert(!query_int(&query, "limit", 1, 200, &value, &err));
}
END_TEST

START_TEST(durations_are_seconds_or_written_out_and_cut_to_the_limit)
{
    int64_t ms = 0;
    ck_assert(parse("a=2&b=500ms&c=2h&d=x", "a b c d"));
    ck_assert(query_duration(&query, "a", 60000, &ms, &err));
    ck_assert_int_eq(ms, 2000);
    ck_assert(query_duration(&query, "b", 60000, &ms, &err));
    ck_assert_int_eq(ms, 500);
    ck_assert(query_duration(&query, "c", 60000, &ms, &err));
    ck_assert_int_eq(ms, 60000);
    ck_assert(!query_duration(&query, "d", 60000, &ms, &err));
    ck_assert_str_eq(err.field, "d");
}
END_TEST

START_TEST(moments_are_rfc_3339_or_milliseconds)
{
    int64_t ms = 0;
    ck_assert(parse("a=1000&b=1970-01-01T00:00:02.5Z&c=yesterday", "a b c"));
    ck_assert(query_moment(&query, "a", &ms, &err));
    ck_assert_int_eq(ms, 1000);
    ck_assert(query_moment(&query, "b", &ms, &err));
    ck_assert_int_eq(ms, 2500);
    ck_assert(!query_moment(&query, "c", &ms, &err));
    ck_assert_str_eq(err.field, "c");
}
END_TEST

Suite *query_suite(void)
{
    Suite *suite = suite_create("query");
    TCase *cases = tcase_create("query");
    tcase_add_test(cases, values_are_decoded);
    tcase_add_test(cases, an_unknown_parameter_is_named_with_those_that_are_known);
    tcase_add_test(cases, too_many_parameters_are_refused);
    tcase_add_test(cases, numbers_are_whole_and_in_range);
    tcase_add_test(cases, durations_are_seconds_or_written_out_and_cut_to_the_limit);
    tcase_add_test(cases, moments_are_rfc_3339_or_milliseconds);
    suite_add_tcase(suite, cases);
    return suite;
}
