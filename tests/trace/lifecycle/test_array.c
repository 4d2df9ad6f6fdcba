/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: one job that waits for many, each of which becomes a job when it is placed. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/spec/tasks.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

/* The id of a task; until eight calls later. */
static const char *task(const char *array, int64_t number)
{
    static char ids[8][ID_LENGTH + 1];
    static int next;
    char *id = ids[next++ % 8];
    task_id(array, number, id);
    return id;
}

/* "3 of 10 placed, 2 running, 1 succeeded, 0 failed, 0 canceled" */
static void expect_counts(struct cluster *c, const char *id, const char *counts)
{
    char text[160];
    const struct array_row *array = rows_array(c->rows, id);
    snprintf(text, sizeof text,
             "%lld of %lld placed, %lld running, %lld succeeded, %lld failed, %lld canceled",
             (long long)array->placed, (long long)array->tasks, (long long)array->running,
             (long long)array->succeeded, (long long)array->failed, (long long)array->canceled);
    ck_assert_str_eq(text, counts);
}

static void expect_no_job(struct cluster *c, const char *id)
{
    ck_assert_ptr_null(rows_job(c->rows, id));
}

START_TEST(tasks_are_placed_in_order_as_slots_become_free)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "many", .tasks = 4);
    expect_job(c, "many", JOB_QUEUED);
    expect_job(c, task("many", 0), JOB_PLACED);
    expect_job(c, task("many", 1), JOB_PLACED);
    expect_no_job(c, task("many", 2));
    expect_counts(c, "many", "2 of 4 placed, 2 running, 0 succeeded, 0 failed, 0 canceled");
    running(c, task("many", 1), "a");
    expect_job(c, "many", JOB_RUNNING);
    exited(c, task("many", 1), "a", 0);
    expect_job(c, task("many", 2), JOB_PLACED);
    exited(c, task("many", 0), "a", 0);
    exited(c, task("many", 2), "a", 0);
    expect_counts(c, "many", "4 of 4 placed, 1 running, 3 succeeded, 0 failed, 0 canceled");
    exited(c, task("many", 3), "a", 0);
    expect_ended(c, "many", JOB_SUCCEEDED, 0, "");
    expect_history(c, "many", "submitted running succeeded");
    expect_history(c, task("many", 3), "submitted placed started running succeeded");
}
END_TEST

START_TEST(an_array_of_some_tasks_places_these_alone)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "many", .tasks = 10, .only = "2,7-8");
    expect_job(c, task("many", 2), JOB_PLACED);
    expect_job(c, task("many", 7), JOB_PLACED);
    expect_no_job(c, task("many", 0));
    expect_counts(c, "many", "2 of 3 placed, 2 running, 0 succeeded, 0 failed, 0 canceled");
    cluster_restart(c);
    exited(c, task("many", 2), "a", 0);
    expect_job(c, task("many", 8), JOB_PLACED);
    exited(c, task("many", 7), "a", 0);
    exited(c, task("many", 8), "a", 0);
    expect_ended(c, "many", JOB_SUCCEEDED, 0, "");
}
END_TEST

START_TEST(the_trace_says_which_task_a_job_is)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    quiet(c);
    submit(c, "many", .tasks = 2);
    expect(c, "[    0] job many is submitted: 1 of any type, an array\n"
              "[    0] job nbqs2zw6nxb6xoom is task 0 of many\n"
              "[    0] job nbqs2zw6nxb6xoom QUEUED -> PLACED on a:0\n"
              "[    0] attempt nbqs2zw6nxb6xoom/1 RESERVED -> STARTED\n"
              "[    0] job many waits: 1 wanted, 0 free\n");
}
END_TEST

START_TEST(an_order_names_the_task_and_the_spec_of_its_array)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "many", .tasks = 2);
    struct node_orders *orders = core_orders(c->core, "a");
    ck_assert_uint_eq(orders->count, 2);
    ck_assert_str_eq(orders->items[1].order.job_id, task("many", 1));
    ck_assert_str_eq(orders->items[1].order.array_id, "many");
    ck_assert_int_eq(orders->items[1].order.task, 1);
    ck_assert_int_eq(orders->items[1].order.tasks, 2);
    ck_assert_int_eq(orders->items[1].spec_key, 1);
    node_orders_destroy(orders);
}
END_TEST

