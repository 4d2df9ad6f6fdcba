/* SPDX-License-Identifier: Apache-2.0 */
/* What agents and operators may say that is odd, late or of another node: it is refused, or taken for what it
 * is worth. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

/* --- ranks ---------------------------------------------------------------------------------------------- */

START_TEST(a_node_reports_only_its_own_ranks)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa", .gpus = 2);
    prepared(c, "aaaa", "a");
    prepared(c, "aaaa", "b");
    ck_assert_int_eq(failed(c, "aaaa", "b", 0, 1), ERR_FIELD); /* is of a */
    expect_field(c, "ranks");
    ck_assert_int_eq(failed(c, "aaaa", "a", 1, 1), ERR_FIELD); /* is of b */
    ck_assert_int_eq(failed(c, "aaaa", "b", 1, 1), ERR_NONE);
}
END_TEST

static void expect_signal(int64_t number, const char *reason)
{
    autocluster struct cluster *c = cluster_open();
    struct rank_exit exit = {.rank = 0, .code = 1, .signal = number};
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    const struct report_message report = {
        .kind = REPORT_EXITED, .ranks = &exit, .rank_count = 1, .flushed = true};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &report), ERR_NONE);
    expect_ended(c, "aaaa", JOB_FAILED, 1, reason);
}

START_TEST(signals_have_their_names_and_those_without_are_numbers)
{
    expect_signal(SIGSEGV, "rank 0 on node a was killed by signal 11 (SIGSEGV)");
    expect_signal(SIGSTKFLT, "rank 0 on node a was killed by signal 16 (no name)");
    expect_signal(64, "rank 0 on node a was killed by signal 64 (no name)");
    expect_signal(-1, "rank 0 on node a was killed by signal -1 (no name)");
}
END_TEST

static void expect_fault_saying(enum cause cause, bool with_rank, const char *text, const char *reason)
{
    autocluster struct cluster *c = cluster_open();
    struct rank_exit exit = {.rank = 0, .code = 3};
    node(c, "a");
    submit(c, "aaaa", .infra_retries = -1);
    running(c, "aaaa", "a");
    const struct report_message report = {.kind = REPORT_EXITED,
                                          .cause = cause,
                                          .ranks = &exit,
                                          .rank_count = with_rank,
                                          .flushed = true,
                                          .text = text};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &report), ERR_NONE);
    expect_ended(c, "aaaa", JOB_FAILED, with_rank ? 3 : rows_job(c->rows, "aaaa")->exit_code, reason);
}

static void expect_fault(enum cause cause, bool with_rank, const char *reason)
{
    expect_fault_saying(cause, with_rank, "said the agent", reason);
}

START_TEST(a_fault_without_a_rank_is_told_in_the_agents_words)
{
    expect_fault_saying(CAUSE_OUT_OF_MEMORY, true,
                        "rank 0 exited with code 3, out of memory: the job may use 8 MiB on this node",
                        "rank 0 on node a exited with 3, out of memory: the job may use 8 MiB on this node");
    expect_fault(CAUSE_OUT_OF_MEMORY, true, "rank 0 on node a exited with 3, out of memory");
    expect_fault(CAUSE_OUT_OF_MEMORY, false, "a rank ran out of memory on node a: said the agent");
    expect_fault(CAUSE_RANK_FAILED, false, "a rank failed on node a: said the agent");
}
END_TEST

/* --- late ----------------------------------------------------------------------------------------------- */

