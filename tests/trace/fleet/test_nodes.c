/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes come, come back, are drained and fenced; and what that says about the attempts on them. */
#include <stdlib.h>
#include <string.h>

#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

START_TEST(a_job_that_waits_is_placed_when_a_node_comes)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "bbbb");
    quiet(c);
    node(c, "b");
    expect(c, "[    0] node b registers 1 devices in pool default\n"
              "[    0] node b LOST -> READY\n"
              "[    0] job bbbb QUEUED -> PLACED on b:0\n"
              "[    0] attempt bbbb/1 RESERVED -> STARTED\n");
}
END_TEST

START_TEST(a_reboot_is_evidence_that_all_attempts_are_gone)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    quiet(c);
    node(c, "a", .boot = "boot-2");
    expect(c, "[    0] node a registers 1 devices in pool default, rebooted\n"
              "[    0] member aaaa/1@a RUNNING -> LOST\n"
              "[    0] member aaaa@a is lost: node a was rebooted\n"
              "[    0] attempt aaaa/1 STARTED -> STOPPING\n"
              "[    0] attempt aaaa/1 ends: node a was rebooted\n"
              "[    0] attempt aaaa/1 STOPPING -> ENDED\n"
              "[    0] job aaaa RUNNING -> QUEUED (NODE_LOST)\n"
              "[    0] job aaaa QUEUED -> PLACED on a:0\n"
              "[    0] attempt aaaa/2 RESERVED -> STARTED\n");
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 1);
}
END_TEST

START_TEST(a_reboot_of_one_node_stops_the_gang_on_the_others)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2, .infra_retries = -1);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    node(c, "b", .boot = "boot-2");
    expect_orders(c, "a", "stop gang/1 rank 0-0 of 2 on 0 node 0 of 2 NODE_LOST grace 5000\n");
    expect_orders(c, "b", "");
    ck_assert_int_eq(running(c, "gang", "b"), ERR_FENCED);
    stopped(c, "gang", "a");
    expect_ended(c, "gang", JOB_FAILED, 125, "node b was rebooted, and no infrastructure retry is left");
    ck_assert_str_eq(rows_job(c->rows, "gang")->failed_node, "b");
}
END_TEST

START_TEST(an_agent_that_restarts_and_knows_its_attempts_disturbs_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    uint64_t attempt_id = rows_attempt_id(c->rows, "aaaa");
    node(c, "a", .attempts = &(struct node_attempt){.attempt_id = attempt_id, .state = MEMBER_RUNNING},
         .attempt_count = 1);
    expect_job(c, "aaaa", JOB_RUNNING);
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(an_agent_that_forgot_what_ran_has_lost_it)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    node(c, "a");
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 1);
    expect_orders(c, "a", "run aaaa/2 rank 0-0 of 1 on 0\n");
}
END_TEST

/* The nonce that the controller gave instead of taking the last registration. */
static uint64_t nonce_given(const struct cluster *c)
{
    ck_assert_ptr_nonnull(c->step.answer);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_uint_eq(c->step.dirty_count, 0);
    return strtoull(c->step.answer, NULL, 10);
}

START_TEST(a_registration_of_a_known_node_is_taken_when_it_repeats_the_word)
{
    autocluster struct cluster *c = cluster_open();
    uint64_t nonce = 0;
    node(c, "a", .nonce = &nonce);
    ck_assert_ptr_null(c->step.answer); /* nobody knew it */
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    node(c, "a", .nonce = &nonce);
    expect_job(c, "aaaa", JOB_RUNNING);
    nonce = nonce_given(c);
    node(c, "a", .nonce = &nonce);
    ck_assert_ptr_null(c->step.answer);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 1);
}
END_TEST

