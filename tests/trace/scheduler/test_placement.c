/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes and devices a gang gets: labels, avoided nodes, types by preference, spread, groups, fragments.
 */
#include <stdio.h>
#include <string.h>

#include "tests/trace/harness/cluster.h"
#include "tests/trace/harness/fill.h"
#include "tests/trace/suites.h"

/* --- labels --------------------------------------------------------------------------------------------- */

START_TEST(a_constraint_leaves_the_nodes_with_that_label)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4, .labels = "zone=x");
    node(c, "b", .gpus = 4, .labels = "zone=y disk=ssd");
    node(c, "c", .gpus = 4);
    submit(c, "yyyy", .terms = "zone=y");
    expect_orders(c, "b", "run yyyy/1 rank 0-0 of 1 on 0\n");
    submit(c, "wide", .gpus = 6, .terms = "zone=x,y");
    expect_orders(c, "a", "prepare wide/1 rank 0-2 of 6 on 0,1,2 node 0 of 2\n");
    submit(c, "nnnn", .terms = "zone!=x,y");
    expect_orders(c, "c", "run nnnn/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(names_pools_types_and_hosts_are_labels_of_every_node)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .type = "A10", .host = "desk");
    node(c, "b", .type = "H100");
    node(c, "s", .type = "A10", .pool = "spot");
    submit(c, "host", .terms = "host=desk");
    submit(c, "type", .terms = "gpu_type=h100");
    submit(c, "pool", .terms = "pool=spot");
    expect_orders(c, "a", "run host/1 rank 0-0 of 1 on 0\n");
    expect_orders(c, "b", "run type/1 rank 0-0 of 1 on 0\n");
    expect_orders(c, "s", "run pool/1 rank 0-0 of 1 on 0\n");
    submit(c, "name", .terms = "node=s");
    expect_job(c, "name", JOB_QUEUED);
    exited(c, "pool", "s", 0);
    expect_orders(c, "s", "run name/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(a_waiting_job_keeps_only_nodes_that_its_constraints_allow)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2, .labels = "zone=x");
    node(c, "b", .gpus = 2);
    submit(c, "one");
    submit(c, "two", .gpus = 2, .terms = "zone=x");
    expect_orders(c, "a", "run one/1 rank 0-0 of 1 on 0\n");
    submit(c, "tri", .gpus = 2);
    expect_job(c, "two", JOB_QUEUED);
    expect_job(c, "tri", JOB_PLACED);
    expect_orders(c, "b", "run tri/1 rank 0-1 of 2 on 0,1\n");
}
END_TEST

static void expect_refusal(struct cluster *c, const char *field, const char *text)
{
    expect_field(c, field);
    ck_assert_str_eq(c->step.err.text, text);
    ck_assert_uint_eq(c->step.change_count, 0);
}

START_TEST(constraints_that_no_node_meets_are_refused_with_the_numbers)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .labels = "zone=x disk=ssd");
    node(c, "b", .labels = "zone=y");
    node(c, "c", .type = "H100");
    ck_assert_int_eq(submit(c, "aaaa", .terms = "disk!=ssd zone=z"), ERR_CAPACITY);
    expect_refusal(c, "constraints.zone",
                   "no registered node fits: disk!=ssd fails on 1 of 3 nodes, zone=z on 3");
    ck_assert_int_eq(submit(c, "aaaa", .terms = "disk=ssd zone=y"), ERR_CAPACITY);
    expect_refusal(c, "constraints", "no registered node fits: disk=ssd fails on 2 of 3 nodes, zone=y on 2");
    ck_assert_int_eq(submit(c, "aaaa", .type = "A10", .terms = "exclude:a,b"), ERR_CAPACITY);
    expect_refusal(c, "exclude", "no registered node fits: exclude a,b fails on 2 of 2 nodes");
    ck_assert_int_eq(submit(c, "aaaa", .gpus = 2, .terms = "zone=x,y"), ERR_NONE);
    ck_assert_int_eq(submit(c, "bbbb", .gpus = 2, .terms = "zone=x"), ERR_CAPACITY);
    expect_field(c, "gpus");
    ck_assert_int_eq(submit(c, "cccc", .gpus = 2, .terms = "avoid:a,b"), ERR_NONE);
}
END_TEST

