/* SPDX-License-Identifier: Apache-2.0 */
/* Which waiting job gets which devices. */
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

START_TEST(a_job_that_fits_is_started_in_the_step_of_its_submission)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    quiet(c);
    submit(c, "aaaa", .gpus = 2);
    expect(c, "[    0] job aaaa is submitted: 2 of any type\n"
              "[    0] job aaaa QUEUED -> PLACED on a:0,1\n"
              "[    0] attempt aaaa/1 RESERVED -> STARTED\n");
    ck_assert(!c->step.lazy);
    ck_assert_uint_eq(c->step.dirty_count, 1);
    ck_assert_str_eq(c->step.dirty_nodes[0], "a");
    ck_assert_int_eq(c->step.job.state, JOB_PLACED);
    expect_orders(c, "a", "run aaaa/1 rank 0-1 of 2 on 0,1\n");
    expect_history(c, "aaaa", "submitted placed started");
}
END_TEST

START_TEST(jobs_start_in_the_order_of_their_submission)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    quiet(c);
    submit(c, "bbbb");
    submit(c, "cccc");
    exited(c, "aaaa", "a", 0);
    expect(c, "[    0] job bbbb is submitted: 1 of any type\n"
              "[    0] job bbbb waits: 1 wanted, 0 free\n"
              "[    0] job cccc is submitted: 1 of any type\n"
              "[    0] job cccc waits behind bbbb\n"
              "[    0] member aaaa/1@a ORDERED -> RUNNING\n"
              "[    0] job aaaa PLACED -> RUNNING\n"
              "[    0] member aaaa/1@a RUNNING -> EXITED\n"
              "[    0] member aaaa/1@a EXITED -> FLUSHED\n"
              "[    0] attempt aaaa/1 STARTED -> ENDED\n"
              "[    0] job aaaa RUNNING -> SUCCEEDED\n"
              "[    0] job bbbb QUEUED -> PLACED on a:0\n"
              "[    0] attempt bbbb/1 RESERVED -> STARTED\n"
              "[    0] job cccc waits: 1 wanted, 0 free\n");
    exited(c, "bbbb", "a", 0);
    expect_job(c, "cccc", JOB_PLACED);
}
END_TEST

START_TEST(a_job_that_waits_keeps_its_nodes_from_later_jobs)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "aaaa");
    quiet(c);
    submit(c, "wide", .gpus = 4);
    submit(c, "bbbb", .gpus = 2);
    expect(c, "[    0] job wide is submitted: 4 of any type\n"
              "[    0] job wide waits: 4 wanted, 3 free\n"
              "[    0] job bbbb is submitted: 2 of any type\n"
              "[    0] job bbbb waits: 2 wanted, 3 free, kept for earlier jobs\n");
    exited(c, "aaaa", "a", 0);
    expect_job(c, "wide", JOB_PLACED);
    expect_job(c, "bbbb", JOB_QUEUED);
}
END_TEST

START_TEST(a_job_that_waits_for_one_type_does_not_hold_up_another)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .type = "A10", .gpus = 2);
    node(c, "h", .type = "H100", .gpus = 2);
    submit(c, "aaaa", .type = "A10");
    submit(c, "wait", .type = "A10", .gpus = 2);
    submit(c, "hhhh", .type = "H100");
    expect_job(c, "wait", JOB_QUEUED);
    expect_job(c, "hhhh", JOB_PLACED);
    submit(c, "anya");
    expect_job(c, "anya", JOB_PLACED);
    expect_orders(c, "h", "run hhhh/1 rank 0-0 of 1 on 0\nrun anya/1 rank 0-0 of 1 on 1\n");
}
END_TEST

START_TEST(a_job_that_waits_on_one_host_keeps_only_that_host)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "aaaa", .local = "a");
    submit(c, "wait", .local = "a", .gpus = 2);
    submit(c, "bbbb");
    submit(c, "cccc");
    expect_job(c, "wait", JOB_QUEUED);
    expect_orders(c, "b", "run bbbb/1 rank 0-0 of 1 on 0\nrun cccc/1 rank 0-0 of 1 on 1\n");
    submit(c, "dddd");
    expect_job(c, "dddd", JOB_QUEUED);
}
END_TEST

