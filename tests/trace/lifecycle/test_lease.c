/* SPDX-License-Identifier: Apache-2.0 */
/* Silence: what it means for new work, for leases, and when so many nodes are silent that the fault is ours.
 */
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

#define LEASE_MS 60000

/* Node a sends heartbeats, node b does not; a job with this policy runs on b. */
static struct cluster *open_with_silent_node(enum on_disconnect policy)
{
    struct cluster *c = cluster_open();
    node(c, "b");
    submit(c, "aaaa", .on_disconnect = policy, .lease_ms = LEASE_MS);
    running(c, "aaaa", "b");
    node(c, "a");
    quiet(c);
    return c;
}

START_TEST(a_silent_node_gets_no_work_until_it_is_heard_again)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    quiet(c);
    advance(c, 14999);
    expect(c, "");
    advance(c, 1);
    submit(c, "aaaa");
    expect(c, "[15000] node a is silent\n"
              "[15000] job aaaa is submitted: 1 of any type\n"
              "[15000] job aaaa waits: 1 wanted, 0 free\n");
    advance(c, 1000);
    heartbeat(c, "a");
    expect(c, "[16000] node a is heard again\n"
              "[16000] job aaaa QUEUED -> PLACED on a:0\n"
              "[16000] attempt aaaa/1 RESERVED -> STARTED\n");
}
END_TEST

START_TEST(heartbeats_are_not_written)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    advance(c, 20000);
    ck_assert_uint_eq(c->step.change_count, 0);
    heartbeat(c, "a");
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_int_eq(core_deadline(c->core), 35000);
    const struct heartbeat_message other = {.node = "a", .boot_id = "boot-0"};
    ck_assert_int_eq(cluster_step(c, &(struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &other}),
                     ERR_NOT_FOUND);
}
END_TEST

START_TEST(requeue_waits_for_the_lease_and_a_twentieth)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_REQUEUE);
    struct node_orders *orders = core_orders(c->core, "b");
    ck_assert_int_eq(orders->items[0].order.lease_ms, LEASE_MS);
    node_orders_destroy(orders);
    advance_beating(c, 62999, "a");
    expect(c, "[15000] node b is silent\n");
    advance(c, 1);
    expect(c, "[63000] member aaaa/1@b RUNNING -> LOST\n"
              "[63000] member aaaa@b is lost: node b was silent for longer than the lease\n"
              "[63000] attempt aaaa/1 STARTED -> STOPPING\n"
              "[63000] attempt aaaa/1 ends: node b was silent for longer than the lease\n"
              "[63000] attempt aaaa/1 STOPPING -> ENDED\n"
              "[63000] job aaaa RUNNING -> QUEUED (NODE_LOST)\n"
              "[63000] job aaaa QUEUED -> PLACED on a:0\n"
              "[63000] attempt aaaa/2 RESERVED -> STARTED\n");
    expect_orders(c, "b", "");
    heartbeat(c, "b");
    submit(c, "bbbb");
    expect_orders(c, "b", "run bbbb/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(a_heartbeat_renews_the_lease)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_REQUEUE);
    advance_beating(c, 60000, "a");
    heartbeat(c, "b");
    advance_beating(c, 62999, "a");
    expect_job(c, "aaaa", JOB_RUNNING);
    advance(c, 1);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->attempt, 2);
}
END_TEST

START_TEST(a_lost_member_stops_the_rest_of_its_gang)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2, .on_disconnect = ON_DISCONNECT_REQUEUE);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    advance_beating(c, 63000, "a");
    expect_orders(c, "a", "stop gang/1 rank 0-0 of 2 on 0 node 0 of 2 NODE_LOST grace 5000\n");
    stopped(c, "gang", "a");
    expect_job(c, "gang", JOB_QUEUED);
}
END_TEST

START_TEST(fail_ends_the_job_whatever_retries_are_left)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_FAIL);
    advance_beating(c, 63000, "a");
    expect_ended(c, "aaaa", JOB_FAILED, 125,
                 "node b was silent for longer than the lease, and on_disconnect is fail");
}
END_TEST

START_TEST(keep_never_gives_up)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_KEEP);
    advance_beating(c, 24 * 3600 * 1000LL, "a");
    expect(c, "[15000] node b is silent\n");
    heartbeat(c, "b");
    exited(c, "aaaa", "b", 0);
    expect_job(c, "aaaa", JOB_SUCCEEDED);
}
END_TEST

START_TEST(no_lease_ends_while_most_nodes_are_silent)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_REQUEUE);
    node(c, "d");
    quiet(c);
    advance_beating(c, 300000, "a");
    expect(c, "[15000] node b is silent\n"
              "[15000] node d is silent\n"
              "[15000] brake on: 2 of 3 nodes are silent\n");
    expect_job(c, "aaaa", JOB_RUNNING);
    heartbeat(c, "d");
    expect(c, "[300000] node d is heard again\n"
              "[300000] brake off: 1 of 3 nodes are silent\n");
    advance_beating(c, 62999, "a d");
    expect_job(c, "aaaa", JOB_RUNNING); /* who is still on the way back gets a whole lease */
    advance(c, 1);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->attempt, 2);
}
END_TEST

