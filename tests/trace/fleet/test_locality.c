/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that have parts of what a job needs, its data above all, whatever else of the job is new. The words
 * of an environment are its own, such as its code, and then its parts. */
#include <inttypes.h>
#include <stdio.h>

#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

/* A job that needs this was on this node, the only one that was free, and has ended. */
static void has_been(struct cluster *c, const char *environment, const char *name)
{
    char id[16];
    snprintf(id, sizeof id, "p%" PRId64, c->inputs);
    submit(c, id, .environment = environment);
    staged(c, environment, name);
    exited(c, id, name, 0);
    expect_ended(c, id, JOB_SUCCEEDED, 0, "");
}

START_TEST(a_job_with_other_code_goes_where_its_data_is)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b");
    has_been(c, "old data", "b");
    node(c, "a");
    quiet(c);
    submit(c, "aaaa", .environment = "new data");
    expect(c, "[    0] job aaaa is submitted: 1 of any type\n"
              "[    0] node b prepares environment new data, of which it has 1 of 1 parts\n"
              "[    0] job aaaa waits: 1 wanted, 2 free, kept for earlier jobs\n"
              "[    0] job aaaa QUEUED -> STAGING\n");
    staged(c, "new data", "b");
    expect(c, "[    0] node b is ready for new data\n"
              "[    0] job aaaa STAGING -> PLACED on b:0\n"
              "[    0] attempt aaaa/1 RESERVED -> STARTED\n");
}
END_TEST

START_TEST(nobody_waits_for_the_node_with_the_data)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b");
    has_been(c, "old data", "b");
    submit(c, "busy");
    node(c, "a");
    submit(c, "aaaa", .environment = "new data");
    expect_orders(c, "a", "stage new data\n");
    staged(c, "new data", "a");
    expect_job(c, "aaaa", JOB_PLACED);
    expect_orders(c, "b", "run busy/1 rank 0-0 of 1 on 0\n");
    submit(c, "bbbb", .environment = "third data");
    expect_orders(c, "a", "stage third data\nrun aaaa/1 rank 0-0 of 1 on 0\n");
    exited(c, "busy", "b", 0);
    expect_orders(c, "b", "stage third data\n"); /* for it is free first */
    staged(c, "third data", "b");
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(more_parts_are_better_and_what_no_node_has_counts_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "c");
    has_been(c, "old image data", "c");
    node(c, "b");
    drain(c, "c");
    has_been(c, "old data", "b");
    resume(c, "c");
    node(c, "a");
    quiet(c);
    submit(c, "aaaa", .environment = "new data image weights");
    expect_orders(c, "c", "stage new data image weights\n");
    submit(c, "bbbb", .environment = "new weights");
    expect_orders(c, "a", "stage new weights\n");
}
END_TEST

START_TEST(packing_counts_more_than_data)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b", .gpus = 4);
    has_been(c, "old data", "b");
    node(c, "a", .gpus = 4);
    node(c, "c", .gpus = 2);
    submit(c, "aaaa", .gpus = 2, .environment = "new data");
    expect_orders(c, "c", "stage new data\n");
    submit(c, "bbbb", .gpus = 4, .environment = "new data");
    expect_orders(c, "b", "stage new data\n");
}
END_TEST

START_TEST(the_pool_whose_nodes_have_the_data_is_preferred)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b", .pool = "y");
    has_been(c, "old data", "b");
    node(c, "a", .pool = "x");
    submit(c, "aaaa", .environment = "new data");
    expect_orders(c, "b", "stage new data\n");
    node(c, "c", .pool = "x");
    node(c, "d", .pool = "y");
    submit(c, "gang", .gpus = 2, .environment = "third data");
    expect_orders(c, "b", "stage new data\nstage third data\n");
    expect_orders(c, "d", "stage third data\n");
}
END_TEST

START_TEST(a_gang_has_the_nodes_with_the_data_among_its_own)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "d", .gpus = 2);
    has_been(c, "old data", "d");
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    node(c, "c", .gpus = 2);
    submit(c, "gang", .gpus = 4, .environment = "new data");
    expect_orders(c, "a", "stage new data\n");
    expect_orders(c, "d", "stage new data\n");
    staged(c, "new data", "a");
    staged(c, "new data", "d");
    expect_orders(c, "a", "prepare gang/1 rank 0-1 of 4 on 0,1 node 0 of 2\n");
    expect_orders(c, "d", "prepare gang/1 rank 2-3 of 4 on 0,1 node 1 of 2\n");
}
END_TEST

START_TEST(a_gang_of_unequal_shares_has_them_too)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "d", .gpus = 2);
    has_been(c, "old data", "d");
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 3);
    quiet(c);
    submit(c, "gang", .gpus = 5, .environment = "new data");
    expect(c, "[    0] job gang is submitted: 5 of any type\n"
              "[    0] node b prepares environment new data\n"
              "[    0] node d prepares environment new data, of which it has 1 of 1 parts\n"
              "[    0] job gang waits: 5 wanted, 7 free, kept for earlier jobs\n"
              "[    0] job gang QUEUED -> STAGING\n");
}
END_TEST

START_TEST(a_node_has_nothing_before_it_was_ready)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b");
    submit(c, "aaaa", .environment = "old data");
    cancel(c, "aaaa");
    submit(c, "bbbb", .infra_retries = -1, .environment = "old data");
    unstaged(c, "old data", "b", "no space left");
    cancel(c, "bbbb");
    node(c, "a");
    submit(c, "cccc", .environment = "new data");
    expect_orders(c, "a", "stage new data\n");
}
END_TEST