START_TEST(an_attempt_that_has_exited_is_neither_declined_nor_failed)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    struct rank_exit exit = {.rank = 0, .code = 5};
    const struct report_message report = {.kind = REPORT_EXITED, .ranks = &exit, .rank_count = 1};
    cluster_report(c, "aaaa", "a", &report); /* its logs are still to come */
    ck_assert_int_eq(declined(c, "aaaa", "a"), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_int_eq(failed(c, "aaaa", "a", 0, 9), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    cluster_report(c, "aaaa", "a", &(struct report_message){.kind = REPORT_EXITED, .flushed = true});
    expect_ended(c, "aaaa", JOB_FAILED, 5, "rank 0 on node a exited with 5");
}
END_TEST

/* --- where the master is -------------------------------------------------------------------------------- */

START_TEST(node_rank_0_of_a_gang_says_address_and_port)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa", .gpus = 2);
    const struct report_message no_address = {.kind = REPORT_PREPARED, .master_port = 20000};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &no_address), ERR_FIELD);
    expect_field(c, "master_port");
    const struct report_message no_port = {.kind = REPORT_PREPARED, .address = "10.0.0.7"};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &no_port), ERR_FIELD);
    expect_field(c, "master_port");
    ck_assert_int_eq(cluster_report(c, "aaaa", "b", &no_port), ERR_NONE); /* it is not asked */
}
END_TEST

START_TEST(a_job_on_one_node_may_tell_its_port_alone)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa", .gpus = 2);
    const struct report_message report = {.kind = REPORT_RUNNING, .master_port = 20007};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &report), ERR_NONE);
    ck_assert_int_eq(rows_attempt(c->rows, rows_attempt_id(c->rows, "aaaa"))->master_port, 20007);
    ck_assert_ptr_null(rows_attempt(c->rows, rows_attempt_id(c->rows, "aaaa"))->master_address);
    submit(c, "bbbb");
    exited(c, "aaaa", "a", 0);
    const struct report_message other = {.kind = REPORT_RUNNING, .address = "10.0.0.9", .master_port = 20008};
    ck_assert_int_eq(cluster_report(c, "bbbb", "a", &other), ERR_NONE);
    ck_assert_str_eq(rows_attempt(c->rows, rows_attempt_id(c->rows, "bbbb"))->master_address, "10.0.0.9");
    exited(c, "bbbb", "a", 0);
    submit(c, "cccc");
    const struct rank_exit rank = {.rank = 0};
    const struct report_message only = {.kind = REPORT_EXITED,
                                        .master_port = 20009,
                                        .ranks = (struct rank_exit *)(uintptr_t)&rank,
                                        .rank_count = 1};
    ck_assert_int_eq(cluster_report(c, "cccc", "a", &only), ERR_NONE); /* it ran for a moment only */
    ck_assert_int_eq(rows_attempt(c->rows, rows_attempt_id(c->rows, "cccc"))->master_port, 20009);
}
END_TEST

START_TEST(gangs_do_not_go_to_nodes_that_others_cannot_reach)
{
    static const char *const unreachable[] = {"", "127.0.0.1", "::1", "LocalHost"};
    for (size_t i = 0; i < 4; i++) {
        autocluster struct cluster *c = cluster_open();
        node(c, "a", .address = unreachable[i]);
        node(c, "b");
        ck_assert_int_eq(submit(c, "aaaa", .gpus = 2), ERR_CAPACITY);
        node(c, "c");
        ck_assert_int_eq(submit(c, "aaaa", .gpus = 2), ERR_NONE);
        expect_orders(c, "a", "");
    }
}
END_TEST

/* --- nodes ---------------------------------------------------------------------------------------------- */

START_TEST(a_heartbeat_that_lists_what_the_node_is_not_to_have_is_told_so)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa", .gpus = 2);
    prepared(c, "aaaa", "a");
    prepared(c, "aaaa", "b");
    running(c, "aaaa", "a");
    uint64_t attempt_id = rows_attempt_id(c->rows, "aaaa");
    node(c, "a"); /* a new agent of the same boot, which does not know it */
    struct node_attempt listed[] = {
        {.attempt_id = attempt_id, .state = MEMBER_RUNNING}, {.attempt_id = 99}, {.attempt_id = 98}};
    const struct heartbeat_message heartbeat_a = {
        .node = "a", .boot_id = "boot-1", .attempts = listed, .attempt_count = 3};
    ck_assert_int_eq(cluster_step(c, &(struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &heartbeat_a}),
                     ERR_NONE);
    ck_assert_uint_eq(c->step.fenced_count, 3);
    ck_assert_uint_eq(c->step.fenced[0], attempt_id);
    ck_assert_uint_eq(c->step.fenced[2], 98);
    const struct heartbeat_message heartbeat_b = {
        .node = "b", .boot_id = "boot-1", .attempts = listed, .attempt_count = 2};
    ck_assert_int_eq(cluster_step(c, &(struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &heartbeat_b}),
                     ERR_NONE);
    ck_assert_uint_eq(c->step.fenced_count, 1);
    ck_assert_uint_eq(c->step.fenced[0], 99);
}
END_TEST