START_TEST(a_job_that_came_before_and_one_that_came_after_have_their_places)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1);
    submit(c, "hold");
    submit(c, "first");
    submit(c, "many", .tasks = 2);
    submit(c, "last");
    exited(c, "hold", "a", 0);
    expect_job(c, "first", JOB_PLACED);
    exited(c, "first", "a", 0);
    expect_job(c, task("many", 0), JOB_PLACED);
    exited(c, task("many", 0), "a", 0);
    expect_job(c, task("many", 1), JOB_PLACED);
    exited(c, task("many", 1), "a", 0);
    expect_job(c, "last", JOB_PLACED);
}
END_TEST

START_TEST(at_most_parallel_tasks_live_and_the_rest_is_for_others)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    submit(c, "many", .tasks = 5, .parallel = 2);
    submit(c, "other");
    expect_counts(c, "many", "2 of 5 placed, 2 running, 0 succeeded, 0 failed, 0 canceled");
    expect_job(c, "other", JOB_PLACED);
    exited(c, task("many", 0), "a", 0);
    expect_counts(c, "many", "3 of 5 placed, 2 running, 1 succeeded, 0 failed, 0 canceled");
    cluster_restart(c);
    expect_counts(c, "many", "3 of 5 placed, 2 running, 1 succeeded, 0 failed, 0 canceled");
    exited(c, task("many", 1), "a", 0);
    expect_job(c, task("many", 3), JOB_PLACED);
    expect_no_job(c, task("many", 4));
}
END_TEST

START_TEST(one_task_that_fails_fails_the_array_when_all_have_ended)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "many", .tasks = 4);
    exited(c, task("many", 1), "a", 3);
    expect_job(c, "many", JOB_RUNNING);
    ck_assert_str_eq(rows_job(c->rows, "many")->reason, "task 1: rank 0 on node a exited with 3");
    cluster_restart(c);
    exited(c, task("many", 0), "a", 0);
    exited(c, task("many", 2), "a", 9);
    expect_counts(c, "many", "4 of 4 placed, 1 running, 1 succeeded, 2 failed, 0 canceled");
    exited(c, task("many", 3), "a", 0);
    expect_ended(c, "many", JOB_FAILED, 9,
                 "2 of 4 tasks failed, first task 1: rank 0 on node a exited with 3");
    ck_assert_int_eq(rows_job(c->rows, "many")->cause, CAUSE_TASK_FAILED);
}
END_TEST

START_TEST(a_task_that_is_tried_again_waits_by_itself_before_the_others)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1);
    submit(c, "many", .tasks = 3, .parallel = 2, .retries = 1);
    submit(c, "other");
    exited(c, task("many", 0), "a", 1);
    expect_history(c, task("many", 0), "submitted placed started running requeued placed started");
    expect_no_job(c, task("many", 1));
    declined(c, task("many", 0), "a");
    expect_job(c, task("many", 0), JOB_QUEUED); /* the node is held off */
    cluster_restart(c);
    expect_job(c, task("many", 0), JOB_PLACED);
    exited(c, task("many", 0), "a", 0);
    expect_job(c, task("many", 1), JOB_PLACED);
    exited(c, task("many", 1), "a", 1);
    exited(c, task("many", 1), "a", 1);
    expect_ended(c, task("many", 1), JOB_FAILED, 1, "rank 0 on node a exited with 1");
    exited(c, task("many", 2), "a", 0);
    expect_ended(c, "many", JOB_FAILED, 1,
                 "1 of 3 tasks failed, first task 1: rank 0 on node a exited with 1");
    expect_job(c, "other", JOB_PLACED);
}
END_TEST

START_TEST(a_task_that_waits_again_counts_as_live)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "many", .tasks = 3, .parallel = 1);
    declined(c, task("many", 0), "a");
    expect_job(c, task("many", 0), JOB_QUEUED);
    expect_counts(c, "many", "1 of 3 placed, 1 running, 0 succeeded, 0 failed, 0 canceled");
    advance_beating(c, 5000, "a");
    expect_job(c, task("many", 0), JOB_PLACED);
}
END_TEST

