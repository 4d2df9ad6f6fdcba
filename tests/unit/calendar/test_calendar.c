/* SPDX-License-Identifier: Apache-2.0 */
/* Cron expressions and time zones: which moments they name, also over changes of clocks, ends of months and
 * leap years. The moments were worked out by hand and with the zoneinfo module of Python. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/calendar/cron.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"

static int64_t moment(const char *text)
{
    int64_t ms;
    ck_assert_msg(text_to_wall_ms(text, &ms), "%s", text);
    return ms;
}

/* --- the next moments ----------------------------------------------------------------------------------- */

/* The times behind `after`, up to minutes, which follow each other. */
static const struct {
    const char *zone, *cron, *after, *next;
} cases[] = {
    {"UTC", "* * * * *", "2026-11-21T09:30:00Z", "2026-11-21T09:31 2026-11-21T09:32 "},
    {"UTC", "* * * * *", "2026-11-21T09:30:59.999Z", "2026-11-21T09:31 "},
    {"UTC", "0 3 * * *", "2026-11-21T03:00:00Z", "2026-11-22T03:00 2026-11-23T03:00 "},
    {"UTC", "0 3 * * *", "2026-11-21T02:59:59.999Z", "2026-11-21T03:00 "},
    {"UTC", "*/20 8-9 * * *", "2026-11-21T08:41:00Z",
     "2026-11-21T09:00 2026-11-21T09:20 2026-11-21T09:40 "
     "2026-11-22T08:00 "},
    {"UTC", "5,50-59/4 0 1 * *", "2026-12-31T23:00:00Z",
     "2027-01-01T00:05 2027-01-01T00:50 2027-01-01T00:54 "
     "2027-01-01T00:58 2027-02-01T00:05 "},
    /* ends of months, leap years */
    {"UTC", "0 0 31 * *", "2027-01-31T00:00:00Z", "2027-03-31T00:00 2027-05-31T00:00 "},
    {"UTC", "0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00 2032-02-29T00:00 "},
    {"UTC", "0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00 "},
    {"UTC", "59 23 28-31 2 *", "2028-02-01T00:00:00Z", "2028-02-28T23:59 2028-02-29T23:59 2029-02-28T23:59 "},
    /* days of the week; one of both fields of days is enough, unless one begins with a star */
    {"UTC", "0 0 * * mon-FRI", "2026-11-27T00:00:00Z", "2026-11-30T00:00 2026-12-01T00:00 "},
    {"UTC", "0 0 * * 7", "2026-11-23T00:00:00Z", "2026-11-29T00:00 2026-12-06T00:00 "},
    {"UTC", "0 0 * * fri-sun", "2026-11-23T00:00:00Z",
     "2026-11-27T00:00 2026-11-28T00:00 2026-11-29T00:00 "
     "2026-12-04T00:00 "},
    {"UTC", "0 0 * * sun-sun", "2026-11-23T00:00:00Z", "2026-11-29T00:00 2026-12-06T00:00 "},
    {"UTC", "0 0 * * 0-1", "2026-11-24T00:00:00Z", "2026-11-29T00:00 2026-11-30T00:00 2026-12-06T00:00 "},
    {"UTC", "0 0 13 * fri", "2026-11-01T00:00:00Z", "2026-11-06T00:00 2026-11-13T00:00 2026-11-20T00:00 "},
    {"UTC", "0 0 13 */1 fri", "2026-12-05T00:00:00Z", "2026-12-11T00:00 2026-12-13T00:00 "},
    {"UTC", "0 0 */2 * mon", "2026-11-01T00:00:00Z", "2026-11-09T00:00 2026-11-23T00:00 "},
    {"UTC", "0 0 1 jan,Jul *", "2026-11-01T00:00:00Z", "2027-01-01T00:00 2027-07-01T00:00 "},
    /* short forms */
    {"UTC", "@hourly", "2026-11-21T09:30:00Z", "2026-11-21T10:00 "},
    {"UTC", "@daily", "2026-11-21T09:30:00Z", "2026-11-22T00:00 "},
    {"UTC", "@Weekly", "2026-11-21T09:30:00Z", "2026-11-22T00:00 2026-11-29T00:00 "},
    {"UTC", "@monthly", "2026-11-21T09:30:00Z", "2026-12-01T00:00 "},
    {"UTC", "@yearly", "2026-11-21T09:30:00Z", "2027-01-01T00:00 2028-01-01T00:00 "},
    /* Berlin: from 02:00 to 03:00 on March 28, 2027, and from 03:00 to 02:00 on October 31 */
    {"Europe/Berlin", "0 3 * * *", "2026-11-21T09:30:00Z", "2026-11-22T02:00 "},
    {"Europe/Berlin", "30 2 * * *", "2027-03-27T00:00:00Z",
     "2027-03-27T01:30 2027-03-28T01:00 2027-03-29T00:30 "},
    {"Europe/Berlin", "15,45 2 * * *", "2027-03-28T00:00:00Z", "2027-03-28T01:00 2027-03-29T00:15 "},
    {"Europe/Berlin", "0 3 * * *", "2027-03-27T12:00:00Z", "2027-03-28T01:00 2027-03-29T01:00 "},
    {"Europe/Berlin", "30 2 * * *", "2027-10-30T12:00:00Z", "2027-10-31T00:30 2027-11-01T01:30 "},
    {"Europe/Berlin", "30 2 * * *", "2027-10-31T00:30:00Z", "2027-11-01T01:30 "},
    {"Europe/Berlin", "30 2 * * *", "2027-10-31T01:10:00Z", "2027-11-01T01:30 "},
    {"Europe/Berlin", "30 * * * *", "2027-10-30T23:30:00Z",
     "2027-10-31T00:30 2027-10-31T01:30 2027-10-31T02:30 "},
    {"Europe/Berlin", "30 * * * *", "2027-03-28T00:00:00Z", "2027-03-28T00:30 2027-03-28T01:30 "},
    {"Europe/Berlin", "0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-28T23:00 "},
    /* New York: March 14, 2027, and November 7, both at 02:00 */
    {"America/New_York", "30 2 * * *", "2027-03-13T12:00:00Z", "2027-03-14T07:00 2027-03-15T06:30 "},
    {"America/New_York", "30 1 * * *", "2027-11-06T12:00:00Z", "2027-11-07T05:30 2027-11-08T06:30 "},
    {"America/New_York", "0 0 * * *", "2027-03-13T12:00:00Z", "2027-03-14T05:00 2027-03-15T04:00 "},
    {"America/New_York", "*/30 * * * *", "2027-11-07T05:00:00Z",
     "2027-11-07T05:30 2027-11-07T06:00 "
     "2027-11-07T06:30 2027-11-07T07:00 "},
    /* half an hour; the rule behind the list of changes; no change at all */
    {"Australia/Lord_Howe", "15 2 * * *", "2027-10-02T12:00:00Z", "2027-10-02T15:30 2027-10-03T15:15 "},
    {"Europe/Berlin", "30 2 * * *", "2060-03-27T12:00:00Z", "2060-03-28T01:00 2060-03-29T00:30 "},
    {"Asia/Kolkata", "0 0 * * *", "2026-11-21T09:30:00Z", "2026-11-21T18:30 "},
};