START_TEST(an_agent_that_says_it_runs_what_was_not_started_is_not_believed)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa", .gpus = 2);
    prepared(c, "aaaa", "a");
    struct node_attempt known = {.attempt_id = rows_attempt_id(c->rows, "aaaa"), .state = MEMBER_RUNNING};
    node(c, "a", .attempts = &known, .attempt_count = 1);
    expect_job(c, "aaaa", JOB_PLACED);
    ck_assert_int_eq(running(c, "aaaa", "a"), ERR_FENCED);
    prepared(c, "aaaa", "b");
    node(c, "a", .attempts = &known, .attempt_count = 1); /* now it is */
    ck_assert_int_eq(running(c, "aaaa", "b"), ERR_NONE);
    expect_job(c, "aaaa", JOB_RUNNING);
}
END_TEST

static enum err_code register_devices(struct cluster *c, int64_t first, int64_t second)
{
    struct device devices[] = {{.index = first, .uuid = "u", .type = "A10", .group = -1},
                               {.index = second, .uuid = "v", .type = "A10", .group = -1}};
    return node(c, "a", .devices = devices, .device_count = 2);
}

START_TEST(devices_are_counted_once_each_from_0)
{
    autocluster struct cluster *c = cluster_open();
    ck_assert_int_eq(register_devices(c, 1, 1), ERR_FIELD);
    expect_field(c, "devices");
    ck_assert_int_eq(register_devices(c, -1, 0), ERR_FIELD);
    expect_field(c, "devices");
    ck_assert_int_eq(register_devices(c, 7, 3), ERR_NONE);
    submit(c, "aaaa", .gpus = 2);
    expect_orders(c, "a", "run aaaa/1 rank 0-1 of 2 on 3,7\n");
}
END_TEST

static enum err_code say(struct cluster *c, enum node_action action, const char *reason)
{
    return cluster_step(
        c, &(struct input){.kind = INPUT_NODE,
                           .node = {.name = "a", .action = action, .reason = reason, .by = "root"}});
}

START_TEST(an_operators_reason_is_kept_and_without_one_it_is_who_did_it)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    say(c, NODE_ACTION_DRAIN, NULL);
    ck_assert_str_eq(rows_node(c->rows, "a")->reason, "drained by root");
    say(c, NODE_ACTION_DRAIN, "a fan is loud");
    ck_assert_str_eq(rows_node(c->rows, "a")->reason, "a fan is loud");
    say(c, NODE_ACTION_FENCE, "it burns");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_LOST);
    ck_assert_str_eq(rows_node(c->rows, "a")->reason, "it burns");
}
END_TEST

START_TEST(a_node_is_removed_when_it_is_drained_and_may_come_again_as_a_new_one)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b");
    submit(c, "aaaa", .gpus = 2);
    ck_assert_int_eq(remove_node(c, "a", false), ERR_CONFLICT);
    drain(c, "a");
    ck_assert_int_eq(remove_node(c, "a", false), ERR_CONFLICT);
    running(c, "aaaa", "a");
    exited(c, "aaaa", "a", 0);
    quiet(c);
    ck_assert_int_eq(remove_node(c, "a", false), ERR_NONE);
    expect(c, "[    0] node a DRAINED -> LOST\n"
              "[    0] node a is removed\n");
    ck_assert_ptr_null(rows_node(c->rows, "a"));
    ck_assert_ptr_nonnull(rows_node(c->rows, "b"));
    ck_assert_int_eq(remove_node(c, "a", true), ERR_NOT_FOUND);
    expect_ended(c, "aaaa", JOB_SUCCEEDED, 0, "");
    cluster_restart(c);
    node(c, "a");
    submit(c, "bbbb", .gpus = 1);
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_READY);
}
END_TEST

