/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job waits, when it will start, and what would start it now. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/harness/explain_rig.h"
#include "tests/trace/suites.h"

/* --- reasons -------------------------------------------------------------------------------------------- */

START_TEST(a_job_for_which_too_few_gpus_are_free_names_what_has_to_end)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 8);
    submit(c, "long", .gpus = 5, .time_limit_ms = 140 * MINUTE_MS);
    running(c, "long", "a");
    advance_beating(c, 2 * HOUR_MS, "a");
    submit(c, "wait", .gpus = 8, .type = "A10");
    expect_reason(c, "wait", "NODES_BUSY",
                  "waits for 8 A10: 3 are free, 5 more when job long ends, which has run for 2 h and is "
                  "expected to end in 20 min");
    expect_nodes(c, "wait", 0, "busy 1: a");
}
END_TEST

START_TEST(a_job_of_somebody_else_has_no_name_unless_all_who_read_may_see_it)
{
    static const char others[] =
        "waits for 2 GPUs: 0 are free, 2 more when another user's job ends, which is "
        "expected to end in 10 min",
                      named[] =
                          "waits for 2 GPUs: 0 are free, 2 more when job runs ends, which is expected to end "
                          "in 10 min";
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 2);
    submit(c, "runs", .gpus = 2, .owner = "bob", .project = "vision", .time_limit_ms = 10 * MINUTE_MS);
    submit(c, "wait", .gpus = 2, .project = "vision");
    submit(c, "bobs", .gpus = 2, .owner = "bob", .project = "speech", .priority = 1);
    expect_reason(
        c, "wait", "BEHIND",
        "it is queued behind another user's job (its priority is 1, this one's 0); this one needs 2 "
        "GPUs, and 0 are free");
    expect_reason(c, "bobs", "NODES_BUSY", named); /* nobody but bob reads it */
    cancel(c, "bobs");
    expect_reason(c, "wait", "NODES_BUSY", others);
    c->sees_all = true;
    expect_reason(c, "wait", "NODES_BUSY", named);
    c->sees_all = false;
    expect_reason(c, "wait", "NODES_BUSY", others);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"members\":{\"alice\":\"user\",\"bob\":\"user\"}}");
    expect_reason(c, "wait", "NODES_BUSY", named);
    submit(c, "also", .gpus = 2, .project = "speech", .priority = 1);
    expect_reason(
        c, "wait", "BEHIND",
        "it is queued behind a job of another project (its priority is 1, this one's 0); this one needs 2 "
        "GPUs, and 0 are free");
}
END_TEST

START_TEST(a_node_in_a_window_goes_away_and_is_not_silent)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a");
    node(c, "b");
    window(c, "w", .nodes = "a", .from_ms = -1000, .until_ms = HOUR_MS);
    submit(c, "runs");
    submit(c, "wait");
    expect_nodes(c, "wait", 0, "leaving 1: a; busy 1: b");
}
END_TEST

START_TEST(a_job_that_waits_for_several_to_end_counts_them)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 4);
    submit(c, "aaaa", .time_limit_ms = 10 * MINUTE_MS);
    submit(c, "bbbb", .time_limit_ms = 20 * MINUTE_MS);
    submit(c, "wait", .gpus = 4);
    expect_reason(c, "wait", "NODES_BUSY",
                  "waits for 4 GPUs: 2 are free, 2 more when job bbbb and 1 other end, the last of them in "
                  "20 min");
}
END_TEST

START_TEST(a_job_behind_another_says_why_that_goes_first)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 2);
    submit(c, "runs", .gpus = 2, .time_limit_ms = HOUR_MS);
    submit(c, "high", .gpus = 2, .time_limit_ms = HOUR_MS, .priority = 5);
    submit(c, "wait", .gpus = 2, .time_limit_ms = HOUR_MS);
    expect_reason(
        c, "wait", "BEHIND",
        "it is queued behind job high (its priority is 5, this one's 0); this one needs 2 GPUs, and 0 "
        "are free");
    submit(c, "slow", .gpus = 2, .time_limit_ms = 2 * HOUR_MS);
    expect_reason(c, "slow", "BEHIND",
                  "it is queued behind 2 jobs, the last of them job wait (it is due 10 h earlier); this "
                  "one needs 2 GPUs, and 0 are free");
}
END_TEST