START_TEST(a_job_goes_where_the_least_is_left_over)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8);
    node(c, "b", .gpus = 2);
    node(c, "c", .gpus = 4);
    node(c, "d", .gpus = 2);
    quiet(c);
    submit(c, "one");
    submit(c, "two", .gpus = 2);
    submit(c, "tri", .gpus = 3);
    submit(c, "uno");
    expect_orders(c, "a", "");
    expect_orders(c, "b", "run one/1 rank 0-0 of 1 on 0\nrun uno/1 rank 0-0 of 1 on 1\n");
    expect_orders(c, "c", "run tri/1 rank 0-2 of 3 on 0,1,2\n");
    expect_orders(c, "d", "run two/1 rank 0-1 of 2 on 0,1\n");
}
END_TEST

START_TEST(a_gang_takes_few_nodes_in_equal_shares)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    node(c, "b", .gpus = 3);
    node(c, "c", .gpus = 3);
    submit(c, "gang", .gpus = 6);
    expect_orders(c, "a", "");
    expect_orders(c, "b", "prepare gang/1 rank 0-2 of 6 on 0,1,2 node 0 of 2\n");
    expect_orders(c, "c", "prepare gang/1 rank 3-5 of 6 on 0,1,2 node 1 of 2\n");
}
END_TEST

START_TEST(equal_shares_win_over_fewer_nodes)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    node(c, "b", .gpus = 2);
    node(c, "c", .gpus = 2);
    quiet(c);
    submit(c, "gang", .gpus = 6);
    expect(c, "[    0] job gang is submitted: 6 of any type\n"
              "[    0] job gang QUEUED -> PLACED on a:0,1 b:0,1 c:0,1\n");
}
END_TEST

START_TEST(a_gang_without_equal_shares_takes_the_largest_nodes_first)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1);
    node(c, "b", .gpus = 3);
    node(c, "c", .gpus = 2);
    submit(c, "gang", .gpus = 5);
    expect_orders(c, "b", "prepare gang/1 rank 0-2 of 5 on 0,1,2 node 0 of 2\n");
    expect_orders(c, "c", "prepare gang/1 rank 3-4 of 5 on 0,1 node 1 of 2\n");
    expect_orders(c, "a", "");
}
END_TEST

START_TEST(a_gang_is_of_one_pool_and_one_type)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .type = "A10", .gpus = 2);
    node(c, "b", .type = "A10", .gpus = 2, .pool = "other");
    node(c, "h", .type = "H100", .gpus = 3);
    ck_assert_int_eq(submit(c, "wide", .gpus = 4), ERR_CAPACITY);
    submit(c, "tri", .gpus = 3);
    expect_orders(c, "h", "run tri/1 rank 0-2 of 3 on 0,1,2\n");
}
END_TEST

START_TEST(gpu_types_are_told_apart_without_regard_to_case)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .type = "H100", .gpus = 2);
    node(c, "b", .type = "h100", .gpus = 2);
    submit(c, "gang", .type = "h100", .gpus = 4);
    expect_job(c, "gang", JOB_PLACED);
    submit(c, "wait", .type = "H100");
    quiet(c);
    submit(c, "same", .type = "h100");
    expect(c, "[    0] job same is submitted: 1 of h100\n"
              "[    0] job same waits behind wait\n");
}
END_TEST

START_TEST(node_mode_takes_as_many_gpus_and_one_rank_a_node)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "gang", .gpus = 4, .by_node = true);
    expect_orders(c, "a", "prepare gang/1 rank 0-0 of 2 on 0,1 node 0 of 2\n");
    expect_orders(c, "b", "prepare gang/1 rank 1-1 of 2 on 0,1 node 1 of 2\n");
    ck_assert_int_eq(prepared(c, "gang", "a"), ERR_NONE);
    ck_assert_int_eq(prepared(c, "gang", "b"), ERR_NONE);
    expect_orders(c, "b", "start gang/1 rank 1-1 of 2 on 0,1 node 1 of 2 master 10.0.0.1:20000\n");
    exited(c, "gang", "a", 0);
    exited(c, "gang", "b", 0);
    expect_job(c, "gang", JOB_SUCCEEDED);
}
END_TEST

