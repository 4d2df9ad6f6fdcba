/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about jobs that wait, where the cluster is odd: nodes of two types, nodes that are lost while gangs
 * run on them, more of everything than an answer looks at. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/harness/explain_rig.h"
#include "tests/trace/suites.h"

#define DAY_MS (24LL * HOUR_MS)

static void register_mixed(struct cluster *c, const char *name, const char *pool)
{
    struct device devices[] = {{.index = 0, .uuid = "u", .type = "A10", .group = -1},
                               {.index = 1, .uuid = "v", .type = "H100", .group = -1},
                               {.index = 2, .uuid = "w", .type = "H100", .group = -1}};
    ck_assert_int_eq(node(c, name, .pool = pool, .devices = devices, .device_count = 3), ERR_NONE);
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

START_TEST(several_nodes_that_declined_are_told_by_the_last)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    node(c, "c");
    submit(c, "wait", .infra_retries = 9);
    declined(c, "wait", "a");
    advance_beating(c, 500, "a b c");
    declined(c, "wait", "b");
    declined(c, "wait", "c");
    expect_reason(c, "wait", "HELD_OFF",
                  "needs 1 GPU, which are free, but nodes like b declined to start a job and get no work for "
                  "another 2.0 s");
    expect_nodes(c, "wait", 0, "on_hold 3: a b c");
}
END_TEST

START_TEST(of_a_node_that_declined_only_what_is_free_is_told)
{
    autocluster struct cluster *c = cluster_open();
    register_mixed(c, "a", NULL);
    submit(c, "runs", .gpus = 2, .type = "H100");
    submit(c, "wait", .infra_retries = 9);
    declined(c, "wait", "a");
    expect_reason(c, "wait", "HELD_OFF",
                  "needs 1 GPU, which are free, but node a declined to start a job and gets no work for "
                  "another 2.0 s");
}
END_TEST

START_TEST(gpus_that_cannot_be_had_are_told_with_their_reason)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    heartbeat_broken(c, "a", 1, "memory held by process 1234 (python) of user ada");
    submit(c, "wide", .gpus = 2);
    expect_reason(c, "wide", "UNAVAILABLE",
                  "needs 2 GPUs, and the nodes that take work have 1 together; 1 GPU is unavailable (node a, "
                  "GPU 1: memory held by process 1234 (python) of user ada)");
    cancel(c, "wide");
    submit(c, "runs", .time_limit_ms = HOUR_MS);
    submit(c, "wait");
    expect_reason(c, "wait", "NODES_BUSY",
                  "waits for 1 GPU: 0 are free, 1 more when job runs ends, which is expected to end in 1 h; "
                  "1 GPU is unavailable (node a, GPU 1: memory held by process 1234 (python) of user ada)");
}
END_TEST

START_TEST(a_node_counts_by_the_type_of_which_most_is_free_and_by_its_labels)
{
    autocluster struct cluster *c = cluster_open();
    register_mixed(c, "a", NULL);
    node(c, "b", .type = "H100", .labels = "zone=x");
    submit(c, "runs", .type = "A10");
    submit(c, "also", .gpus = 2, .type = "H100", .terms = "node=a");
    submit(c, "wait", .gpus = 2, .type = "H100", .terms = "node=a");
    expect_nodes(c, "wait", 0, "labels 1: b; busy 1: a");
    submit(c, "host", .gpus = 2, .local = "a");
    expect_nodes(c, "host", 0, "host 1: b; busy 1: a");
}
END_TEST

START_TEST(a_gang_that_stops_with_a_lost_node_frees_what_is_left_of_it)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2, .time_limit_ms = HOUR_MS);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    running(c, "gang", "b");
    submit(c, "wait");
    fence(c, "b");
    expect_job(c, "wait", JOB_QUEUED);
    autojson json_t *answer = explain(c, "wait");
    ck_assert_str_eq(text_at(answer, "reason", "code"), "NODES_BUSY");
    ck_assert_ptr_nonnull(strstr(text_at(answer, "reason", "text"), "0 are free, 1 more when job gang ends"));
    stopped(c, "gang", "a");
    expect_job(c, "gang", JOB_QUEUED);
}
END_TEST

