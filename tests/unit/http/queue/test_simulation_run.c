/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/queue/simulation_run: what it reads of a store, and its bounds. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/queue/simulation_run.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "tests/unit/http/http_suites.h"
#include "tests/unit/store/store_rig.h"

#define NOW_MS 100000000

static struct simulation_run run;

static void set_up(void)
{
    rig_begin();
    run = (struct simulation_run){.question = {.policies = {POLICY_FIFO, POLICY_SJF}, .policy_count = 2},
                                  .store_path = rig.path,
                                  .wall_ms = NOW_MS,
                                  .limit_ms = 600000};
}

static void tear_down(void)
{
    simulation_question_finish(&run.question);
    text_finish(&run.json);
    rig_end();
}

static struct change ended_job(int64_t key)
{
    struct change change = job_insert(key);
    change.job.life.state = JOB_SUCCEEDED;
    change.job.life.ran_ms = 60000;
    return change;
}

/* Jobs 1..count that have ended. */
static void fill(int64_t count)
{
    struct change jobs[64];
    for (int64_t key = 1; key <= count;) {
        size_t n = 0;
        while (n < 64 && key <= count) {
            jobs[n++] = ended_job(key++);
        }
        rig_write(jobs, n);
    }
}

static json_t *answer(void)
{
    simulation_run(&run);
    ck_assert_msg(run.ok, "%s", run.err.text);
    json_t *json = json_parse(run.json.bytes, run.json.length, NULL);
    ck_assert_ptr_nonnull(json);
    text_clear(&run.json);
    return json;
}

static void expect_jobs(int64_t count)
{
    autojson json_t *json = answer();
    ck_assert_int_eq(json_integer_value(json_object_get(json, "jobs")), count);
    ck_assert(json_is_false(json_object_get(json, "more")));
    ck_assert_uint_eq(json_array_size(json_object_get(json, "results")), count > 0 ? 2 : 0);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "cut")), 0);
}

START_TEST(jobs_that_have_ended_are_read_to_the_oldest)
{
    fill(2 * LIMIT_SCAN_ROWS + 7);
    rig_write_one(job_insert(2 * LIMIT_SCAN_ROWS + 8));
    rig_write_one(node_put("n1"));
    expect_jobs(2 * LIMIT_SCAN_ROWS + 7);
    run.question.owner = xstrdup("alice");
    expect_jobs(2 * LIMIT_SCAN_ROWS + 7);
    free(run.question.owner);
    run.question.owner = xstrdup("bob");
    expect_jobs(0);
    run.question.span_ms = NOW_MS - 1000 - LIMIT_SCAN_ROWS; /* the rig makes job k at 1000 + k */
    free(give(run.question.owner));
    expect_jobs(LIMIT_SCAN_ROWS + 8);
}
END_TEST

START_TEST(a_node_that_takes_work_counts_for_each_of_its_types)
{
    struct change drained = node_put("n2");
    drained.node.state = NODE_DRAINED;
    fill(1);
    rig_write_one(drained);
    simulation_run(&run);
    ck_assert(!run.ok);
    ck_assert_str_eq(run.err.field, "nodes");
    rig_write_one(node_put("n1"));
    rig_write_one(node_put("n3"));
    autojson json_t *json = answer();
    ck_assert_str_eq(json_string_of(json, "nodes"), "2x2:A10,2x2:H100");
}
END_TEST

static void expect_cut(void)
{
    autojson json_t *json = answer();
    ck_assert_uint_eq(json_array_size(json_object_get(json, "results")), 0);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(json, "cut"), 0)), "fifo");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(json, "cut"), 1)), "sjf");
}

START_TEST(policies_for_which_there_was_no_time_are_named)
{
    fill(3);
    ck_assert(fleet_parse("1x2", &run.question.fleet, &run.err));
    run.limit_ms = 0;
    expect_cut();
    run.limit_ms = 600000;
    run.stop = true;
    expect_cut();
}
END_TEST

Suite *simulation_run_suite(void)
{
    Suite *suite = suite_create("simulation_run");
    TCase *runs = tcase_create("runs");
    tcase_add_checked_fixture(runs, set_up, tear_down);
    tcase_add_test(runs, jobs_that_have_ended_are_read_to_the_oldest);
    tcase_add_test(runs, a_node_that_takes_work_counts_for_each_of_its_types);
    tcase_add_test(runs, policies_for_which_there_was_no_time_are_named);
    suite_add_tcase(suite, runs);
    return suite;
}
