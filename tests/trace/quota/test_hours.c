/* SPDX-License-Identifier: Apache-2.0 */
/* What attempts held, hour by hour. That the hours add up to what all attempts held is checked after each
 * step of every test (tests/trace/harness/rows.c). */
#include <string.h>

#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

/* The rows of hours of the last step. */
static size_t hours_of(const struct cluster *c, struct hour_row *ret_rows, size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < c->step.change_count; i++) {
        if (c->step.changes[i].kind == CHANGE_HOUR_ADD) {
            ck_assert_uint_lt(count, room);
            ret_rows[count++] = c->step.changes[i].hour;
        }
    }
    return count;
}

static int64_t wall_of(const struct cluster *c)
{
    return c->wall_ms + c->now_ms;
}

/* A cluster whose wall clock is so long after the beginning of an hour. */
static struct cluster *open_at(int64_t after_ms)
{
    struct cluster *c = cluster_open();
    advance(c, HOUR_MS - wall_of(c) % HOUR_MS + after_ms);
    node(c, "a", .gpus = 2, .pool = "main", .reserved = true);
    return c;
}

static void hold_for(struct cluster *c, int64_t ms)
{
    submit(c, "job", .gpus = 2, .project = "vision", .owner = "anna");
    running(c, "job", "a");
    advance_beating(c, ms, "a");
}

START_TEST(an_attempt_within_an_hour_has_one_row_with_all_its_names)
{
    autocluster struct cluster *c = open_at(60000);
    struct hour_row row[1];
    int64_t begin_ms = wall_of(c) - wall_of(c) % HOUR_MS;
    hold_for(c, 5000);
    exited(c, "job", "a", 0);
    ck_assert_uint_eq(hours_of(c, row, 1), 1);
    ck_assert_int_eq(row[0].hour_ms, begin_ms);
    ck_assert_str_eq(row[0].project, "vision");
    ck_assert_str_eq(row[0].owner, "anna");
    ck_assert_str_eq(row[0].pool, "main");
    ck_assert_str_eq(row[0].gpu_type, "A10");
    ck_assert(row[0].reserved);
    ck_assert_int_eq(row[0].attempts, 1);
    ck_assert_int_eq(row[0].gpu_ms, 2 * 5000);
}
END_TEST

START_TEST(a_long_attempt_is_divided_at_each_hour_with_what_its_gpus_used)
{
    autocluster struct cluster *c = open_at(HOUR_MS / 2);
    struct hour_row rows[3];
    struct rank_exit exits[] = {{.rank = 0, .at_ms = 5}, {.rank = 1, .at_ms = 6}};
    hold_for(c, 2 * HOUR_MS);
    struct report_message report = {
        .kind = REPORT_EXITED,
        .ranks = exits,
        .rank_count = 2,
        .flushed = true,
        .use = {.measured_ms = 4 * HOUR_MS, .idle_ms = HOUR_MS, .energy_mj = 1000001}};
    cluster_report(c, "job", "a", &report);
    ck_assert_uint_eq(hours_of(c, rows, 3), 3);
    const int64_t held_ms[] = {HOUR_MS, 2 * HOUR_MS, HOUR_MS};
    int64_t energy_mj = 0;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(rows[i].hour_ms, rows[0].hour_ms + i * HOUR_MS);
        ck_assert_int_eq(rows[i].gpu_ms, held_ms[i]);
        ck_assert_int_eq(rows[i].measured_ms, held_ms[i]);
        ck_assert_int_eq(rows[i].idle_ms, held_ms[i] / 4);
        ck_assert_int_eq(rows[i].attempts, i == 2);
        energy_mj += rows[i].energy_mj;
    }
    ck_assert_int_eq(energy_mj, 1000001);
}
END_TEST

START_TEST(an_attempt_that_ends_as_an_hour_begins_has_nothing_in_that_hour_but_its_end)
{
    autocluster struct cluster *c = open_at(HOUR_MS - 5000);
    struct hour_row rows[2];
    hold_for(c, 5000);
    exited(c, "job", "a", 0);
    ck_assert_uint_eq(hours_of(c, rows, 2), 2);
    ck_assert_int_eq(rows[0].gpu_ms, 2 * 5000);
    ck_assert_int_eq(rows[1].gpu_ms, 0);
    ck_assert_int_eq(rows[1].attempts, 1);
}
END_TEST

START_TEST(of_a_very_long_attempt_the_first_row_has_what_came_before)
{
    autocluster struct cluster *c = open_at(0);
    static struct hour_row rows[LIMIT_HOURS_CHARGED];
    int64_t begin_ms = wall_of(c);
    submit(c, "job", .gpus = 2);
    running(c, "job", "a");
    c->wall_ms += (LIMIT_HOURS_CHARGED + 9) * HOUR_MS;
    exited(c, "job", "a", 0);
    ck_assert_uint_eq(hours_of(c, rows, LIMIT_HOURS_CHARGED), LIMIT_HOURS_CHARGED);
    ck_assert_int_eq(rows[0].hour_ms, begin_ms + 10 * HOUR_MS);
    ck_assert_int_eq(rows[0].gpu_ms, 2 * 11 * HOUR_MS);
    ck_assert_int_eq(rows[1].gpu_ms, 2 * HOUR_MS);
}
END_TEST

START_TEST(what_a_node_said_of_its_gpus_outlives_a_restart_of_the_controller)
{
    autocluster struct cluster *c = open_at(0);
    struct hour_row rows[1];
    struct rank_exit exits[] = {{.rank = 0, .at_ms = 5}, {.rank = 1, .at_ms = 6}};
    struct report_message report = {.kind = REPORT_EXITED,
                                    .ranks = exits,
                                    .rank_count = 2,
                                    .use = {.measured_ms = 4000, .idle_ms = 1000, .energy_mj = 7}};
    hold_for(c, 5000);
    cluster_report(c, "job", "a", &report); /* its log bytes are still to come */
    cluster_restart(c);
    node(c, "a", .gpus = 2, .pool = "main", .reserved = true);
    report.flushed = true;
    report.use = (struct gpu_use){0};
    cluster_report(c, "job", "a", &report);
    ck_assert_uint_eq(hours_of(c, rows, 1), 1);
    ck_assert_int_eq(rows[0].measured_ms, 4000);
    ck_assert_int_eq(rows[0].idle_ms, 1000);
    ck_assert_int_eq(rows[0].energy_mj, 7);
}
END_TEST

Suite *hours_suite(void)
{
    Suite *suite = suite_create("hours");
    TCase *tests = tcase_create("hours");
    tcase_add_test(tests, an_attempt_within_an_hour_has_one_row_with_all_its_names);
    tcase_add_test(tests, a_long_attempt_is_divided_at_each_hour_with_what_its_gpus_used);
    tcase_add_test(tests, an_attempt_that_ends_as_an_hour_begins_has_nothing_in_that_hour_but_its_end);
    tcase_add_test(tests, of_a_very_long_attempt_the_first_row_has_what_came_before);
    tcase_add_test(tests, what_a_node_said_of_its_gpus_outlives_a_restart_of_the_controller);
    suite_add_tcase(suite, tests);
    return suite;
}