START_TEST(each_expression_names_its_next_moments)
{
    struct err err;
    struct cron cron;
    autotext struct text found = {0};
    ck_assert_msg(cron_read(cases[_i].cron, &cron, &err), "%s: %s", cases[_i].cron, err.text);
    autozone struct zone *zone = zone_open(cases[_i].zone, &err);
    ck_assert_msg(zone != NULL, "%s", err.text);
    int64_t at_ms = moment(cases[_i].after);
    while (found.length < strlen(cases[_i].next)) {
        char shown[32];
        at_ms = cron_next_ms(&cron, zone, at_ms);
        clock_format_wall(at_ms, shown, sizeof shown);
        ck_assert_str_eq(shown + 16, ":00.000Z");
        text_printf(&found, "%.16s ", shown);
    }
    ck_assert_msg(strcmp(found.bytes, cases[_i].next) == 0, "%s in %s: %s, not %s", cases[_i].cron,
                  cases[_i].zone, found.bytes, cases[_i].next);
}
END_TEST

START_TEST(a_day_that_never_comes_has_no_moment)
{
    struct err err;
    struct cron cron;
    autozone struct zone *zone = zone_open("UTC", &err);
    ck_assert(cron_read("0 0 30 2 *", &cron, &err));
    ck_assert_int_eq(cron_next_ms(&cron, zone, moment("2026-11-21T09:30:00Z")), INT64_MAX);
}
END_TEST

/* --- what is refused ------------------------------------------------------------------------------------ */

static const char *const wrong[] = {
    "",
    "   ",
    "* * * *",
    "* * * * * *",
    "@reboot",
    "@daily x",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * 32 * *",
    "* * * 0 *",
    "* * * 13 *",
    "* * * * 8",
    "5-1 * * * *",
    "1- * * * *",
    "-1 * * * *",
    "*/0 * * * *",
    "5/10 * * * *",
    "1,,2 * * * *",
    ", * * * *",
    "1,  * * * *",
    "a * * * *",
    "mon * * * *",
    "* * * mon *",
    "* * * janu *",
    "*5 * * * *",
    "1.5 * * * *",
    "*/ * * * *",
    "99999999999999999999 * * * *",
    "*/mon * * * *",
    "? * * * *",
    "0 0 L * *",
    "0 0 * * 1#2",
    "\n0 0 * * *",
};

