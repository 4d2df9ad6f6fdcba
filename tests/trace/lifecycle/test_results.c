/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of functions leave behind, and what its lack means. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits_agent.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

#define HINT "; a call of sys.exit or os._exit in the function does this"

static const uint8_t digest[32] = {1, 2, 3};

/* Nodes a and b, with a running function of two ranks on each. */
static struct cluster *open_with_running_function(int64_t retries)
{
    struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "func", .gpus = 4, .retries = retries, .function = true);
    prepared(c, "func", "a");
    prepared(c, "func", "b");
    running(c, "func", "a");
    running(c, "func", "b");
    expect_job(c, "func", JOB_RUNNING);
    quiet(c);
    return c;
}

/* Node a alone, with a function of two ranks. */
static struct cluster *open_with_small_function(void)
{
    struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "func", .gpus = 2, .function = true);
    running(c, "func", "a");
    quiet(c);
    return c;
}

static size_t values(const struct cluster *c, uint64_t attempt_id)
{
    return rows_result_count(c->rows, attempt_id, RESULT_VALUE);
}

/* An exit of ranks 0 and 1 with these codes, and results. */
static enum err_code exit_with(struct cluster *c, int64_t code, int64_t other, struct rank_result *results,
                               size_t count)
{
    struct rank_exit exits[] = {{.rank = 0, .code = code, .at_ms = 5},
                                {.rank = 1, .code = other, .at_ms = 6}};
    struct report_message report = {.kind = REPORT_EXITED,
                                    .ranks = exits,
                                    .rank_count = 2,
                                    .flushed = true,
                                    .results = results,
                                    .result_count = count};
    return cluster_report(c, "func", "a", &report);
}

/* --- success -------------------------------------------------------------------------------------------- */

START_TEST(a_function_succeeds_with_a_result_of_every_rank)
{
    autocluster struct cluster *c = open_with_running_function(0);
    returned(c, "func", "b", 2);
    expect_job(c, "func", JOB_RUNNING);
    returned(c, "func", "a", 2);
    expect_ended(c, "func", JOB_SUCCEEDED, 0, "");
    ck_assert_uint_eq(values(c, rows_attempt_id(c->rows, "func")), 4);
}
END_TEST

START_TEST(a_function_that_runs_once_a_node_leaves_a_result_a_node)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "good", .gpus = 2, .function = true, .by_node = true);
    returned(c, "good", "a", 1);
    expect_job(c, "good", JOB_SUCCEEDED);
    submit(c, "evil", .gpus = 2, .function = true, .by_node = true);
    returned(c, "evil", "a", 0);
    expect_ended(c, "evil", JOB_FAILED, 1, "rank 0 on node a ended without a result" HINT);
}
END_TEST

START_TEST(a_command_needs_no_results)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    exited(c, "aaaa", "a", 0);
    expect_job(c, "aaaa", JOB_SUCCEEDED);
    submit(c, "bbbb");
    struct rank_exit exit = {.rank = 0};
    struct report_message report = {.kind = REPORT_EXITED,
                                    .cause = CAUSE_RESULT_MISSING,
                                    .text = "a file was too long",
                                    .ranks = &exit,
                                    .rank_count = 1,
                                    .flushed = true};
    cluster_report(c, "bbbb", "a", &report);
    expect_job(c, "bbbb", JOB_SUCCEEDED);
}
END_TEST