START_TEST(a_larger_job_that_may_be_passed_is_no_reason)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 4);
    submit(c, "runs", .gpus = 4, .time_limit_ms = 10 * MINUTE_MS);
    submit(c, "wide", .gpus = 4, .time_limit_ms = HOUR_MS);
    submit(c, "wait", .gpus = 2, .time_limit_ms = HOUR_MS);
    autojson json_t *answer = explain(c, "wait");
    expect_reason_in(
        answer, "NODES_BUSY",
        "waits for 2 GPUs: 0 are free, 4 more when job runs ends, which is expected to end in 10 min");
    ck_assert_int_eq(number_at(answer, "turn", "ahead"), 1);
}
END_TEST

START_TEST(equal_jobs_stand_behind_each_other)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "runs");
    submit(c, "next");
    submit(c, "wait");
    autojson json_t *answer = explain(c, "wait");
    expect_reason_in(answer, "BEHIND",
                     "it is queued behind job next (it came first); this one needs 1 GPU, and 0 are free");
    ck_assert_int_eq(number_at(answer, "turn", "ahead"), 1);
}
END_TEST

START_TEST(a_job_that_is_kept_from_free_gpus_stands_behind_who_keeps_them)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "runs");
    submit(c, "wide", .gpus = 4);
    submit(c, "wait");
    expect_reason(c, "wait", "BEHIND",
                  "it is queued behind job wide (it came first); this one needs 1 GPU, and 3 are free");
    expect_nodes(c, "wait", 0, "reserved 2: a b");
    expect_change(c, "wait", NULL, NULL);
}
END_TEST

START_TEST(a_job_that_would_outlast_a_reservation_says_when_that_starts)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 4);
    submit(c, "runs", .gpus = 2, .time_limit_ms = 30 * MINUTE_MS);
    submit(c, "wide", .gpus = 4, .time_limit_ms = 10 * MINUTE_MS);
    submit(c, "wait", .gpus = 2, .time_limit_ms = HOUR_MS);
    autojson json_t *answer = explain(c, "wait");
    expect_reason_in(answer, "RESERVED",
                     "needs 2 GPUs, which are free, but reserved for job wide, which is to start in 30 min; "
                     "this one is estimated to run for 1 h");
    expect_change_in(answer, "time_limit_s",
                     "with a time limit of 30 min it would start now, and end before the GPUs are needed");
    ck_assert_int_eq(number_at(answer, "smallest_change", "value"), 1800);
    expect_nodes(c, "wait", 0, "reserved 1: a");
    submit(c, "gaps", .gpus = 2, .time_limit_ms = 30 * MINUTE_MS);
    expect_job(c, "gaps", JOB_PLACED);
}
END_TEST

START_TEST(gpus_that_are_scattered_are_said_to_be)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2, .host = "here");
    node(c, "b", .gpus = 2, .host = "here");
    submit(c, "aaaa");
    submit(c, "both", .gpus = 2);
    submit(c, "cccc");
    exited(c, "both", "b", 0);
    submit(c, "dddd");
    exited(c, "cccc", "a", 0);
    submit(c, "wide", .gpus = 2, .local = "here");
    expect_reason(c, "wide", "FRAGMENTED",
                  "needs 2 GPUs: 2 are free, but 1 at most together on one node of the submitter's host");
    expect_change(c, "wide", "remote", "with remote=true it would start now, on other hosts");
}
END_TEST

START_TEST(free_gpus_of_several_pools_are_not_together)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 3);
    node(c, "b", .gpus = 3, .pool = "other");
    submit(c, "runs", .pool = "default");
    submit(c, "also", .pool = "other");
    submit(c, "wide", .gpus = 3, .type = "A10");
    autojson json_t *answer = explain(c, "wide");
    expect_reason_in(
        answer, "FRAGMENTED",
        "needs 3 A10: 4 are free, but 2 at most together in one pool and of one type, on nodes that "
        "reach each other");
    expect_change_in(answer, "gpus", "with 2 GPUs instead of 3 it would start now");
    ck_assert_int_eq(number_at(answer, "smallest_change", "value"), 2);
}
END_TEST