START_TEST(auto_leads_to_reserved_pools_only_where_constraints_allow_them)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .labels = "zone=x");
    node(c, "r", .reserved = true);
    ck_assert_int_eq(submit(c, "aaaa", .terms = "zone=x"), ERR_NONE);
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(labels_outlive_the_controller_and_change_with_the_agent)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .labels = "zone=x disk=ssd");
    ck_assert_str_eq(rows_node(c->rows, "a")->labels, "{\"disk\":\"ssd\",\"zone\":\"x\"}");
    submit(c, "aaaa", .terms = "zone=x");
    submit(c, "bbbb", .terms = "zone=x");
    cluster_restart(c);
    core_check(c->core);
    node(c, "a", .labels = "zone=y");
    running(c, "aaaa", "a");
    exited(c, "aaaa", "a", 0);
    expect_job(c, "bbbb", JOB_QUEUED);
    node(c, "a", .labels = "zone=x");
    expect_orders(c, "a", "run bbbb/1 rank 0-0 of 1 on 0\n");
    node(c, "a");
    ck_assert_ptr_null(rows_node(c->rows, "a")->labels);
}
END_TEST

/* --- nodes that are not wanted -------------------------------------------------------------------------- */

START_TEST(avoided_nodes_are_taken_only_when_nothing_else_fits)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1);
    node(c, "b", .gpus = 8);
    submit(c, "aaaa", .terms = "avoid:a");
    expect_orders(c, "b", "run aaaa/1 rank 0-0 of 1 on 0\n");
    submit(c, "bbbb", .gpus = 7);
    submit(c, "cccc", .terms = "avoid:a");
    expect_orders(c, "a", "run cccc/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(excluded_nodes_are_never_taken)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b");
    submit(c, "aaaa", .terms = "exclude:a");
    submit(c, "bbbb", .terms = "exclude:a");
    expect_orders(c, "a", "");
    expect_job(c, "bbbb", JOB_QUEUED);
    submit(c, "cccc", .gpus = 2);
    expect_orders(c, "a", "run cccc/1 rank 0-1 of 2 on 0,1\n");
}
END_TEST

/* --- types ---------------------------------------------------------------------------------------------- */

START_TEST(the_first_type_on_which_a_gang_fits_is_taken)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .type = "A100", .gpus = 4);
    node(c, "h", .type = "H100", .gpus = 2);
    node(c, "z", .type = "T4", .gpus = 8);
    submit(c, "aaaa", .gpus = 2, .type = "h100|a100");
    expect_orders(c, "h", "run aaaa/1 rank 0-1 of 2 on 0,1\n");
    submit(c, "bbbb", .gpus = 2, .type = "H100|A100");
    expect_orders(c, "a", "run bbbb/1 rank 0-1 of 2 on 0,1\n");
    submit(c, "cccc", .gpus = 3, .type = "H100|A100");
    expect_job(c, "cccc", JOB_QUEUED);
    ck_assert_int_eq(submit(c, "dddd", .gpus = 5, .type = "H100|A100"), ERR_CAPACITY);
    ck_assert_int_eq(submit(c, "dddd", .type = "H200|B200"), ERR_GPU_TYPE);
    expect_field(c, "gpu_type");
    ck_assert_int_eq(submit(c, "dddd", .type = "B200|T4"), ERR_NONE);
    expect_orders(c, "z", "run dddd/1 rank 0-0 of 1 on 0\n");
}
END_TEST

/* --- spread --------------------------------------------------------------------------------------------- */

START_TEST(spread_takes_as_many_nodes_as_give_equal_shares)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    node(c, "b", .gpus = 4);
    node(c, "c", .gpus = 4);
    submit(c, "four", .gpus = 4, .spread = true);
    expect_orders(c, "a", "prepare four/1 rank 0-1 of 4 on 0,1 node 0 of 2\n");
    expect_orders(c, "b", "prepare four/1 rank 2-3 of 4 on 0,1 node 1 of 2\n");
    submit(c, "tri", .gpus = 3, .spread = true);
    expect_orders(c, "c", "prepare tri/1 rank 2-2 of 3 on 0 node 2 of 3\n");
}
END_TEST