START_TEST(without_any_node_nothing_is_foretold)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "runs");
    submit(c, "wait");
    fence(c, "a");
    autojson json_t *answer = explain(c, "wait");
    ck_assert_str_eq(text_at(answer, "reason", "code"), "NO_NODES");
    ck_assert(json_is_null(json_object_get(answer, "start")));
}
END_TEST

/* --- queue entries -------------------------------------------------------------------------------------- */

START_TEST(what_time_alone_has_let_start_is_due)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    c->large = true;
    node(c, "a", .gpus = 4);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"gpu_hours\":{\"hours\":1,\"period_s\":86400}}");
    submit(c, "used", .project = "vision", .time_limit_ms = 2 * HOUR_MS);
    c->now_ms += 2 * HOUR_MS - MINUTE_MS;
    exited(c, "used", "a", 0);
    submit(c, "wait", .project = "vision", .time_limit_ms = MINUTE_MS);
    expect_job(c, "wait", JOB_QUEUED);
    c->now_ms += 2 * DAY_MS; /* the next period, and nobody has looked yet */
    expect_reason(c, "wait", "DUE", "it fits, and is placed by the next change");
}
END_TEST

START_TEST(of_several_reservations_the_last_is_told)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    static const char *const pools[] = {"p", "q", "r"};
    static const int64_t minutes[] = {30, 60, 10};
    for (size_t i = 0; i < 3; i++) {
        char id[16];
        node(c, pools[i], .gpus = 4, .pool = pools[i]);
        snprintf(id, sizeof id, "run%s", pools[i]);
        submit(c, id, .gpus = 2, .pool = pools[i], .time_limit_ms = minutes[i] * MINUTE_MS);
        snprintf(id, sizeof id, "wid%s", pools[i]);
        submit(c, id, .gpus = 4, .pool = pools[i], .time_limit_ms = 2 * MINUTE_MS);
    }
    submit(c, "wait", .gpus = 2, .time_limit_ms = 5 * HOUR_MS);
    expect_reason(
        c, "wait", "RESERVED",
        "needs 2 GPUs, which are free, but reserved for job widq, which is to start in 1 h; this one "
        "is estimated to run for 5 h");
}
END_TEST

START_TEST(runs_of_more_than_the_patience_are_due_by_their_submission)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a");
    submit(c, "runs", .time_limit_ms = HOUR_MS);
    submit(c, "long", .time_limit_ms = 300 * DAY_MS);
    submit(c, "shrt", .time_limit_ms = 10 * DAY_MS);
    submit(c, "more", .time_limit_ms = 100 * DAY_MS);
    autojson json_t *answer = explain(c, "more");
    ck_assert_int_ge(seconds_until(c, answer, "at"), 310 * DAY_MS / 1000);
    exited(c, "runs", "a", 0);
    expect_job(c, "long", JOB_PLACED);
}
END_TEST

START_TEST(at_most_so_many_of_one_kind_are_tried_one_by_one)
{
    for (int extra = 0; extra <= 1; extra++) {
        autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
        c->large = true;
        node(c, "a");
        advance_beating(c, 1000, "a");
        window(c, "w", .from_ms = c->now_ms + 30 * MINUTE_MS, .until_ms = c->now_ms + DAY_MS);
        for (int i = 0; i < LIMIT_BACKFILL_TRIES - 1 + extra; i++) {
            char id[16];
            snprintf(id, sizeof id, "l%d", i);
            submit(c, id, .time_limit_ms = HOUR_MS + i * 1000, .priority = 5);
            expect_job(c, id, JOB_QUEUED);
        }
        submit(c, "shrt", .time_limit_ms = MINUTE_MS);
        expect_job(c, "shrt", JOB_PLACED);
        exited(c, "shrt", "a", 0);
        submit(c, "last", .time_limit_ms = 2 * HOUR_MS, .priority = 5);
        submit(c, "next", .time_limit_ms = MINUTE_MS);
        expect_job(c, "next", extra ? JOB_QUEUED : JOB_PLACED);
        core_check(c->core);
    }
}
END_TEST

/* --- what is looked at ---------------------------------------------------------------------------------- */

