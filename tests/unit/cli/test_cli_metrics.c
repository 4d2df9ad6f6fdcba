/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: logged values, their grouping, their thinning, and the small pictures of them. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/charts/point.h"
#include "client/cli/show/print.h"
#include "client/cli/charts/series.h"
#include "client/cli/charts/figures.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/cli/cli_suites.h"

/* --- points --- */

static json_t *parse(const char *text)
{
    struct err err;
    json_t *json = json_parse(text, strlen(text), &err);
    ck_assert_msg(json != NULL, "%s", err.text);
    return json;
}

static void assert_value(const char *text, double expected)
{
    autofree char *whole = xprintf("{\"rank\":1,\"name\":\"x\",\"value\":%s}", text);
    autojson json_t *json = parse(whole);
    struct point point;
    struct err err;
    ck_assert_msg(point_read(json, &point, &err), "%s", err.text);
    ck_assert(point.value == expected || (isnan(point.value) && isnan(expected)));
}

START_TEST(every_spelling_of_a_value_is_read)
{
    assert_value("0.25", 0.25);
    assert_value("-3", -3);
    assert_value("\"NaN\"", (double)NAN);
    assert_value("\"Infinity\"", (double)INFINITY);
    assert_value("\"-Infinity\"", -(double)INFINITY);
}
END_TEST

START_TEST(a_point_keeps_its_step_and_its_time)
{
    autojson json_t *json =
        parse("{\"rank\":3,\"name\":\"loss\",\"value\":1,\"step\":0,\"time\":\"1970-01-01T00:00:01.500Z\"}");
    autojson json_t *bare = parse("{\"rank\":0,\"name\":\"loss\",\"value\":1,\"step\":null}");
    struct point point;
    ck_assert(point_read(json, &point, NULL));
    ck_assert_str_eq(point.name, "loss");
    ck_assert_int_eq(point.rank, 3);
    ck_assert(point.stepped && point.step == 0 && point.at_ms == 1500);
    ck_assert(point_read(bare, &point, NULL));
    ck_assert(!point.stepped && point.at_ms == 0);
}
END_TEST

static void assert_refused(const char *text, const char *field)
{
    autojson json_t *json = parse(text);
    struct point point;
    struct err err = {0};
    ck_assert(!point_read(json, &point, &err));
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_str_eq(err.field, field);
}

START_TEST(what_is_no_point_is_refused_by_its_member)
{
    assert_refused("{\"rank\":0,\"name\":\"x\",\"value\":\"nan\"}", "value");
    assert_refused("{\"rank\":0,\"name\":\"x\"}", "value");
    assert_refused("{\"rank\":0,\"value\":1}", "name");
    assert_refused("{\"name\":\"x\",\"value\":1}", "rank");
    assert_refused("{\"rank\":0,\"name\":\"x\",\"value\":1,\"step\":0.5}", "step");
    assert_refused("{\"rank\":0,\"name\":\"x\",\"value\":1,\"time\":\"noon\"}", "time");
}
END_TEST

START_TEST(points_that_come_read_as_lines)
{
    autotext struct text out = {0};
    struct err err;
    autojson json_t *whole = parse("{\"rank\":0,\"fraction\":0.5,\"text\":\"epoch\\n3\"}");
    autojson json_t *bare = parse("{\"rank\":1,\"fraction\":null,\"text\":null}");
    autojson json_t *wrong = parse("{\"fraction\":1}");
    point_line(&(struct point){.name = "a\033[2J", .rank = 2, .value = 0.1, .stepped = true, .step = -4},
               &out);
    point_line(&(struct point){.name = "loss", .value = (double)NAN}, &out);
    ck_assert(point_progress_line(whole, &out, &err));
    ck_assert(point_progress_line(bare, &out, &err));
    ck_assert(!point_progress_line(wrong, &out, &err));
    ck_assert_str_eq(out.bytes, "-  a?[2J         rank 2  step -4  0.1\n"
                                "-  loss          rank 0  NaN\n"
                                "-  progress      rank 0  50%  epoch 3\n"
                                "-  progress      rank 1\n");
}
END_TEST