START_TEST(spread_without_equal_shares_is_as_even_as_can_be)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    node(c, "b", .gpus = 4);
    node(c, "c", .gpus = 1);
    node(c, "d", .gpus = 4);
    submit(c, "sevn", .gpus = 7, .spread = true);
    expect_orders(c, "a", "prepare sevn/1 rank 0-1 of 7 on 0,1 node 0 of 4\n");
    expect_orders(c, "d", "prepare sevn/1 rank 4-5 of 7 on 0,1 node 2 of 4\n");
    expect_orders(c, "c", "prepare sevn/1 rank 6-6 of 7 on 0 node 3 of 4\n");
}
END_TEST

/* P12: one master and N workers, as many devices on each. */
START_TEST(a_number_of_nodes_is_kept)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8);
    node(c, "b", .gpus = 2);
    node(c, "c", .gpus = 1);
    submit(c, "two", .gpus = 2, .nodes = 2);
    expect_orders(c, "a", "prepare two/1 rank 0-0 of 2 on 0 node 0 of 2\n");
    expect_orders(c, "b", "prepare two/1 rank 1-1 of 2 on 0 node 1 of 2\n");
    submit(c, "wide", .gpus = 4, .nodes = 2, .spread = true);
    expect_job(c, "wide", JOB_QUEUED); /* there are enough, but not two on each of two nodes */
    prepared(c, "two", "a");
    prepared(c, "two", "b");
    running(c, "two", "a");
    running(c, "two", "b");
    exited(c, "two", "a", 0);
    exited(c, "two", "b", 0);
    expect_job(c, "wide", JOB_PLACED);
    expect_orders(c, "b", "prepare wide/1 rank 2-3 of 4 on 0,1 node 1 of 2\n");
    submit(c, "one", .gpus = 2, .nodes = 1, .spread = true);
    expect_orders(c, "c", "");
    expect_job(c, "one", JOB_PLACED);
}
END_TEST

START_TEST(a_number_of_nodes_that_there_are_not_is_refused)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8);
    node(c, "b", .gpus = 2, .pool = "rare", .reserved = true);
    ck_assert_int_eq(submit(c, "two", .gpus = 4, .nodes = 2), ERR_CAPACITY);
    expect_refusal(c, "gpus",
                   "the job needs 4 GPUs on 2 nodes, and the most it can get is 2 of type A10 in pool rare");
    ck_assert_int_eq(submit(c, "one", .gpus = 2, .nodes = 1), ERR_NONE);
    expect_orders(c, "b", "run one/1 rank 0-1 of 2 on 0,1\n");
}
END_TEST

START_TEST(pack_stays_on_one_node)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    node(c, "b", .gpus = 4);
    submit(c, "four", .gpus = 4);
    expect_orders(c, "a", "run four/1 rank 0-3 of 4 on 0,1,2,3\n");
}
END_TEST

/* --- devices -------------------------------------------------------------------------------------------- */

START_TEST(devices_come_from_the_group_with_the_least_to_spare)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8, .groups = "00001111");
    submit(c, "one");
    submit(c, "four", .gpus = 4);
    submit(c, "two", .gpus = 2);
    expect_orders(c, "a",
                  "run one/1 rank 0-0 of 1 on 0\n"
                  "run four/1 rank 0-3 of 4 on 4,5,6,7\n"
                  "run two/1 rank 0-1 of 2 on 1,2\n");
}
END_TEST

START_TEST(a_larger_gang_takes_whole_groups_first)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8, .groups = "01010122");
    submit(c, "five", .gpus = 5);
    expect_orders(c, "a", "run five/1 rank 0-4 of 5 on 0,2,4,6,7\n");
    cluster_restart(c);
    node(c, "b", .gpus = 8);
    submit(c, "tri", .gpus = 3);
    expect_orders(c, "a",
                  "run five/1 rank 0-4 of 5 on 0,2,4,6,7\n"
                  "run tri/1 rank 0-2 of 3 on 1,3,5\n");
}
END_TEST

START_TEST(groups_are_kept_over_a_restart)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4, .groups = "0101");
    cluster_restart(c);
    submit(c, "two", .gpus = 2);
    expect_orders(c, "a", "run two/1 rank 0-1 of 2 on 0,2\n");
}
END_TEST

