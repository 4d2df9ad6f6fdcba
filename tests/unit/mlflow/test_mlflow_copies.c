/* SPDX-License-Identifier: Apache-2.0 */
/* A job's own metrics on their way into its run, and how its runs are found again. */
#include <math.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_tracking.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static char id[TRACKING_RUN_ID_BYTES];

static void begin(const char *job_id)
{
    const struct tracking_job job = {
        .run_id = id, .experiment = "night", .run_name = "sweep", .owner = "grace", .job_id = job_id};
    ck_assert(tracking_job_begin(mlflow.tracking, &job, &mlflow.error));
}

static void setup(void)
{
    mlflow_setup();
    tracking_draw_run_id(id);
    begin("abcdefgh");
}

static bool copy(int64_t stream, int64_t bytes, const struct tracking_point *points, size_t count)
{
    const struct tracking_copy copied = {
        .run_id = id, .stream = stream, .points = points, .point_count = count, .bytes = bytes};
    return tracking_job_copy(mlflow.tracking, &copied, &mlflow.error);
}

static int64_t copied(int64_t stream)
{
    int64_t bytes = -1;
    ck_assert(tracking_job_copied(mlflow.tracking, id, stream, &bytes, &mlflow.error));
    return bytes;
}

static json_t *metrics(void)
{
    return mlflow_at(mlflow_get(id), "data.metrics");
}

/* The point of copy_one. */
#define COPIED_VALUE 1.5
#define COPIED_STEP  7
#define COPIED_AT_MS 1700000000000

static void copy_one(const char *name, int64_t rank)
{
    const struct tracking_point point = {name, rank, COPIED_VALUE, COPIED_STEP, COPIED_AT_MS};
    ck_assert(copy(0, 1, &point, 1));
}

START_TEST(how_far_a_stream_is_in_the_run_is_kept_by_stream)
{
    ck_assert_int_eq(copied(0), 0);
    ck_assert(copy(0, 100, NULL, 0));
    ck_assert(copy(8, 20, NULL, 0));
    ck_assert(copy(0, 300, NULL, 0));
    mlflow_reopen();
    ck_assert_int_eq(copied(0), 300);
    ck_assert_int_eq(copied(8), 20);
    ck_assert_int_eq(copied(16), 0);
}
END_TEST

START_TEST(ranks_above_0_have_their_metrics_under_their_number)
{
    copy_one("loss", 0);
    copy_one("loss", 12);
    copy_one("system/node1/cpu", 12);
    ck_assert_uint_eq(json_array_size(metrics()), 3);
    ck_assert_ptr_nonnull(mlflow_value(metrics(), "loss"));
    ck_assert_ptr_nonnull(mlflow_value(metrics(), "loss/rank_12"));
    ck_assert_ptr_nonnull(mlflow_value(metrics(), "system/node1/cpu"));
    ck_assert_str_eq(mlflow_text(metrics(), "0.step"), "7");
    ck_assert_str_eq(mlflow_text(metrics(), "0.timestamp"), "1700000000000");
}
END_TEST

static void count_logged(const struct tracking_logged *point, void *closure)
{
    int *count = closure;
    ck_assert_str_eq(point->name, "system/node1/cpu");
    ++*count;
}

START_TEST(a_sample_that_comes_again_is_in_the_run_once_and_among_what_clients_log)
{
    struct tracking_point point = {"system/node1/cpu", 0, COPIED_VALUE, COPIED_STEP, COPIED_AT_MS};
    int count = 0;
    int64_t after = 0;
    bool more;
    for (int i = 0; i < 3; i++) {
        ck_assert(tracking_job_log(mlflow.tracking, id, &point, 1, &mlflow.error));
    }
    point.at_ms++;
    ck_assert(tracking_job_log(mlflow.tracking, id, &point, 1, &mlflow.error));
    const struct tracking_listing listing = {
        .run_id = id, .limit = 10, .visit = count_logged, .closure = &count};
    ck_assert(tracking_job_points(mlflow.tracking, &listing, &after, &more, &mlflow.error));
    ck_assert_int_eq(count, 2);
    ck_assert(!tracking_job_log(mlflow.tracking, "unknown", &point, 1, &mlflow.error));
    ck_assert_int_eq(mlflow.error.code, TRACKING_RESOURCE_DOES_NOT_EXIST);
}
END_TEST

