/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: charts, with their round numbers and their dots. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/charts/curve.h"
#include "client/cli/charts/figures.h"
#include "client/cli/charts/scale.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/unit/cli/cli_suites.h"

/* --- scales --- */

static void assert_scale(double low, double high, const char *expected)
{
    autotext struct text seen = {0};
    struct scale scale = scale_make(low, high, 4);
    for (int i = 0; i < scale.marks; i++) {
        char label[32];
        scale_label(&scale, scale_mark(&scale, i), label);
        text_printf(&seen, "%s%s", i > 0 ? " " : "", label);
    }
    ck_assert_str_eq(seen.bytes, expected);
}

START_TEST(marks_are_round_and_hold_all_values)
{
    assert_scale(0, 1, "0.0 0.5 1.0");
    assert_scale(0.03, 2.31, "0 1 2 3");
    assert_scale(-1.2, 0.9, "-2 -1 0 1");
    assert_scale(0, 100, "0 50 100");
    assert_scale(97, 103, "96 98 100 102 104");
    assert_scale(0.0012, 0.0019, "0.0012 0.0014 0.0016 0.0018 0.0020");
    assert_scale(0, 3e9, "0 1e+09 2e+09 3e+09");
    assert_scale(1e-7, 4e-7, "1e-07 2e-07 3e-07 4e-07");
    assert_scale(123456789, 123456790, "123456789 123456789.5 123456790");
}
END_TEST

START_TEST(a_single_value_gets_room_around_it)
{
    assert_scale(5, 5, "4.5 5.0 5.5");
    assert_scale(0, 0, "-1.0 -0.5 0.0 0.5 1.0");
    assert_scale(-0.001, -0.001, "-0.00110 -0.00105 -0.00100 -0.00095 -0.00090");
}
END_TEST

START_TEST(the_most_extreme_values_still_have_a_scale)
{
    const double values[] = {-DBL_MAX, -1e300,  -1e16, -1,   -DBL_MIN, -4.9e-324, 0,
                             4.9e-324, DBL_MIN, 1,     1e16, 1e16 + 2, 1e300,     DBL_MAX};
    size_t count = sizeof values / sizeof values[0];
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j < count; j++) {
            struct scale scale = scale_make(values[i], values[j], 4);
            double place = scale_place(&scale, values[i]), end = scale_place(&scale, values[j]);
            ck_assert_msg(scale.marks >= 2 && scale.marks <= 7, "%g to %g has %d marks", values[i], values[j],
                          scale.marks);
            ck_assert_msg(place >= 0 && end <= 1 && place <= end, "%g to %g", values[i], values[j]);
        }
    }
}
END_TEST

/* --- canvas --- */

static void assert_canvas(bool braille, const char *expected)
{
    struct canvas canvas;
    autotext struct text out = {0};
    canvas_init(&canvas, 4, 2, braille);
    canvas_line(&canvas, 0, 0, canvas.width - 1, canvas.height - 1);
    canvas_line(&canvas, canvas.width - 1, 0, canvas.width - 1, 0);
    canvas_line(&canvas, 0, canvas.height - 1, 0, canvas.height - 1);
    for (size_t row = 0; row < canvas.rows; row++) {
        canvas_row(&canvas, row, &out);
        text_append(&out, "|");
    }
    canvas_finish(&canvas);
    ck_assert_str_eq(out.bytes, expected);
}

START_TEST(lines_are_dots_of_braille_or_stars)
{
    assert_canvas(true, "⠑⢄ ⠈|⡀ ⠑⢄|");
    assert_canvas(false, "** *|* **|");
}
END_TEST

/* --- curves --- */

static const struct curve_look small = {.width = 30, .rows = 6, .utf8 = true};
static const struct curve_look plain = {.width = 30, .rows = 6, .utf8 = false};

struct given {
    const double *values;
    size_t count;
    int64_t first_step; /* -1: none */
    int64_t step;
};

static void assert_curve(const struct given *given, const struct curve_look *look, const char *expected)
{
    autoseries struct series_set *set = series_set_create();
    autotext struct text out = {0};
    struct err err;
    for (size_t i = 0; i < given->count; i++) {
        struct point point = {.name = "loss",
                              .rank = 3,
                              .value = given->values[i],
                              .stepped = given->first_step >= 0,
                              .step = given->first_step + (int64_t)i * given->step};
        ck_assert_msg(series_set_add(set, &point, &err), "%s", err.text);
    }
    curve_draw(series_first(set), 1, look, &out);
    ck_assert_msg(strcmp(out.bytes, expected) == 0, "got\n%s\ninstead of\n%s", out.bytes, expected);
}