/* --- fragments ------------------------------------------------------------------------------------------ */

/* Best fit would take a, which is left with one device; but then none of a's four serves those who ask for
 * four, and b's seven become four that do. */
START_TEST(a_node_is_taken_where_idle_devices_stay_of_use)
{
    autocluster struct cluster *c = cluster_open();
    static const char *const full[] = {"f0", "f1", "f2"};
    for (size_t i = 0; i < 3; i++) {
        node(c, full[i], .gpus = 4);
        submit(c, full[i], .gpus = 4);
    }
    node(c, "b", .gpus = 8);
    submit(c, "one");
    node(c, "a", .gpus = 4);
    submit(c, "tri", .gpus = 3);
    expect_orders(c, "b",
                  "run one/1 rank 0-0 of 1 on 0\n"
                  "run tri/1 rank 0-2 of 3 on 1,2,3\n");
}
END_TEST

static void compare(const int64_t *nodes, const int64_t *jobs, double *ret_best, double *ret_core)
{
    *ret_best = *ret_core = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        *ret_best += fill_share(seed, nodes, jobs, FILL_BEST_FIT) / 4;
        *ret_core += fill_share(seed, nodes, jobs, FILL_CORE) / 4;
    }
}

START_TEST(a_full_cluster_holds_at_least_what_best_fit_holds)
{
    static const int64_t nodes[] = {1, 2, 2, 4, 8, 8, 8, 8, 0}, jobs[] = {1, 2, 2, 2, 4, 4, 8, 8, 0};
    double best, core;
    compare(nodes, jobs, &best, &core);
    ck_assert_msg(core >= best, "%.5f with the core, %.5f with best fit", core, best);
    ck_assert_double_gt(core, 0.97);
}
END_TEST

START_TEST(sizes_that_do_not_divide_a_node_leave_fewer_fragments_than_best_fit)
{
    static const int64_t nodes[] = {4, 8, 8, 8, 8, 8, 8, 8, 8, 0}, jobs[] = {2, 3, 3, 3, 4, 6, 8, 0};
    double best, core;
    compare(nodes, jobs, &best, &core);
    ck_assert_msg(core > best, "%.5f with the core, %.5f with best fit", core, best);
}
END_TEST

START_TEST(spread_gives_the_last_of_the_widest_less)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    node(c, "c", .gpus = 2);
    submit(c, "five", .gpus = 5, .spread = true);
    expect_orders(c, "b", "prepare five/1 rank 2-3 of 5 on 0,1 node 1 of 3\n");
    expect_orders(c, "c", "prepare five/1 rank 4-4 of 5 on 0 node 2 of 3\n");
}
END_TEST

START_TEST(spread_prefers_the_pool_with_more_nodes_and_pack_that_with_fewer)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a1", .gpus = 2, .pool = "a");
    node(c, "a2", .gpus = 2, .pool = "a");
    node(c, "b1", .pool = "b");
    node(c, "b2", .pool = "b");
    node(c, "b3", .pool = "b");
    node(c, "b4", .pool = "b");
    node(c, "c1", .gpus = 2, .pool = "c");
    node(c, "c2", .gpus = 2, .pool = "c");
    submit(c, "wide", .gpus = 4, .spread = true);
    expect_orders(c, "b4", "prepare wide/1 rank 3-3 of 4 on 0 node 3 of 4\n");
    submit(c, "pack", .gpus = 4);
    expect_orders(c, "a2", "prepare pack/1 rank 2-3 of 4 on 0,1 node 1 of 2\n");
    submit(c, "next", .gpus = 4);
    expect_orders(c, "c2", "prepare next/1 rank 2-3 of 4 on 0,1 node 1 of 2\n");
}
END_TEST

START_TEST(a_host_whose_node_is_too_small_or_excluded_does_not_hold_a_gang)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "r", .gpus = 2, .host = "desk", .pool = "kept", .reserved = true);
    node(c, "d", .gpus = 4, .host = "desk");
    ck_assert_int_eq(submit(c, "many", .gpus = 3, .local = "desk"), ERR_CAPACITY);
    ck_assert_int_eq(submit(c, "also", .gpus = 3, .local = "desk", .terms = "exclude:r"), ERR_NONE);
    expect_orders(c, "d", "run also/1 rank 0-2 of 3 on 0,1,2\n");
}
END_TEST