START_TEST(a_long_list_of_those_who_run_is_walked_in_the_order_of_their_ends)
{
    enum { JOBS = 300 };
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    c->large = true;
    node(c, "a", .gpus = JOBS);
    for (int i = 0; i < JOBS; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        submit(c, id, .time_limit_ms = (10 + i * 7 % JOBS) * MINUTE_MS);
    }
    submit(c, "wait", .gpus = JOBS, .time_limit_ms = MINUTE_MS);
    autojson json_t *answer = explain(c, "wait");
    ck_assert_int_eq(seconds_until(c, answer, "at"), (10 + JOBS - 1) * 60);
}
END_TEST

START_TEST(an_answer_looks_at_a_bounded_number_of_jobs_that_run)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    for (int i = 0; i <= LIMIT_AVAILABILITY / LIMIT_NODE_DEVICES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%02d", i);
        node(c, name, .gpus = LIMIT_NODE_DEVICES);
    }
    node(c, "h", .type = "H100");
    submit(c, "last", .type = "H100", .time_limit_ms = 300 * DAY_MS);
    for (int i = 0; i <= LIMIT_AVAILABILITY; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        submit(c, id, .type = "A10", .time_limit_ms = HOUR_MS);
    }
    submit(c, "wait", .type = "H100");
    expect_reason(c, "wait", "NODES_BUSY", "waits for 1 H100: 0 are free together");
}
END_TEST

/* --- advice --------------------------------------------------------------------------------------------- */

START_TEST(so_many_other_pools_and_types_are_tried_and_no_more)
{
    autocluster struct cluster *c = cluster_open();
    char name[16], type[16];
    c->large = true;
    register_mixed(c, "own", "own");
    for (int i = 0; i < LIMIT_CHANGE_TRIES; i++) {
        snprintf(name, sizeof name, "p%02d", i);
        snprintf(type, sizeof type, "T%02d", i);
        node(c, name, .pool = name, .type = type);
        register_mixed(c, "two", "p00"); /* its pool has several types */
    }
    node(c, "z", .pool = "z", .type = "A10", .gpus = 4);
    submit(c, "wait", .pool = "own", .type = "H100", .gpus = 2);
    submit(c, "also", .pool = "own", .type = "H100", .gpus = 2, .priority = 3);
    expect_job(c, "also", JOB_QUEUED);
    submit(c, "runs", .pool = "p00", .type = "H100", .gpus = 2);
    autojson json_t *answer = explain(c, "also");
    ck_assert(json_is_null(json_object_get(answer, "smallest_change")));
}
END_TEST

START_TEST(nobody_can_go_before_the_highest_priority)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 2);
    submit(c, "runs", .time_limit_ms = HOUR_MS);
    submit(c, "wide", .gpus = 2, .priority = LIMIT_PRIORITY, .time_limit_ms = HOUR_MS);
    submit(c, "wait", .time_limit_ms = 30 * HOUR_MS);
    autojson json_t *answer = explain(c, "wait");
    ck_assert_str_ne(text_at(answer, "smallest_change", "field"), "priority");
    ck_assert_str_eq(text_at(answer, "reason", "code"), "RESERVED");
}
END_TEST

START_TEST(a_plan_of_an_account_that_may_run_nothing_is_refused)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    limit(c, ACCOUNT_USER, "alice", "{\"max_running_jobs\":0}");
    ck_assert_int_eq(plan(c, .gpus = 1), ERR_NONE);
    autojson json_t *answer = answer_of(c);
    ck_assert(json_is_false(json_object_get(answer, "admitted")));
    ck_assert_str_eq(text_at(answer, "refusal", "code"), "over_limit");
}
END_TEST

START_TEST(a_forecast_that_takes_too_long_is_not_made)
{
    enum { JOBS = 4 * LIMIT_NODE_DEVICES };
    autocluster struct cluster *c = cluster_open();
    char id[16];
    c->large = true;
    for (int i = 0; i < JOBS / LIMIT_NODE_DEVICES; i++) {
        snprintf(id, sizeof id, "n%d", i);
        node(c, id, .gpus = LIMIT_NODE_DEVICES);
    }
    for (int i = 0; i < JOBS; i++) {
        snprintf(id, sizeof id, "r%d", i);
        submit(c, id, .time_limit_ms = (i + 1) * MINUTE_MS);
    }
    for (int i = 0; i < JOBS; i++) {
        snprintf(id, sizeof id, "w%d", i);
        submit(c, id, .time_limit_ms = 300 * DAY_MS);
    }
    submit(c, "wait");
    autojson json_t *answer = explain(c, "wait");
    ck_assert(!json_is_true(json_object_get(json_object_get(answer, "turn"), "ahead_more")));
    ck_assert(json_is_null(json_object_get(json_object_get(answer, "start"), "at")));
    ck_assert_int_gt(seconds_until(c, answer, "later_than"), 0);
    ck_assert_str_eq(text_at(answer, "start", "confidence"), "low");
}
END_TEST

