/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused at once, with which field and remedy; and where use_reserved_pool leads. */
#include <string.h>

#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

static void expect_refusal(struct cluster *c, const char *field, const char *text, const char *hint)
{
    expect_field(c, field);
    ck_assert_str_eq(c->step.err.text, text);
    ck_assert_str_eq(c->step.err.hint, hint);
    ck_assert_uint_eq(c->step.change_count, 0);
}

START_TEST(without_nodes_every_job_is_refused)
{
    autocluster struct cluster *c = cluster_open();
    ck_assert_int_eq(submit(c, "aaaa"), ERR_CAPACITY);
    expect_refusal(c, "gpus", "no node with GPUs is registered", "start gpuagent on a machine with GPUs");
    ck_assert_uint_eq(core_live_jobs(c->core), 0);
}
END_TEST

START_TEST(an_unknown_type_is_refused_with_the_nearest_name)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .type = "A10");
    node(c, "b", .type = "H100");
    ck_assert_int_eq(submit(c, "aaaa", .type = "H10O"), ERR_GPU_TYPE);
    expect_refusal(c, "gpu_type", "no registered node has the GPU type H10O",
                   "did you mean H100? Registered: A10, H100");
    ck_assert_int_eq(submit(c, "aaaa", .type = "RTX4090"), ERR_GPU_TYPE);
    expect_refusal(c, "gpu_type", "no registered node has the GPU type RTX4090", "registered: A10, H100");
}
END_TEST

START_TEST(more_gpus_than_registered_are_refused_with_the_numbers)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    ck_assert_int_eq(submit(c, "wide", .gpus = 5), ERR_CAPACITY);
    expect_refusal(
        c, "gpus", "the job needs 5 GPUs, and the most it can get is 4 of type A10 in pool default",
        "ask for fewer GPUs, for another pool or type, or for on-demand GPUs; a gang is of one pool "
        "and type");
}
END_TEST

START_TEST(lost_nodes_do_not_count_but_drained_and_silent_ones_do)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    node(c, "c", .gpus = 2);
    drain(c, "b");
    advance_beating(c, 30000, "a b");
    ck_assert_int_eq(submit(c, "six", .gpus = 6), ERR_NONE);
    fence(c, "c");
    ck_assert_int_eq(submit(c, "mor", .gpus = 6), ERR_CAPACITY);
    ck_assert_int_eq(submit(c, "for", .gpus = 4), ERR_NONE);
    expect_job(c, "six", JOB_QUEUED);
    ck_assert_int_eq(submit(c, "two", .gpus = 2), ERR_NONE);
    expect_job(c, "two", JOB_PLACED);
}
END_TEST

START_TEST(an_unknown_pool_is_refused_with_the_pools)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b", .pool = "spot");
    ck_assert_int_eq(submit(c, "aaaa", .pool = "sport"), ERR_FIELD);
    expect_refusal(c, "pool", "there is no pool sport", "pools: default, spot");
    ck_assert_int_eq(submit(c, "aaaa", .pool = "spot"), ERR_NONE);
    expect_orders(c, "b", "run aaaa/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(a_pool_and_a_contrary_use_reserved_pool_are_refused)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "r", .reserved = true);
    ck_assert_int_eq(submit(c, "aaaa", .pool = "default", .reserved = USE_RESERVED_TRUE), ERR_FIELD);
    expect_refusal(c, "use_reserved_pool", "pool default is on-demand",
                   "name a pool, or whether it is reserved; not both");
    ck_assert_int_eq(submit(c, "aaaa", .pool = "reserved", .reserved = USE_RESERVED_FALSE), ERR_FIELD);
    ck_assert_int_eq(submit(c, "aaaa", .pool = "reserved", .reserved = USE_RESERVED_TRUE), ERR_NONE);
    ck_assert_int_eq(submit(c, "bbbb", .pool = "default"), ERR_NONE);
    expect_orders(c, "a", "run bbbb/1 rank 0-0 of 1 on 0\n");
    expect_orders(c, "r", "run aaaa/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(use_reserved_pool_true_needs_a_reserved_pool)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    ck_assert_int_eq(submit(c, "aaaa", .reserved = USE_RESERVED_TRUE), ERR_CAPACITY);
    expect_refusal(c, "use_reserved_pool", "no reserved pool is registered",
                   "ask for on-demand GPUs, or for any, or start a gpuagent with --reserved");
}
END_TEST

START_TEST(use_reserved_pool_true_and_false_choose_the_pool)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "r", .gpus = 2, .reserved = true);
    submit(c, "rrrr", .reserved = USE_RESERVED_TRUE);
    submit(c, "dddd", .reserved = USE_RESERVED_FALSE);
    expect_orders(c, "r", "run rrrr/1 rank 0-0 of 1 on 0\n");
    expect_orders(c, "a", "run dddd/1 rank 0-0 of 1 on 0\n");
    ck_assert_str_eq(rows_job(c->rows, "rrrr")->pool, "reserved");
}
END_TEST