START_TEST(a_name_that_mlflow_has_not_is_fitted)
{
    static const struct {
        const char *name, *fitted;
    } rows[] = {
        {"a b", "a b"},   {"l#ss%", "l_ss_"},
        {"a//b", "a__b"}, {"/a", "_a"},
        {"a/", "a_"},     {"a/../b", "a_.._b"},
        {".", "_."},      {"..", "_.."},
        {"\n", "_"},      {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        copy_one(rows[i].name, 0);
        ck_assert_msg(mlflow_value(metrics(), rows[i].fitted) != NULL, "%s", rows[i].name);
    }
    char longest[251];
    memset(longest, 'x', 250);
    longest[250] = '\0';
    copy_one(longest, 3);
    memcpy(longest + 243, "/rank_3", 7);
    ck_assert_ptr_nonnull(mlflow_value(metrics(), longest));
}
END_TEST

START_TEST(a_point_that_cannot_be_logged_does_not_hold_up_the_others)
{
    const struct tracking_point points[] = {
        {"late", 0, 1, 0, -5}, {"odd", 0, (double)NAN, 0, 5}, {"good", 0, 1, 0, 5}};
    ck_assert(copy(0, 50, points, 3));
    ck_assert_uint_eq(json_array_size(metrics()), 2);
    ck_assert_str_eq(json_string_value(mlflow_value(metrics(), "odd")), "NaN");
    ck_assert_int_eq(copied(0), 50);
}
END_TEST

START_TEST(without_a_run_nothing_is_copied)
{
    int64_t bytes;
    tracking_draw_run_id(id);
    ck_assert(!copy(0, 1, NULL, 0));
    ck_assert_int_eq(mlflow.error.code, TRACKING_RESOURCE_DOES_NOT_EXIST);
    ck_assert(!tracking_job_copied(mlflow.tracking, id, 0, &bytes, &mlflow.error));
    ck_assert_int_eq(mlflow.error.code, TRACKING_RESOURCE_DOES_NOT_EXIST);
}
END_TEST

START_TEST(runs_of_a_job_are_shown_with_the_page_where_they_are)
{
    struct err err;
    autotext struct text out = {0};
    autofree char *asked = xprintf("[{\"attempt\": 1, \"run_id\": \"none\"}, {\"attempt\": 2, "
                                   "\"run_id\": \"%s\"}, {\"attempt\": null, \"run_id\": \"%s\"}]",
                                   id, id);
    ck_assert(tracking_job_runs(mlflow.tracking, asked, "http://here/", &out, &mlflow.error));
    autojson json_t *answer = json_parse(out.bytes, out.length, &err);
    json_t *run = mlflow_at(answer, "runs.0");
    ck_assert_uint_eq(json_array_size(mlflow_at(answer, "runs")), 2);
    ck_assert_str_eq(mlflow_text(run, "attempt"), "2");
    ck_assert_str_eq(mlflow_text(run, "run_id"), id);
    ck_assert_str_eq(mlflow_text(run, "run_name"), "sweep");
    ck_assert_str_eq(mlflow_text(run, "experiment"), "night");
    ck_assert_str_eq(mlflow_text(run, "experiment_id"), "1");
    ck_assert_str_eq(mlflow_text(run, "status"), "RUNNING");
    ck_assert(json_is_null(mlflow_at(run, "tracking_uri")));
    autofree char *url = xprintf("http://here/#/experiments/1/runs/%s", id);
    ck_assert_str_eq(mlflow_text(run, "url"), url);
    ck_assert(json_is_null(mlflow_at(answer, "runs.1.attempt")));
}
END_TEST

START_TEST(jobs_with_a_run_that_goes_on_are_found)
{
    ck_assert(tracking_job_end(mlflow.tracking, id, TRACKING_RUN_FAILED, 5, &mlflow.error));
    mlflow_run("0", "of nobody");
    for (int i = 0; i < 2; i++) {
        tracking_draw_run_id(id);
        begin("ijklmnop");
    }
    autojson json_t *found = tracking_jobs_running(mlflow.tracking, &mlflow.error);
    ck_assert_uint_eq(json_array_size(found), 1);
    ck_assert_str_eq(mlflow_text(found, "0"), "ijklmnop");
}
END_TEST

/* --- what clients have logged --- */

static void write_down(const struct tracking_logged *point, void *closure)
{
    text_printf(closure, "%s %lld %.1f; ", point->name, (long long)point->step, point->value);
}

/* All of them, some at a time. */
static void list(const char *name, int64_t limit, struct text *out)
{
    const struct tracking_listing listing = {
        .run_id = id, .name = name, .limit = limit, .visit = write_down, .closure = out};
    int64_t after = 0;
    bool more = true;
    while (more) {
        int64_t before = after;
        ck_assert(tracking_job_points(mlflow.tracking, &listing, &after, &more, &mlflow.error));
        ck_assert(!more || after > before);
    }
}

static void log_some(void)
{
    mlflow_log(id, "b", 1, 5, 1);
    mlflow_log(id, "a", 2, 9, 2);
    mlflow_log(id, "b", 3, 6, 2);
    mlflow_log(id, "a", 4, 8, 1);
    mlflow_log(id, "a", 4, 8, 1); /* the same counts once */
    mlflow_log(id, "c", 0.5, 1, 0);
}

START_TEST(what_clients_have_logged_is_listed_in_its_order_however_many_are_asked_for_at_a_time)
{
    copy_one("loss", 0);
    log_some();
    for (int64_t limit = 1; limit < 8; limit++) {
        autotext struct text all = {0};
        list(NULL, limit, &all);
        ck_assert_str_eq(all.bytes, "b 1 1.0; a 2 2.0; b 2 3.0; a 1 4.0; c 0 0.5; ");
        autotext struct text one = {0};
        list("b", limit, &one);
        ck_assert_str_eq(one.bytes, "b 1 1.0; b 2 3.0; ");
    }
    autotext struct text none = {0};
    list("loss", 8, &none);
    list("d", 8, &none);
    ck_assert_uint_eq(none.length, 0);
}
END_TEST

START_TEST(a_listing_goes_on_behind_a_number_with_what_came_since)
{
    autotext struct text out = {0};
    const struct tracking_listing listing = {.run_id = id, .limit = 8, .visit = write_down, .closure = &out};
    int64_t after = 0;
    bool more;
    mlflow_log(id, "a", 1, 9, 1);
    ck_assert(tracking_job_points(mlflow.tracking, &listing, &after, &more, &mlflow.error));
    ck_assert_int_eq(after, 1);
    text_clear(&out);
    mlflow_log(id, "a", 2, 3, 0); /* of an earlier time and step */
    mlflow_run("0", "another");
    ck_assert(tracking_job_points(mlflow.tracking, &listing, &after, &more, &mlflow.error));
    ck_assert_str_eq(out.bytes, "a 0 2.0; ");
    ck_assert_int_eq(after, 2);
    ck_assert(!more);
}
END_TEST

START_TEST(a_point_of_the_jobs_own_is_not_listed_whoever_logged_it_first)
{
    autotext struct text all = {0};
    mlflow_log(id, "loss", 9, 10, 8);
    mlflow_log(id, "loss", COPIED_VALUE, COPIED_AT_MS, COPIED_STEP);
    copy_one("loss", 0);
    copy_one("x", 0);
    mlflow_log(id, "x", COPIED_VALUE, COPIED_AT_MS, COPIED_STEP);
    list(NULL, 8, &all);
    ck_assert_str_eq(all.bytes, "loss 8 9.0; ");
}
END_TEST

/* As many points as a batch may have. */
static void log_many(const char *name, int64_t first_step)
{
    json_t *points = json_array();
    for (int64_t i = 0; i < LIMIT_TRACKING_METRICS; i++) {
        json_array_append_new(points,
                              json_pack("{s:s, s:f, s:I, s:I}", "key", name, "value", 0.5, "timestamp",
                                        (json_int_t)1, "step", (json_int_t)(first_step + i)));
    }
    mlflow_ask("POST runs/log-batch", json_pack("{s:s, s:o}", "run_id", id, "metrics", points));
}

START_TEST(a_listing_that_looks_for_what_is_rare_stops_and_goes_on)
{
    autotext struct text out = {0};
    const struct tracking_listing listing = {
        .run_id = id, .name = "rare", .limit = 8, .visit = write_down, .closure = &out};
    int64_t after = 0;
    bool more;
    for (int i = 0; i < LIMIT_TRACKING_SCAN_ROWS; i += LIMIT_TRACKING_METRICS) {
        log_many("often", i);
    }
    mlflow_log(id, "rare", 1, 1, 1);
    ck_assert(tracking_job_points(mlflow.tracking, &listing, &after, &more, &mlflow.error));
    ck_assert_int_eq(after, LIMIT_TRACKING_SCAN_ROWS);
    ck_assert(more);
    ck_assert_uint_eq(out.length, 0);
    ck_assert(tracking_job_points(mlflow.tracking, &listing, &after, &more, &mlflow.error));
    ck_assert_str_eq(out.bytes, "rare 1 1.0; ");
    ck_assert(!more);
}
END_TEST

START_TEST(of_a_run_that_is_not_there_nothing_is_listed)
{
    const struct tracking_listing listing = {.run_id = "none", .limit = 1, .visit = write_down};
    int64_t after = 0;
    bool more;
    ck_assert(!tracking_job_points(mlflow.tracking, &listing, &after, &more, &mlflow.error));
    ck_assert_int_eq(mlflow.error.code, TRACKING_RESOURCE_DOES_NOT_EXIST);
}
END_TEST

START_TEST(what_a_run_of_an_earlier_version_has_is_not_listed_and_what_comes_is)
{
    autotext struct text all = {0};
    mlflow_log(id, "x", 1, 1, 1);
    tracking_close(give(mlflow.tracking));
    mlflow_meddle("ALTER TABLE runs DROP COLUMN owner; ALTER TABLE runs DROP COLUMN project; "
                  "ALTER TABLE models DROP COLUMN owner; ALTER TABLE models DROP COLUMN project; "
                  "DROP TABLE removals; DROP INDEX models_source; DROP INDEX model_versions_logged; "
                  "DROP INDEX points_logged; ALTER TABLE points DROP COLUMN number; "
                  "ALTER TABLE points DROP COLUMN run; PRAGMA user_version = 3");
    mlflow_reopen();
    mlflow_log(id, "x", 2, 2, 2);
    list(NULL, 8, &all);
    ck_assert_str_eq(all.bytes, "x 2 2.0; ");
    ck_assert_uint_eq(json_array_size(metrics()), 1);
}
END_TEST

Suite *mlflow_copies_suite(void)
{
    Suite *suite = suite_create("mlflow-copies");
    TCase *tests = tcase_create("copies");
    tcase_add_checked_fixture(tests, setup, mlflow_teardown);
    tcase_add_test(tests,
                   what_clients_have_logged_is_listed_in_its_order_however_many_are_asked_for_at_a_time);
    tcase_add_test(tests, a_listing_goes_on_behind_a_number_with_what_came_since);
    tcase_add_test(tests, a_point_of_the_jobs_own_is_not_listed_whoever_logged_it_first);
    tcase_add_test(tests, a_listing_that_looks_for_what_is_rare_stops_and_goes_on);
    tcase_add_test(tests, of_a_run_that_is_not_there_nothing_is_listed);
    tcase_add_test(tests, what_a_run_of_an_earlier_version_has_is_not_listed_and_what_comes_is);
    tcase_add_test(tests, how_far_a_stream_is_in_the_run_is_kept_by_stream);
    tcase_add_test(tests, ranks_above_0_have_their_metrics_under_their_number);
    tcase_add_test(tests, a_sample_that_comes_again_is_in_the_run_once_and_among_what_clients_log);
    tcase_add_test(tests, a_name_that_mlflow_has_not_is_fitted);
    tcase_add_test(tests, a_point_that_cannot_be_logged_does_not_hold_up_the_others);
    tcase_add_test(tests, without_a_run_nothing_is_copied);
    tcase_add_test(tests, runs_of_a_job_are_shown_with_the_page_where_they_are);
    tcase_add_test(tests, jobs_with_a_run_that_goes_on_are_found);
    suite_add_tcase(suite, tests);
    return suite;
}
