/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs of schedules are made, and which are left out, at given times. */
#include "daemon/http/schedules/schedule_due.h"

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"
#include "tests/unit/http/http_suites.h"

static int64_t moment(const char *text)
{
    int64_t ms;
    ck_assert_msg(text_to_wall_ms(text, &ms), "%s", text);
    return ms;
}

static void show(int64_t at_ms, struct text *out)
{
    char shown[32];
    clock_format_wall(at_ms, shown, sizeof shown);
    text_printf(out, " %.11s%.5s", shown + 5, shown + 16);
}

/* "run DUE NEXT" or "miss DUE NEXT". */
static void expect(const char *cron_text, enum schedule_missed missed, const char *next, const char *now,
                   const char *expected)
{
    struct err err;
    struct cron cron;
    int64_t any_ms;
    autozone struct zone *zone = NULL;
    autotext struct text seen = {0};
    ck_assert(schedule_read(cron_text, "UTC", 0, &cron, &zone, &any_ms, &err));
    struct schedule_due due = schedule_due(&cron, zone, missed, moment(next), moment(now));
    text_append(&seen, due.runs ? "run" : "miss");
    show(due.due_ms, &seen);
    show(due.next_ms, &seen);
    ck_assert_str_eq(seen.bytes, expected);
    ck_assert(due.next_ms > moment(now) && due.due_ms <= moment(now));
}

START_TEST(a_run_in_time_is_made)
{
    expect("0 3 * * *", MISSED_SKIP, "2026-11-21T03:00:00Z", "2026-11-21T03:00:00Z",
           "run 11-21T03:00:00.0 11-22T03:00:00.0");
    expect("* * * * *", MISSED_SKIP, "2026-11-21T03:00:00Z", "2026-11-21T03:00:00.250Z",
           "run 11-21T03:00:00.0 11-21T03:01:00.0");
}
END_TEST

START_TEST(a_run_that_is_a_little_late_is_made)
{
    expect("0 3 * * *", MISSED_SKIP, "2026-11-21T03:00:00Z", "2026-11-21T03:00:59.999Z",
           "run 11-21T03:00:00.0 11-22T03:00:00.0");
    expect("0 3 * * *", MISSED_SKIP, "2026-11-21T03:00:00Z", "2026-11-21T03:01:00Z",
           "miss 11-21T03:00:00.0 11-22T03:00:00.0");
}
END_TEST

START_TEST(of_runs_that_were_missed_none_is_made_but_the_one_that_is_due_now)
{
    expect("0 * * * *", MISSED_SKIP, "2026-11-21T03:00:00Z", "2026-11-21T09:30:00Z",
           "miss 11-21T03:00:00.0 11-21T10:00:00.0");
    expect("0 * * * *", MISSED_SKIP, "2026-11-21T03:00:00Z", "2026-11-21T09:00:30Z",
           "run 11-21T09:00:00.0 11-21T10:00:00.0");
}
END_TEST

START_TEST(one_run_is_made_for_all_that_were_missed)
{
    expect("0 * * * *", MISSED_LAST, "2026-11-21T03:00:00Z", "2026-11-21T09:30:00Z",
           "run 11-21T03:00:00.0 11-21T10:00:00.0");
    expect("* * * * *", MISSED_LAST, "2016-11-21T03:00:00Z", "2026-11-21T09:30:00Z",
           "run 11-21T03:00:00.0 11-21T09:31:00.0");
}
END_TEST

START_TEST(an_expression_that_never_comes_true_or_is_too_long_is_refused)
{
    struct err err = {0};
    struct cron cron;
    int64_t next_ms;
    struct zone *zone = NULL;
    ck_assert(!schedule_read("0 0 31 2,4,6 *", "UTC", 0, &cron, &zone, &next_ms, &err));
    ck_assert_str_eq(err.field, "cron");
    autotext struct text longer = {0};
    for (int i = 0; i < 200; i++) {
        text_append(&longer, "0,1,");
    }
    text_append(&longer, "2 * * * *");
    ck_assert(!schedule_read(longer.bytes, "UTC", 0, &cron, &zone, &next_ms, &err));
    ck_assert_str_eq(err.field, "cron");
    ck_assert(!schedule_read("@daily", "Nowhere", 0, &cron, &zone, &next_ms, &err));
    ck_assert_str_eq(err.field, "time_zone");
}
END_TEST

Suite *schedule_due_suite(void)
{
    Suite *suite = suite_create("schedule_due");
    TCase *tests = tcase_create("schedule_due");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, a_run_in_time_is_made);
    tcase_add_test(tests, a_run_that_is_a_little_late_is_made);
    tcase_add_test(tests, of_runs_that_were_missed_none_is_made_but_the_one_that_is_due_now);
    tcase_add_test(tests, one_run_is_made_for_all_that_were_missed);
    tcase_add_test(tests, an_expression_that_never_comes_true_or_is_too_long_is_refused);
    return suite;
}