START_TEST(a_job_whose_nodes_take_no_work_says_so)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "runs");
    submit(c, "wide", .gpus = 4);
    drain(c, "b");
    expect_reason(
        c, "wide", "DRAINED",
        "needs 4 GPUs, and the nodes that take work have 2 together; 2 are on a node that takes no new "
        "work (b)");
    expect_nodes(c, "wide", 0, "draining 1: b; busy 1: a");
    autojson json_t *answer = explain(c, "wide");
    ck_assert(json_is_null(json_object_get(answer, "start")));
}
END_TEST

START_TEST(a_job_that_no_node_could_hold_any_more_says_so)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "runs");
    submit(c, "wide", .gpus = 4);
    fence(c, "b");
    expect_reason(c, "wide", "NO_NODES",
                  "needs 4 GPUs, and the nodes that are registered have 2 together in what it may use");
}
END_TEST

START_TEST(a_job_whose_label_no_node_has_any_more_names_it)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .labels = "zone=x");
    node(c, "b");
    submit(c, "runs", .terms = "zone=x");
    submit(c, "wait", .terms = "zone=x");
    fence(c, "a");
    expect_reason(c, "wait", "NO_NODES",
                  "needs 1 GPU, and the nodes that are registered have 0 together in what it may use: zone=x "
                  "fails on 1 of 1 node");
}
END_TEST

START_TEST(a_node_that_declined_is_named_with_the_end_of_its_hold)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "wait");
    declined(c, "wait", "a");
    expect_reason(
        c, "wait", "HELD_OFF",
        "needs 1 GPU, which are free, but node a declined to start a job and gets no work for another "
        "2.0 s");
    expect_nodes(c, "wait", 0, "on_hold 1: a");
}
END_TEST

START_TEST(a_job_whose_nodes_get_ready_names_them)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "wait", .environment = "k1");
    expect_reason(c, "wait", "STAGING", "nodes are preparing its environment: a");
    expect_nodes(c, "wait", 0, "not_ready 1: a");
    unable(c, "k1", "a", "no space left");
    expect_job(c, "wait", JOB_FAILED);
}
END_TEST

/* Loaded, as no input makes it so. */
static void expect_reason_of_state(enum job_state state, const char *code)
{
    const struct core_config config = {.incarnation = 1, .next_job_key = 2, .heartbeat_ms = HEARTBEAT_MS};
    struct core *core = core_create(&config);
    const struct job_spec spec = {.gpus = 1, .remote = true, .lease_ms = MINUTE_MS};
    const struct job_birth birth = {
        .key = 1, .id = "wait", .owner = "alice", .project = "default", .gpus = 1};
    const struct job_life life = {.key = 1, .state = state, .seq = 1, .exit_code = -1, .failed_rank = -1};
    core_load_job(core, &birth, &life, &spec, NULL);
    struct step step;
    core_step(core, &(struct input){.kind = INPUT_BOOT, .wall_ms = 1000}, 0, &step);
    step_finish(&step);
    core_step(core,
              &(struct input){.kind = INPUT_ASK, .wall_ms = 1000, .ask = {.kind = ASK_EXPLAIN, .id = "wait"}},
              0, &step);
    ck_assert(step.ok);
    autojson json_t *answer = json_parse(step.answer, strlen(step.answer), NULL);
    ck_assert_str_eq(text_at(answer, "reason", "code"), code);
    ck_assert(json_is_null(json_object_get(answer, "start")));
    step_finish(&step);
    core_destroy(core);
}

START_TEST(a_job_that_waits_for_a_person_or_for_others_says_so)
{
    expect_reason_of_state(JOB_HELD, "HELD");
    expect_reason_of_state(JOB_BLOCKED, "BLOCKED");
}
END_TEST