START_TEST(auto_waits_in_the_reserved_pool_when_it_has_the_type)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "r", .reserved = true);
    submit(c, "aaaa", .type = "A10");
    expect_orders(c, "r", "run aaaa/1 rank 0-0 of 1 on 0\n");
    submit(c, "bbbb", .type = "A10");
    expect_job(c, "bbbb", JOB_QUEUED);
    ck_assert_int_eq(submit(c, "wide", .type = "A10", .gpus = 2), ERR_CAPACITY);
    expect_field(c, "gpus");
    exited(c, "aaaa", "r", 0);
    expect_orders(c, "r", "run bbbb/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(auto_is_on_demand_for_types_that_no_reserved_node_has)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .type = "A10");
    node(c, "r", .type = "H100", .reserved = true);
    submit(c, "aaaa", .type = "A10");
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
    submit(c, "bbbb", .type = "A10");
    node(c, "s", .type = "A10", .reserved = true);
    expect_orders(c, "s", "run bbbb/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(a_reserved_node_that_comes_later_strands_nobody)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    submit(c, "aaaa");
    submit(c, "wide", .gpus = 4);
    node(c, "r", .reserved = true, .gpus = 2);
    exited(c, "aaaa", "a", 0);
    expect_orders(c, "a", "run wide/1 rank 0-3 of 4 on 0,1,2,3\n");
}
END_TEST

START_TEST(remote_false_runs_on_the_submitters_host)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .host = "cloud", .gpus = 2);
    node(c, "b", .host = "desk");
    submit(c, "aaaa", .local = "desk");
    expect_orders(c, "b", "run aaaa/1 rank 0-0 of 1 on 0\n");
    submit(c, "bbbb", .local = "desk");
    expect_job(c, "bbbb", JOB_QUEUED);
    ck_assert_int_eq(submit(c, "cccc", .local = "laptop"), ERR_NO_LOCAL_NODE);
    expect_refusal(c, "remote",
                   "remote=false wants a node on the submitter's host, and none is registered there",
                   "set remote=true to run on any node");
}
END_TEST

START_TEST(remote_false_needs_one_node_with_all_gpus)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .host = "desk");
    node(c, "b", .host = "desk");
    ck_assert_int_eq(submit(c, "aaaa", .local = "desk", .gpus = 2), ERR_CAPACITY);
    expect_refusal(c, "gpus",
                   "the job needs 2 GPUs, and the most it can get is 1 of type A10 in pool default",
                   "ask for fewer GPUs, or set remote=true; remote=false runs on one node of this host");
}
END_TEST

START_TEST(remote_false_and_auto_look_at_reserved_nodes_of_that_host_only)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .host = "desk");
    node(c, "r", .host = "cloud", .reserved = true);
    ck_assert_int_eq(submit(c, "aaaa", .local = "desk"), ERR_NONE);
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
}
END_TEST

Suite *admission_suite(void)
{
    Suite *suite = suite_create("admission");
    TCase *tests = tcase_create("admission");
    tcase_add_test(tests, without_nodes_every_job_is_refused);
    tcase_add_test(tests, an_unknown_type_is_refused_with_the_nearest_name);
    tcase_add_test(tests, more_gpus_than_registered_are_refused_with_the_numbers);
    tcase_add_test(tests, lost_nodes_do_not_count_but_drained_and_silent_ones_do);
    tcase_add_test(tests, an_unknown_pool_is_refused_with_the_pools);
    tcase_add_test(tests, a_pool_and_a_contrary_use_reserved_pool_are_refused);
    tcase_add_test(tests, use_reserved_pool_true_needs_a_reserved_pool);
    tcase_add_test(tests, use_reserved_pool_true_and_false_choose_the_pool);
    tcase_add_test(tests, auto_waits_in_the_reserved_pool_when_it_has_the_type);
    tcase_add_test(tests, auto_is_on_demand_for_types_that_no_reserved_node_has);
    tcase_add_test(tests, a_reserved_node_that_comes_later_strands_nobody);
    tcase_add_test(tests, remote_false_runs_on_the_submitters_host);
    tcase_add_test(tests, remote_false_needs_one_node_with_all_gpus);
    tcase_add_test(tests, remote_false_and_auto_look_at_reserved_nodes_of_that_host_only);
    suite_add_tcase(suite, tests);
    return suite;
}