START_TEST(a_node_that_is_removed_by_force_is_fenced_and_goes_when_its_gang_has_ended_elsewhere)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa", .gpus = 2, .infra_retries = -1);
    prepared(c, "aaaa", "a");
    prepared(c, "aaaa", "b");
    running(c, "aaaa", "a");
    running(c, "aaaa", "b");
    ck_assert_int_eq(remove_node(c, "a", true), ERR_NONE);
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_LOST);
    stopped(c, "aaaa", "b");
    ck_assert_int_eq(remove_node(c, "a", true), ERR_NONE);
    ck_assert_ptr_null(rows_node(c->rows, "a"));
}
END_TEST

/* --- stagings ------------------------------------------------------------------------------------------- */

START_TEST(progress_decides_nothing_and_a_failure_may_come_without_a_reason)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "env");
    quiet(c);
    const struct staging_message building = {.key = "env", .state = STAGING_BUILDING};
    ck_assert_int_eq(cluster_staging(c, "a", &building), ERR_NONE);
    expect(c, "");
    expect_orders(c, "a", "stage env\n");
    ck_assert_int_eq(cluster_staging(c, "b", &building), ERR_NOT_FOUND);
    const struct staging_message earlier = {.boot_id = "boot-0", .key = "env", .state = STAGING_READY};
    ck_assert_int_eq(cluster_staging(c, "a", &earlier), ERR_NOT_FOUND);
    ck_assert_int_eq(unstaged(c, "env", "a", NULL), ERR_NONE);
    ck_assert_ptr_nonnull(strstr(c->trace.bytes, "node a cannot prepare environment env: it gave no reason"));
}
END_TEST

START_TEST(of_needs_that_nobody_has_any_more_a_bounded_number_is_remembered)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    for (int i = 0; i <= LIMIT_STAGINGS_KEPT; i++) {
        char id[16], environment[16];
        snprintf(id, sizeof id, "j%03d", i);
        snprintf(environment, sizeof environment, "env%03d", i);
        submit(c, id, .environment = environment);
        staged(c, environment, "a");
        exited(c, id, "a", 0);
        expect_ended(c, id, JOB_SUCCEEDED, 0, "");
    }
    submit(c, "last", .environment = "env001"); /* is remembered: its node is ready */
    expect_job(c, "last", JOB_PLACED);
    exited(c, "last", "a", 0);
    submit(c, "frst", .environment = "env000"); /* was forgotten */
    expect_job(c, "frst", JOB_STAGING);
    expect_orders(c, "a", "stage env000\n");
}
END_TEST

START_TEST(a_node_that_fails_again_and_again_is_left_alone_for_longer_but_not_for_ever)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "env", .infra_retries = 100);
    int64_t held_ms = 0;
    for (int i = 0; i < 12; i++) {
        expect_orders(c, "a", "stage env\n");
        unstaged(c, "env", "a", "no space");
        expect_orders(c, "a", "");
        int64_t since_ms = c->now_ms;
        while (rows_job(c->rows, "aaaa")->state == JOB_QUEUED) {
            advance_beating(c, 5000, "a");
            ck_assert_int_le(c->now_ms - since_ms, 2 * STAGING_HOLD_MAX_MS);
        }
        ck_assert_int_ge(c->now_ms - since_ms, held_ms);
        held_ms = c->now_ms - since_ms;
    }
    ck_assert_int_ge(held_ms, STAGING_HOLD_MAX_MS);
    ck_assert_int_le(held_ms, STAGING_HOLD_MAX_MS + 5000);
}
END_TEST

