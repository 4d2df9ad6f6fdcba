/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs and memory beside GPUs, and jobs that have no GPU. */
#include "daemon/core/model/state.h"
#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/harness/explain_rig.h"
#include "tests/trace/suites.h"

static void expect_held(struct cluster *c, const char *name, int64_t millicpus, int64_t memory_gib)
{
    const struct node *node = node_find(c->core, name);
    ck_assert_int_eq(node->held.millicpus, millicpus);
    ck_assert_int_eq(node->held.memory_bytes, memory_gib * GIB);
}

START_TEST(a_gpu_comes_with_its_part_of_the_node)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8, .cpus = 64, .memory_gib = 512);
    submit(c, "aaaa", .gpus = 2);
    expect_held(c, "a", 16000, 128);
    submit(c, "bbbb", .gpus = 6);
    expect_job(c, "bbbb", JOB_PLACED);
    expect_held(c, "a", 64000, 512);
    exited(c, "aaaa", "a", 0);
    expect_held(c, "a", 48000, 384);
    exited(c, "bbbb", "a", 0);
    expect_held(c, "a", 0, 0);
}
END_TEST

START_TEST(a_job_gets_the_cpus_and_the_memory_that_it_names_and_others_what_is_left)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4, .cpus = 16, .memory_gib = 64);
    submit(c, "cpus", .millicpus = 10500);
    expect_held(c, "a", 10500, 16);
    submit(c, "aaaa");
    expect_job(c, "aaaa", JOB_PLACED);
    submit(c, "bbbb");
    expect_job(c, "bbbb", JOB_QUEUED);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "bbbb", JOB_PLACED);
    exited(c, "bbbb", "a", 0);
    exited(c, "cpus", "a", 0);
    submit(c, "memo", .memory_gib = 60);
    expect_held(c, "a", 4000, 60);
    submit(c, "cccc");
    expect_job(c, "cccc", JOB_QUEUED);
    submit(c, "dddd", .memory_gib = 4);
    expect_job(c, "dddd", JOB_QUEUED); /* fifo: it came later */
    exited(c, "memo", "a", 0);
    expect_job(c, "cccc", JOB_PLACED);
    expect_job(c, "dddd", JOB_PLACED);
}
END_TEST

START_TEST(a_gang_spreads_over_the_nodes_that_have_cpus_for_it)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4, .cpus = 8);
    node(c, "b", .gpus = 4, .cpus = 8);
    submit(c, "gang", .gpus = 4, .millicpus = 16000);
    expect_orders(c, "a", "prepare gang/1 rank 0-1 of 4 on 0,1 node 0 of 2\n");
    expect_orders(c, "b", "prepare gang/1 rank 2-3 of 4 on 0,1 node 1 of 2\n");
    expect_held(c, "a", 8000, 0);
    expect_held(c, "b", 8000, 0);
}
END_TEST

START_TEST(what_no_node_has_is_refused)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4, .cpus = 8, .memory_gib = 32);
    ck_assert_int_eq(submit(c, "aaaa", .millicpus = 9000), ERR_CAPACITY);
    expect_field(c, "cpus");
    ck_assert_int_eq(submit(c, "aaaa", .memory_gib = 33), ERR_CAPACITY);
    expect_field(c, "memory");
    ck_assert_int_eq(submit(c, "aaaa", .gpus = -1, .millicpus = 9000), ERR_CAPACITY);
    expect_field(c, "cpus");
    ck_assert_int_eq(submit(c, "aaaa", .gpus = 4, .millicpus = 8000, .memory_gib = 32), ERR_NONE);
}
END_TEST

START_TEST(where_the_agent_does_not_say_what_there_is_nothing_else_counts_but_gpus)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    ck_assert_int_eq(submit(c, "cpus", .millicpus = 1000), ERR_CAPACITY);
    expect_field(c, "cpus");
    ck_assert_int_eq(submit(c, "none", .gpus = -1), ERR_CAPACITY);
    expect_field(c, "gpus");
    submit(c, "aaaa", .gpus = 2);
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(a_job_without_gpus_runs_beside_those_that_have_them)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2, .cpus = 8, .memory_gib = 32);
    submit(c, "gpus", .gpus = 2, .millicpus = 2000, .memory_gib = 8);
    submit(c, "none", .gpus = -1, .millicpus = 4000);
    expect_orders(c, "a", "run gpus/1 rank 0-1 of 2 on 0,1\nrun none/1 rank 0-0 of 1 on \n");
    expect_held(c, "a", 6000, 24);
    submit(c, "more", .gpus = -1, .millicpus = 4000);
    expect_job(c, "more", JOB_QUEUED);
    exited(c, "none", "a", 0);
    expect_ended(c, "none", JOB_SUCCEEDED, 0, "");
    expect_job(c, "more", JOB_PLACED);
}
END_TEST

START_TEST(a_job_without_gpus_has_a_cpu_and_its_part_of_the_memory)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2, .cpus = 8, .memory_gib = 32);
    submit(c, "none", .gpus = -1);
    expect_held(c, "a", 1000, 4);
}
END_TEST

START_TEST(a_job_without_gpus_goes_where_no_gpu_needs_the_cpus)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2, .cpus = 4, .memory_gib = 32);
    node(c, "b", .gpus = -1, .cpus = 64, .memory_gib = 32);
    submit(c, "none", .gpus = -1);
    expect_held(c, "a", 0, 0);
    expect_orders(c, "b", "run none/1 rank 0-0 of 1 on \n");
}
END_TEST