START_TEST(a_registration_that_comes_again_later_changes_nothing)
{
    autocluster struct cluster *c = cluster_open();
    uint64_t nonce = 0;
    node(c, "a", .nonce = &nonce);
    node(c, "a", .boot = "boot-2", .nonce = &nonce);
    nonce = nonce_given(c);
    node(c, "a", .boot = "boot-2", .nonce = &nonce);
    ck_assert_ptr_null(c->step.answer);
    node(c, "a", .boot = "boot-2", .nonce = &nonce);
    nonce_given(c); /* no answer again, though nothing has happened in between */
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    node(c, "a", .boot = "boot-2", .nonce = &nonce);
    nonce_given(c);
    node(c, "a", .boot = "boot-1", .nonce = &nonce);
    nonce = nonce_given(c);
    cluster_restart(c);
    node(c, "a", .boot = "boot-1", .nonce = &nonce);
    ck_assert_uint_ne(nonce_given(c), nonce);
    expect_job(c, "aaaa", JOB_RUNNING);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 0);
}
END_TEST

START_TEST(an_agent_that_restarts_before_it_began_gets_its_order_again)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    node(c, "a");
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 0);
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(a_registration_that_lists_a_running_attempt_moves_it_forward)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    uint64_t attempt_id = rows_attempt_id(c->rows, "aaaa");
    struct node_attempt attempts[] = {{.attempt_id = attempt_id, .state = MEMBER_RUNNING},
                                      {.attempt_id = 77, .state = MEMBER_RUNNING}};
    node(c, "a", .attempts = attempts, .attempt_count = 2);
    expect_job(c, "aaaa", JOB_RUNNING);
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n"); /* 77 is not listed, so the agent kills it */
}
END_TEST

START_TEST(two_agents_cannot_have_one_name)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .host = "desk");
    ck_assert_int_eq(node(c, "a", .host = "rack", .boot = "boot-7"), ERR_CONFLICT);
    expect_field(c, "name");
    ck_assert_str_eq(rows_node(c->rows, "a")->host_id, "desk");
    advance(c, 15000);
    ck_assert_int_eq(node(c, "a", .host = "rack", .boot = "boot-7"), ERR_NONE);
    ck_assert_str_eq(rows_node(c->rows, "a")->host_id, "rack");
}
END_TEST

/* M3: a cloned machine, or another state folder on the same host, has the host id of the first. */
START_TEST(a_second_agent_of_a_name_is_refused_while_the_first_is_heard)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .host = "rack", .agent = "first");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    for (int i = 0; i < 5; i++) {
        advance(c, 5000);
        ck_assert_int_eq(node(c, "a", .host = "rack", .agent = "other", .address = "10.0.0.2"), ERR_CONFLICT);
        expect_field(c, "name");
        ck_assert_ptr_nonnull(strstr(c->step.err.text, "by an agent at 10.0.0.1"));
        ck_assert_ptr_nonnull(strstr(c->step.err.text, "10.0.0.2, is with another state folder"));
        ck_assert_int_eq(node(c, "a", .host = "rack", .agent = "first", .boot = "boot-2"), ERR_CONFLICT);
        ck_assert_ptr_nonnull(strstr(c->step.err.text, "on a copy of it"));
        ck_assert_int_eq(node(c, "a", .host = "rack", .agent = "other", .boot = "boot-2"), ERR_CONFLICT);
        ck_assert_int_eq(node(c, "a", .host = "rack"), ERR_CONFLICT); /* one that has no id */
        ck_assert_int_eq(heartbeat(c, "a"), ERR_NONE);
    }
    const struct heartbeat_message other = {.node = "a", .boot_id = "boot-1", .agent_id = "other"};
    ck_assert_int_eq(cluster_step(c, &(struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &other}),
                     ERR_NOT_FOUND);
    struct report_message report = {.kind = REPORT_RUNNING, .boot_id = "boot-1", .agent_id = "other"};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &report), ERR_NOT_FOUND);
    expect_job(c, "aaaa", JOB_RUNNING);
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 0);
}
END_TEST