START_TEST(pickles_that_come_along_are_written_with_their_results)
{
    autocluster struct cluster *c = open_with_small_function();
    struct rank_result results[] = {
        {.rank = 0, .kind = RESULT_VALUE, .size = 3, .digest = digest, .bytes = "abc", .json = "7"},
        {.rank = 1, .kind = RESULT_VALUE, .size = 99, .digest = digest}};
    exit_with(c, 0, 0, results, 2);
    size_t blobs = 0, rows = 0;
    for (size_t i = 0; i < c->step.change_count; i++) {
        const struct change *change = &c->step.changes[i];
        if (change->kind == CHANGE_BLOB_PUT) {
            ck_assert_int_eq(change->blob.size, 3);
            ck_assert_mem_eq(change->blob.bytes, "abc", 3);
            ck_assert_mem_eq(change->blob.hash, digest, sizeof digest);
            ck_assert_int_gt(change->blob.created_ms, 0);
            blobs++;
        } else if (change->kind == CHANGE_RESULT_PUT) {
            ck_assert_int_eq(change->result.rank, (int64_t)rows);
            ck_assert_int_eq(change->result.size, results[rows].size);
            ck_assert_pstr_eq(change->result.json, results[rows].json);
            ck_assert_mem_eq(change->result.hash, digest, sizeof digest);
            rows++;
        }
    }
    ck_assert_uint_eq(blobs, 1);
    ck_assert_uint_eq(rows, 2);
    ck_assert_int_eq(c->step.touched[0].state, JOB_SUCCEEDED); /* in the same step */
}
END_TEST

/* --- what is missing ------------------------------------------------------------------------------------ */

START_TEST(a_function_without_a_result_of_some_rank_fails_and_names_it)
{
    autocluster struct cluster *c = open_with_running_function(0);
    returned(c, "func", "b", 1);
    expect(c, "[    0] member func/1@b RUNNING -> EXITED\n"
              "[    0] attempt func/1 STARTED -> STOPPING\n"
              "[    0] attempt func/1 ends: rank 3 on node b ended without a result" HINT "\n"
              "[    0] member func/1@b EXITED -> FLUSHED\n");
    expect_orders(c, "a", "stop func/1 rank 0-1 of 4 on 0,1 node 0 of 2 RESULT_MISSING grace 5000\n");
    stopped(c, "func", "a");
    expect_ended(c, "func", JOB_FAILED, 1, "rank 3 on node b ended without a result" HINT);
    const struct job_life *life = rows_job(c->rows, "func");
    ck_assert_int_eq(life->cause, CAUSE_RESULT_MISSING);
    ck_assert_int_eq(life->failed_rank, 3);
    ck_assert_str_eq(life->failed_node, "b");
    ck_assert_uint_eq(values(c, rows_attempt_id(c->rows, "func")), 1);
}
END_TEST

START_TEST(the_first_rank_without_a_result_is_the_one_that_is_named)
{
    autocluster struct cluster *c = open_with_small_function();
    struct rank_result second = {.rank = 1, .kind = RESULT_VALUE, .digest = digest};
    exit_with(c, 0, 0, &second, 1);
    expect_ended(c, "func", JOB_FAILED, 1, "rank 0 on node a ended without a result" HINT);
}
END_TEST

START_TEST(an_exception_is_no_result_of_a_rank_that_ended_with_0)
{
    autocluster struct cluster *c = open_with_small_function();
    struct rank_result results[] = {{.rank = 0, .kind = RESULT_VALUE, .digest = digest},
                                    {.rank = 1, .kind = RESULT_EXCEPTION, .digest = digest}};
    exit_with(c, 0, 0, results, 2);
    expect_ended(c, "func", JOB_FAILED, 1, "rank 1 on node a ended without a result" HINT);
    ck_assert_uint_eq(rows_result_count(c->rows, rows_attempt_id(c->rows, "func"), RESULT_EXCEPTION), 1);
}
END_TEST

START_TEST(a_node_may_say_why_a_result_is_missing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "func", .function = true);
    struct rank_exit exit = {.rank = 0};
    struct report_message report = {.kind = REPORT_EXITED,
                                    .cause = CAUSE_RESULT_MISSING,
                                    .text = "0.pickle is 2 GiB, the limit is 1 GiB",
                                    .ranks = &exit,
                                    .rank_count = 1,
                                    .flushed = true};
    cluster_report(c, "func", "a", &report);
    expect_ended(c, "func", JOB_FAILED, 1,
                 "rank 0 on node a ended without a result: 0.pickle is 2 GiB, the limit is 1 GiB");
    submit(c, "fail", .function = true);
    exit.code = 3; /* that a rank failed says more */
    cluster_report(c, "fail", "a", &report);
    expect_ended(c, "fail", JOB_FAILED, 3, "rank 0 on node a exited with 3");
}
END_TEST

