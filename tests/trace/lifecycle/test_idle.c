/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose GPUs are nearly unused: when their owners are told, and what becomes of the jobs. */
#include "proto/limits.h"
#include "proto/spec/tasks.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

#define SECOND_MS 1000

/* A heartbeat of a node that has nothing but the newest attempt of the job. */
static void says(struct cluster *c, const char *name, const char *id, int64_t idle_ms)
{
    struct node_attempt attempt = {rows_attempt_id(c->rows, id), MEMBER_RUNNING, idle_ms};
    const struct heartbeat_message message = {
        .node = name, .boot_id = "boot-1", .attempts = &attempt, .attempt_count = 1};
    ck_assert_int_eq(cluster_step(c, &(struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &message}),
                     ERR_NONE);
}

/* Time passes while both nodes, where they are, see the same. */
static void stays(struct cluster *c, const char *id, const char *names, int64_t idle_ms, int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += SECOND_MS) {
        advance(c, SECOND_MS);
        for (const char *name = names; *name != '\0'; name++) {
            says(c, (char[]){*name, '\0'}, id, idle_ms < 0 ? idle_ms : idle_ms + passed + SECOND_MS);
        }
    }
    advance(c, 0);
}

/* A gang on two nodes that runs since time 1000, of a project with this rule. */
static struct cluster *open_gang(const char *rule)
{
    struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    limit(c, ACCOUNT_PROJECT, "vision", rule);
    submit(c, "gang", .gpus = 4, .project = "vision", .early = {.signal = EARLY_USR1, .before_ms = 60000},
           .time_limit_ms = 3600000);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    running(c, "gang", "b");
    advance_beating(c, SECOND_MS, "a b");
    quiet(c);
    return c;
}

#define TOLD_AFTER_20_S      "{\"idle_after_s\":20}"
#define PREEMPTED_AFTER_30_S "{\"idle_after_s\":20,\"idle_action\":\"preempt\",\"idle_grace_s\":10}"

START_TEST(an_owner_is_told_once_when_all_gpus_were_idle_for_the_time)
{
    autocluster struct cluster *c = open_gang(TOLD_AFTER_20_S);
    stays(c, "gang", "ab", 0, 19000);
    expect(c, "");
    stays(c, "gang", "ab", 19000, 1000);
    expect(c, "[21000] attempt gang/1 has idle GPUs\n");
    ck_assert_int_eq(rows_job(c->rows, "gang")->idle_since_ms, c->wall_ms + SECOND_MS);
    stays(c, "gang", "ab", 20000, 40000);
    expect(c, "");
    expect_job(c, "gang", JOB_RUNNING);
    expect_history(c, "gang", "submitted placed started running idle");
}
END_TEST

START_TEST(one_gpu_in_use_is_enough_and_the_time_begins_anew)
{
    autocluster struct cluster *c = open_gang(TOLD_AFTER_20_S);
    for (int i = 0; i < 60; i++) {
        advance(c, SECOND_MS);
        says(c, "a", "gang", (i + 1) * SECOND_MS);
        says(c, "b", "gang", 0);
    }
    expect(c, "");
    for (int i = 0; i < 19; i++) {
        advance(c, SECOND_MS);
        says(c, "a", "gang", (61 + i) * SECOND_MS);
        says(c, "b", "gang", (i + 1) * SECOND_MS);
    }
    expect(c, "");
    advance(c, SECOND_MS);
    expect(c, "[81000] attempt gang/1 has idle GPUs\n");
}
END_TEST

START_TEST(work_after_the_telling_is_told_as_well)
{
    autocluster struct cluster *c = open_gang(PREEMPTED_AFTER_30_S);
    stays(c, "gang", "ab", 0, 25000);
    quiet(c);
    says(c, "b", "gang", 0);
    advance(c, 0);
    expect(c, "[26000] attempt gang/1 uses its GPUs again\n");
    ck_assert_int_eq(rows_job(c->rows, "gang")->idle_since_ms, 0);
    stays(c, "gang", "ab", 0, 19000);
    expect(c, "");
    expect_history(c, "gang", "submitted placed started running idle busy");
}
END_TEST

START_TEST(what_a_node_does_not_say_changes_nothing)
{
    autocluster struct cluster *c = open_gang(TOLD_AFTER_20_S);
    for (int i = 0; i < 60; i++) {
        advance(c, SECOND_MS);
        says(c, "a", "gang", (i + 1) * SECOND_MS);
        says(c, "b", "gang", -1);
    }
    expect(c, "");
    stays(c, "gang", "ab", 60000, 1000);
    expect(c, "[62000] attempt gang/1 has idle GPUs\n");
    stays(c, "gang", "ab", -1, 30000);
    expect(c, "");
}
END_TEST