START_TEST(a_job_that_has_its_gpus_waits_for_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "runs");
    autojson json_t *answer = explain(c, "runs");
    ck_assert(json_is_null(json_object_get(answer, "reason")));
    ck_assert(json_is_null(json_object_get(answer, "start")));
    ck_assert_str_eq(json_string_value(json_object_get(answer, "state")), "PLACED");
    ck_assert_int_eq(cluster_ask(c, ASK_EXPLAIN, "none"), ERR_NOT_FOUND);
    ck_assert_int_eq(cluster_ask(c, ASK_REHEARSE, "runs"), ERR_CONFLICT);
}
END_TEST

/* A job that outruns its estimate puts off a reservation, and no event says so. */
/* --- nodes ---------------------------------------------------------------------------------------------- */

START_TEST(each_node_counts_in_the_first_test_that_it_fails)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b1", .gpus = 1);
    node(c, "b2", .gpus = 2);
    node(c, "dr", .gpus = 2);
    node(c, "hh", .gpus = 2, .type = "H100");
    node(c, "pp", .gpus = 2, .pool = "other");
    submit(c, "runs", .pool = "default", .type = "A10", .gpus = 2);
    submit(c, "also", .pool = "default", .type = "A10", .gpus = 1);
    drain(c, "dr");
    submit(c, "wait", .pool = "default", .type = "A10", .gpus = 2);
    expect_nodes(c, "wait", 0, "gpu_type 1: hh; pool 1: pp; draining 1: dr; busy 2: b1 b2");
}
END_TEST

START_TEST(of_many_nodes_eight_are_named)
{
    autocluster struct cluster *c = cluster_open();
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%02d", i);
        node(c, name, .type = "H100");
    }
    node(c, "a");
    submit(c, "runs", .type = "A10");
    submit(c, "wait", .type = "A10");
    expect_nodes(c, "wait", 0, "gpu_type 12: n00 n01 n02 n03 n04 n05 n06 n07; busy 1: a");
}
END_TEST

/* --- changes -------------------------------------------------------------------------------------------- */

START_TEST(another_type_that_is_free_is_named)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "h", .type = "H100");
    submit(c, "runs", .type = "A10");
    submit(c, "wait", .type = "A10");
    expect_change(c, "wait", "gpu_type", "on GPUs of type H100 it would start now");
}
END_TEST

START_TEST(another_pool_that_is_free_is_named)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b", .pool = "other");
    submit(c, "runs", .pool = "default");
    submit(c, "wait", .pool = "default");
    expect_change(c, "wait", "pool", "in pool other it would start now");
}
END_TEST

START_TEST(on_demand_gpus_that_are_free_are_named)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .pool = "ours", .reserved = true);
    node(c, "b");
    submit(c, "runs");
    submit(c, "wait");
    expect_change(c, "wait", "use_reserved_pool", "on on-demand GPUs it would start now");
}
END_TEST

START_TEST(other_hosts_that_are_free_are_named)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "runs", .local = "a");
    submit(c, "wait", .local = "a");
    expect_change(c, "wait", "remote", "with remote=true it would start now, on other hosts");
}
END_TEST

START_TEST(fewer_gpus_are_as_many_as_would_start)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8);
    submit(c, "runs", .gpus = 3);
    submit(c, "wait", .gpus = 8);
    expect_change(c, "wait", "gpus", "with 5 GPUs instead of 8 it would start now");
}
END_TEST

START_TEST(a_priority_is_advised_where_a_shorter_run_would_be_too_short)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 4);
    submit(c, "runs", .gpus = 2, .time_limit_ms = 10 * MINUTE_MS);
    submit(c, "wide", .gpus = 4, .priority = 3);
    submit(c, "wait", .gpus = 2, .type = "A10", .time_limit_ms = HOUR_MS);
    expect_reason(c, "wait", "RESERVED",
                  "needs 2 A10, which are free, but reserved for job wide, which is to start in 10 min; this "
                  "one is estimated to run for 1 h");
    autojson json_t *answer = explain(c, "wait");
    expect_change_in(answer, "priority", "with priority 4 it would start now, before 1 other job");
    ck_assert_int_eq(number_at(answer, "smallest_change", "value"), 4);
}
END_TEST

