/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of accounts at their edges: what is lent, what is counted in minutes, and how many may have limits.
 * Constraints that are refused with numbers, or that choose within a node, are here as well. */
#include <stdio.h>
#include <string.h>

#include "daemon/core/quota/account.h"
#include "daemon/core/model/state.h"
#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

static void expect_claim(const struct cluster *c, const char *id, enum claim claim)
{
    ck_assert_str_eq(claim_text(rows_attempt(c->rows, rows_attempt_id(c->rows, id))->claim),
                     claim_text(claim));
}

/* --- entitlements --------------------------------------------------------------------------------------- */

START_TEST(what_was_lent_is_entitled_only_once_its_pool_is_no_longer_reserved)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "r", .gpus = 2, .pool = "kept", .reserved = true);
    node(c, "d", .gpus = 2);
    limit(c, ACCOUNT_POOL, "kept", "{\"lend\":true}");
    submit(c, "aaaa", .gpus = 2, .reserved = USE_RESERVED_FALSE);
    submit(c, "lent", .reserved = USE_RESERVED_FALSE);
    expect_orders(c, "r", "run lent/1 rank 0-0 of 1 on 0\n");
    expect_claim(c, "lent", CLAIM_BORROWED);
    limit(c, ACCOUNT_PROJECT, "default", "{\"quota\":{\"A10\":8}}");
    expect_claim(c, "lent", CLAIM_BORROWED);
    node(c, "r", .gpus = 2, .pool = "open", .attempts = NULL); /* it has not begun: nothing is lost */
    limit(c, ACCOUNT_PROJECT, "default", "{\"quota\":{\"A10\":7}}");
    expect_claim(c, "lent", CLAIM_ENTITLED);
}
END_TEST

START_TEST(an_on_demand_job_over_its_quota_rises_when_another_ends)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 3);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"quota\":{\"A10\":1}}");
    submit(c, "aaaa", .project = "vision", .reserved = USE_RESERVED_FALSE);
    submit(c, "bbbb", .project = "vision", .reserved = USE_RESERVED_FALSE);
    submit(c, "cccc", .project = "vision", .reserved = USE_RESERVED_AUTO);
    expect_claim(c, "aaaa", CLAIM_ENTITLED);
    expect_claim(c, "bbbb", CLAIM_BORROWED);
    exited(c, "aaaa", "a", 0);
    expect_claim(c, "bbbb", CLAIM_ENTITLED);
    expect_claim(c, "cccc", CLAIM_BORROWED);
}
END_TEST

/* --- limits --------------------------------------------------------------------------------------------- */

START_TEST(small_budgets_are_told_in_minutes_and_large_ones_in_hours)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a", .gpus = 8);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"gpu_hours\":{\"hours\":2,\"period_s\":86400}}");
    limit(c, ACCOUNT_PROJECT, "speech", "{\"gpu_hours\":{\"hours\":12,\"period_s\":86400}}");
    submit(c, "aaaa", .project = "vision", .gpus = 2);
    submit(c, "bbbb", .project = "speech", .gpus = 6);
    c->now_ms += 2 * HOUR_MS;
    exited(c, "aaaa", "a", 0);
    exited(c, "bbbb", "a", 0);
    quiet(c);
    submit(c, "cccc", .project = "vision");
    ck_assert_ptr_nonnull(strstr(c->trace.bytes, "project vision uses 240 of 120 GPU minutes"));
    quiet(c);
    submit(c, "dddd", .project = "speech");
    ck_assert_ptr_nonnull(strstr(c->trace.bytes, "project speech uses 12 of 12 GPU hours"));
}
END_TEST

START_TEST(who_may_run_nothing_is_refused)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    limit(c, ACCOUNT_PROJECT, "vision", "{\"gpu_hours\":{\"hours\":0,\"period_s\":86400}}");
    limit(c, ACCOUNT_PROJECT, "speech", "{\"gpu_hours\":{\"hours\":1,\"period_s\":86400}}");
    limit(c, ACCOUNT_USER, "bob", "{\"max_running_jobs\":0}");
    ck_assert_int_eq(submit(c, "aaaa", .project = "vision"), ERR_LIMIT);
    expect_field(c, "project");
    ck_assert_int_eq(submit(c, "aaaa", .owner = "bob"), ERR_LIMIT);
    ck_assert_str_eq(c->step.err.text, "user bob may run no jobs");
    ck_assert_int_eq(submit(c, "aaaa", .project = "speech"), ERR_NONE);
}
END_TEST

START_TEST(a_bounded_number_of_accounts_have_limits)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    for (int i = 0; i < LIMIT_ACCOUNTS_LIMITED; i++) {
        char name[16];
        snprintf(name, sizeof name, "user%d", i);
        ck_assert_int_eq(limit(c, ACCOUNT_USER, name, "{\"max_running_jobs\":1}"), ERR_NONE);
    }
    ck_assert_int_eq(limit(c, ACCOUNT_USER, "late", "{\"max_running_jobs\":1}"), ERR_TOO_MANY);
    ck_assert_int_eq(limit(c, ACCOUNT_USER, "user7", "{\"max_running_jobs\":2}"), ERR_NONE);
    ck_assert_int_eq(limit(c, ACCOUNT_USER, "user8", NULL), ERR_NONE);
    ck_assert_int_eq(limit(c, ACCOUNT_USER, "user8", NULL), ERR_NOT_FOUND);
    ck_assert_int_eq(limit(c, ACCOUNT_USER, "late", "{\"max_running_jobs\":1}"), ERR_NONE);
    core_check(c->core);
}
END_TEST

