/* SPDX-License-Identifier: Apache-2.0 */
/* What readers learn of waiting jobs without asking the writer: GPUs for each, and jobs ahead. */
#include <stdio.h>

#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/harness/explain_rig.h"
#include "tests/trace/suites.h"

/* Jobs have keys from 1, in the order of their submissions: "2: 1 ahead, 0 of 4 free". */
static void expect_waiting(struct cluster *c, const char *expected)
{
    autotext struct text found = {0};
    struct queue_snapshot *queue = queue_snapshot_create(c->core);
    for (size_t i = 0; i < queue->count; i++) {
        int64_t key = queue->jobs[i].key, ahead = -1;
        const struct gpu_supply *supply = queue_snapshot_find(queue, key, &ahead);
        text_printf(&found, "%s%d: %d ahead, %d of %d free", i > 0 ? "; " : "", (int)key, (int)ahead,
                    (int)supply->free, (int)supply->total);
        if (supply->out_of_service + supply->departing > 0) {
            text_printf(&found, ", %d out of service, %d departing", (int)supply->out_of_service,
                        (int)supply->departing);
        }
    }
    queue_snapshot_destroy(queue);
    ck_assert_str_eq(found.length > 0 ? found.bytes : "", expected);
}

START_TEST(jobs_that_could_use_the_same_gpus_are_counted_in_queue_order)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 2, .type = "A10");
    node(c, "h", .gpus = 1, .type = "H100");
    submit(c, "runs", .gpus = 2, .type = "A10", .time_limit_ms = HOUR_MS);
    submit(c, "runh", .type = "H100", .time_limit_ms = HOUR_MS);
    expect_waiting(c, "");
    submit(c, "aaaa", .gpus = 2, .type = "A10", .time_limit_ms = HOUR_MS);
    submit(c, "hhhh", .type = "H100", .time_limit_ms = HOUR_MS);
    submit(c, "both", .type = "H100|A10", .time_limit_ms = HOUR_MS);
    submit(c, "high", .gpus = 2, .type = "A10", .time_limit_ms = HOUR_MS, .priority = 5);
    expect_waiting(c, "3: 1 ahead, 0 of 2 free; 4: 0 ahead, 0 of 1 free; 5: 3 ahead, 0 of 3 free; "
                      "6: 0 ahead, 0 of 2 free");
    cancel(c, "aaaa");
    expect_waiting(c, "4: 0 ahead, 0 of 1 free; 5: 2 ahead, 0 of 3 free; 6: 0 ahead, 0 of 2 free");
}
END_TEST

START_TEST(equal_jobs_are_ahead_of_later_ones)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "runs");
    submit(c, "aaaa");
    submit(c, "bbbb");
    submit(c, "cccc");
    expect_waiting(c, "2: 0 ahead, 0 of 1 free; 3: 1 ahead, 0 of 1 free; 4: 2 ahead, 0 of 1 free");
    submit(c, "held", .hold = true);
    expect_waiting(c, "2: 0 ahead, 0 of 1 free; 3: 1 ahead, 0 of 1 free; 4: 2 ahead, 0 of 1 free");
}
END_TEST

START_TEST(gpus_of_nodes_that_take_no_work_or_leave_soon_are_told_apart)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 4);
    node(c, "l", .gpus = 1, .expires_ms = HOUR_MS);
    submit(c, "long", .gpus = 8, .time_limit_ms = 2 * HOUR_MS);
    ck_assert_int_eq(c->step.ok, false); /* more than there is */
    submit(c, "runs", .gpus = 2, .time_limit_ms = 3 * HOUR_MS);
    submit(c, "wait", .gpus = 6, .time_limit_ms = 2 * HOUR_MS);
    drain(c, "b");
    expect_waiting(c, "2: 0 ahead, 1 of 7 free, 4 out of service, 1 departing");
    change_limit(c, "wait", 10 * MINUTE_MS);
    expect_waiting(c, "2: 0 ahead, 1 of 7 free, 4 out of service, 0 departing");
}
END_TEST

START_TEST(a_job_is_looked_up_by_its_key_among_the_first_of_a_long_queue)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a");
    for (int i = 0; i < LIMIT_AHEAD + 20; i++) {
        char id[ID_LENGTH + 1];
        snprintf(id, sizeof id, "j%d", i);
        submit(c, id);
    }
    struct queue_snapshot *queue = queue_snapshot_create(c->core);
    int64_t ahead = -1;
    ck_assert_uint_eq(queue->count, LIMIT_AHEAD);
    ck_assert_ptr_nonnull(queue_snapshot_find(queue, 4001, &ahead));
    ck_assert_int_eq(ahead, 3999);
    ck_assert_ptr_null(queue_snapshot_find(queue, 1, &ahead)); /* it runs */
    ck_assert_ptr_null(queue_snapshot_find(queue, LIMIT_AHEAD + 5, &ahead));
    queue_snapshot_destroy(queue);
}
END_TEST

Suite *queue_snapshot_suite(void)
{
    Suite *suite = suite_create("queue-snapshot");
    TCase *cases = tcase_create("queue-snapshot");
    tcase_add_test(cases, jobs_that_could_use_the_same_gpus_are_counted_in_queue_order);
    tcase_add_test(cases, equal_jobs_are_ahead_of_later_ones);
    tcase_add_test(cases, gpus_of_nodes_that_take_no_work_or_leave_soon_are_told_apart);
    tcase_add_test(cases, a_job_is_looked_up_by_its_key_among_the_first_of_a_long_queue);
    suite_add_tcase(suite, cases);
    return suite;
}
