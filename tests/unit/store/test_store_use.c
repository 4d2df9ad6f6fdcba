/* SPDX-License-Identifier: Apache-2.0 */
/* Hours of use: what is added, what is read of them together with live attempts, and what goes when it is
 * old. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static struct change hour(int64_t number, const char *owner, const char *pool, int64_t gpu_ms)
{
    return (struct change){.kind = CHANGE_HOUR_ADD,
                           .hour = {.hour_ms = number * HOUR_MS,
                                    .project = "vision",
                                    .owner = owner,
                                    .pool = pool,
                                    .gpu_type = "A10",
                                    .reserved = strcmp(pool, "kept") == 0,
                                    .attempts = 1,
                                    .gpu_ms = gpu_ms,
                                    .measured_ms = 20,
                                    .idle_ms = 10,
                                    .energy_mj = 3}};
}

static void expect(const struct use_question *question, const char *expected)
{
    autotext struct text seen = {0};
    autorows struct rows rows = reader_use(rig.reader, question, &rig.err);
    struct use_record record;
    text_append(&seen, "");
    while (rows_use(&rows, &record)) {
        const struct hour_row *row = &record.row;
        text_printf(&seen, "%lld: %lld %s %s %s %d: %lld %lld %lld %lld %lld\n", (long long)record.gpus,
                    (long long)(record.gpus > 0 ? row->hour_ms : row->hour_ms / HOUR_MS), row->project,
                    row->owner, row->pool, row->reserved, (long long)row->attempts, (long long)row->gpu_ms,
                    (long long)row->measured_ms, (long long)row->idle_ms, (long long)row->energy_mj);
    }
    ck_assert_msg(!rows.failed, "%s", rig.err.text);
    ck_assert_str_eq(seen.bytes != NULL ? seen.bytes : "", expected);
}

START_TEST(hours_add_up_and_are_told_apart_as_asked)
{
    rig_write((struct change[]){hour(1, "anna", "main", 100), hour(1, "anna", "main", 50),
                                hour(2, "bob", "main", 7), hour(3, "anna", "kept", 9)},
              4);
    expect(
        &(struct use_question){
            .until_ms = 9 * HOUR_MS, .step_ms = HOUR_MS, .by_owner = true, .by_reserved = true},
        "0: 1  anna main 0: 2 150 40 20 6\n0: 2  bob main 0: 1 7 20 10 3\n0: 3  anna kept 1: 1 9 20 10 3\n");
    expect(&(struct use_question){.until_ms = 3 * HOUR_MS, .step_ms = INT64_MAX, .by_project = true},
           "0: 0 vision  main 0: 3 157 60 30 9\n");
    expect(
        &(struct use_question){
            .since_ms = 2 * HOUR_MS, .until_ms = 9 * HOUR_MS, .step_ms = 24 * HOUR_MS, .owner = "anna"},
        "0: 2   kept 0: 1 9 20 10 3\n");
    expect(&(struct use_question){.until_ms = 9 * HOUR_MS, .step_ms = INT64_MAX, .project = "other"}, "");
}
END_TEST

START_TEST(live_attempts_are_read_with_their_gpus_and_ended_ones_are_not)
{
    struct change node = node_put("n");
    struct change first = attempt_insert(7, 1, 1), second = attempt_insert(8, 2, 1);
    node.node.pool_kind = POOL_RESERVED;
    first.attempt.created_ms = 1234;
    first.attempt.pool = "main";
    second.attempt.state = ATTEMPT_ENDED;
    struct change job = job_insert(1), other = job_insert(2);
    job.job.birth.owner = "anna";
    job.job.birth.gpus = 4;
    rig_write((struct change[]){node, job, other, first, second, member_insert(7, 0, "n", "0,1"),
                                member_insert(8, 0, "n", "2")},
              7);
    expect(
        &(struct use_question){
            .until_ms = 9, .step_ms = HOUR_MS, .by_owner = true, .by_reserved = true, .owner = "anna"},
        "4: 1234  anna main 1: 0 0 0 0 0\n");
    expect(&(struct use_question){.until_ms = 9, .step_ms = HOUR_MS, .owner = "nobody"}, "");
}
END_TEST

START_TEST(old_hours_go_one_at_a_time)
{
    bool found;
    rig_write((struct change[]){hour(1, "anna", "main", 1), hour(1, "bob", "main", 1),
                                hour(2, "bob", "main", 1), hour(3, "bob", "main", 1)},
              4);
    rig_write_one((struct change){.kind = CHANGE_HOURS_TRIM, .hour.hour_ms = 2 * HOUR_MS});
    ck_assert(reader_old_hours(rig.reader, HOUR_MS, &found, &rig.err) && !found);
    ck_assert(reader_old_hours(rig.reader, 2 * HOUR_MS, &found, &rig.err) && found);
    rig_write_one((struct change){.kind = CHANGE_HOURS_TRIM, .hour.hour_ms = 2 * HOUR_MS});
    rig_write_one((struct change){.kind = CHANGE_HOURS_TRIM, .hour.hour_ms = 2 * HOUR_MS});
    expect(&(struct use_question){.until_ms = 9 * HOUR_MS, .step_ms = HOUR_MS},
           "0: 3   main 0: 1 1 20 10 3\n");
}
END_TEST

Suite *store_use_suite(void)
{
    Suite *suite = suite_create("store-use");
    TCase *cases = tcase_create("use");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_add_test(cases, hours_add_up_and_are_told_apart_as_asked);
    tcase_add_test(cases, live_attempts_are_read_with_their_gpus_and_ended_ones_are_not);
    tcase_add_test(cases, old_hours_go_one_at_a_time);
    suite_add_tcase(suite, cases);
    return suite;
}