START_TEST(a_curve_has_a_title_marks_and_the_ends_of_its_axis)
{
    const double ramp[] = {0, 1, 2, 3, 4};
    assert_curve(&(struct given){ramp, 5, 10, 5}, &small,
                 "loss, rank 3: 4 at step 30, 5 \n"
                 "4 ┤                       ⣀⠤⠒⠉\n"
                 "  │                  ⢀⡠⠤⠒⠉\n"
                 "  │              ⢀⡠⠔⠊⠁\n"
                 "2 ┤         ⣀⡠⠔⠒⠉⠁\n"
                 "  │    ⣀⠤⠒⠊⠉\n"
                 "0 ┤⣀⠤⠒⠉\n"
                 "  └───────────────────────────\n"
                 "   step 10                  30\n");
    assert_curve(&(struct given){ramp, 5, 10, 5}, &plain,
                 "loss, rank 3: 4 at step 30, 5 \n"
                 "4 +                        ***\n"
                 "  |                   *****\n"
                 "  |               ****\n"
                 "2 +           ****\n"
                 "  |    *******\n"
                 "0 +****\n"
                 "  +---------------------------\n"
                 "   step 10                  30\n");
}
END_TEST

START_TEST(one_point_and_no_change_are_drawn_too)
{
    const double same[] = {0.5, 0.5};
    assert_curve(&(struct given){same, 1, 7, 1}, &plain,
                 "loss, rank 3: 0.5 at step 7, 1\n"
                 "0.55 +\n"
                 "     |\n"
                 "     |\n"
                 "0.50 +*\n"
                 "     |\n"
                 "0.45 +\n"
                 "     +------------------------\n"
                 "      step 7\n");
    assert_curve(&(struct given){same, 2, 7, 1}, &plain,
                 "loss, rank 3: 0.5 at step 8, 2\n"
                 "0.55 +\n"
                 "     |\n"
                 "     |\n"
                 "0.50 +************************\n"
                 "     |\n"
                 "0.45 +\n"
                 "     +------------------------\n"
                 "      step 7                 8\n");
}
END_TEST

START_TEST(a_curve_breaks_where_a_value_is_not_finite)
{
    const double holes[] = {1, 1, (double)NAN, 0, 0};
    const double none[] = {(double)NAN, -(double)INFINITY};
    assert_curve(&(struct given){holes, 5, 0, 1}, &plain,
                 "loss, rank 3: 0 at step 4, 5 p\n"
                 "1.0 +*******\n"
                 "    |\n"
                 "    |\n"
                 "0.5 +\n"
                 "    |\n"
                 "0.0 +                  *******\n"
                 "    +-------------------------\n"
                 "     step 0                  4\n");
    assert_curve(&(struct given){none, 2, 0, 1}, &plain,
                 "loss, rank 3: -Infinity at ste\n  no value to draw\n");
}
END_TEST

/* Adds a point of the series "x". */
static void add(struct series_set *set, double value, int64_t step)
{
    struct err err;
    ck_assert(series_set_add(set, &(struct point){.name = "x", .value = value, .stepped = true, .step = step},
                             &err));
}

static void assert_drawn(struct series_set *set, size_t ranks, const char *expected)
{
    autotext struct text out = {0};
    curve_draw(series_first(set), ranks, &plain, &out);
    ck_assert_msg(strcmp(out.bytes, expected) == 0, "got\n%s\ninstead of\n%s", out.bytes, expected);
}

START_TEST(a_curve_starts_anew_where_steps_go_back)
{
    autoseries struct series_set *set = series_set_create();
    add(set, 1, 0);
    add(set, 1, 10);
    add(set, 0, 0);
    add(set, 0, 10);
    assert_drawn(set, 4,
                 "x, rank 0 (1 of 4 ranks): 0 at\n"
                 "1.0 +*************************\n"
                 "    |\n"
                 "    |\n"
                 "0.5 +\n"
                 "    |\n"
                 "0.0 +*************************\n"
                 "    +-------------------------\n"
                 "     step 0                 10\n");
}
END_TEST

START_TEST(a_peak_is_seen_among_a_hundred_thousand_points)
{
    autoseries struct series_set *set = series_set_create();
    for (int64_t i = 0; i <= 100000; i++) {
        add(set, i == 50000 ? 4 : 0, i);
    }
    assert_drawn(set, 1,
                 "x, rank 0: 0 at step 100000, 1\n"
                 "4 +             *\n"
                 "  |             *\n"
                 "  |             *\n"
                 "2 +             *\n"
                 "  |             *\n"
                 "0 +***************************\n"
                 "  +---------------------------\n"
                 "   step 0               100000\n");
}
END_TEST

START_TEST(a_curve_without_steps_runs_over_time)
{
    autoseries struct series_set *set = series_set_create();
    struct curve_look wide = {.width = 60, .rows = 3};
    autotext struct text out = {0};
    struct err err;
    for (int64_t i = 1; i <= 2; i++) {
        ck_assert(series_set_add(set, &(struct point){.name = "x", .value = 1, .at_ms = i * 86400000}, &err));
    }
    curve_draw(series_first(set), 1, &wide, &out);
    ck_assert_ptr_nonnull(strstr(out.bytes, "x, rank 0: 1, 2 points\n"));
    ck_assert_ptr_nonnull(strstr(out.bytes, "  1970-01-0"));
    ck_assert_ptr_null(strstr(out.bytes, "step"));
}
END_TEST