/* --- series --- */

static void add(struct series_set *set, const char *name, int64_t rank, double value, int64_t step)
{
    struct err err;
    struct point point = {.name = name, .rank = rank, .value = value, .stepped = step >= 0, .step = step};
    ck_assert_msg(series_set_add(set, &point, &err), "%s", err.text);
}

/* One series of these values, with steps from 0 on. */
static struct series_set *series_of(const double *values, size_t count)
{
    struct series_set *set = series_set_create();
    for (size_t i = 0; i < count; i++) {
        add(set, "x", 0, values[i], (int64_t)i);
    }
    return set;
}

START_TEST(points_are_grouped_by_name_and_rank)
{
    autoseries struct series_set *set = series_set_create();
    autotext struct text seen = {0};
    add(set, "loss", 10, 1, 0);
    add(set, "loss", 2, 3, 0);
    add(set, "acc", 2, 0.5, -1);
    add(set, "loss", 10, 0.25, 7);
    add(set, "10 loss", 0, 9, 0);
    series_set_sort(set);
    for (const struct series *series = series_first(set); series != NULL; series = series_next(series)) {
        text_printf(&seen, "%s %lld: %lld, %g in %g..%g%s|", series->name, (long long)series->rank,
                    (long long)series->points, series->last, series->min, series->max,
                    series->stepped ? "" : " no steps");
    }
    ck_assert_str_eq(seen.bytes, "10 loss 0: 1, 9 in 9..9|acc 2: 1, 0.5 in 0.5..0.5 no steps|"
                                 "loss 2: 1, 3 in 3..3|loss 10: 2, 0.25 in 0.25..1|");
}
END_TEST

START_TEST(a_series_with_one_point_without_a_step_has_none)
{
    autoseries struct series_set *set = series_set_create();
    add(set, "x", 0, 1, 5);
    add(set, "x", 0, 1, -1);
    add(set, "x", 0, 1, 6);
    ck_assert(!series_first(set)->stepped);
    ck_assert(series_first(set)->last_stepped);
    ck_assert_int_eq(series_first(set)->last_step, 6);
}
END_TEST

START_TEST(figures_stay_exact_when_points_are_thinned)
{
    autoseries struct series_set *set = series_set_create();
    const int64_t count = 1000003;
    for (int64_t i = 0; i < count; i++) {
        add(set, "x", 0, i == 777777 ? -5e9 : (double)i, i);
    }
    const struct series *series = series_first(set);
    int64_t held = 0;
    double sum = 0, lowest = 0;
    for (size_t i = 0; i < series->bucket_count; i++) {
        const struct bucket *bucket = &series->buckets[i];
        bool last = i + 1 == series->bucket_count;
        ck_assert_msg(last || bucket->count == series->stride, "bucket %zu holds %lld", i,
                      (long long)bucket->count);
        ck_assert_double_eq(bucket->step, (double)held);
        held += bucket->count;
        sum += bucket->mean * (double)bucket->count;
        lowest = fmin(lowest, bucket->low);
    }
    ck_assert_int_eq(series->points, count);
    ck_assert_int_eq(held, count);
    ck_assert_uint_ge(series->bucket_count, SERIES_BUCKETS / 2);
    ck_assert_uint_le(series->bucket_count, SERIES_BUCKETS);
    ck_assert_double_eq(series->min, -5e9);
    ck_assert_double_eq(lowest, -5e9);
    ck_assert_double_eq(series->max, (double)(count - 1));
    ck_assert_double_eq(series->steps.to, (double)(count - 1));
    double expected = (double)count * (double)(count - 1) / 2 - 777777 - 5e9;
    ck_assert_double_lt(fabs(sum / expected - 1), 1e-9);
}
END_TEST