START_TEST(nothing_is_advised_where_nothing_helps)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 2);
    submit(c, "runs", .gpus = 2);
    submit(c, "wait");
    expect_change(c, "wait", NULL, NULL);
}
END_TEST

/* --- starts --------------------------------------------------------------------------------------------- */

START_TEST(the_start_counts_those_ahead)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 2);
    submit(c, "runs", .gpus = 2, .time_limit_ms = 10 * MINUTE_MS);
    submit(c, "next", .gpus = 2, .time_limit_ms = 20 * MINUTE_MS);
    submit(c, "wait", .gpus = 2, .time_limit_ms = HOUR_MS);
    autojson json_t *first = explain(c, "next");
    ck_assert_int_eq(seconds_until(c, first, "at"), 600);
    autojson json_t *answer = explain(c, "wait");
    ck_assert_int_eq(seconds_until(c, answer, "at"), 1800);
    ck_assert_int_eq(seconds_until(c, answer, "earliest_at"), 900);
    ck_assert_int_eq(seconds_until(c, answer, "latest_at"), 1800);
    ck_assert_str_eq(text_at(answer, "start", "confidence"), "medium");
    ck_assert_int_eq(number_at(answer, "turn", "ahead"), 1);
    ck_assert_int_eq(number_at(answer, "turn", "estimate_s"), 3600);
}
END_TEST

START_TEST(a_start_that_rests_on_guesses_is_of_low_confidence)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "runs");
    submit(c, "wait");
    autojson json_t *answer = explain(c, "wait");
    ck_assert_int_eq(seconds_until(c, answer, "at"), 3600);
    ck_assert_int_eq(seconds_until(c, answer, "earliest_at"), 900);
    ck_assert_int_eq(seconds_until(c, answer, "latest_at"), 4 * 3600);
    ck_assert_str_eq(text_at(answer, "start", "confidence"), "low");
}
END_TEST

START_TEST(where_nobody_may_pass_the_start_is_not_before_theirs)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    submit(c, "runs", .gpus = 2, .time_limit_ms = 10 * MINUTE_MS);
    submit(c, "wide", .gpus = 4, .time_limit_ms = 20 * MINUTE_MS);
    submit(c, "wait", .gpus = 1, .time_limit_ms = MINUTE_MS);
    autojson json_t *answer = explain(c, "wait");
    ck_assert_int_eq(seconds_until(c, answer, "at"), 1800);
}
END_TEST

START_TEST(behind_too_many_jobs_the_start_is_later_than_theirs)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a");
    for (int i = 0; i <= LIMIT_AHEAD + 1; i++) {
        char id[17];
        snprintf(id, sizeof id, "j%d", i);
        submit(c, id, .time_limit_ms = MINUTE_MS);
    }
    submit(c, "wait");
    autojson json_t *answer = explain(c, "wait");
    ck_assert_int_eq(number_at(answer, "turn", "ahead"), LIMIT_AHEAD);
    ck_assert(json_is_true(json_object_get(json_object_get(answer, "turn"), "ahead_more")));
    ck_assert(json_is_null(json_object_get(json_object_get(answer, "start"), "at")));
    ck_assert_int_gt(seconds_until(c, answer, "later_than"), 0);
    ck_assert_str_eq(text_at(answer, "start", "confidence"), "low");
}
END_TEST

/* --- what a question leaves alone ----------------------------------------------------------------------- */

/* Two GPUs are free, two run a job of an estimated 16 h; jobs with two GPUs are known to run for long, others
 * are not. So a change of the number of GPUs changes whose turn it is. */
static struct cluster *cluster_with_history(void)
{
    struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    c->large = true;
    node(c, "a", .gpus = 4);
    submit(c, "hist", .gpus = 2, .name = "x");
    running(c, "hist", "a");
    c->now_ms += 20 * HOUR_MS;
    exited(c, "hist", "a", 0);
    submit(c, "runs", .gpus = 2, .name = "x");
    running(c, "runs", "a");
    submit(c, "wide", .gpus = 4, .name = "x");
    return c;
}