START_TEST(data_outlives_an_agent_and_goes_with_its_node)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b");
    has_been(c, "old data", "b");
    node(c, "a");
    node(c, "b"); /* its agent has started anew: it is asked, but its disk is the same */
    submit(c, "aaaa", .environment = "new data");
    expect_orders(c, "b", "stage new data\n");
    cancel(c, "aaaa");
    fence(c, "b");
    node(c, "b");
    submit(c, "bbbb", .environment = "new data");
    expect_orders(c, "a", "stage new data\n");
}
END_TEST

START_TEST(a_node_that_declines_still_has_most)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b");
    submit(c, "aaaa", .environment = "old data");
    staged(c, "old data", "b");
    node(c, "a");
    declined(c, "aaaa", "b");
    cancel(c, "aaaa");
    advance_beating(c, DECLINE_HOLD_MS, "a b");
    submit(c, "bbbb", .environment = "new data");
    expect_orders(c, "b", "stage new data\n");
}
END_TEST

START_TEST(a_controller_that_starts_anew_knows_it_of_what_runs_alone)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b", .gpus = 2);
    has_been(c, "old weights", "b");
    submit(c, "runs", .environment = "old data");
    staged(c, "old data", "b");
    node(c, "a");
    cluster_restart(c);
    submit(c, "aaaa", .environment = "new weights");
    expect_orders(c, "a", "stage new weights\n");
    submit(c, "bbbb", .environment = "new data");
    expect_orders(c, "b", "stage new data\nrun runs/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(what_is_loaded_of_lost_nodes_counts_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2, .environment = "old data");
    staged(c, "old data", "a");
    staged(c, "old data", "b");
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    fence(c, "b"); /* what is on a is being stopped, and names b */
    cluster_restart(c);
    stopped(c, "gang", "a");
    expect_job(c, "gang", JOB_QUEUED);
}
END_TEST

START_TEST(a_question_tells_of_such_nodes_and_changes_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b");
    has_been(c, "old data", "b");
    node(c, "a");
    plan(c, .gpus = 1, .environment = "new data");
    plan(c, .gpus = 1, .environment = "new weights");
    expect_orders(c, "b", "");
    submit(c, "aaaa", .environment = "new data");
    expect_orders(c, "b", "stage new data\n");
}
END_TEST

START_TEST(parts_longest_out_of_use_are_forgotten_first)
{
    autocluster struct cluster *c = cluster_open();
    char environment[64];
    c->large = true;
    node(c, "b");
    has_been(c, "old data", "b");
    for (int i = 0; i <= LIMIT_STAGINGS_KEPT; i++) { /* other code: no part is of it alone */
        snprintf(environment, sizeof environment, "code%d", i);
        has_been(c, environment, "b");
    }
    node(c, "a");
    submit(c, "aaaa", .environment = "new data");
    expect_orders(c, "b", "stage new data\n");
    cancel(c, "aaaa");
    drain(c, "a");
    for (int i = 1; i < LIMIT_PARTS_KEPT + LIMIT_STAGINGS_KEPT; i++) {
        snprintf(environment, sizeof environment, "code%d data%d", i, i);
        has_been(c, environment, "b");
    }
    resume(c, "a");
    submit(c, "bbbb", .environment = "new data");
    expect_orders(c, "b", "stage new data\n"); /* it was needed once more since */
    cancel(c, "bbbb");
    drain(c, "a");
    for (int i = 0; i <= LIMIT_PARTS_KEPT + LIMIT_STAGINGS_KEPT; i++) {
        snprintf(environment, sizeof environment, "more%d more%d", i, i);
        has_been(c, environment, "b");
    }
    resume(c, "a");
    c->large = false;
    submit(c, "cccc", .environment = "new data");
    expect_orders(c, "a", "stage new data\n");
    cancel(c, "cccc");
    submit(c, "dddd", .environment = "new more1");
    expect_orders(c, "b", "stage new more1\n");
}
END_TEST

Suite *locality_suite(void)
{
    Suite *suite = suite_create("locality");
    TCase *tests = tcase_create("locality");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_job_with_other_code_goes_where_its_data_is);
    tcase_add_test(tests, nobody_waits_for_the_node_with_the_data);
    tcase_add_test(tests, more_parts_are_better_and_what_no_node_has_counts_nothing);
    tcase_add_test(tests, packing_counts_more_than_data);
    tcase_add_test(tests, the_pool_whose_nodes_have_the_data_is_preferred);
    tcase_add_test(tests, a_gang_has_the_nodes_with_the_data_among_its_own);
    tcase_add_test(tests, a_gang_of_unequal_shares_has_them_too);
    tcase_add_test(tests, a_node_has_nothing_before_it_was_ready);
    tcase_add_test(tests, data_outlives_an_agent_and_goes_with_its_node);
    tcase_add_test(tests, a_node_that_declines_still_has_most);
    tcase_add_test(tests, a_controller_that_starts_anew_knows_it_of_what_runs_alone);
    tcase_add_test(tests, what_is_loaded_of_lost_nodes_counts_nothing);
    tcase_add_test(tests, a_question_tells_of_such_nodes_and_changes_nothing);
    tcase_add_test(tests, parts_longest_out_of_use_are_forgotten_first);
    suite_add_tcase(suite, tests);
    return suite;
}
