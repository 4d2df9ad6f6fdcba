/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that follow others: they hold nothing until these have done what they should, and end when these never
 * will. */
#include <stdio.h>

#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

static struct cluster *open_with_one_running(void)
{
    struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    quiet(c);
    return c;
}

START_TEST(a_job_waits_for_another_to_succeed_and_holds_nothing)
{
    autocluster struct cluster *c = open_with_one_running();
    submit(c, "next", .after = "aaaa:afterok");
    ck_assert_int_eq(c->step.job.state, JOB_BLOCKED);
    submit(c, "cccc"); /* takes the GPU that is free, though it came later */
    expect(c, "[    0] job next is submitted: 1 of any type\n"
              "[    0] job next is BLOCKED\n"
              "[    0] job cccc is submitted: 1 of any type\n"
              "[    0] job cccc QUEUED -> PLACED on a:1\n"
              "[    0] attempt cccc/1 RESERVED -> STARTED\n");
    exited(c, "aaaa", "a", 0);
    expect(c, "[    0] member aaaa/1@a RUNNING -> EXITED\n"
              "[    0] member aaaa/1@a EXITED -> FLUSHED\n"
              "[    0] attempt aaaa/1 STARTED -> ENDED\n"
              "[    0] job aaaa RUNNING -> SUCCEEDED\n"
              "[    0] job next BLOCKED -> QUEUED\n"
              "[    0] job next QUEUED -> PLACED on a:0\n"
              "[    0] attempt next/1 RESERVED -> STARTED\n");
    expect_history(c, "next", "submitted blocked ready placed started");
}
END_TEST

START_TEST(a_job_waits_for_its_time_and_longer_for_another_job)
{
    autocluster struct cluster *c = open_with_one_running();
    int64_t soon_ms = c->wall_ms + c->now_ms + 60000;
    submit(c, "late", .not_before_ms = soon_ms + 60000);
    submit(c, "soon", .not_before_ms = soon_ms);
    submit(c, "next", .not_before_ms = soon_ms, .after = "aaaa:afterok");
    submit(c, "past", .not_before_ms = c->wall_ms + c->now_ms);
    expect_job(c, "past", JOB_PLACED);
    expect_job(c, "soon", JOB_BLOCKED);
    cluster_restart(c);
    advance_beating(c, 59000, "a");
    expect_job(c, "soon", JOB_BLOCKED);
    exited(c, "past", "a", 0);
    expect_job(c, "soon", JOB_BLOCKED);
    advance_beating(c, 2000, "a");
    expect_job(c, "soon", JOB_PLACED);
    expect_job(c, "next", JOB_BLOCKED);
    expect_job(c, "late", JOB_BLOCKED);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "next", JOB_PLACED);
    expect_history(c, "soon", "submitted blocked ready placed started");
}
END_TEST

START_TEST(a_job_is_held_released_and_canceled_before_its_time)
{
    autocluster struct cluster *c = open_with_one_running();
    int64_t soon_ms = c->wall_ms + c->now_ms + 60000;
    submit(c, "held", .not_before_ms = soon_ms);
    submit(c, "gone", .not_before_ms = soon_ms);
    hold(c, "held");
    cancel(c, "gone");
    expect_job(c, "gone", JOB_CANCELED);
    release(c, "held");
    expect_job(c, "held", JOB_BLOCKED);
    hold(c, "held");
    advance_beating(c, 61000, "a");
    expect_job(c, "held", JOB_HELD);
    cluster_restart(c);
    advance_beating(c, 1000, "a");
    release(c, "held");
    expect_job(c, "held", JOB_PLACED);
}
END_TEST

START_TEST(a_time_that_passes_while_the_controller_is_away_is_due_at_its_start)
{
    autocluster struct cluster *c = open_with_one_running();
    submit(c, "soon", .not_before_ms = c->wall_ms + c->now_ms + 60000);
    c->wall_ms += 120000; /* the clock goes on while nothing runs */
    cluster_restart(c);
    advance_beating(c, 1000, "a");
    expect_job(c, "soon", JOB_PLACED);
}
END_TEST

START_TEST(a_job_ends_when_the_one_before_it_did_not_succeed)
{
    autocluster struct cluster *c = open_with_one_running();
    submit(c, "next", .after = "aaaa:afterok");
    exited(c, "aaaa", "a", 3);
    expect_ended(c, "next", JOB_CANCELED, 130, "job aaaa, on which it depends, is FAILED");
    ck_assert_int_eq(rows_job(c->rows, "next")->cause, CAUSE_DEPENDENCY);
    expect_history(c, "next", "submitted blocked canceled");
    ck_assert_uint_eq(core_live_jobs(c->core), 0);
}
END_TEST

START_TEST(a_job_that_is_tried_again_keeps_its_followers_waiting)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .retries = 1);
    submit(c, "next", .after = "aaaa:afterok");
    exited(c, "aaaa", "a", 3);
    expect_job(c, "next", JOB_BLOCKED);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "next", JOB_PLACED);
}
END_TEST