START_TEST(an_agent_that_starts_again_in_its_folder_is_taken_at_once)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .agent = "first");
    ck_assert_int_eq(node(c, "a", .agent = "other"), ERR_CONFLICT);
    ck_assert_int_eq(node(c, "a", .agent = "first"), ERR_NONE);
    cluster_restart(c); /* the controller remembers whose the name is */
    ck_assert_int_eq(node(c, "a", .agent = "other"), ERR_CONFLICT);
    ck_assert_int_eq(node(c, "a", .agent = "first"), ERR_NONE);
}
END_TEST

START_TEST(an_agent_that_got_an_id_with_an_upgrade_is_taken_at_once)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    ck_assert_int_eq(node(c, "a", .agent = "first"), ERR_NONE);
    ck_assert_int_eq(node(c, "a"), ERR_CONFLICT);
    advance(c, 15000);
    ck_assert_int_eq(node(c, "a"), ERR_NONE); /* and one that lost it with the way back, after a silence */
}
END_TEST

START_TEST(a_machine_that_booted_or_forgot_its_folder_follows_when_the_first_is_silent)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .agent = "first");
    advance(c, 15000);
    ck_assert_int_eq(node(c, "a", .agent = "wiped"), ERR_NONE);
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    ck_assert_int_eq(node(c, "a", .agent = "wiped", .boot = "boot-2"), ERR_CONFLICT);
    advance(c, 15000);
    ck_assert_int_eq(node(c, "a", .agent = "wiped", .boot = "boot-2"), ERR_NONE);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 1);
}
END_TEST

START_TEST(a_second_agent_is_no_evidence_on_the_boot_of_the_first)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .agent = "first");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    advance(c, 15000);
    ck_assert_int_eq(node(c, "a", .agent = "other"), ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(c->step.err.text, "jobs may still run"));
    ck_assert_ptr_nonnull(strstr(c->step.err.hint, "gpuctl nodes fence"));
    struct node_attempt known = {.attempt_id = rows_attempt_id(c->rows, "aaaa"), .state = MEMBER_RUNNING};
    ck_assert_int_eq(node(c, "a", .agent = "other", .attempts = &known, .attempt_count = 1), ERR_NONE);
    expect_job(c, "aaaa", JOB_RUNNING);
}
END_TEST