START_TEST(fencing_what_is_dead_takes_it_out_of_the_brake)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_REQUEUE);
    node(c, "d");
    submit(c, "bbbb", .on_disconnect = ON_DISCONNECT_KEEP);
    running(c, "bbbb", "a");
    submit(c, "cccc", .on_disconnect = ON_DISCONNECT_KEEP);
    running(c, "cccc", "d");
    advance_beating(c, 100000, "a");
    ck_assert(core_silence(c->core).braked);
    ck_assert_uint_eq(core_silence(c->core).silent_count, 2);
    ck_assert_uint_eq(core_silence(c->core).known_count, 3);
    quiet(c);
    fence(c, "d");
    expect(c, "[100000] node d READY -> LOST\n"
              "[100000] member cccc/1@d RUNNING -> LOST\n"
              "[100000] member cccc@d is lost: node d was fenced\n"
              "[100000] attempt cccc/1 STARTED -> STOPPING\n"
              "[100000] attempt cccc/1 ends: node d was fenced\n"
              "[100000] attempt cccc/1 STOPPING -> ENDED\n"
              "[100000] job cccc RUNNING -> QUEUED (NODE_LOST)\n"
              "[100000] job cccc waits: 1 wanted, 0 free\n"
              "[100000] brake off: 1 of 2 nodes are silent\n");
    advance_beating(c, 62999, "a");
    expect_job(c, "aaaa", JOB_RUNNING);
    advance(c, 1);
    expect_job(c, "aaaa", JOB_QUEUED);
}
END_TEST

static void heartbeat_listing(struct cluster *c, const char *name, struct node_attempt *attempts,
                              size_t count)
{
    const struct heartbeat_message message = {
        .node = name, .boot_id = "boot-1", .attempts = attempts, .attempt_count = count};
    ck_assert_int_eq(cluster_step(c, &(struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &message}),
                     ERR_NONE);
}

START_TEST(a_heartbeat_is_told_what_the_node_is_not_to_have_any_more)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_REQUEUE);
    uint64_t attempt_id = rows_attempt_id(c->rows, "aaaa");
    struct node_attempt listed[] = {{attempt_id, MEMBER_RUNNING, -1}, {attempt_id + 7, MEMBER_RUNNING, -1}};
    heartbeat_listing(c, "b", listed, 1);
    ck_assert_uint_eq(c->step.fenced_count, 0);
    heartbeat_listing(c, "b", listed, 2);
    ck_assert_uint_eq(c->step.fenced_count, 1);
    ck_assert_uint_eq(c->step.fenced[0], attempt_id + 7);
    heartbeat_listing(c, "a", listed, 1); /* it is another node's */
    ck_assert_uint_eq(c->step.fenced_count, 1);
    advance_beating(c, 63000, "a");
    expect_job(c, "aaaa", JOB_PLACED);
    heartbeat_listing(c, "b", listed, 1); /* so late that it was given to a */
    ck_assert_uint_eq(c->step.fenced_count, 1);
    ck_assert_uint_eq(c->step.fenced[0], attempt_id);
}
END_TEST

START_TEST(two_nodes_are_too_few_for_the_brake)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_REQUEUE);
    advance(c, 63000);
    expect(c, "[15000] node a is silent\n"
              "[15000] node b is silent\n"
              "[63000] member aaaa/1@b RUNNING -> LOST\n"
              "[63000] member aaaa@b is lost: node b was silent for longer than the lease\n"
              "[63000] attempt aaaa/1 STARTED -> STOPPING\n"
              "[63000] attempt aaaa/1 ends: node b was silent for longer than the lease\n"
              "[63000] attempt aaaa/1 STOPPING -> ENDED\n"
              "[63000] job aaaa RUNNING -> QUEUED (NODE_LOST)\n"
              "[63000] job aaaa waits: 1 wanted, 0 free\n");
}
END_TEST

START_TEST(a_restart_of_the_controller_renews_leases)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_REQUEUE);
    advance_beating(c, 62000, "a");
    cluster_restart(c);
    quiet(c);
    advance_beating(c, 62999, "a");
    expect(c, "[77000] node b is silent\n");
    advance(c, 1);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->attempt, 2);
}
END_TEST

START_TEST(the_wall_clock_decides_nothing)
{
    autocluster struct cluster *c = open_with_silent_node(ON_DISCONNECT_REQUEUE);
    c->wall_ms += 10LL * 365 * 24 * 3600 * 1000;
    advance_beating(c, 10000, "a b");
    expect_job(c, "aaaa", JOB_RUNNING);
    c->wall_ms -= 20LL * 365 * 24 * 3600 * 1000;
    exited(c, "aaaa", "b", 0); /* the rows check that times of a job never fall */
    expect_job(c, "aaaa", JOB_SUCCEEDED);
}
END_TEST

Suite *lease_suite(void)
{
    Suite *suite = suite_create("lease");
    TCase *tests = tcase_create("lease");
    tcase_add_test(tests, a_silent_node_gets_no_work_until_it_is_heard_again);
    tcase_add_test(tests, heartbeats_are_not_written);
    tcase_add_test(tests, requeue_waits_for_the_lease_and_a_twentieth);
    tcase_add_test(tests, a_heartbeat_renews_the_lease);
    tcase_add_test(tests, a_lost_member_stops_the_rest_of_its_gang);
    tcase_add_test(tests, fail_ends_the_job_whatever_retries_are_left);
    tcase_add_test(tests, keep_never_gives_up);
    tcase_add_test(tests, no_lease_ends_while_most_nodes_are_silent);
    tcase_add_test(tests, fencing_what_is_dead_takes_it_out_of_the_brake);
    tcase_add_test(tests, a_heartbeat_is_told_what_the_node_is_not_to_have_any_more);
    tcase_add_test(tests, two_nodes_are_too_few_for_the_brake);
    tcase_add_test(tests, a_restart_of_the_controller_renews_leases);
    tcase_add_test(tests, the_wall_clock_decides_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