START_TEST(values_that_are_not_finite_count_and_leave_gaps)
{
    const double values[] = {(double)NAN, 2, (double)INFINITY, -1, (double)NAN};
    autoseries struct series_set *set = series_of(values, 5);
    const struct series *series = series_first(set);
    ck_assert_int_eq(series->points, 5);
    ck_assert(isnan(series->last));
    ck_assert_double_eq(series->min, -1);
    ck_assert(isinf(series->max));
    ck_assert_int_eq(series->buckets[0].count, 0);
    ck_assert_int_eq(series->buckets[1].count, 1);
    ck_assert_int_eq(series->buckets[2].count, 0);
    ck_assert_double_eq(series->steps.from, 1);
    ck_assert_double_eq(series->steps.to, 3);
}
END_TEST

START_TEST(the_largest_numbers_do_not_overflow_a_mean)
{
    autoseries struct series_set *set = series_set_create();
    for (int64_t i = 0; i < 4 * SERIES_BUCKETS; i++) {
        add(set, "x", 0, i % 2 == 0 ? DBL_MAX : -DBL_MAX, i);
    }
    for (size_t i = 0; i < series_first(set)->bucket_count; i++) {
        ck_assert(isfinite(series_first(set)->buckets[i].mean));
    }
}
END_TEST

START_TEST(too_many_series_are_refused_with_a_remedy)
{
    autoseries struct series_set *set = series_set_create();
    struct err err;
    for (int64_t rank = 0; rank < SERIES_MOST; rank++) {
        add(set, "x", rank, 1, 0);
    }
    ck_assert(!series_set_add(set, &(struct point){.name = "y"}, &err));
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(err.hint, "--name"));
    add(set, "x", 3, 2, 1);
}
END_TEST

/* --- sparks --- */

static void assert_spark(const double *values, size_t count, size_t most, bool utf8, const char *expected)
{
    autoseries struct series_set *set = series_of(values, count);
    autotext struct text out = {0};
    spark_draw(series_first(set), most, utf8, &out);
    ck_assert_str_eq(out.bytes != NULL ? out.bytes : "", expected);
}

