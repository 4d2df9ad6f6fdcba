/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/clock: how time is shown, and that it and chance move. */
#include <string.h>

#include "proto/base/clock.h"
#include "tests/unit/base/base_suites.h"

static void assert_shown(int64_t wall_ms, const char *expected)
{
    char shown[32];
    clock_format_wall(wall_ms, shown, sizeof shown);
    ck_assert_str_eq(shown, expected);
}

START_TEST(wall_time_is_shown_in_utc_with_milliseconds)
{
    assert_shown(0, "1970-01-01T00:00:00.000Z");
    assert_shown(INT64_C(1795253400125), "2026-11-21T09:30:00.125Z");
    assert_shown(INT64_C(951782400000), "2000-02-29T00:00:00.000Z");
}
END_TEST

START_TEST(wall_time_before_1970_rounds_towards_the_past)
{
    assert_shown(-1, "1969-12-31T23:59:59.999Z");
    assert_shown(-1000, "1969-12-31T23:59:59.000Z");
}
END_TEST

START_TEST(wall_time_beyond_the_calendar_is_shown_as_zero)
{
    assert_shown(INT64_MAX, "0000-00-00T00:00:00.000Z");
}
END_TEST

START_TEST(boot_time_never_goes_back)
{
    int64_t last_us = clock_boot_us();
    ck_assert_int_gt(last_us, 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now_us = clock_boot_us();
        ck_assert_int_ge(now_us, last_us);
        last_us = now_us;
    }
    int64_t apart_ms = clock_boot_ms() - last_us / 1000;
    ck_assert_int_ge(apart_ms, 0);
    ck_assert_int_lt(apart_ms, 1000);
}
END_TEST

START_TEST(random_bytes_fill_the_whole_buffer_and_differ)
{
    unsigned char a[600] = {0};
    unsigned char b[600] = {0};
    random_fill(a, sizeof a);
    random_fill(b, sizeof b);
    ck_assert_int_ne(memcmp(a, b, sizeof a), 0);
    const unsigned char zeros[16] = {0};
    ck_assert_int_ne(memcmp(a + sizeof a - 16, zeros, 16), 0);
}
END_TEST

Suite *clock_suite(void)
{
    Suite *suite = suite_create("clock");
    TCase *cases = tcase_create("clock");
    tcase_add_test(cases, wall_time_is_shown_in_utc_with_milliseconds);
    tcase_add_test(cases, wall_time_before_1970_rounds_towards_the_past);
    tcase_add_test(cases, wall_time_beyond_the_calendar_is_shown_as_zero);
    tcase_add_test(cases, boot_time_never_goes_back);
    tcase_add_test(cases, random_bytes_fill_the_whole_buffer_and_differ);
    suite_add_tcase(suite, cases);
    return suite;
}