START_TEST(a_reservation_in_the_way_is_one_that_the_job_would_outlast)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "p", .gpus = 4, .pool = "p");
    node(c, "q", .gpus = 4, .pool = "q");
    submit(c, "runp", .gpus = 2, .pool = "p", .time_limit_ms = 30 * MINUTE_MS);
    submit(c, "widp", .gpus = 4, .pool = "p", .time_limit_ms = MINUTE_MS);
    submit(c, "runq", .gpus = 2, .pool = "q", .time_limit_ms = 60 * MINUTE_MS);
    submit(c, "widq", .gpus = 4, .pool = "q", .time_limit_ms = MINUTE_MS);
    submit(c, "tiny", .pool = "q", .time_limit_ms = MINUTE_MS);
    expect_job(c, "tiny", JOB_PLACED);
    declined(c, "tiny", "q"); /* what is free there is not to be had at once */
    submit(c, "wait", .gpus = 2, .time_limit_ms = 45 * MINUTE_MS);
    expect_reason(
        c, "wait", "RESERVED",
        "needs 2 GPUs, which are free, but reserved for job widp, which is to start in 30 min; this "
        "one is estimated to run for 45 min");
}
END_TEST

START_TEST(what_is_due_is_so_before_others_who_wait_for_more)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    c->large = true;
    node(c, "a", .gpus = 4);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"gpu_hours\":{\"hours\":1,\"period_s\":86400}}");
    submit(c, "runs", .gpus = 2, .time_limit_ms = 30 * DAY_MS);
    submit(c, "used", .project = "vision", .time_limit_ms = 2 * HOUR_MS);
    submit(c, "wide", .gpus = 4, .time_limit_ms = MINUTE_MS);
    c->now_ms += 2 * HOUR_MS - MINUTE_MS;
    exited(c, "used", "a", 0);
    submit(c, "wait", .project = "vision", .time_limit_ms = MINUTE_MS);
    expect_job(c, "wait", JOB_QUEUED);
    c->now_ms += 2 * DAY_MS;
    autojson json_t *answer = explain(c, "wait");
    ck_assert_int_eq(number_at(answer, "turn", "ahead"), 1);
    expect_reason_in(answer, "DUE", "it fits, and is placed by the next change");
}
END_TEST

START_TEST(gpus_that_others_give_way_for_are_reserved)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 4);
    limit(c, ACCOUNT_PROJECT, "lent", "{\"quota\":{\"A10\":1}}");
    limit(c, ACCOUNT_PROJECT, "own", "{\"quota\":{\"A10\":8}}");
    submit(c, "aaaa", .gpus = 2, .project = "lent", .time_limit_ms = HOUR_MS);
    submit(c, "wide", .gpus = 4, .project = "own", .time_limit_ms = MINUTE_MS);
    expect_orders(c, "a", "stop aaaa/1 rank 0-1 of 2 on 0,1 PREEMPTED grace 30000\n");
    submit(c, "wait", .project = "own", .time_limit_ms = 10 * HOUR_MS);
    autojson json_t *answer = explain(c, "wait");
    ck_assert_str_eq(text_at(answer, "reason", "code"), "RESERVED");
    ck_assert_ptr_nonnull(strstr(text_at(answer, "reason", "text"), "reserved for job wide"));
}
END_TEST

START_TEST(a_job_of_any_type_counts_a_node_by_the_type_with_most_left)
{
    autocluster struct cluster *c = cluster_open();
    register_mixed(c, "a", NULL);
    submit(c, "held", .gpus = 2, .hold = true);
    expect_nodes(c, "held", 1, "");
    submit(c, "runs", .gpus = 2, .type = "H100");
    expect_nodes(c, "held", 1, "");
    submit(c, "more", .type = "A10");
    expect_nodes(c, "held", 0, "busy 1: a");
}
END_TEST