START_TEST(a_gang_over_hosts_avoids_nodes_that_only_their_host_reaches)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .address = "127.0.0.1");
    node(c, "b", .address = "localhost");
    node(c, "c", .address = "::1");
    ck_assert_int_eq(submit(c, "gang", .gpus = 2), ERR_CAPACITY);
    node(c, "d");
    node(c, "e");
    submit(c, "gang", .gpus = 2);
    expect_orders(c, "d", "prepare gang/1 rank 0-0 of 2 on 0 node 0 of 2\n");
    expect_orders(c, "e", "prepare gang/1 rank 1-1 of 2 on 0 node 1 of 2\n");
}
END_TEST

START_TEST(agents_on_one_host_form_a_gang_over_loopback)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .host = "here", .address = "127.0.0.1");
    node(c, "b", .host = "there");
    node(c, "c", .host = "here", .address = "127.0.0.1");
    submit(c, "gang", .gpus = 2);
    expect_orders(c, "a", "prepare gang/1 rank 0-0 of 2 on 0 node 0 of 2\n");
    expect_orders(c, "c", "prepare gang/1 rank 1-1 of 2 on 0 node 1 of 2\n");
}
END_TEST

START_TEST(a_job_that_waits_for_a_drained_node_holds_up_nobody)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "aaaa");
    submit(c, "wide", .gpus = 4);
    submit(c, "bbbb");
    expect_job(c, "bbbb", JOB_QUEUED);
    quiet(c);
    drain(c, "b");
    expect(c, "[    0] node b READY -> DRAINING\n"
              "[    0] node b DRAINING -> DRAINED\n"
              "[    0] job bbbb QUEUED -> PLACED on a:1\n"
              "[    0] attempt bbbb/1 RESERVED -> STARTED\n");
    expect_job(c, "wide", JOB_QUEUED);
    exited(c, "aaaa", "a", 0);
    exited(c, "bbbb", "a", 0);
    resume(c, "b");
    expect_job(c, "wide", JOB_PLACED);
}
END_TEST

START_TEST(mixed_devices_of_one_node_are_given_by_type)
{
    autocluster struct cluster *c = cluster_open();
    struct device devices[] = {{.index = 0, .uuid = "u0", .type = "A10"},
                               {.index = 1, .uuid = "u1", .type = "H100"},
                               {.index = 2, .uuid = "u2", .type = "A10"}};
    struct register_message message = {.name = "m",
                                       .boot_id = "boot-1",
                                       .host_id = "m",
                                       .version = "1",
                                       .address = "10.0.0.1",
                                       .devices = devices,
                                       .device_count = 3};
    cluster_step(c, &(struct input){.kind = INPUT_REGISTER, .node_register = &message});
    submit(c, "aaaa", .type = "A10", .gpus = 2);
    submit(c, "hhhh", .type = "H100");
    expect_orders(c, "m", "run aaaa/1 rank 0-1 of 2 on 0,2\nrun hhhh/1 rank 0-0 of 1 on 1\n");
}
END_TEST

Suite *queue_suite(void)
{
    Suite *suite = suite_create("queue");
    TCase *tests = tcase_create("queue");
    tcase_add_test(tests, a_job_that_fits_is_started_in_the_step_of_its_submission);
    tcase_add_test(tests, jobs_start_in_the_order_of_their_submission);
    tcase_add_test(tests, a_job_that_waits_keeps_its_nodes_from_later_jobs);
    tcase_add_test(tests, a_job_that_waits_for_one_type_does_not_hold_up_another);
    tcase_add_test(tests, a_job_that_waits_on_one_host_keeps_only_that_host);
    tcase_add_test(tests, a_job_goes_where_the_least_is_left_over);
    tcase_add_test(tests, a_gang_takes_few_nodes_in_equal_shares);
    tcase_add_test(tests, equal_shares_win_over_fewer_nodes);
    tcase_add_test(tests, a_gang_without_equal_shares_takes_the_largest_nodes_first);
    tcase_add_test(tests, a_gang_is_of_one_pool_and_one_type);
    tcase_add_test(tests, gpu_types_are_told_apart_without_regard_to_case);
    tcase_add_test(tests, node_mode_takes_as_many_gpus_and_one_rank_a_node);
    tcase_add_test(tests, a_gang_over_hosts_avoids_nodes_that_only_their_host_reaches);
    tcase_add_test(tests, agents_on_one_host_form_a_gang_over_loopback);
    tcase_add_test(tests, a_job_that_waits_for_a_drained_node_holds_up_nobody);
    tcase_add_test(tests, mixed_devices_of_one_node_are_given_by_type);
    suite_add_tcase(suite, tests);
    return suite;
}
