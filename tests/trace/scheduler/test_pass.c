/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduling pass that is too long for one step. Here each step visits one queue entry. */
#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

/* A busy node of type A10 and a free one of type H100; two jobs of different kinds wait for the busy one. */
static struct cluster *two_wait(enum policy policy)
{
    struct cluster *c = cluster_open_slow(policy, 1);
    node(c, "a", .type = "A10");
    submit(c, "runs", .type = "A10");
    submit(c, "fst0", .type = "A10");
    submit(c, "snd0", .type = "A10|B200");
    advance(c, 10 * PASS_REST_MS);
    expect_job(c, "runs", JOB_PLACED);
    expect_job(c, "fst0", JOB_QUEUED);
    return c;
}

START_TEST(a_pass_goes_on_in_later_steps_until_the_end_of_the_queue)
{
    autocluster struct cluster *c = two_wait(POLICY_FIFO);
    node(c, "b", .type = "H100");
    submit(c, "last", .type = "H100");
    expect_job(c, "last", JOB_QUEUED);
    ck_assert_int_le(core_deadline(c->core), c->now_ms + PASS_REST_MS);
    advance(c, 10 * PASS_REST_MS);
    expect_job(c, "last", JOB_PLACED);
    ck_assert_int_gt(core_deadline(c->core), c->now_ms + PASS_REST_MS); /* and then it is through */
}
END_TEST

/* The pass has visited the first job when the GPU becomes free: the second does not get it. */
START_TEST(what_becomes_free_meanwhile_goes_to_those_that_come_first)
{
    autocluster struct cluster *c = two_wait(POLICY_FIFO);
    hold(c, "snd0");
    release(c, "snd0"); /* an event: a pass begins, and visits the first job */
    exited(c, "runs", "a", 0);
    advance(c, 10 * PASS_REST_MS);
    expect_job(c, "fst0", JOB_PLACED);
    expect_job(c, "snd0", JOB_QUEUED);
}
END_TEST

START_TEST(events_do_not_keep_a_pass_from_its_end)
{
    autocluster struct cluster *c = two_wait(POLICY_FIFO);
    node(c, "b", .type = "H100");
    submit(c, "last", .type = "H100");
    for (int i = 0; i < 5; i++) {
        hold(c, "snd0");
        release(c, "snd0");
        advance(c, PASS_REST_MS);
    }
    expect_job(c, "last", JOB_PLACED);
}
END_TEST

START_TEST(a_pass_does_not_go_on_with_other_nodes)
{
    autocluster struct cluster *c = two_wait(POLICY_FIFO);
    hold(c, "snd0");
    release(c, "snd0");
    node(c, "0", .type = "A10"); /* comes before the other by name */
    advance(c, 10 * PASS_REST_MS);
    expect_job(c, "fst0", JOB_PLACED);
    expect_job(c, "snd0", JOB_QUEUED);
}
END_TEST

Suite *pass_suite(void)
{
    Suite *suite = suite_create("pass");
    TCase *tests = tcase_create("pass");
    tcase_add_test(tests, a_pass_goes_on_in_later_steps_until_the_end_of_the_queue);
    tcase_add_test(tests, what_becomes_free_meanwhile_goes_to_those_that_come_first);
    tcase_add_test(tests, events_do_not_keep_a_pass_from_its_end);
    tcase_add_test(tests, a_pass_does_not_go_on_with_other_nodes);
    suite_add_tcase(suite, tests);
    return suite;
}