START_TEST(what_is_no_expression_is_refused_by_name)
{
    struct err err = {0};
    struct cron cron;
    ck_assert_msg(!cron_read(wrong[_i], &cron, &err), "%s", wrong[_i]);
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_str_eq(err.field, "cron");
    ck_assert(err.text[0] != '\0' && err.hint[0] != '\0');
}
END_TEST

START_TEST(names_that_lead_elsewhere_are_no_zones)
{
    static const char *const names[] = {"",
                                        "/etc/localtime",
                                        "../../../etc/passwd",
                                        "Europe/../../x",
                                        "Europe",
                                        "Europe/Atlantis",
                                        "zone.tab",
                                        "Europe/Berlin\n",
                                        "right/UTC/",
                                        "posix/../tzdata.zi",
                                        "a b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct err err = {0};
        ck_assert_msg(zone_open(names[i], &err) == NULL, "%s", names[i]);
        ck_assert_str_eq(err.field, "time_zone");
    }
}
END_TEST

/* --- rules of zones ------------------------------------------------------------------------------------- */

/* A file of no changes and with this rule. */
static struct zone *zone_of(const char *rule)
{
    static const uint8_t header[44] = {'T', 'Z', 'i', 'f', '2', [39] = 1, [43] = 1};
    static const uint8_t rest[7] = {0};
    autotext struct text file = {0};
    for (int i = 0; i < 2; i++) {
        text_append_bytes(&file, header, sizeof header);
        text_append_bytes(&file, rest, sizeof rest);
    }
    text_printf(&file, "\n%s\n", rule);
    return zone_decode(file.bytes, file.length);
}

static void expect_offset(const char *rule, const char *at, int64_t hours)
{
    autozone struct zone *zone = zone_of(rule);
    ck_assert_msg(zone != NULL, "%s", rule);
    int64_t at_s = moment(at) / 1000;
    struct zone_span span = zone_span_at(zone, at_s);
    ck_assert_msg(span.offset_s == hours * 3600, "%s at %s: %lld", rule, at, (long long)span.offset_s);
    ck_assert(span.begin <= at_s && at_s < span.end);
}

START_TEST(rules_are_those_of_posix)
{
    expect_offset("UTC0", "2026-11-21T09:30:00Z", 0);
    expect_offset("<+03>-3", "2026-11-21T09:30:00Z", 3);
    expect_offset("CET-1CEST,M3.5.0,M10.5.0/3", "2027-03-28T00:59:59Z", 1);
    expect_offset("CET-1CEST,M3.5.0,M10.5.0/3", "2027-03-28T01:00:00Z", 2);
    expect_offset("CET-1CEST,M3.5.0,M10.5.0/3", "2027-10-31T00:59:59Z", 2);
    expect_offset("CET-1CEST,M3.5.0,M10.5.0/3", "2027-10-31T01:00:00Z", 1);
    expect_offset("AEST-10AEDT,M10.1.0,M4.1.0/3", "2027-01-01T00:00:00Z",
                  11);                                                      /* summer at the end of years */
    expect_offset("IST-1GMT0,M10.5.0,M3.5.0/1", "2027-01-01T00:00:00Z", 0); /* winter is the other time */
    expect_offset("A0B,J60/0,J61/0", "2028-03-01T00:00:00Z", 1);            /* J60 is never February 29 */
    expect_offset("A0B,J60/0,J61/0", "2028-02-29T12:00:00Z", 0);
    expect_offset("A0B,59/0,60/0", "2028-02-29T12:00:00Z", 1);
}
END_TEST

START_TEST(files_that_are_none_are_refused)
{
    static const char *const rules[] = {"",
                                        "UTC",
                                        "U0T",
                                        "CET-1CEST",
                                        "CET-1CEST,M13.5.0,M1.1.0",
                                        "A999",
                                        "A0B,M3.5.0",
                                        "A0B,M3.6.0,M1.1.0",
                                        "A0B,M3.5.7,M1.1.0",
                                        "<+03-3",
                                        "A0B,J366,J1",
                                        "A0B,M0.1.1,M1.1.1",
                                        "UTC0 "};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        ck_assert_msg(zone_of(rules[i]) == NULL, "%s", rules[i]);
    }
    ck_assert(zone_decode("TZif", 4) == NULL && zone_decode("", 0) == NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calendar");
    TCase *tests = tcase_create("cron");
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, each_expression_names_its_next_moments, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, a_day_that_never_comes_has_no_moment);
    tcase_add_loop_test(tests, what_is_no_expression_is_refused_by_name, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(tests, names_that_lead_elsewhere_are_no_zones);
    tcase_add_test(tests, rules_are_those_of_posix);
    tcase_add_test(tests, files_that_are_none_are_refused);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