/* --- what is shown -------------------------------------------------------------------------------------- */

START_TEST(types_that_are_only_limited_are_shown_and_pools_are_no_accounts)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .pool = "kept", .reserved = true);
    limit(c, ACCOUNT_POOL, "kept", "{\"lend\":true}");
    limit(c, ACCOUNT_PROJECT, "vision", "{\"max_gpus\":{\"H100\":2,\"*\":4}}");
    const char *text = account_text(c, ACCOUNT_PROJECT, "vision", NULL);
    ck_assert_ptr_nonnull(strstr(text, "{\"gpu_type\":\"H100\",\"gpus\":0,\"entitled\":0"));
    ck_assert_ptr_null(strstr(text, "\"gpu_type\":\"*\""));
    text = account_text(c, ACCOUNT_PROJECT, NULL, NULL);
    ck_assert_ptr_nonnull(strstr(text, "\"vision\""));
    ck_assert_ptr_null(strstr(text, "\"kept\""));
}
END_TEST

START_TEST(a_bounded_number_of_users_of_a_project_is_shown)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a");
    for (int i = 0; i <= LIMIT_ACCOUNT_USERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "user%03d", i);
        submit(c, name, .owner = name, .project = "vision");
    }
    const char *text = account_text(c, ACCOUNT_PROJECT, "vision", NULL);
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, "\"name\":\"user")) != NULL; at++) {
        count++;
    }
    ck_assert_uint_eq(count, LIMIT_ACCOUNT_USERS);
}
END_TEST

static void register_mixed(struct cluster *c, const char *name, const char *first, const char *second)
{
    struct device devices[] = {{.index = 0, .uuid = "u", .type = first, .group = -1},
                               {.index = 1, .uuid = "v", .type = second, .group = -1}};
    ck_assert_int_eq(node(c, name, .devices = devices, .device_count = 2), ERR_NONE);
}

START_TEST(pools_list_all_types_that_they_have)
{
    autocluster struct cluster *c = cluster_open();
    cluster_step(c, &(struct input){.kind = INPUT_POOLS});
    ck_assert_str_eq(c->step.answer, "{\"pools\":[]}");
    register_mixed(c, "a", "A10", "H100");
    cluster_step(c, &(struct input){.kind = INPUT_POOLS});
    ck_assert_str_eq(c->step.answer, "{\"pools\":[{\"name\":\"default\",\"kind\":\"on-demand\",\"lend\":"
                                     "false,\"isolation\":null,\"types\":["
                                     "{\"gpu_type\":\"A10\",\"gpus\":1,\"free\":1},"
                                     "{\"gpu_type\":\"H100\",\"gpus\":1,\"free\":1}]}]}");
    ck_assert_int_eq(submit(c, "aaaa", .pool = "none"), ERR_FIELD);
    ck_assert_ptr_nonnull(strstr(c->step.err.hint, "default"));
    ck_assert_ptr_null(strstr(c->step.err.hint, "default, default"));
}
END_TEST

/* --- constraints ---------------------------------------------------------------------------------------- */

START_TEST(a_type_among_other_constraints_chooses_within_a_node)
{
    autocluster struct cluster *c = cluster_open();
    register_mixed(c, "a", "A10", "H100");
    register_mixed(c, "b", "A10", "H100");
    submit(c, "aaaa", .terms = "gpu_type=h100 avoid:a pool=default");
    expect_orders(c, "b", "run aaaa/1 rank 0-0 of 1 on 1\n");
    submit(c, "bbbb", .terms = "avoid:a avoid:c gpu_type=H100");
    expect_orders(c, "a", "run bbbb/1 rank 0-0 of 1 on 1\n");
    ck_assert_int_eq(submit(c, "cccc", .gpus = 3, .terms = "gpu_type=H100"), ERR_CAPACITY);
}
END_TEST

START_TEST(a_refusal_names_only_the_constraints_that_fail)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .labels = "zone=x");
    ck_assert_int_eq(submit(c, "aaaa", .terms = "avoid:a pool=default zone=y disk=ssd"), ERR_CAPACITY);
    expect_field(c, "constraints.zone");
    ck_assert_str_eq(c->step.err.text, "no registered node fits: zone=y fails on 1 of 1 node, disk=ssd on 1");
    node(c, "b", .labels = "zone=y");
    ck_assert_int_eq(submit(c, "aaaa", .terms = "zone=y exclude:b"), ERR_CAPACITY);
    ck_assert_str_eq(c->step.err.text,
                     "no registered node fits: zone=y fails on 1 of 2 nodes, exclude b on 1");
    expect_field(c, "constraints");
    ck_assert_int_eq(submit(c, "aaaa", .type = "A10", .gpus = 3, .terms = "zone=y"), ERR_CAPACITY);
    expect_field(c, "gpus");
    ck_assert_int_eq(submit(c, "aaaa", .local = "b", .terms = "zone=x"), ERR_CAPACITY);
    ck_assert_int_eq(submit(c, "bbbb", .local = "b", .terms = "zone=y"), ERR_NONE);
}
END_TEST