START_TEST(a_value_that_a_command_leaves_is_kept_and_asked_of_nobody)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    uint64_t attempt_id = rows_attempt_id(c->rows, "aaaa");
    ck_assert_int_eq(returned(c, "aaaa", "a", 1), ERR_NONE);
    ck_assert_uint_eq(rows_result_count(c->rows, attempt_id, RESULT_VALUE), 1);
    expect_ended(c, "aaaa", JOB_SUCCEEDED, 0, "");
}
END_TEST

START_TEST(a_gang_that_stops_does_not_start_and_a_port_that_was_taken_is_blamed_before_a_rank)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa", .gpus = 2);
    prepared(c, "aaaa", "a");
    prepared(c, "aaaa", "b");
    cancel(c, "aaaa");
    running(c, "aaaa", "a");
    running(c, "aaaa", "b");
    stopped(c, "aaaa", "a");
    stopped(c, "aaaa", "b");
    expect_job(c, "aaaa", JOB_CANCELED);
    submit(c, "bbbb", .gpus = 2);
    prepared(c, "bbbb", "a");
    prepared(c, "bbbb", "b");
    uint64_t attempt_id = rows_attempt_id(c->rows, "bbbb");
    failed(c, "bbbb", "b", 1, 1);
    const struct report_message taken = {.kind = REPORT_FAILED, .cause = CAUSE_PORT_TAKEN, .text = "in use"};
    ck_assert_int_eq(cluster_report(c, "bbbb", "a", &taken), ERR_NONE);
    ck_assert_str_eq(cause_text(rows_attempt(c->rows, attempt_id)->cause), cause_text(CAUSE_PORT_TAKEN));
    const struct report_message later = {.kind = REPORT_FAILED, .cause = CAUSE_EXEC_FAILED, .text = "gone"};
    cluster_report(c, "bbbb", "b", &later);
    ck_assert_str_eq(cause_text(rows_attempt(c->rows, attempt_id)->cause), cause_text(CAUSE_PORT_TAKEN));
}
END_TEST

START_TEST(requirements_are_stored_with_the_job_that_brings_them)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    const struct blob_row blob = {.hash = {1, 2, 3}, .size = 5, .bytes = "numpy"};
    const struct job_spec spec = {.gpus = 1, .remote = true, .lease_ms = 60000};
    const struct input input = {.kind = INPUT_SUBMIT,
                                .submit = {.id = "aaaa",
                                           .owner = "alice",
                                           .spec = &spec,
                                           .body = "{}",
                                           .body_length = 2,
                                           .requirements = &blob}};
    struct step step;
    core_step(c->core, &input, c->now_ms, &step);
    ck_assert(step.ok);
    ck_assert_int_eq(step.changes[0].kind, CHANGE_BLOB_PUT); /* before the job that names it */
    ck_assert_mem_eq(step.changes[0].blob.hash, blob.hash, sizeof blob.hash);
    step_finish(&step);
}
END_TEST

START_TEST(what_has_no_meaning_for_a_job_on_one_node_changes_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    ck_assert_int_eq(prepared(c, "aaaa", "a"), ERR_NONE); /* it was told to run at once */
    ck_assert_ptr_null(rows_attempt(c->rows, rows_attempt_id(c->rows, "aaaa"))->master_address);
    ck_assert_ptr_null(core_orders(c->core, "none"));
    node_orders_destroy(NULL); /* as of a node that is not known */
    struct rank_exit exit = {.rank = 0, .code = 7};
    const struct report_message failure = {.kind = REPORT_FAILED, .ranks = &exit, .rank_count = 1};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &failure), ERR_NONE); /* and no cause: a rank failed */
    exited(c, "aaaa", "a", 7);
    expect_ended(c, "aaaa", JOB_FAILED, 7, "rank 0 on node a exited with 7");
}
END_TEST