START_TEST(jobs_without_gpus_survive_a_restart_and_the_agents_return)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1, .cpus = 4, .memory_gib = 16);
    submit(c, "none", .gpus = -1, .millicpus = 3000);
    running(c, "none", "a");
    cluster_restart(c);
    expect_held(c, "a", 3000, 12);
    struct node_attempt known = {.attempt_id = job_by_id(c->core, "none")->attempt->attempt_id,
                                 .state = MEMBER_RUNNING};
    node(c, "a", .gpus = 1, .cpus = 2, .memory_gib = 8, .attempts = &known, .attempt_count = 1);
    expect_held(c, "a", 3000, 12);
    submit(c, "more", .gpus = -1);
    expect_job(c, "more", JOB_QUEUED); /* less is offered than is held */
    exited(c, "none", "a", 0);
    expect_job(c, "more", JOB_PLACED);
}
END_TEST

START_TEST(a_job_that_waits_for_cpus_is_not_passed_for_ever)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 4, .cpus = 8, .memory_gib = 64);
    submit(c, "aaaa", .millicpus = 4000, .time_limit_ms = 600000);
    running(c, "aaaa", "a");
    submit(c, "wait", .millicpus = 8000, .time_limit_ms = 600000);
    expect_job(c, "wait", JOB_QUEUED);
    submit(c, "long", .millicpus = 2000, .time_limit_ms = 3600000);
    expect_job(c, "long", JOB_QUEUED);
    submit(c, "none", .gpus = -1, .millicpus = 2000, .time_limit_ms = 3600000);
    expect_job(c, "none", JOB_QUEUED);
    submit(c, "fill", .millicpus = 2000, .time_limit_ms = 60000);
    expect_job(c, "fill", JOB_PLACED);
    exited(c, "fill", "a", 0);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "wait", JOB_PLACED);
}
END_TEST

START_TEST(the_reason_names_what_is_left)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4, .cpus = 8, .memory_gib = 64);
    submit(c, "aaaa", .millicpus = 7000);
    submit(c, "wait");
    expect_reason(c, "wait", "CPU_MEMORY",
                  "waits for 1 GPU: of the nodes with a free GPU, a has most left, 1 CPU and 48.0 GiB of "
                  "memory; a GPU there comes with 2 CPUs and 16.0 GiB of memory");
    expect_nodes(c, "wait", 0, "cpu_memory 1: a");
    cancel(c, "wait");
    submit(c, "more", .millicpus = 3000, .memory_gib = 2);
    expect_reason(
        c, "more", "CPU_MEMORY",
        "waits for 1 GPU, 3 CPUs and 2.0 GiB of memory: of the nodes with a free GPU, a has most left, "
        "1 CPU and 48.0 GiB of memory; a GPU there comes with 3 CPUs and 2.0 GiB of memory");
    cancel(c, "more");
    submit(c, "none", .gpus = -1, .millicpus = 2000);
    expect_reason(
        c, "none", "CPU_MEMORY",
        "waits for 2 CPUs: of the nodes with a free place, a has most left, 1 CPU and 48.0 GiB of memory");
}
END_TEST

START_TEST(limits_count_cpus_and_memory)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4, .cpus = 8, .memory_gib = 64);
    ck_assert_int_eq(limit(c, ACCOUNT_USER, "alice", "{\"max_cpus\":4,\"max_memory\":\"20G\"}"), ERR_NONE);
    submit(c, "aaaa", .gpus = -1, .millicpus = 3000, .memory_gib = 1);
    submit(c, "bbbb", .gpus = -1, .millicpus = 1500, .memory_gib = 1);
    expect_job(c, "bbbb", JOB_QUEUED);
    expect_reason(c, "bbbb", "LIMIT", "user alice uses 3 of 4 CPUs");
    exited(c, "aaaa", "a", 0);
    expect_job(c, "bbbb", JOB_PLACED);
    submit(c, "cccc", .millicpus = 1000, .memory_gib = 20);
    expect_reason(c, "cccc", "LIMIT", "user alice uses 1 of 20 GiB of memory");
    exited(c, "bbbb", "a", 0);
    expect_job(c, "cccc", JOB_PLACED);
    ck_assert_int_eq(submit(c, "dddd", .millicpus = 5000), ERR_LIMIT);
    expect_field(c, "cpus");
    ck_assert_int_eq(submit(c, "dddd", .memory_gib = 21), ERR_LIMIT);
    expect_field(c, "memory");
}
END_TEST

Suite *resource_suite(void)
{
    Suite *suite = suite_create("resources");
    TCase *tests = tcase_create("resources");
    tcase_add_test(tests, a_gpu_comes_with_its_part_of_the_node);
    tcase_add_test(tests, a_job_gets_the_cpus_and_the_memory_that_it_names_and_others_what_is_left);
    tcase_add_test(tests, a_gang_spreads_over_the_nodes_that_have_cpus_for_it);
    tcase_add_test(tests, what_no_node_has_is_refused);
    tcase_add_test(tests, where_the_agent_does_not_say_what_there_is_nothing_else_counts_but_gpus);
    tcase_add_test(tests, a_job_without_gpus_runs_beside_those_that_have_them);
    tcase_add_test(tests, a_job_without_gpus_has_a_cpu_and_its_part_of_the_memory);
    tcase_add_test(tests, a_job_without_gpus_goes_where_no_gpu_needs_the_cpus);
    tcase_add_test(tests, jobs_without_gpus_survive_a_restart_and_the_agents_return);
    tcase_add_test(tests, a_job_that_waits_for_cpus_is_not_passed_for_ever);
    tcase_add_test(tests, the_reason_names_what_is_left);
    tcase_add_test(tests, limits_count_cpus_and_memory);
    suite_add_tcase(suite, tests);
    return suite;
}
