/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/wall: the times of RFC 3339, and only those. */
#include <inttypes.h>

#include "proto/base/clock.h"
#include "proto/base/text/text.h"
#include "tests/unit/proto/proto_suites.h"

static void assert_reads(const char *text, int64_t expected)
{
    int64_t wall_ms = -1;
    ck_assert_msg(text_to_wall_ms(text, &wall_ms), "%s", text);
    ck_assert_msg(wall_ms == expected, "%s: %" PRId64, text, wall_ms);
}

START_TEST(times_in_utc_are_read)
{
    assert_reads("1970-01-01T00:00:00Z", 0);
    assert_reads("1969-12-31T23:59:59.999Z", -1);
    assert_reads("2000-02-29T12:00:00Z", 951825600000);
    assert_reads("2026-11-21T09:30:00.125Z", 1795253400125);
    assert_reads("0000-01-01T00:00:00Z", -62167219200000);
    assert_reads("9999-12-31T23:59:59.999Z", 253402300799999);
}
END_TEST

START_TEST(an_offset_is_taken_away)
{
    assert_reads("1970-01-01T09:00:00+09:00", 0);
    assert_reads("1969-12-31T18:30:00-05:30", 0);
    assert_reads("1970-01-01T00:00:00-00:00", 0);
}
END_TEST

START_TEST(letters_may_be_small_as_the_standard_allows)
{
    assert_reads("1970-01-01t00:00:01z", 1000);
}
END_TEST

START_TEST(fractions_are_cut_to_milliseconds)
{
    assert_reads("1970-01-01T00:00:00.5Z", 500);
    assert_reads("1970-01-01T00:00:00.05Z", 50);
    assert_reads("1970-01-01T00:00:00.123999999999999999999Z", 123);
}
END_TEST

START_TEST(what_the_clock_writes_is_read_back)
{
    static const int64_t times[] = {0, 1, 1795253400125, 951782400000, 4107542399999, 1709164800000};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char text[32];
        clock_format_wall(times[i], text, sizeof text);
        assert_reads(text, times[i]);
    }
}
END_TEST

START_TEST(anything_else_is_refused_and_leaves_the_value_alone)
{
    static const char *const wrong[] = {
        "",
        "2026",
        "2026-11-21",
        "2026-11-21T09:30:00",
        "2026-11-21 09:30:00Z",
        "2026-11-21T09:30Z",
        "2026-11-21T09:30:00Z ",
        " 2026-11-21T09:30:00Z",
        "2026-11-21T09:30:00.Z",
        "2026-11-21T09:30:00,5Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T09:60:00Z",
        "2026-12-31T23:59:60Z",
        "2026-11-21T09:30:00+24:00",
        "2026-11-21T09:30:00+09:60",
        "2026-11-21T09:30:00+0900",
        "2026-11-21T09:30:00+09",
        "+026-11-21T09:30:00Z",
        "26-11-21T09:30:00Z",
        "1795253400125",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t wall_ms = 7;
        ck_assert_msg(!text_to_wall_ms(wrong[i], &wall_ms), "%s", wrong[i]);
        ck_assert_int_eq(wall_ms, 7);
    }
}
END_TEST

START_TEST(a_moment_is_a_time_or_so_much_later_than_now)
{
    int64_t wall_ms;
    ck_assert(text_to_moment_ms("1970-01-01T00:00:01Z", 5, &wall_ms));
    ck_assert_int_eq(wall_ms, 1000);
    ck_assert(text_to_moment_ms("+2h", 5, &wall_ms));
    ck_assert_int_eq(wall_ms, 2 * 3600 * 1000 + 5);
    const char *const wrong[] = {"", "+", "2h", "+-2h", "++2h", "+2x", "never", "+9223372036854775"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        wall_ms = 7;
        ck_assert_msg(!text_to_moment_ms(wrong[i], 1000, &wall_ms), "%s", wrong[i]);
        ck_assert_int_eq(wall_ms, 7);
    }
}
END_TEST

Suite *wall_suite(void)
{
    Suite *suite = suite_create("wall");
    TCase *cases = tcase_create("times");
    tcase_add_test(cases, times_in_utc_are_read);
    tcase_add_test(cases, an_offset_is_taken_away);
    tcase_add_test(cases, letters_may_be_small_as_the_standard_allows);
    tcase_add_test(cases, fractions_are_cut_to_milliseconds);
    tcase_add_test(cases, what_the_clock_writes_is_read_back);
    tcase_add_test(cases, anything_else_is_refused_and_leaves_the_value_alone);
    tcase_add_test(cases, a_moment_is_a_time_or_so_much_later_than_now);
    suite_add_tcase(suite, cases);
    return suite;
}