START_TEST(a_device_that_is_gone_is_kept_for_who_holds_it_and_taken_from_nobody_else)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_SRTF);
    register_devices(c, 0, 1);
    submit(c, "aaaa", .time_limit_ms = 3600000);
    submit(c, "bbbb", .time_limit_ms = 3600000);
    running(c, "aaaa", "a");
    running(c, "bbbb", "a");
    struct node_attempt known[] = {{.attempt_id = rows_attempt_id(c->rows, "aaaa"), .state = MEMBER_RUNNING},
                                   {.attempt_id = rows_attempt_id(c->rows, "bbbb"), .state = MEMBER_RUNNING}};
    struct device left = {.index = 1, .uuid = "v", .type = "A10", .group = -1};
    ck_assert_int_eq(node(c, "a", .devices = &left, .device_count = 1, .attempts = known, .attempt_count = 2),
                     ERR_NONE);
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\nrun bbbb/1 rank 0-0 of 1 on 1\n");
    submit(c, "shrt", .time_limit_ms = 60000); /* takes what it can use, which is the device that is left */
    expect_orders(c, "a",
                  "run aaaa/1 rank 0-0 of 1 on 0\nstop bbbb/1 rank 0-0 of 1 on 1 PREEMPTED grace 30000\n");
    ck_assert_int_eq(preempt(c, "shrt"), ERR_CONFLICT);
    stopped(c, "bbbb", "a");
    expect_job(c, "shrt", JOB_PLACED);
    ck_assert_int_eq(preempt(c, "shrt"), ERR_NONE);
}
END_TEST

Suite *report_suite(void)
{
    Suite *suite = suite_create("reports");
    TCase *tests = tcase_create("reports");
    tcase_add_test(tests, a_node_reports_only_its_own_ranks);
    tcase_add_test(tests, signals_have_their_names_and_those_without_are_numbers);
    tcase_add_test(tests, a_fault_without_a_rank_is_told_in_the_agents_words);
    tcase_add_test(tests, an_attempt_that_has_exited_is_neither_declined_nor_failed);
    tcase_add_test(tests, node_rank_0_of_a_gang_says_address_and_port);
    tcase_add_test(tests, a_job_on_one_node_may_tell_its_port_alone);
    tcase_add_test(tests, gangs_do_not_go_to_nodes_that_others_cannot_reach);
    tcase_add_test(tests, a_heartbeat_that_lists_what_the_node_is_not_to_have_is_told_so);
    tcase_add_test(tests, an_agent_that_says_it_runs_what_was_not_started_is_not_believed);
    tcase_add_test(tests, devices_are_counted_once_each_from_0);
    tcase_add_test(tests, an_operators_reason_is_kept_and_without_one_it_is_who_did_it);
    tcase_add_test(tests, a_node_is_removed_when_it_is_drained_and_may_come_again_as_a_new_one);
    tcase_add_test(tests,
                   a_node_that_is_removed_by_force_is_fenced_and_goes_when_its_gang_has_ended_elsewhere);
    tcase_add_test(tests, progress_decides_nothing_and_a_failure_may_come_without_a_reason);
    tcase_add_test(tests, of_needs_that_nobody_has_any_more_a_bounded_number_is_remembered);
    tcase_add_test(tests, a_node_that_fails_again_and_again_is_left_alone_for_longer_but_not_for_ever);
    tcase_add_test(tests, a_value_that_a_command_leaves_is_kept_and_asked_of_nobody);
    tcase_add_test(tests, a_gang_that_stops_does_not_start_and_a_port_that_was_taken_is_blamed_before_a_rank);
    tcase_add_test(tests, requirements_are_stored_with_the_job_that_brings_them);
    tcase_add_test(tests, what_has_no_meaning_for_a_job_on_one_node_changes_nothing);
    tcase_add_test(tests, a_device_that_is_gone_is_kept_for_who_holds_it_and_taken_from_nobody_else);
    suite_add_tcase(suite, tests);
    return suite;
}