START_TEST(a_cancel_drops_what_waits_and_stops_what_runs)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "many", .tasks = 100000);
    exited(c, task("many", 0), "a", 0);
    running(c, task("many", 1), "a");
    cancel(c, "many");
    expect_job(c, "many", JOB_RUNNING);
    expect_counts(c, "many", "3 of 100000 placed, 2 running, 1 succeeded, 0 failed, 99997 canceled");
    ck_assert_int_eq(cancel(c, "many"), ERR_NONE);
    cluster_restart(c);
    stopped(c, task("many", 1), "a");
    stopped(c, task("many", 2), "a");
    expect_ended(c, "many", JOB_CANCELED, 130, "canceled by alice");
    expect_ended(c, task("many", 2), JOB_CANCELED, 130, "canceled by alice");
    expect_counts(c, "many", "3 of 100000 placed, 0 running, 1 succeeded, 0 failed, 99999 canceled");
    expect_history(c, "many", "submitted running cancel_asked canceled");
}
END_TEST

START_TEST(an_array_that_only_waits_is_canceled_at_once)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1);
    submit(c, "hold");
    submit(c, "many", .tasks = 10);
    cancel(c, "many");
    expect_ended(c, "many", JOB_CANCELED, 130, "canceled by alice");
    expect_counts(c, "many", "0 of 10 placed, 0 running, 0 succeeded, 0 failed, 10 canceled");
}
END_TEST

START_TEST(one_task_may_be_canceled_alone)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1);
    submit(c, "many", .tasks = 2);
    cancel(c, task("many", 0));
    stopped(c, task("many", 0), "a");
    expect_job(c, task("many", 1), JOB_PLACED);
    exited(c, task("many", 1), "a", 0);
    expect_ended(c, "many", JOB_FAILED, 130, "1 of 2 tasks was canceled, first task 0: canceled by alice");
}
END_TEST

START_TEST(a_cancel_reaches_tasks_that_wait_again)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "many", .tasks = 2);
    declined(c, task("many", 0), "a");
    declined(c, task("many", 1), "a");
    cancel(c, "many");
    expect_ended(c, "many", JOB_CANCELED, 130, "canceled by alice");
    expect_ended(c, task("many", 0), JOB_CANCELED, 130, "canceled by alice");
}
END_TEST

START_TEST(nodes_get_ready_for_an_array_once)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "many", .tasks = 3, .environment = "torch");
    expect_job(c, "many", JOB_STAGING);
    staged(c, "torch", "a");
    expect_job(c, "many", JOB_QUEUED);
    expect_job(c, task("many", 1), JOB_PLACED);
    cluster_restart(c); /* which nodes are ready is asked again */
    expect_job(c, "many", JOB_STAGING);
    expect_counts(c, "many", "2 of 3 placed, 2 running, 0 succeeded, 0 failed, 0 canceled");
    exited(c, task("many", 0), "a", 0);
    staged(c, "torch", "a");
    expect_job(c, task("many", 2), JOB_PLACED);
    expect_history(c, "many", "submitted staging staged staging running");
}
END_TEST

START_TEST(an_array_that_has_sent_all_its_tasks_waits_for_no_node)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "many", .tasks = 2, .environment = "torch");
    staged(c, "torch", "a");
    expect_counts(c, "many", "2 of 2 placed, 2 running, 0 succeeded, 0 failed, 0 canceled");
    expect_job(c, "many", JOB_QUEUED);
}
END_TEST

START_TEST(an_array_whose_packages_nobody_can_have_fails_after_what_runs)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1);
    submit(c, "many", .tasks = 3, .environment = "torch");
    staged(c, "torch", "a");
    expect_job(c, task("many", 0), JOB_PLACED);
    cluster_restart(c);
    refused(c, "torch", "a", "no such package");
    expect_counts(c, "many", "1 of 3 placed, 1 running, 0 succeeded, 2 failed, 0 canceled");
    exited(c, task("many", 0), "a", 0);
    expect_ended(c, "many", JOB_FAILED, 125, "node a: no such package");
}
END_TEST

START_TEST(every_task_is_placed_once_whatever_restarts_there_are)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 3);
    submit(c, "many", .tasks = 40, .parallel = 2);
    for (int64_t i = 0; i < 40; i++) {
        cluster_restart(c);
        ck_assert_int_eq(exited(c, task("many", i), "a", 0), ERR_NONE);
    }
    expect_ended(c, "many", JOB_SUCCEEDED, 0, "");
    ck_assert_uint_eq(core_live_jobs(c->core), 0);
}
END_TEST