START_TEST(auto_is_on_demand_where_too_few_reserved_nodes_fit)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "d1", .gpus = 8, .labels = "zone=y");
    submit(c, "busy", .gpus = 8);
    submit(c, "yyyy", .gpus = 3, .terms = "zone=y");
    submit(c, "many", .gpus = 8, .terms = "zone=y");
    node(c, "r1", .gpus = 2, .pool = "kept", .reserved = true, .labels = "zone=x");
    node(c, "r2", .gpus = 2, .pool = "kept", .reserved = true, .labels = "zone=y");
    node(c, "r3", .gpus = 2, .pool = "kept", .reserved = true, .labels = "zone=x");
    exited(c, "busy", "d1", 0);
    expect_orders(c, "d1", "run yyyy/1 rank 0-2 of 3 on 0,1,2\n"); /* r2 has two, and all that fits */
    submit(c, "east", .gpus = 3, .terms = "zone=x");
    expect_job(c, "east", JOB_PLACED);
    expect_orders(c, "r1", "prepare east/1 rank 0-1 of 3 on 0,1 node 0 of 2\n");
    submit(c, "host", .gpus = 2, .local = "r2", .terms = "zone=y");
    expect_orders(c, "r2", "run host/1 rank 0-1 of 2 on 0,1\n");
    exited(c, "yyyy", "d1", 0);
    expect_job(c, "many", JOB_PLACED);
}
END_TEST

START_TEST(a_refusal_counts_only_nodes_that_were_asked_for)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .pool = "p", .labels = "zone=x");
    node(c, "b", .pool = "q", .type = "H100", .labels = "zone=y");
    ck_assert_int_eq(submit(c, "aaaa", .pool = "p", .terms = "zone=y"), ERR_CAPACITY);
    ck_assert_str_eq(c->step.err.text, "no registered node fits: zone=y fails on 1 of 1 node");
    ck_assert_int_eq(submit(c, "aaaa", .pool = "p", .type = "H100", .terms = "zone=y"), ERR_CAPACITY);
    ck_assert_str_eq(c->step.err.text, "the job needs 1 GPUs, and no node that it may use has any");
}
END_TEST

START_TEST(a_bounded_number_of_jobs_may_live)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    unsigned *count = &c->core->jobs_by_id->by_id.tbl->num_items;
    c->large = true;
    *count += LIMIT_LIVE_JOBS - 1; /* as if the others were there, which would take a gigabyte */
    enum err_code code = submit(c, "bbbb");
    *count -= LIMIT_LIVE_JOBS - 1;
    ck_assert_int_eq(code, ERR_TOO_MANY);
    ck_assert_int_eq(submit(c, "bbbb"), ERR_NONE);
}
END_TEST

START_TEST(a_constraint_that_holds_for_one_type_of_a_node_holds_for_the_node)
{
    autocluster struct cluster *c = cluster_open();
    register_mixed(c, "a", "A10", "H100");
    node(c, "b");
    ck_assert_int_eq(submit(c, "aaaa", .terms = "node=a zone=x"), ERR_CAPACITY);
    ck_assert_str_eq(c->step.err.text, "no registered node fits: node=a fails on 1 of 2 nodes, zone=x on 2");
}
END_TEST

Suite *quota_suite(void)
{
    Suite *suite = suite_create("quotas");
    TCase *tests = tcase_create("quotas");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, what_was_lent_is_entitled_only_once_its_pool_is_no_longer_reserved);
    tcase_add_test(tests, an_on_demand_job_over_its_quota_rises_when_another_ends);
    tcase_add_test(tests, small_budgets_are_told_in_minutes_and_large_ones_in_hours);
    tcase_add_test(tests, who_may_run_nothing_is_refused);
    tcase_add_test(tests, a_bounded_number_of_accounts_have_limits);
    tcase_add_test(tests, types_that_are_only_limited_are_shown_and_pools_are_no_accounts);
    tcase_add_test(tests, a_bounded_number_of_users_of_a_project_is_shown);
    tcase_add_test(tests, pools_list_all_types_that_they_have);
    tcase_add_test(tests, a_type_among_other_constraints_chooses_within_a_node);
    tcase_add_test(tests, a_refusal_names_only_the_constraints_that_fail);
    tcase_add_test(tests, auto_is_on_demand_where_too_few_reserved_nodes_fit);
    tcase_add_test(tests, a_refusal_counts_only_nodes_that_were_asked_for);
    tcase_add_test(tests, a_bounded_number_of_jobs_may_live);
    tcase_add_test(tests, a_constraint_that_holds_for_one_type_of_a_node_holds_for_the_node);
    suite_add_tcase(suite, tests);
    return suite;
}