START_TEST(gangs_go_where_what_is_left_over_is_of_use)
{
    autocluster struct cluster *c = cluster_open();
    static const char *const names[] = {"a", "b", "c", "d"};
    char id[16], terms[16];
    node(c, "z", .gpus = 40, .pool = "other");
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "j%d", i);
        submit(c, id, .gpus = 2, .pool = "other"); /* two is what most ask for */
    }
    for (int i = 0; i < 4; i++) {
        node(c, names[i], .gpus = 8);
        snprintf(id, sizeof id, "on-%s", names[i]);
        snprintf(terms, sizeof terms, "node=%s", names[i]);
        submit(c, id, .gpus = i < 2 ? 3 : 2, .terms = terms); /* leaves five, five, six, six */
    }
    submit(c, "gang", .gpus = 8, .pool = "default");
    expect_orders(c, "a", "run on-a/1 rank 0-2 of 3 on 0,1,2\n");
    expect_orders(c, "d",
                  "run on-d/1 rank 0-1 of 2 on 0,1\n"
                  "prepare gang/1 rank 4-7 of 8 on 2,3,4,5 node 1 of 2\n");
}
END_TEST

START_TEST(a_reserved_node_of_the_host_that_is_too_small_strands_nobody)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "d", .gpus = 4, .host = "desk");
    submit(c, "runs", .gpus = 2);
    submit(c, "wait", .gpus = 3, .local = "desk");
    node(c, "r", .gpus = 2, .host = "desk", .pool = "kept", .reserved = true);
    exited(c, "runs", "d", 0);
    expect_orders(c, "d", "run wait/1 rank 0-2 of 3 on 0,1,2\n");
}
END_TEST

Suite *placement_suite(void)
{
    Suite *suite = suite_create("placement");
    TCase *tests = tcase_create("placement");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_constraint_leaves_the_nodes_with_that_label);
    tcase_add_test(tests, names_pools_types_and_hosts_are_labels_of_every_node);
    tcase_add_test(tests, a_waiting_job_keeps_only_nodes_that_its_constraints_allow);
    tcase_add_test(tests, constraints_that_no_node_meets_are_refused_with_the_numbers);
    tcase_add_test(tests, auto_leads_to_reserved_pools_only_where_constraints_allow_them);
    tcase_add_test(tests, labels_outlive_the_controller_and_change_with_the_agent);
    tcase_add_test(tests, avoided_nodes_are_taken_only_when_nothing_else_fits);
    tcase_add_test(tests, excluded_nodes_are_never_taken);
    tcase_add_test(tests, the_first_type_on_which_a_gang_fits_is_taken);
    tcase_add_test(tests, spread_takes_as_many_nodes_as_give_equal_shares);
    tcase_add_test(tests, spread_without_equal_shares_is_as_even_as_can_be);
    tcase_add_test(tests, a_number_of_nodes_is_kept);
    tcase_add_test(tests, a_number_of_nodes_that_there_are_not_is_refused);
    tcase_add_test(tests, pack_stays_on_one_node);
    tcase_add_test(tests, devices_come_from_the_group_with_the_least_to_spare);
    tcase_add_test(tests, a_larger_gang_takes_whole_groups_first);
    tcase_add_test(tests, groups_are_kept_over_a_restart);
    tcase_add_test(tests, a_node_is_taken_where_idle_devices_stay_of_use);
    tcase_add_test(tests, a_full_cluster_holds_at_least_what_best_fit_holds);
    tcase_add_test(tests, sizes_that_do_not_divide_a_node_leave_fewer_fragments_than_best_fit);
    tcase_add_test(tests, spread_gives_the_last_of_the_widest_less);
    tcase_add_test(tests, spread_prefers_the_pool_with_more_nodes_and_pack_that_with_fewer);
    tcase_add_test(tests, a_host_whose_node_is_too_small_or_excluded_does_not_hold_a_gang);
    tcase_add_test(tests, gangs_go_where_what_is_left_over_is_of_use);
    tcase_add_test(tests, a_reserved_node_of_the_host_that_is_too_small_strands_nobody);
    suite_add_tcase(suite, tests);
    return suite;
}