START_TEST(a_change_that_would_let_another_go_first_is_not_advised)
{
    autocluster struct cluster *c = cluster_with_history();
    c->now_ms += 10 * HOUR_MS;
    submit(c, "next", .gpus = 2, .time_limit_ms = 10 * HOUR_MS);
    expect_job(c, "next", JOB_QUEUED);
    expect_change(c, "wide", "gpus", "with 1 GPU instead of 4 it would start now");
}
END_TEST

/* A job that is put off for too long has a firm reservation. A question about it lets others take its place
 * for a moment, which is no reason to count anew. */
START_TEST(a_question_takes_no_promise_from_a_job)
{
    autocluster struct cluster *c = cluster_with_history();
    c->now_ms += HOUR_MS;
    submit(c, "also", .gpus = 4, .name = "x");
    c->now_ms += 18 * HOUR_MS;
    json_decref(explain(c, "wide"));
    submit(c, "more");
    expect_job(c, "more", JOB_QUEUED);
}
END_TEST

Suite *explain_suite(void)
{
    Suite *suite = suite_create("explain");
    TCase *tests = tcase_create("explain");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_job_for_which_too_few_gpus_are_free_names_what_has_to_end);
    tcase_add_test(tests, a_job_of_somebody_else_has_no_name_unless_all_who_read_may_see_it);
    tcase_add_test(tests, a_node_in_a_window_goes_away_and_is_not_silent);
    tcase_add_test(tests, a_job_that_waits_for_several_to_end_counts_them);
    tcase_add_test(tests, a_job_behind_another_says_why_that_goes_first);
    tcase_add_test(tests, a_larger_job_that_may_be_passed_is_no_reason);
    tcase_add_test(tests, equal_jobs_stand_behind_each_other);
    tcase_add_test(tests, a_job_that_is_kept_from_free_gpus_stands_behind_who_keeps_them);
    tcase_add_test(tests, a_job_that_would_outlast_a_reservation_says_when_that_starts);
    tcase_add_test(tests, gpus_that_are_scattered_are_said_to_be);
    tcase_add_test(tests, free_gpus_of_several_pools_are_not_together);
    tcase_add_test(tests, a_job_whose_nodes_take_no_work_says_so);
    tcase_add_test(tests, a_job_that_no_node_could_hold_any_more_says_so);
    tcase_add_test(tests, a_job_whose_label_no_node_has_any_more_names_it);
    tcase_add_test(tests, a_node_that_declined_is_named_with_the_end_of_its_hold);
    tcase_add_test(tests, a_job_whose_nodes_get_ready_names_them);
    tcase_add_test(tests, a_job_that_waits_for_a_person_or_for_others_says_so);
    tcase_add_test(tests, a_job_that_has_its_gpus_waits_for_nothing);
    tcase_add_test(tests, each_node_counts_in_the_first_test_that_it_fails);
    tcase_add_test(tests, of_many_nodes_eight_are_named);
    tcase_add_test(tests, another_type_that_is_free_is_named);
    tcase_add_test(tests, another_pool_that_is_free_is_named);
    tcase_add_test(tests, on_demand_gpus_that_are_free_are_named);
    tcase_add_test(tests, other_hosts_that_are_free_are_named);
    tcase_add_test(tests, fewer_gpus_are_as_many_as_would_start);
    tcase_add_test(tests, a_priority_is_advised_where_a_shorter_run_would_be_too_short);
    tcase_add_test(tests, nothing_is_advised_where_nothing_helps);
    tcase_add_test(tests, the_start_counts_those_ahead);
    tcase_add_test(tests, a_start_that_rests_on_guesses_is_of_low_confidence);
    tcase_add_test(tests, where_nobody_may_pass_the_start_is_not_before_theirs);
    tcase_add_test(tests, behind_too_many_jobs_the_start_is_later_than_theirs);
    tcase_add_test(tests, a_change_that_would_let_another_go_first_is_not_advised);
    tcase_add_test(tests, a_question_takes_no_promise_from_a_job);
    suite_add_tcase(suite, tests);
    return suite;
}