START_TEST(a_copy_of_a_machine_is_no_evidence_when_both_were_heard)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .agent = "first");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    ck_assert_int_eq(node(c, "a", .agent = "first", .boot = "copy"), ERR_CONFLICT);
    heartbeat(c, "a");
    advance(c, 15000);
    ck_assert_int_eq(node(c, "a", .agent = "first", .boot = "copy"), ERR_CONFLICT);
    expect_job(c, "aaaa", JOB_RUNNING);
    fence(c, "a");
    ck_assert_int_eq(node(c, "a", .agent = "first", .boot = "copy"), ERR_NONE);
    expect_orders(c, "a", "run aaaa/2 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(another_machine_under_the_same_name_is_no_evidence)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .host = "desk");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    advance(c, 3600000);
    ck_assert_int_eq(node(c, "a", .host = "rack", .boot = "boot-7"), ERR_CONFLICT);
    expect_job(c, "aaaa", JOB_RUNNING);
    fence(c, "a");
    ck_assert_int_eq(node(c, "a", .host = "rack", .boot = "boot-7"), ERR_NONE);
    expect_orders(c, "a", "run aaaa/2 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(a_pool_is_of_one_kind)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .pool = "mine");
    ck_assert_int_eq(node(c, "b", .pool = "mine", .reserved = true), ERR_CONFLICT);
    expect_field(c, "pool");
    ck_assert_int_eq(node(c, "a", .pool = "mine", .reserved = true),
                     ERR_NONE); /* its only node may change it */
    ck_assert_int_eq(node(c, "b", .pool = "mine", .reserved = true), ERR_NONE);
    ck_assert_int_eq(node(c, "r", .reserved = true), ERR_NONE);
    ck_assert_str_eq(rows_node(c->rows, "r")->pool, "reserved");
}
END_TEST

START_TEST(devices_are_counted_once)
{
    autocluster struct cluster *c = cluster_open();
    struct device devices[] = {{.index = 1, .uuid = "u0", .type = "A10"},
                               {.index = 1, .uuid = "u1", .type = "A10"}};
    struct register_message message = {.name = "m",
                                       .boot_id = "b",
                                       .host_id = "m",
                                       .version = "1",
                                       .address = "10.0.0.1",
                                       .devices = devices,
                                       .device_count = 2};
    ck_assert_int_eq(cluster_step(c, &(struct input){.kind = INPUT_REGISTER, .node_register = &message}),
                     ERR_FIELD);
    expect_field(c, "devices");
    ck_assert_ptr_null(rows_node(c->rows, "m"));
}
END_TEST

START_TEST(a_device_that_went_away_is_kept_until_its_attempt_ends)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "gang", .gpus = 2);
    running(c, "gang", "a");
    uint64_t attempt_id = rows_attempt_id(c->rows, "gang");
    node(c, "a", .gpus = 1,
         .attempts = &(struct node_attempt){.attempt_id = attempt_id, .state = MEMBER_RUNNING},
         .attempt_count = 1);
    ck_assert_int_eq(submit(c, "two", .gpus = 2), ERR_CAPACITY);
    cluster_restart(c);
    expect_orders(c, "a", "run gang/1 rank 0-1 of 2 on 0,1\n");
    exited(c, "gang", "a", 0);
    submit(c, "one");
    submit(c, "eins");
    expect_orders(c, "a", "run one/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(a_drained_node_finishes_what_it_has)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa");
    quiet(c);
    drain(c, "a");
    submit(c, "bbbb");
    exited(c, "aaaa", "a", 0);
    expect(c, "[    0] node a READY -> DRAINING\n"
              "[    0] job bbbb is submitted: 1 of any type\n"
              "[    0] job bbbb waits: 1 wanted, 0 free\n"
              "[    0] member aaaa/1@a ORDERED -> RUNNING\n"
              "[    0] job aaaa PLACED -> RUNNING\n"
              "[    0] member aaaa/1@a RUNNING -> EXITED\n"
              "[    0] member aaaa/1@a EXITED -> FLUSHED\n"
              "[    0] attempt aaaa/1 STARTED -> ENDED\n"
              "[    0] node a DRAINING -> DRAINED\n"
              "[    0] job aaaa RUNNING -> SUCCEEDED\n");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_DRAINED);
    ck_assert_str_eq(rows_node(c->rows, "a")->reason, "drained by root");
    node(c, "a", .gpus = 2, .boot = "boot-2");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_DRAINED);
    resume(c, "a");
    expect_job(c, "bbbb", JOB_PLACED);
    ck_assert_int_eq(resume(c, "a"), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
}
END_TEST

START_TEST(a_fenced_node_is_lost_until_it_registers_anew)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    quiet(c);
    fence(c, "a");
    expect(c, "[    0] node a READY -> LOST\n"
              "[    0] member aaaa/1@a RUNNING -> LOST\n"
              "[    0] member aaaa@a is lost: node a was fenced\n"
              "[    0] attempt aaaa/1 STARTED -> STOPPING\n"
              "[    0] attempt aaaa/1 ends: node a was fenced\n"
              "[    0] attempt aaaa/1 STOPPING -> ENDED\n"
              "[    0] job aaaa RUNNING -> QUEUED (NODE_LOST)\n"
              "[    0] job aaaa QUEUED -> PLACED on b:0\n"
              "[    0] attempt aaaa/2 RESERVED -> STARTED\n");
    ck_assert_str_eq(rows_node(c->rows, "a")->reason, "fenced by root");
    ck_assert_int_eq(heartbeat(c, "a"), ERR_NOT_FOUND);
    ck_assert_int_eq(running(c, "aaaa", "a"), ERR_NOT_FOUND);
    ck_assert_int_eq(drain(c, "a"), ERR_CONFLICT);
    ck_assert_int_eq(resume(c, "a"), ERR_CONFLICT);
    ck_assert_int_eq(fence(c, "a"), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    expect_orders(c, "a", "");
    node(c, "a");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_READY);
    ck_assert_ptr_null(rows_node(c->rows, "a")->reason);
    ck_assert_int_eq(heartbeat(c, "a"), ERR_NONE);
}
END_TEST