START_TEST(by_the_rule_of_its_project_an_idle_job_gets_its_early_signal_gives_way_and_is_held)
{
    autocluster struct cluster *c = open_gang(PREEMPTED_AFTER_30_S);
    submit(c, "next", .gpus = 4);
    quiet(c);
    stays(c, "gang", "ab", 0, 29000);
    expect(c, "[21000] attempt gang/1 has idle GPUs\n");
    stays(c, "gang", "ab", 29000, 1000);
    expect(c, "[31000] attempt gang/1 STARTED -> STOPPING\n"
              "[31000] attempt gang/1 ends: its GPUs were idle for 30 s, and project vision does not allow "
              "that\n");
    expect_orders(c, "a", "stop gang/1 rank 0-1 of 4 on 0,1 node 0 of 2 USR1 PREEMPTED grace 30000\n");
    stopped(c, "gang", "a");
    stopped(c, "gang", "b");
    expect_job(c, "gang", JOB_HELD);
    ck_assert_int_eq(rows_job(c->rows, "gang")->idle_since_ms, 0);
    expect_job(c, "next", JOB_PLACED);
    expect_history(c, "gang", "submitted placed started running idle stopping requeued held");
    ck_assert_int_eq(release(c, "gang"), ERR_NONE);
    expect_job(c, "gang", JOB_QUEUED);
}
END_TEST

START_TEST(a_job_of_a_project_that_only_tells_goes_on_after_a_preemption)
{
    autocluster struct cluster *c = open_gang(TOLD_AFTER_20_S);
    stays(c, "gang", "ab", 0, 20000);
    preempt(c, "gang");
    stopped(c, "gang", "a");
    stopped(c, "gang", "b");
    expect_job(c, "gang", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "gang")->idle_since_ms, 0);
}
END_TEST

START_TEST(a_restart_tells_nobody_again_and_shortens_no_grace)
{
    autocluster struct cluster *c = open_gang(PREEMPTED_AFTER_30_S);
    stays(c, "gang", "ab", 0, 28000);
    cluster_restart(c);
    quiet(c);
    stays(c, "gang", "ab", 28000, 9000);
    expect(c, "");
    expect_job(c, "gang", JOB_RUNNING);
    stays(c, "gang", "ab", 37000, 1000);
    ck_assert_int_eq(rows_attempt(c->rows, rows_attempt_id(c->rows, "gang"))->state, ATTEMPT_STOPPING);
    expect_history(c, "gang", "submitted placed started running idle stopping");
}
END_TEST

START_TEST(without_a_rule_nobody_is_told_and_a_rule_that_goes_takes_the_word_back)
{
    autocluster struct cluster *c = open_gang(TOLD_AFTER_20_S);
    stays(c, "gang", "ab", 0, 20000);
    quiet(c);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"idle_after_s\":0}");
    quiet(c);
    stays(c, "gang", "ab", 20000, 1000);
    expect(c, "[22000] attempt gang/1 uses its GPUs again\n");
    stays(c, "gang", "ab", 21000, 60000);
    expect(c, "");
}
END_TEST

START_TEST(a_task_that_gives_way_is_held_alone_and_its_array_ends_once_it_is_released)
{
    autocluster struct cluster *c = cluster_open();
    char lazy[ID_LENGTH + 1], keen[ID_LENGTH + 1];
    node(c, "a");
    node(c, "b");
    limit(c, ACCOUNT_PROJECT, "vision", PREEMPTED_AFTER_30_S);
    submit(c, "many", .tasks = 2, .project = "vision");
    task_id("many", 0, lazy);
    task_id("many", 1, keen);
    running(c, lazy, "a");
    running(c, keen, "b");
    advance_beating(c, SECOND_MS, "a b");
    stays(c, lazy, "a", 0, 31000);
    expect_job(c, keen, JOB_RUNNING);
    stopped(c, lazy, "a");
    expect_job(c, lazy, JOB_HELD);
    expect_job(c, "many", JOB_RUNNING);
    exited(c, keen, "b", 0);
    expect_job(c, lazy, JOB_HELD);
    ck_assert_int_eq(release(c, lazy), ERR_NONE);
    running(c, lazy, "a");
    exited(c, lazy, "a", 0);
    expect_ended(c, "many", JOB_SUCCEEDED, 0, "");
}
END_TEST

Suite *idle_suite(void)
{
    Suite *suite = suite_create("idle");
    TCase *cases = tcase_create("idle");
    tcase_add_test(cases, an_owner_is_told_once_when_all_gpus_were_idle_for_the_time);
    tcase_add_test(cases, one_gpu_in_use_is_enough_and_the_time_begins_anew);
    tcase_add_test(cases, work_after_the_telling_is_told_as_well);
    tcase_add_test(cases, what_a_node_does_not_say_changes_nothing);
    tcase_add_test(cases, by_the_rule_of_its_project_an_idle_job_gets_its_early_signal_gives_way_and_is_held);
    tcase_add_test(cases, a_job_of_a_project_that_only_tells_goes_on_after_a_preemption);
    tcase_add_test(cases, a_restart_tells_nobody_again_and_shortens_no_grace);
    tcase_add_test(cases, without_a_rule_nobody_is_told_and_a_rule_that_goes_takes_the_word_back);
    tcase_add_test(cases, a_task_that_gives_way_is_held_alone_and_its_array_ends_once_it_is_released);
    suite_add_tcase(suite, cases);
    return suite;
}