START_TEST(afterany_is_content_with_any_end)
{
    autocluster struct cluster *c = open_with_one_running();
    submit(c, "next", .after = "aaaa:afterany");
    exited(c, "aaaa", "a", 3);
    expect_job(c, "next", JOB_PLACED);
}
END_TEST

START_TEST(after_waits_for_the_ranks_of_the_other_to_run)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa", .retries = 1);
    submit(c, "next", .after = "aaaa:after");
    expect_job(c, "next", JOB_BLOCKED);
    running(c, "aaaa", "a");
    ck_assert(!c->step.lazy); /* which a report that ranks run is, unless somebody waits for it */
    expect_job(c, "next", JOB_PLACED);
    failed(c, "aaaa", "a", 0, 1);
    stopped(c, "aaaa", "a");
    submit(c, "late", .after = "aaaa:after"); /* it ran once, and that counts */
    expect_history(c, "late", "submitted");
}
END_TEST

START_TEST(after_is_content_with_an_end_without_a_start)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "bbbb");
    submit(c, "next", .after = "bbbb:after");
    cancel(c, "bbbb");
    expect_job(c, "next", JOB_QUEUED);
}
END_TEST

START_TEST(all_dependencies_must_be_met)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 3);
    submit(c, "aaaa");
    submit(c, "bbbb");
    submit(c, "next", .after = "bbbb:afterany aaaa:afterok");
    exited(c, "aaaa", "a", 0);
    expect_job(c, "next", JOB_BLOCKED);
    exited(c, "bbbb", "a", 1);
    expect_job(c, "next", JOB_PLACED);
}
END_TEST

START_TEST(jobs_that_have_ended_before_count_at_once)
{
    autocluster struct cluster *c = open_with_one_running();
    submit(c, "bbbb");
    exited(c, "aaaa", "a", 0);
    exited(c, "bbbb", "a", 1);
    submit(c, "good", .after = "aaaa:afterok bbbb:afterany");
    expect_job(c, "good", JOB_PLACED);
    submit(c, "lost", .after = "aaaa:afterok bbbb:afterok");
    ck_assert_int_eq(c->step.job.state, JOB_CANCELED);
    expect_ended(c, "lost", JOB_CANCELED, 130, "job bbbb, on which it depends, is FAILED");
    expect_history(c, "lost", "submitted canceled");
}
END_TEST

START_TEST(a_job_that_ends_while_a_submission_is_read_counts_as_it_ended)
{
    autocluster struct cluster *c = open_with_one_running();
    submit(c, "bbbb");
    exited(c, "aaaa", "a", 0);
    exited(c, "bbbb", "a", 1);
    submit(c, "good", .after = "aaaa:afterok", .stale = true);
    expect_job(c, "good", JOB_PLACED);
    submit(c, "lost", .after = "bbbb:afterok", .stale = true);
    expect_job(c, "lost", JOB_CANCELED);
}
END_TEST

START_TEST(a_job_that_ended_too_long_ago_for_memory_is_asked_for_again)
{
    autocluster struct cluster *c = open_with_one_running();
    c->large = true;
    exited(c, "aaaa", "a", 0);
    submit(c, "bbbb");
    submit(c, "cccc");
    for (int i = 0; i < LIMIT_ENDED_JOBS; i++) {
        char id[17];
        snprintf(id, sizeof id, "x%d", i);
        submit(c, id);
        cancel(c, id);
    }
    ck_assert_int_eq(submit(c, "next", .after = "bbbb:after aaaa:afterok", .stale = true), ERR_UNAVAILABLE);
    expect_field(c, "after[1]");
    ck_assert_int_eq(submit(c, "next", .after = "bbbb:after aaaa:afterok"), ERR_NONE);
}
END_TEST

START_TEST(a_chain_of_any_length_ends_with_its_first_job)
{
    enum { LENGTH = 20000 };
    autocluster struct cluster *c = open_with_one_running();
    c->large = true;
    char id[17], after[32] = "aaaa:afterok";
    for (int i = 0; i < LENGTH; i++) {
        snprintf(id, sizeof id, "x%d", i);
        submit(c, id, .after = after);
        snprintf(after, sizeof after, "%s:afterok", id);
    }
    exited(c, "aaaa", "a", 1);
    ck_assert_uint_eq(core_live_jobs(c->core), 0);
    expect_ended(c, "x19999", JOB_CANCELED, 130, "job x19998, on which it depends, is CANCELED");
    core_check(c->core);
}
END_TEST