START_TEST(devices_of_a_fenced_node_stay_taken_until_the_gang_has_ended)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    fence(c, "b");
    node(c, "b", .boot = "boot-2");
    submit(c, "bbbb");
    expect_job(c, "bbbb", JOB_QUEUED);
    expect_orders(c, "b", "");
    stopped(c, "gang", "a");
    expect_job(c, "gang", JOB_PLACED);
    expect_job(c, "bbbb", JOB_QUEUED);
}
END_TEST

/* --- devices that cannot be had (G2) -------------------------------------------------------------------- */

#define HELD_BY "memory held by process 1234 (python) of user ada"

START_TEST(a_device_that_cannot_be_had_goes_to_no_job_and_the_others_do)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    ck_assert_int_eq(heartbeat_broken(c, "a", 0, HELD_BY), ERR_NONE);
    submit(c, "aaaa");
    submit(c, "bbbb");
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 1\n");
    expect_job(c, "bbbb", JOB_QUEUED);
    quiet(c);
    ck_assert_int_eq(heartbeat_broken(c, "a", 0, NULL), ERR_NONE);
    expect(c, "[    0] device 0 of node a is available\n"
              "[    0] job bbbb QUEUED -> PLACED on a:0\n"
              "[    0] attempt bbbb/1 RESERVED -> STARTED\n");
}
END_TEST

START_TEST(what_an_agent_registers_as_unavailable_goes_to_no_job)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .broken = "MIG is enabled");
    submit(c, "aaaa");
    expect_job(c, "aaaa", JOB_QUEUED);
    node(c, "a");
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(an_agent_that_says_nothing_of_devices_changes_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    heartbeat_broken(c, "a", 0, HELD_BY);
    ck_assert_int_eq(heartbeat(c, "a"), ERR_NONE);
    submit(c, "aaaa");
    expect_job(c, "aaaa", JOB_QUEUED);
    ck_assert_ptr_nonnull(strstr(rows_node(c->rows, "a")->devices, HELD_BY));
}
END_TEST

START_TEST(who_has_a_device_keeps_it_when_it_breaks_and_nobody_gets_it_after)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    submit(c, "bbbb");
    heartbeat_broken(c, "a", 0, "GPU is lost");
    expect_job(c, "aaaa", JOB_RUNNING);
    exited(c, "aaaa", "a", 0);
    expect_ended(c, "aaaa", JOB_SUCCEEDED, 0, "");
    expect_job(c, "bbbb", JOB_QUEUED);
    heartbeat_broken(c, "a", 0, NULL);
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(an_exit_that_leaves_a_device_occupied_gives_it_to_nobody)
{
    autocluster struct cluster *c = cluster_open();
    struct device_fault fault = {.index = 0, .reason = HELD_BY};
    struct rank_exit exit = {.rank = 0};
    const struct report_message report = {.kind = REPORT_EXITED,
                                          .ranks = &exit,
                                          .rank_count = 1,
                                          .flushed = true,
                                          .faults = {.told = true, .items = &fault, .count = 1}};
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "bbbb");
    running(c, "aaaa", "a");
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &report), ERR_NONE);
    expect_ended(c, "aaaa", JOB_SUCCEEDED, 0, "");
    expect_job(c, "bbbb", JOB_QUEUED);
}
END_TEST

/* Before, each decline kept all work off the whole node. */
START_TEST(a_node_that_declines_for_one_device_goes_on_with_the_others)
{
    autocluster struct cluster *c = cluster_open();
    struct device_fault fault = {.index = 0, .reason = HELD_BY};
    const struct report_message report = {.kind = REPORT_DECLINED,
                                          .cause = CAUSE_DECLINED,
                                          .text = HELD_BY,
                                          .faults = {.told = true, .items = &fault, .count = 1}};
    node(c, "a", .gpus = 2);
    submit(c, "aaaa");
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &report), ERR_NONE);
    expect_orders(c, "a", "run aaaa/2 rank 0-0 of 1 on 1\n");
}
END_TEST

