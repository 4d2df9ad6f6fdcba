/* SPDX-License-Identifier: Apache-2.0 */
/* The removal of jobs that have ended. */
#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/harness/explain_rig.h"
#include "tests/trace/suites.h"

START_TEST(a_job_that_has_ended_is_removed_and_one_that_lives_is_not)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "bbbb");
    ck_assert_int_eq(remove_job(c, "aaaa"), ERR_CONFLICT);
    ck_assert_int_eq(remove_job(c, "bbbb"), ERR_CONFLICT);
    running(c, "aaaa", "a");
    exited(c, "aaaa", "a", 0);
    ck_assert_int_eq(remove_job(c, "aaaa"), ERR_NONE);
    ck_assert_ptr_null(rows_job(c->rows, "aaaa"));
    ck_assert_int_eq(remove_job(c, "aaaa"), ERR_NONE); /* nothing is left to do */
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(several_are_removed_together_or_none)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    exited(c, "aaaa", "a", 3);
    submit(c, "bbbb");
    int64_t keys[] = {rows_key(c->rows, "aaaa"), rows_key(c->rows, "bbbb")};
    const struct input input = {.kind = INPUT_REMOVE, .remove = {.keys = keys, .count = 2}};
    ck_assert_int_eq(cluster_step(c, &input), ERR_CONFLICT);
    ck_assert_ptr_nonnull(rows_job(c->rows, "aaaa"));
    cancel(c, "bbbb");
    stopped(c, "bbbb", "a");
    ck_assert_int_eq(cluster_step(c, &input), ERR_NONE);
    ck_assert_ptr_null(rows_job(c->rows, "aaaa"));
    ck_assert_ptr_null(rows_job(c->rows, "bbbb"));
}
END_TEST

START_TEST(a_node_that_is_not_heard_for_long_goes_unless_something_of_it_lives)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    int64_t begin_ms = c->wall_ms;
    advance(c, NODE_HEARD_MS / 2);
    ck_assert_int_eq(forget_node(c, "b", c->wall_ms), ERR_CONFLICT); /* it may come back at any moment */
    advance(c, NODE_HEARD_MS);
    ck_assert_int_eq(forget_node(c, "b", begin_ms - 1), ERR_CONFLICT); /* it was heard later */
    ck_assert_int_eq(forget_node(c, "a", c->wall_ms), ERR_CONFLICT);   /* it has work */
    ck_assert_int_eq(forget_node(c, "b", begin_ms), ERR_NONE);
    ck_assert_ptr_null(rows_node(c->rows, "b"));
    ck_assert_ptr_nonnull(rows_node(c->rows, "a"));
}
END_TEST

START_TEST(a_fenced_node_goes_and_one_that_is_heard_again_has_a_new_time)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    int64_t begin_ms = c->wall_ms;
    fence(c, "b");
    ck_assert_int_eq(forget_node(c, "b", begin_ms - 1), ERR_CONFLICT);
    advance_beating(c, NODE_HEARD_MS + HOUR_MS, "a");
    ck_assert_int_ge(rows_node(c->rows, "a")->heard_ms, begin_ms + NODE_HEARD_MS);
    ck_assert_int_eq(forget_node(c, "a", begin_ms), ERR_CONFLICT);
    cluster_restart(c);
    ck_assert_int_eq(forget_node(c, "a", c->wall_ms), ERR_CONFLICT); /* the controller has only just begun */
    ck_assert_int_eq(forget_node(c, "b", begin_ms), ERR_NONE);
    ck_assert_ptr_null(rows_node(c->rows, "b"));
}
END_TEST

START_TEST(what_was_learned_from_a_removed_job_stays)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a");
    submit(c, "aaaa", .name = "train");
    running(c, "aaaa", "a");
    advance_beating(c, HOUR_MS, "a");
    exited(c, "aaaa", "a", 0);
    ck_assert_uint_gt(rows_usage_count(c->rows), 0);
    size_t usage = rows_usage_count(c->rows);
    remove_job(c, "aaaa");
    cluster_restart(c);
    node(c, "a");
    ck_assert_uint_eq(rows_usage_count(c->rows), usage);
    submit(c, "bbbb", .name = "train");
    submit(c, "wait", .name = "train");
    cluster_ask(c, ASK_EXPLAIN, "wait");
    ck_assert_ptr_nonnull(strstr(c->step.answer, "\"estimate_from\":{\"runs\":1,"));
}
END_TEST

START_TEST(a_job_that_follows_a_removed_one_goes_on_after_a_restart)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "bbbb", .after = "aaaa:afterok");
    submit(c, "cccc", .after = "aaaa:afterany bbbb:afterany");
    running(c, "aaaa", "a");
    exited(c, "aaaa", "a", 0);
    ck_assert_int_eq(remove_job(c, "aaaa"), ERR_NONE);
    cluster_restart(c);
    node(c, "a");
    running(c, "bbbb", "a");
    expect_job(c, "cccc", JOB_BLOCKED);
    exited(c, "bbbb", "a", 0);
    expect_job(c, "cccc", JOB_PLACED);
}
END_TEST

Suite *remove_suite(void)
{
    Suite *suite = suite_create("remove");
    TCase *tests = tcase_create("remove");
    tcase_add_test(tests, a_job_that_has_ended_is_removed_and_one_that_lives_is_not);
    tcase_add_test(tests, several_are_removed_together_or_none);
    tcase_add_test(tests, a_node_that_is_not_heard_for_long_goes_unless_something_of_it_lives);
    tcase_add_test(tests, a_fenced_node_goes_and_one_that_is_heard_again_has_a_new_time);
    tcase_add_test(tests, what_was_learned_from_a_removed_job_stays);
    tcase_add_test(tests, a_job_that_follows_a_removed_one_goes_on_after_a_restart);
    suite_add_tcase(suite, tests);
    return suite;
}