START_TEST(a_missing_result_costs_a_retry_of_the_user)
{
    autocluster struct cluster *c = open_with_running_function(1);
    uint64_t first = rows_attempt_id(c->rows, "func");
    returned(c, "func", "b", 0);
    returned(c, "func", "a", 2);
    ck_assert_int_eq(rows_job(c->rows, "func")->user_failures, 1);
    ck_assert_int_eq(rows_job(c->rows, "func")->infra_failures, 0);
    expect_job(c, "func", JOB_PLACED);
    ck_assert_uint_eq(values(c, first), 2); /* those of a failed attempt are kept, too */
    prepared(c, "func", "a");
    prepared(c, "func", "b");
    returned(c, "func", "a", 2);
    returned(c, "func", "b", 2);
    expect_ended(c, "func", JOB_SUCCEEDED, 0, "");
    ck_assert_uint_eq(values(c, rows_attempt_id(c->rows, "func")), 4);
}
END_TEST

START_TEST(a_canceled_function_lacks_nothing)
{
    autocluster struct cluster *c = open_with_small_function();
    cancel(c, "func");
    stopped(c, "func", "a");
    expect_ended(c, "func", JOB_CANCELED, 130, "canceled by alice");
    submit(c, "late", .gpus = 2, .function = true);
    cancel(c, "late");
    returned(c, "late", "a", 1);
    expect_ended(c, "late", JOB_CANCELED, 130, "canceled by alice");
}
END_TEST

/* --- twice, and after a restart ------------------------------------------------------------------------- */