START_TEST(a_start_that_rests_on_many_equal_runs_is_of_high_confidence)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    c->large = true;
    node(c, "a");
    for (int i = 0; i < 50; i++) {
        char id[16];
        snprintf(id, sizeof id, "r%d", i);
        submit(c, id, .name = "same", .time_limit_ms = 12 * HOUR_MS);
        running(c, id, "a");
        c->now_ms += 10 * HOUR_MS;
        exited(c, id, "a", 0);
    }
    submit(c, "runs", .name = "same", .time_limit_ms = 12 * HOUR_MS);
    running(c, "runs", "a");
    submit(c, "wait", .name = "same", .time_limit_ms = 12 * HOUR_MS);
    autojson json_t *answer = explain(c, "wait");
    ck_assert_str_eq(text_at(answer, "start", "confidence"), "high");
    ck_assert_int_gt(seconds_until(c, answer, "latest_at") - seconds_until(c, answer, "earliest_at"), 60);
}
END_TEST

START_TEST(of_a_job_whose_first_device_is_gone_the_others_come_free_unnamed)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "runs", .gpus = 2);
    running(c, "runs", "a");
    struct node_attempt known = {.attempt_id = rows_attempt_id(c->rows, "runs"), .state = MEMBER_RUNNING};
    struct device left = {.index = 1, .uuid = "GPU", .type = "A10", .group = -1};
    ck_assert_int_eq(
        node(c, "a", .devices = &left, .device_count = 1, .attempts = &known, .attempt_count = 1), ERR_NONE);
    expect_job(c, "runs", JOB_RUNNING);
    submit(c, "wait");
    expect_reason(c, "wait", "NODES_BUSY", "waits for 1 GPU: 0 are free");
}
END_TEST

Suite *reason_suite(void)
{
    Suite *suite = suite_create("reasons");
    TCase *tests = tcase_create("reasons");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, several_nodes_that_declined_are_told_by_the_last);
    tcase_add_test(tests, of_a_node_that_declined_only_what_is_free_is_told);
    tcase_add_test(tests, gpus_that_cannot_be_had_are_told_with_their_reason);
    tcase_add_test(tests, a_node_counts_by_the_type_of_which_most_is_free_and_by_its_labels);
    tcase_add_test(tests, a_gang_that_stops_with_a_lost_node_frees_what_is_left_of_it);
    tcase_add_test(tests, without_any_node_nothing_is_foretold);
    tcase_add_test(tests, what_time_alone_has_let_start_is_due);
    tcase_add_test(tests, of_several_reservations_the_last_is_told);
    tcase_add_test(tests, runs_of_more_than_the_patience_are_due_by_their_submission);
    tcase_add_test(tests, at_most_so_many_of_one_kind_are_tried_one_by_one);
    tcase_add_test(tests, a_long_list_of_those_who_run_is_walked_in_the_order_of_their_ends);
    tcase_add_test(tests, so_many_other_pools_and_types_are_tried_and_no_more);
    tcase_add_test(tests, nobody_can_go_before_the_highest_priority);
    tcase_add_test(tests, a_plan_of_an_account_that_may_run_nothing_is_refused);
    tcase_add_test(tests, a_forecast_that_takes_too_long_is_not_made);
    tcase_add_test(tests, a_reservation_in_the_way_is_one_that_the_job_would_outlast);
    tcase_add_test(tests, what_is_due_is_so_before_others_who_wait_for_more);
    tcase_add_test(tests, gpus_that_others_give_way_for_are_reserved);
    tcase_add_test(tests, a_job_of_any_type_counts_a_node_by_the_type_with_most_left);
    tcase_add_test(tests, a_start_that_rests_on_many_equal_runs_is_of_high_confidence);
    tcase_add_test(tests, of_a_job_whose_first_device_is_gone_the_others_come_free_unnamed);
    suite_add_tcase(suite, tests);
    TCase *large = tcase_create("large");
    tcase_set_tags(large, "large");
    tcase_set_timeout(large, 240);
    tcase_add_test(large, an_answer_looks_at_a_bounded_number_of_jobs_that_run);
    suite_add_tcase(suite, large);
    return suite;
}
