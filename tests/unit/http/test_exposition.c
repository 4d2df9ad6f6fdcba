/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/histogram and daemon/http/base/exposition: buckets, and the text to the letter. */
#include "daemon/http/base/exposition.h"

#include <string.h>

#include "tests/unit/http/http_suites.h"

static struct exposition out;

static void set_up(void)
{
    out = (struct exposition){0};
}

static void tear_down(void)
{
    text_finish(&out.text);
}

START_TEST(a_duration_counts_in_the_first_bucket_that_holds_it)
{
    struct histogram histogram = {0};
    histogram_add(&histogram, -1);
    histogram_add(&histogram, 100);
    histogram_add(&histogram, 101);
    histogram_add(&histogram, 5000000);
    histogram_add(&histogram, 5000001);
    ck_assert_uint_eq(histogram.counts[HISTOGRAM_BUCKET_100], 2);
    ck_assert_uint_eq(histogram.counts[HISTOGRAM_BUCKET_250], 1);
    ck_assert_uint_eq(histogram.counts[HISTOGRAM_BUCKET_5000000], 1);
    ck_assert_uint_eq(histogram.counts[HISTOGRAM_BUCKETS], 1);
    ck_assert_uint_eq(histogram.sum_us, 10000202);
}
END_TEST

START_TEST(a_metric_is_its_help_its_type_and_its_samples)
{
    exposition_metric(&out, "gpuctl_jobs", "gauge", "Jobs by state");
    exposition_sample(&out, "gpuctl_jobs", "state=\"HELD\"", 3);
    exposition_sample(&out, "gpuctl_jobs", "", -1);
    ck_assert_str_eq(out.text.bytes, "# HELP gpuctl_jobs Jobs by state\n"
                                     "# TYPE gpuctl_jobs gauge\n"
                                     "gpuctl_jobs{state=\"HELD\"} 3\n"
                                     "gpuctl_jobs -1\n");
}
END_TEST

START_TEST(values_of_labels_are_escaped)
{
    autotext struct text labels = {0};
    exposition_label(&labels, "user", "a\"b\\c\nd");
    exposition_label(&labels, "project", "{},=\xc3\xa4");
    exposition_label(&labels, "job", "");
    ck_assert_str_eq(labels.bytes, "user=\"a\\\"b\\\\c\\nd\",project=\"{},=\xc3\xa4\",job=\"\"");
}
END_TEST

START_TEST(thousandths_are_decimal_numbers)
{
    exposition_thousandths(&out, "t", "", 0);
    exposition_thousandths(&out, "t", "", 970);
    exposition_thousandths(&out, "t", "a=\"b\"", INT64_MAX);
    ck_assert_str_eq(out.text.bytes, "t 0.000\nt 0.970\nt{a=\"b\"} 9223372036854775.807\n");
}
END_TEST

START_TEST(openmetrics_names_the_family_of_a_counter_without_its_ending)
{
    out.open_metrics = true;
    exposition_metric(&out, "gpuctl_x_total", "counter", "All of it");
    exposition_sample(&out, "gpuctl_x_total", "", 3);
    exposition_metric(&out, "gpuctl_y", "gauge", "Some");
    exposition_end(&out);
    ck_assert_str_eq(out.text.bytes, "# HELP gpuctl_x All of it\n# TYPE gpuctl_x counter\ngpuctl_x_total 3\n"
                                     "# HELP gpuctl_y Some\n# TYPE gpuctl_y gauge\n# EOF\n");
}
END_TEST

START_TEST(a_histogram_adds_its_buckets_up_to_its_count)
{
    struct histogram histogram = {0};
    histogram_add(&histogram, 90);
    histogram_add(&histogram, 2000);
    histogram_add(&histogram, 6000000);
    exposition_histogram(&out, "t", "route=\"/\"", &histogram);
    ck_assert_str_eq(out.text.bytes, "t_bucket{route=\"/\",le=\"0.000100\"} 1\n"
                                     "t_bucket{route=\"/\",le=\"0.000250\"} 1\n"
                                     "t_bucket{route=\"/\",le=\"0.000500\"} 1\n"
                                     "t_bucket{route=\"/\",le=\"0.001000\"} 1\n"
                                     "t_bucket{route=\"/\",le=\"0.002500\"} 2\n"
                                     "t_bucket{route=\"/\",le=\"0.005000\"} 2\n"
                                     "t_bucket{route=\"/\",le=\"0.010000\"} 2\n"
                                     "t_bucket{route=\"/\",le=\"0.025000\"} 2\n"
                                     "t_bucket{route=\"/\",le=\"0.050000\"} 2\n"
                                     "t_bucket{route=\"/\",le=\"0.100000\"} 2\n"
                                     "t_bucket{route=\"/\",le=\"0.500000\"} 2\n"
                                     "t_bucket{route=\"/\",le=\"5.000000\"} 2\n"
                                     "t_bucket{route=\"/\",le=\"+Inf\"} 3\n"
                                     "t_sum{route=\"/\"} 6.002090\n"
                                     "t_count{route=\"/\"} 3\n");
}
END_TEST

START_TEST(a_histogram_without_labels_has_that_of_its_bound_alone)
{
    const struct histogram histogram = {0};
    exposition_histogram(&out, "t", "", &histogram);
    ck_assert(strncmp(out.text.bytes, "t_bucket{le=\"0.000100\"} 0\n", 26) == 0);
    ck_assert_ptr_nonnull(strstr(out.text.bytes, "t_sum 0.000000\nt_count 0\n"));
}
END_TEST

Suite *exposition_suite(void)
{
    Suite *suite = suite_create("exposition");
    TCase *cases = tcase_create("exposition");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_duration_counts_in_the_first_bucket_that_holds_it);
    tcase_add_test(cases, a_metric_is_its_help_its_type_and_its_samples);
    tcase_add_test(cases, a_histogram_adds_its_buckets_up_to_its_count);
    tcase_add_test(cases, a_histogram_without_labels_has_that_of_its_bound_alone);
    tcase_add_test(cases, values_of_labels_are_escaped);
    tcase_add_test(cases, thousandths_are_decimal_numbers);
    tcase_add_test(cases, openmetrics_names_the_family_of_a_counter_without_its_ending);
    suite_add_tcase(suite, cases);
    return suite;
}
