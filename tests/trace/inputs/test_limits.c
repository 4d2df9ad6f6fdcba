/* SPDX-License-Identifier: Apache-2.0 */
/* What happens at the limits, and that a long queue costs no more than a short one. */
#include "proto/limits.h"
#include "proto/limits_controller.h"

#include <stdio.h>

#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

static struct cluster *open_large(int nodes, int64_t gpus)
{
    struct cluster *c = cluster_open();
    c->large = true;
    core_trace(c->core, NULL);
    for (int i = 0; i < nodes; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%05d", i);
        ck_assert_int_eq(node(c, name, .gpus = gpus), ERR_NONE);
    }
    return c;
}

static void submit_many(struct cluster *c, int count, int64_t gpus)
{
    for (int i = 0; i < count; i++) {
        char id[17];
        snprintf(id, sizeof id, "j%d", i);
        ck_assert_int_eq(submit(c, id, .gpus = gpus, .retries = 1), ERR_NONE);
    }
}

START_TEST(no_gang_has_more_nodes_than_the_limit)
{
    autocluster struct cluster *c = open_large(LIMIT_ATTEMPT_NODES + 10, 1);
    ck_assert_int_eq(submit(c, "wide", .gpus = LIMIT_ATTEMPT_NODES + 1), ERR_CAPACITY);
    ck_assert_int_eq(submit(c, "gang", .gpus = LIMIT_ATTEMPT_NODES), ERR_NONE);
    expect_job(c, "gang", JOB_PLACED);
    core_check(c->core);
}
END_TEST

START_TEST(a_bounded_number_of_ended_attempts_is_remembered)
{
    enum { JOBS = LIMIT_ENDED_ATTEMPTS + 76 };
    autocluster struct cluster *c = open_large(2, JOBS / 2);
    submit_many(c, JOBS, 1);
    drain(c, "n00000");
    drain(c, "n00001");
    for (int i = 0; i < JOBS; i++) {
        char id[17];
        snprintf(id, sizeof id, "j%d", i);
        bool ended = exited(c, id, "n00000", 1) == ERR_NONE || exited(c, id, "n00001", 1) == ERR_NONE;
        ck_assert(ended);
        expect_job(c, id, JOB_QUEUED);
    }
    core_check(c->core);
    const struct report_message again = {.kind = REPORT_EXITED, .flushed = true};
    ck_assert_int_eq(cluster_report(c, "j0", "n00000", &again), ERR_FENCED);
    ck_assert_int_eq(cluster_report(c, "j100", "n00000", &again), ERR_NONE);
    cluster_restart(c);
    core_check(c->core);
    resume(c, "n00000");
    expect_job(c, "j0", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "j0")->attempt, 2);
}
END_TEST

START_TEST(pools_and_types_are_counted)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    char name[16];
    for (int i = 0; i < LIMIT_POOLS; i++) {
        snprintf(name, sizeof name, "n%d", i);
        ck_assert_int_eq(node(c, name, .pool = name, .type = i < LIMIT_GPU_TYPES ? name : "A10"),
                         i == LIMIT_GPU_TYPES ? ERR_FIELD : ERR_NONE);
        if (i == LIMIT_GPU_TYPES) {
            expect_field(c, "devices"); /* A10 is one type too many */
            ck_assert_int_eq(node(c, name, .pool = name, .type = "N0"), ERR_NONE);
            break;
        }
    }
    for (int i = LIMIT_GPU_TYPES + 1; i < LIMIT_POOLS; i++) {
        snprintf(name, sizeof name, "n%d", i);
        ck_assert_int_eq(node(c, name, .pool = name, .type = "n0"), ERR_NONE);
    }
    ck_assert_int_eq(node(c, "last", .pool = "last", .type = "n0"), ERR_FIELD);
    expect_field(c, "pool");
    ck_assert_int_eq(node(c, "last", .pool = "n7", .type = "n0"), ERR_NONE);
    core_check(c->core);
}
END_TEST

START_TEST(a_submission_behind_others_like_it_touches_nothing_else)
{
    autocluster struct cluster *c = open_large(100, 1);
    submit_many(c, 20000, 1);
    core_check(c->core);
    submit(c, "last");
    ck_assert_uint_eq(c->step.change_count, 2); /* its row and its first event */
    ck_assert_uint_eq(c->step.touched_count, 1);
    ck_assert_uint_eq(core_live_jobs(c->core), 20001);
    exited(c, "j0", "n00000", 0);
    expect_job(c, "j100", JOB_PLACED);
    core_check(c->core);
}
END_TEST

Suite *limit_suite(void)
{
    Suite *suite = suite_create("limits");
    TCase *tests = tcase_create("limits");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, no_gang_has_more_nodes_than_the_limit);
    tcase_add_test(tests, a_bounded_number_of_ended_attempts_is_remembered);
    tcase_add_test(tests, pools_and_types_are_counted);
    tcase_add_test(tests, a_submission_behind_others_like_it_touches_nothing_else);
    suite_add_tcase(suite, tests);
    return suite;
}