START_TEST(a_hundred_thousand_tasks_wait_at_the_cost_of_one_job)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a", .gpus = 1);
    submit(c, "hold");
    struct core_config config = {.incarnation = 9, .next_job_key = 1, .heartbeat_ms = HEARTBEAT_MS};
    struct core *core = core_create(&config);
    struct mallinfo2 before = mallinfo2();
    struct job_spec spec = {.gpus = 1, .remote = true, .tasks = 100000};
    const struct job_birth birth = {
        .key = 0, .id = "many", .owner = "alice", .project = "default", .task = TASK_NONE};
    const struct job_life life = {.state = JOB_QUEUED, .exit_code = -1};
    const struct array_row row = {.whole = 0, .tasks = 100000};
    core_load_job(core, &birth, &life, &spec, NULL);
    core_load_array(core, &row);
    struct mallinfo2 after = mallinfo2();
    ck_assert_uint_lt(after.uordblks - before.uordblks, 16384); /* with the tables of an empty core */
    core_destroy(core);
}
END_TEST

START_TEST(a_hundred_thousand_tasks_go_through)
{
    enum { TASKS = 100000, SLOTS = 8 };
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    core_trace(c->core, NULL);
    node(c, "a", .gpus = SLOTS);
    submit(c, "many", .tasks = TASKS);
    for (int64_t i = 0; i < TASKS; i++) {
        struct rank_exit exit = {.code = i % 1000 == 999};
        const struct report_message report = {.kind = REPORT_EXITED,
                                              .attempt_id = (uint64_t)1 << 32 | (uint64_t)(i + 1),
                                              .ranks = &exit,
                                              .rank_count = 1,
                                              .flushed = true};
        ck_assert_int_eq(cluster_report(c, NULL, "a", &report), ERR_NONE);
        ck_assert_uint_le(core_live_jobs(c->core), SLOTS + 1);
    }
    core_check(c->core);
    expect_ended(c, "many", JOB_FAILED, 1,
                 "100 of 100000 tasks failed, first task 999: rank 0 on node a exited with 1");
    expect_counts(c, "many", "100000 of 100000 placed, 0 running, 99900 succeeded, 100 failed, 0 canceled");
}
END_TEST

START_TEST(one_task_that_fails_was_and_several_were)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 3);
    submit(c, "many", .tasks = 3, .infra_retries = -1, .parallel = 2);
    fence(c, "a"); /* two of them end in one step */
    expect_counts(c, "many", "2 of 3 placed, 0 running, 0 succeeded, 2 failed, 0 canceled");
    node(c, "b", .gpus = 3);
    exited(c, task("many", 2), "b", 0);
    expect_job(c, "many", JOB_FAILED);
    ck_assert_ptr_nonnull(strstr(rows_job(c->rows, "many")->reason, "2 of 3 tasks failed, first task 0: "));
    submit(c, "some", .tasks = 3);
    cancel(c, task("some", 1));
    stopped(c, task("some", 1), "b");
    exited(c, task("some", 0), "b", 0);
    exited(c, task("some", 2), "b", 0);
    expect_job(c, "some", JOB_FAILED);
    ck_assert_ptr_nonnull(strstr(rows_job(c->rows, "some")->reason, "1 of 3 tasks was canceled"));
}
END_TEST

START_TEST(canceling_an_array_ends_tasks_that_run_that_wait_and_that_are_held)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 3);
    submit(c, "many", .tasks = 5);
    submit(c, "held", .hold = true); /* is none of its tasks */
    drain(c, "a");
    for (int64_t i = 0; i < 2; i++) {
        preempt(c, task("many", i));
        stopped(c, task("many", i), "a");
        expect_job(c, task("many", i), JOB_QUEUED);
    }
    ck_assert_int_eq(hold(c, task("many", 0)), ERR_NONE);
    ck_assert_int_eq(cancel(c, "many"), ERR_NONE);
    expect_job(c, task("many", 0), JOB_CANCELED);
    expect_job(c, task("many", 1), JOB_CANCELED);
    stopped(c, task("many", 2), "a");
    expect_job(c, task("many", 2), JOB_CANCELED);
    expect_job(c, "many", JOB_CANCELED);
    expect_job(c, "held", JOB_HELD);
}
END_TEST