/* --- a page of them --- */

/* Ranks 1 and 4 logged "a", rank 0 logged "b". */
static struct series_set *make_set(void)
{
    struct series_set *set = series_set_create();
    const struct point points[] = {
        {.name = "b", .value = 0.123456789, .stepped = true, .step = 7},
        {.name = "a", .rank = 4, .value = (double)NAN},
        {.name = "a", .rank = 1, .value = 1},
        {.name = "a", .rank = 1, .value = 3},
    };
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        ck_assert(series_set_add(set, &points[i], NULL));
    }
    series_set_sort(set);
    setenv("LC_ALL", "C", 1);
    return set;
}

START_TEST(the_table_has_a_row_for_each_name_and_rank)
{
    autoseries struct series_set *set = make_set();
    autotext struct text out = {0};
    figures_table(set, false, 0, &out);
    figures_table(set, true, 0, &out);
    ck_assert_str_eq(out.bytes,
                     "NAME  RANK  POINTS  LAST STEP  LAST      MIN       MAX       TREND\n"
                     "a     1     2       -          3         1         3         _#\n"
                     "a     4     1       -          NaN       NaN       NaN       -\n"
                     "b     0     1       7          0.123457  0.123457  0.123457  -\n"
                     "NAME  RANK  POINTS  LAST STEP  LAST         MIN          MAX          TREND\n"
                     "a     1     2       -          3            1            3            _#\n"
                     "a     4     1       -          NaN          NaN          NaN          -\n"
                     "b     0     1       7          0.123456789  0.123456789  0.123456789  -\n");
}
END_TEST

START_TEST(a_trend_takes_the_room_that_a_line_has_left)
{
    autoseries struct series_set *set = series_set_create();
    autotext struct text fits = {0};
    autotext struct text cramped = {0};
    for (int64_t i = 0; i < 40; i++) {
        add(set, (double)i, i);
    }
    setenv("LC_ALL", "C", 1);
    figures_table(set, false, 56, &fits);
    figures_table(set, false, 40, &cramped);
    ck_assert_str_eq(fits.bytes, "NAME  RANK  POINTS  LAST STEP  LAST  MIN  MAX  TREND\n"
                                 "x     0     40      39         39    0    39   _.:-==+*#\n");
    ck_assert_str_eq(cramped.bytes, "NAME  RANK  POINTS  LAST STEP  LAST  MIN\n"
                                    "x     0     40      39         39    0\n");
}
END_TEST

static size_t count_titles(const struct series_set *set, bool all_ranks, const char *first)
{
    autotext struct text out = {0};
    size_t count = 0;
    figures_charts(set, all_ranks, 0, &out);
    ck_assert_msg(strncmp(out.bytes, first, strlen(first)) == 0, "%s", out.bytes);
    for (const char *at = out.bytes; (at = strstr(at, ", rank ")) != NULL; at++) {
        count++;
    }
    return count;
}

START_TEST(the_lowest_rank_is_drawn_unless_all_are_asked_for)
{
    autoseries struct series_set *set = make_set();
    ck_assert_uint_eq(count_titles(set, false, "a, rank 1 (1 of 2 ranks): 3, 2 points\n"), 2);
    ck_assert_uint_eq(count_titles(set, true, "a, rank 1: 3, 2 points\n"), 3);
}
END_TEST

Suite *cli_curve_suite(void)
{
    Suite *suite = suite_create("cli curve");
    TCase *tests = tcase_create("curve");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, marks_are_round_and_hold_all_values);
    tcase_add_test(tests, a_single_value_gets_room_around_it);
    tcase_add_test(tests, the_most_extreme_values_still_have_a_scale);
    tcase_add_test(tests, lines_are_dots_of_braille_or_stars);
    tcase_add_test(tests, a_curve_has_a_title_marks_and_the_ends_of_its_axis);
    tcase_add_test(tests, one_point_and_no_change_are_drawn_too);
    tcase_add_test(tests, a_curve_breaks_where_a_value_is_not_finite);
    tcase_add_test(tests, a_curve_starts_anew_where_steps_go_back);
    tcase_add_test(tests, a_peak_is_seen_among_a_hundred_thousand_points);
    tcase_add_test(tests, a_curve_without_steps_runs_over_time);
    tcase_add_test(tests, the_table_has_a_row_for_each_name_and_rank);
    tcase_add_test(tests, a_trend_takes_the_room_that_a_line_has_left);
    tcase_add_test(tests, the_lowest_rank_is_drawn_unless_all_are_asked_for);
    suite_add_tcase(suite, tests);
    return suite;
}