START_TEST(followers_are_looked_at_in_order_of_submission)
{
    autocluster struct cluster *c = open_with_one_running();
    submit(c, "bbbb");
    submit(c, "cccc", .after = "aaaa:afterok");
    submit(c, "dddd", .after = "aaaa:afterok");
    submit(c, "eeee", .after = "cccc:afterok");
    quiet(c);
    exited(c, "aaaa", "a", 1);
    expect(c, "[    0] member aaaa/1@a RUNNING -> EXITED\n"
              "[    0] attempt aaaa/1 STARTED -> STOPPING\n"
              "[    0] attempt aaaa/1 ends: rank 0 on node a exited with 1\n"
              "[    0] member aaaa/1@a EXITED -> FLUSHED\n"
              "[    0] attempt aaaa/1 STOPPING -> ENDED\n"
              "[    0] job aaaa RUNNING -> FAILED: rank 0 on node a exited with 1\n"
              "[    0] job cccc BLOCKED -> CANCELED: job aaaa, on which it depends, is FAILED\n"
              "[    0] job dddd BLOCKED -> CANCELED: job aaaa, on which it depends, is FAILED\n"
              "[    0] job eeee BLOCKED -> CANCELED: job cccc, on which it depends, is CANCELED\n");
}
END_TEST

START_TEST(a_blocked_job_is_canceled_and_its_edges_go)
{
    autocluster struct cluster *c = open_with_one_running();
    submit(c, "next", .after = "aaaa:afterok");
    submit(c, "last", .after = "next:afterany");
    cancel(c, "next");
    expect_ended(c, "next", JOB_CANCELED, 130, "canceled by alice");
    expect_job(c, "last", JOB_PLACED);
    exited(c, "aaaa", "a", 0);
    expect_history(c, "next", "submitted blocked cancel_asked canceled");
}
END_TEST

START_TEST(a_ready_job_has_the_place_of_its_submission)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "next", .after = "aaaa:afterok");
    submit(c, "cccc");
    exited(c, "aaaa", "a", 0);
    expect_job(c, "next", JOB_PLACED);
    expect_job(c, "cccc", JOB_QUEUED);
}
END_TEST

START_TEST(a_restart_keeps_who_follows_whom)
{
    autocluster struct cluster *c = open_with_one_running();
    submit(c, "bbbb");
    submit(c, "good", .after = "aaaa:afterok bbbb:afterany");
    submit(c, "lost", .after = "bbbb:afterok");
    submit(c, "late", .after = "lost:after");
    cluster_restart(c);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "good", JOB_BLOCKED);
    cluster_restart(c);
    exited(c, "bbbb", "a", 1);
    expect_job(c, "good", JOB_PLACED);
    expect_job(c, "lost", JOB_CANCELED);
    expect_job(c, "late", JOB_PLACED);
    cluster_restart(c);
    expect_job(c, "good", JOB_PLACED);
}
END_TEST

START_TEST(a_job_that_no_node_can_get_ready_takes_its_followers_along)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "env", .infra_retries = -1);
    submit(c, "next", .after = "aaaa:afterok");
    refused(c, "env", "a", "no such package");
    expect_job(c, "aaaa", JOB_FAILED);
    expect_job(c, "next", JOB_CANCELED);
}
END_TEST

START_TEST(of_several_that_failed_the_first_is_named)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa");
    submit(c, "bbbb");
    exited(c, "aaaa", "a", 1);
    exited(c, "bbbb", "a", 1);
    submit(c, "next", .after = "aaaa:afterok bbbb:afterok");
    expect_ended(c, "next", JOB_CANCELED, 130, "job aaaa, on which it depends, is FAILED");
}
END_TEST

Suite *dependency_suite(void)
{
    Suite *suite = suite_create("follow");
    TCase *tests = tcase_create("follow");
    tcase_add_test(tests, a_job_waits_for_another_to_succeed_and_holds_nothing);
    tcase_add_test(tests, a_job_waits_for_its_time_and_longer_for_another_job);
    tcase_add_test(tests, a_job_is_held_released_and_canceled_before_its_time);
    tcase_add_test(tests, a_time_that_passes_while_the_controller_is_away_is_due_at_its_start);
    tcase_add_test(tests, a_job_ends_when_the_one_before_it_did_not_succeed);
    tcase_add_test(tests, a_job_that_is_tried_again_keeps_its_followers_waiting);
    tcase_add_test(tests, afterany_is_content_with_any_end);
    tcase_add_test(tests, after_waits_for_the_ranks_of_the_other_to_run);
    tcase_add_test(tests, after_is_content_with_an_end_without_a_start);
    tcase_add_test(tests, all_dependencies_must_be_met);
    tcase_add_test(tests, jobs_that_have_ended_before_count_at_once);
    tcase_add_test(tests, a_job_that_ends_while_a_submission_is_read_counts_as_it_ended);
    tcase_add_test(tests, a_job_that_ended_too_long_ago_for_memory_is_asked_for_again);
    tcase_add_test(tests, a_chain_of_any_length_ends_with_its_first_job);
    tcase_add_test(tests, followers_are_looked_at_in_order_of_submission);
    tcase_add_test(tests, a_blocked_job_is_canceled_and_its_edges_go);
    tcase_add_test(tests, a_ready_job_has_the_place_of_its_submission);
    tcase_add_test(tests, a_restart_keeps_who_follows_whom);
    tcase_add_test(tests, a_job_that_no_node_can_get_ready_takes_its_followers_along);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, of_several_that_failed_the_first_is_named);
    suite_add_tcase(suite, tests);
    return suite;
}