START_TEST(a_restart_of_the_controller_forgets_no_device_that_cannot_be_had)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    submit(c, "bbbb");
    heartbeat_broken(c, "a", 0, "GPU is lost");
    cluster_restart(c);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "bbbb", JOB_QUEUED);
}
END_TEST

START_TEST(actions_want_a_node_that_is_known)
{
    autocluster struct cluster *c = cluster_open();
    ck_assert_int_eq(drain(c, "a"), ERR_NOT_FOUND);
    expect_field(c, "name");
    ck_assert_int_eq(heartbeat(c, "a"), ERR_NOT_FOUND);
}
END_TEST

Suite *node_suite(void)
{
    Suite *suite = suite_create("nodes");
    TCase *tests = tcase_create("nodes");
    tcase_add_test(tests, a_job_that_waits_is_placed_when_a_node_comes);
    tcase_add_test(tests, a_reboot_is_evidence_that_all_attempts_are_gone);
    tcase_add_test(tests, a_reboot_of_one_node_stops_the_gang_on_the_others);
    tcase_add_test(tests, a_second_agent_of_a_name_is_refused_while_the_first_is_heard);
    tcase_add_test(tests, an_agent_that_starts_again_in_its_folder_is_taken_at_once);
    tcase_add_test(tests, an_agent_that_got_an_id_with_an_upgrade_is_taken_at_once);
    tcase_add_test(tests, a_machine_that_booted_or_forgot_its_folder_follows_when_the_first_is_silent);
    tcase_add_test(tests, a_second_agent_is_no_evidence_on_the_boot_of_the_first);
    tcase_add_test(tests, a_copy_of_a_machine_is_no_evidence_when_both_were_heard);
    tcase_add_test(tests, an_agent_that_restarts_and_knows_its_attempts_disturbs_nothing);
    tcase_add_test(tests, an_agent_that_forgot_what_ran_has_lost_it);
    tcase_add_test(tests, an_agent_that_restarts_before_it_began_gets_its_order_again);
    tcase_add_test(tests, a_registration_that_lists_a_running_attempt_moves_it_forward);
    tcase_add_test(tests, two_agents_cannot_have_one_name);
    tcase_add_test(tests, another_machine_under_the_same_name_is_no_evidence);
    tcase_add_test(tests, a_pool_is_of_one_kind);
    tcase_add_test(tests, devices_are_counted_once);
    tcase_add_test(tests, a_device_that_went_away_is_kept_until_its_attempt_ends);
    tcase_add_test(tests, a_drained_node_finishes_what_it_has);
    tcase_add_test(tests, a_registration_of_a_known_node_is_taken_when_it_repeats_the_word);
    tcase_add_test(tests, a_registration_that_comes_again_later_changes_nothing);
    tcase_add_test(tests, a_fenced_node_is_lost_until_it_registers_anew);
    tcase_add_test(tests, devices_of_a_fenced_node_stay_taken_until_the_gang_has_ended);
    tcase_add_test(tests, a_device_that_cannot_be_had_goes_to_no_job_and_the_others_do);
    tcase_add_test(tests, what_an_agent_registers_as_unavailable_goes_to_no_job);
    tcase_add_test(tests, an_agent_that_says_nothing_of_devices_changes_nothing);
    tcase_add_test(tests, who_has_a_device_keeps_it_when_it_breaks_and_nobody_gets_it_after);
    tcase_add_test(tests, an_exit_that_leaves_a_device_occupied_gives_it_to_nobody);
    tcase_add_test(tests, a_node_that_declines_for_one_device_goes_on_with_the_others);
    tcase_add_test(tests, a_restart_of_the_controller_forgets_no_device_that_cannot_be_had);
    tcase_add_test(tests, actions_want_a_node_that_is_known);
    suite_add_tcase(suite, tests);
    return suite;
}