START_TEST(a_spark_has_a_cell_for_each_of_few_points)
{
    const double ramp[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const double twice[] = {-1e308, 1e308};
    assert_spark(ramp, 8, SPARK_CELLS, true, "▁▂▃▄▅▆▇█");
    assert_spark(ramp, 8, SPARK_CELLS, false, "_.:-=+*#");
    assert_spark(twice, 2, SPARK_CELLS, true, "▁█");
}
END_TEST

START_TEST(a_spark_of_what_does_not_change_is_half_high)
{
    const double same[] = {0.001, 0.001, 0.001};
    assert_spark(same, 3, SPARK_CELLS, true, "▄▄▄");
    assert_spark(same, 1, SPARK_CELLS, true, "▄");
    assert_spark(same, 1, SPARK_CELLS, false, "-");
}
END_TEST

START_TEST(a_spark_has_gaps_where_no_value_is_finite)
{
    const double holes[] = {0, (double)NAN, 1, (double)INFINITY, 0.5};
    const double none[] = {(double)NAN, (double)INFINITY};
    assert_spark(holes, 5, SPARK_CELLS, true, "▁ █ ▅");
    assert_spark(none, 2, SPARK_CELLS, true, "");
}
END_TEST

START_TEST(a_spark_averages_what_it_has_no_room_for)
{
    double ramp[48];
    for (size_t i = 0; i < 48; i++) {
        ramp[i] = i < 24 ? (double)(i % 2) : 8.5; /* pairs of mean 0.5, then 8.5 */
    }
    assert_spark(ramp, 48, SPARK_CELLS, true, "▁▁▁▁▁▁▁▁▁▁▁▁████████████");
    assert_spark(ramp, 48, 4, true, "▁▁██");
    assert_spark(ramp, 48, 0, true, "");
}
END_TEST

/* --- what print.h lends --- */

static void assert_number(double value, int digits, const char *expected)
{
    char out[32];
    print_number(value, digits, out);
    ck_assert_str_eq(out, expected);
}

START_TEST(numbers_are_short_or_exact_as_was_asked)
{
    assert_number(0.1, 6, "0.1");
    assert_number(0.1, 17, "0.1");
    assert_number(1.0 / 3, 6, "0.333333");
    assert_number(1.0 / 3, 17, "0.3333333333333333");
    assert_number(2400000000.0, 6, "2400000000");
    assert_number(1e300, 6, "1e+300");
    assert_number(-0.5, 6, "-0.5");
    assert_number((double)NAN, 6, "NaN");
    assert_number(-(double)INFINITY, 6, "-Infinity");
}
END_TEST

static void assert_bytes(int64_t bytes, const char *expected)
{
    char out[32];
    print_bytes(bytes, out);
    ck_assert_str_eq(out, expected);
}

START_TEST(sizes_have_units)
{
    assert_bytes(0, "0 B");
    assert_bytes(1023, "1023 B");
    assert_bytes(1024, "1.0 KiB");
    assert_bytes(1024 * 1024 - 1, "1.0 MiB");
    assert_bytes(3000000, "2.9 MiB");
    assert_bytes(INT64_MAX, "8388608.0 TiB");
}
END_TEST

static void assert_utf8(const char *all, const char *ctype, const char *lang, bool expected)
{
    const char *values[] = {all, ctype, lang}, *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(values[i] != NULL ? setenv(names[i], values[i], 1) : unsetenv(names[i]), 0);
    }
    ck_assert_int_eq(print_utf8(), expected);
}

START_TEST(the_first_locale_that_is_set_decides_about_utf8)
{
    assert_utf8(NULL, NULL, NULL, false);
    assert_utf8(NULL, NULL, "en_US.UTF-8", true);
    assert_utf8("", "", "de_DE.utf8", true);
    assert_utf8("C", "en_US.UTF-8", "en_US.UTF-8", false);
    assert_utf8(NULL, "C.UTF-8", "C", true);
}
END_TEST

Suite *cli_metrics_suite(void)
{
    Suite *suite = suite_create("cli metrics");
    TCase *tests = tcase_create("metrics");
    tcase_set_timeout(tests, 60); /* a million points under a sanitizer */
    tcase_add_test(tests, every_spelling_of_a_value_is_read);
    tcase_add_test(tests, a_point_keeps_its_step_and_its_time);
    tcase_add_test(tests, what_is_no_point_is_refused_by_its_member);
    tcase_add_test(tests, points_that_come_read_as_lines);
    tcase_add_test(tests, points_are_grouped_by_name_and_rank);
    tcase_add_test(tests, a_series_with_one_point_without_a_step_has_none);
    tcase_add_test(tests, figures_stay_exact_when_points_are_thinned);
    tcase_add_test(tests, values_that_are_not_finite_count_and_leave_gaps);
    tcase_add_test(tests, the_largest_numbers_do_not_overflow_a_mean);
    tcase_add_test(tests, too_many_series_are_refused_with_a_remedy);
    tcase_add_test(tests, a_spark_has_a_cell_for_each_of_few_points);
    tcase_add_test(tests, a_spark_of_what_does_not_change_is_half_high);
    tcase_add_test(tests, a_spark_has_gaps_where_no_value_is_finite);
    tcase_add_test(tests, a_spark_averages_what_it_has_no_room_for);
    tcase_add_test(tests, numbers_are_short_or_exact_as_was_asked);
    tcase_add_test(tests, sizes_have_units);
    tcase_add_test(tests, the_first_locale_that_is_set_decides_about_utf8);
    suite_add_tcase(suite, tests);
    return suite;
}