START_TEST(a_repeated_exit_changes_nothing)
{
    autocluster struct cluster *c = open_with_running_function(0);
    uint64_t attempt_id = rows_attempt_id(c->rows, "func");
    struct report_message again = {.kind = REPORT_EXITED, .attempt_id = attempt_id};
    struct rank_exit exits[] = {{.rank = 0}, {.rank = 1}};
    struct rank_result results[] = {{.rank = 0, .digest = digest}, {.rank = 1, .digest = digest}};
    again.ranks = exits;
    again.results = results;
    again.rank_count = again.result_count = 2;
    cluster_report(c, "func", "a", &again);
    ck_assert_uint_eq(values(c, attempt_id), 2);
    ck_assert_int_eq(cluster_report(c, "func", "a", &again), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    again.flushed = true;
    again.result_count = 0; /* what was said once need not be said again */
    cluster_report(c, "func", "a", &again);
    returned(c, "func", "b", 2);
    expect_job(c, "func", JOB_SUCCEEDED);
    again.result_count = 2;
    ck_assert_int_eq(cluster_report(c, "func", "a", &again), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_uint_eq(values(c, attempt_id), 4);
}
END_TEST

START_TEST(a_function_is_still_one_after_a_restart)
{
    autocluster struct cluster *c = open_with_running_function(1);
    cluster_restart(c);
    returned(c, "func", "a", 2);
    cluster_restart(c);
    returned(c, "func", "b", 1);
    expect_job(c, "func", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "func")->cause, CAUSE_RESULT_MISSING);
    cluster_restart(c);
    prepared(c, "func", "a");
    prepared(c, "func", "b");
    returned(c, "func", "a", 2);
    cluster_restart(c);
    returned(c, "func", "b", 2);
    expect_job(c, "func", JOB_SUCCEEDED);
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------------------- */

START_TEST(results_that_do_not_belong_to_the_node_are_refused)
{
    static const int64_t wrong[][2] = {{0, 2}, {0, 0}, {1, 0}, {2, 3}};
    autocluster struct cluster *c = open_with_running_function(0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rank_result results[] = {{.rank = wrong[i][0], .digest = digest},
                                        {.rank = wrong[i][1], .digest = digest}};
        ck_assert_int_eq(exit_with(c, 0, 0, results, 2), ERR_FIELD);
        expect_field(c, "results");
    }
    expect_job(c, "func", JOB_RUNNING);
}
END_TEST

/* --- last words ----------------------------------------------------------------------------------------- */

/* Why a job of one rank failed that said this, by a report of that kind. */
static void expect_said(enum report_kind kind, const char *said, int64_t code, const char *reason)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    struct rank_exit exit = {.rank = 0, .code = code, .signal = code > 128 ? code - 128 : 0};
    struct report_message report = {.kind = kind,
                                    .cause = kind == REPORT_FAILED ? CAUSE_RANK_FAILED : CAUSE_NONE,
                                    .ranks = &exit,
                                    .rank_count = 1,
                                    .flushed = true,
                                    .said = said};
    cluster_report(c, "aaaa", "a", &report);
    if (kind == REPORT_FAILED) {
        exited(c, "aaaa", "a", code);
    }
    expect_ended(c, "aaaa", code == 0 ? JOB_SUCCEEDED : JOB_FAILED, code, reason);
}

START_TEST(what_a_failed_rank_said_ends_its_sentence)
{
    expect_said(REPORT_FAILED, "ValueError: bad", 1, "rank 0 on node a exited with 1: ValueError: bad");
    expect_said(REPORT_EXITED, "ValueError: bad", 1, "rank 0 on node a exited with 1: ValueError: bad");
    expect_said(REPORT_EXITED, "sunk", 139, "rank 0 on node a was killed by signal 11 (SIGSEGV): sunk");
    expect_said(REPORT_EXITED, "first\nsecond", 1, "rank 0 on node a exited with 1: first");
    expect_said(REPORT_EXITED, "", 1, "rank 0 on node a exited with 1");
    expect_said(REPORT_EXITED, NULL, 1, "rank 0 on node a exited with 1");
}
END_TEST

START_TEST(what_a_node_remarks_of_a_success_is_its_reason)
{
    expect_said(REPORT_EXITED, "rank 0 is alone\nmore", 0, "rank 0 is alone");
    expect_said(REPORT_EXITED, NULL, 0, "");
}
END_TEST

START_TEST(last_words_are_cut_to_their_limit)
{
    char said[LIMIT_SAID_BYTES + 2] = {0};
    memset(said, 'x', LIMIT_SAID_BYTES + 1);
    autofree char *reason = xprintf("rank 0 on node a exited with 1: %.*s", LIMIT_SAID_BYTES, said);
    expect_said(REPORT_EXITED, said, 1, reason);
}
END_TEST

Suite *result_suite(void)
{
    Suite *suite = suite_create("results");
    TCase *tests = tcase_create("results");
    tcase_add_test(tests, a_function_succeeds_with_a_result_of_every_rank);
    tcase_add_test(tests, a_function_that_runs_once_a_node_leaves_a_result_a_node);
    tcase_add_test(tests, a_command_needs_no_results);
    tcase_add_test(tests, pickles_that_come_along_are_written_with_their_results);
    tcase_add_test(tests, a_function_without_a_result_of_some_rank_fails_and_names_it);
    tcase_add_test(tests, the_first_rank_without_a_result_is_the_one_that_is_named);
    tcase_add_test(tests, an_exception_is_no_result_of_a_rank_that_ended_with_0);
    tcase_add_test(tests, a_node_may_say_why_a_result_is_missing);
    tcase_add_test(tests, a_missing_result_costs_a_retry_of_the_user);
    tcase_add_test(tests, a_canceled_function_lacks_nothing);
    tcase_add_test(tests, a_repeated_exit_changes_nothing);
    tcase_add_test(tests, a_function_is_still_one_after_a_restart);
    tcase_add_test(tests, results_that_do_not_belong_to_the_node_are_refused);
    tcase_add_test(tests, what_a_failed_rank_said_ends_its_sentence);
    tcase_add_test(tests, what_a_node_remarks_of_a_success_is_its_reason);
    tcase_add_test(tests, last_words_are_cut_to_their_limit);
    suite_add_tcase(suite, tests);
    return suite;
}