/* A1: it is RUNNING, and has no attempt. */
START_TEST(an_array_has_no_gpus_to_give_back_but_its_tasks_have)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "many", .tasks = 3);
    ck_assert_int_eq(preempt(c, "many"), ERR_CONFLICT);
    running(c, task("many", 0), "a");
    expect_job(c, "many", JOB_RUNNING);
    ck_assert_int_eq(preempt(c, "many"), ERR_CONFLICT);
    ck_assert_int_eq(preempt(c, task("many", 0)), ERR_NONE);
    stopped(c, task("many", 0), "a");
    ck_assert_int_eq(preempt(c, "many"), ERR_CONFLICT);
}
END_TEST

START_TEST(tasks_that_no_node_gets_ready_for_end_one_after_the_other)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "many", .tasks = 2, .parallel = 1, .environment = "env", .infra_retries = 9);
    staged(c, "env", "a");
    expect_job(c, task("many", 0), JOB_PLACED);
    declined(c, task("many", 0), "a"); /* it is asked again */
    advance_beating(c, 5000, "a");
    unable(c, "env", "a", "no space");
    expect_job(c, task("many", 0), JOB_FAILED);
    expect_job(c, "many", JOB_FAILED);
}
END_TEST

START_TEST(several_tasks_that_were_canceled_are_counted)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 3);
    submit(c, "many", .tasks = 3);
    for (int64_t i = 0; i < 2; i++) {
        cancel(c, task("many", i));
        stopped(c, task("many", i), "a");
    }
    exited(c, task("many", 2), "a", 0);
    expect_job(c, "many", JOB_FAILED);
    ck_assert_ptr_nonnull(strstr(rows_job(c->rows, "many")->reason, "2 of 3 tasks were canceled"));
}
END_TEST

Suite *array_suite(void)
{
    Suite *suite = suite_create("array");
    TCase *tests = tcase_create("array");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, tasks_are_placed_in_order_as_slots_become_free);
    tcase_add_test(tests, an_array_of_some_tasks_places_these_alone);
    tcase_add_test(tests, the_trace_says_which_task_a_job_is);
    tcase_add_test(tests, an_order_names_the_task_and_the_spec_of_its_array);
    tcase_add_test(tests, a_job_that_came_before_and_one_that_came_after_have_their_places);
    tcase_add_test(tests, at_most_parallel_tasks_live_and_the_rest_is_for_others);
    tcase_add_test(tests, one_task_that_fails_fails_the_array_when_all_have_ended);
    tcase_add_test(tests, a_task_that_is_tried_again_waits_by_itself_before_the_others);
    tcase_add_test(tests, a_task_that_waits_again_counts_as_live);
    tcase_add_test(tests, a_cancel_drops_what_waits_and_stops_what_runs);
    tcase_add_test(tests, an_array_that_only_waits_is_canceled_at_once);
    tcase_add_test(tests, one_task_may_be_canceled_alone);
    tcase_add_test(tests, a_cancel_reaches_tasks_that_wait_again);
    tcase_add_test(tests, nodes_get_ready_for_an_array_once);
    tcase_add_test(tests, an_array_that_has_sent_all_its_tasks_waits_for_no_node);
    tcase_add_test(tests, an_array_whose_packages_nobody_can_have_fails_after_what_runs);
    tcase_add_test(tests, every_task_is_placed_once_whatever_restarts_there_are);
    tcase_add_test(tests, a_hundred_thousand_tasks_wait_at_the_cost_of_one_job);
    tcase_add_test(tests, one_task_that_fails_was_and_several_were);
    tcase_add_test(tests, canceling_an_array_ends_tasks_that_run_that_wait_and_that_are_held);
    tcase_add_test(tests, an_array_has_no_gpus_to_give_back_but_its_tasks_have);
    tcase_add_test(tests, tasks_that_no_node_gets_ready_for_end_one_after_the_other);
    tcase_add_test(tests, several_tasks_that_were_canceled_are_counted);
    suite_add_tcase(suite, tests);
    TCase *large = tcase_create("large");
    tcase_set_tags(large, "large");
    tcase_set_timeout(large, 60);
    tcase_add_test(large, a_hundred_thousand_tasks_go_through);
    suite_add_tcase(suite, large);
    return suite;
}
