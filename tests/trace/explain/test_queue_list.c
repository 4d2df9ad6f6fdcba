/* SPDX-License-Identifier: Apache-2.0 */
/* The queue as a list: its order is that of the starts, and asking changes nothing. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/harness/explain_rig.h"
#include "tests/trace/suites.h"

static json_t *queue_as(struct cluster *c, const char *owner, const char *pool, int64_t limit)
{
    const struct input input = {.kind = INPUT_ASK,
                                .ask = {.kind = ASK_QUEUE, .owner = owner, .pool = pool, .limit = limit}};
    ck_assert_int_eq(cluster_step(c, &input), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_uint_eq(c->step.dirty_count, 0);
    return answer_of(c);
}

static json_t *queue(struct cluster *c)
{
    return queue_as(c, NULL, NULL, LIMIT_QUEUE_ROWS);
}

/* "1 a, 2 b": positions and jobs. */
static void expect_rows(const json_t *answer, const char *expected)
{
    autotext struct text rows = {0};
    size_t i;
    const json_t *job;
    json_array_foreach (json_object_get(answer, "jobs"), i, job) {
        text_printf(&rows, "%s%lld %s", i > 0 ? ", " : "",
                    (long long)json_integer_value(json_object_get(job, "position")),
                    json_string_value(json_object_get(job, "id")));
    }
    ck_assert_str_eq(rows.bytes != NULL ? rows.bytes : "", expected);
}

static const json_t *row(const json_t *answer, size_t index)
{
    return json_array_get(json_object_get(answer, "jobs"), index);
}

static int64_t number(const json_t *object, const char *name)
{
    return (int64_t)json_number_value(json_object_get(object, name));
}

START_TEST(the_list_has_priorities_due_times_and_their_parts)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a");
    submit(c, "runs", .time_limit_ms = 60 * MINUTE_MS);
    submit(c, "long", .time_limit_ms = 60 * MINUTE_MS);
    submit(c, "short", .time_limit_ms = MINUTE_MS);
    submit(c, "urgent", .time_limit_ms = 60 * MINUTE_MS, .priority = 1);
    autojson json_t *answer = queue(c);
    expect_rows(answer, "1 urgent, 2 short, 3 long");
    ck_assert_str_eq(json_string_value(json_object_get(answer, "policy")), "default");
    ck_assert_int_eq(number(row(answer, 0), "priority"), 1);
    ck_assert_int_eq(number(row(answer, 1), "estimate_s"), 60);
    ck_assert_int_eq(number(row(answer, 1), "allowance_s"), 600);
    ck_assert_str_eq(text_at(row(answer, 0), "reason", "code"), "NODES_BUSY");
    ck_assert_str_eq(text_at(row(answer, 1), "reason", "code"), "BEHIND");
    const json_t *running = json_array_get(json_object_get(answer, "running"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(running, "id")), "runs");
}
END_TEST

START_TEST(who_has_used_more_than_the_share_is_put_off_by_what_the_list_says)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a");
    submit(c, "runs", .project = "much");
    running(c, "runs", "a");
    advance_beating(c, 10 * 60 * MINUTE_MS, "a");
    submit(c, "used", .project = "much", .time_limit_ms = MINUTE_MS);
    submit(c, "other", .project = "little", .time_limit_ms = MINUTE_MS);
    advance_beating(c, 11 * MINUTE_MS, "a");
    submit(c, "last", .project = "little", .time_limit_ms = 2 * MINUTE_MS); /* places are worked out anew */
    autojson json_t *answer = queue(c);
    expect_rows(answer, "1 other, 2 last, 3 used");
    ck_assert_int_gt(number(row(answer, 2), "share_delay_s"), 0);
    ck_assert_int_lt(number(row(answer, 0), "share_delay_s"), 0);
}
END_TEST

START_TEST(equal_jobs_are_listed_one_by_one_between_others)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "runs");
    submit(c, "one");
    submit(c, "two", .time_limit_ms = MINUTE_MS);
    submit(c, "three");
    submit(c, "four", .time_limit_ms = MINUTE_MS);
    autojson json_t *answer = queue(c);
    expect_rows(answer, "1 one, 2 two, 3 three, 4 four");
    autojson json_t *first = queue_as(c, NULL, NULL, 2);
    expect_rows(first, "1 one, 2 two");
    ck_assert_int_eq(number(first, "count"), 4);
    ck_assert(json_is_null(json_object_get(row(first, 0), "due_at"))); /* fifo */
}
END_TEST

START_TEST(a_job_of_another_pool_or_owner_keeps_its_position_and_is_left_out)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .pool = "east");
    node(c, "b", .pool = "west");
    submit(c, "runs", .pool = "east");
    submit(c, "others", .pool = "west");
    submit(c, "one", .pool = "east");
    submit(c, "two", .pool = "west");
    submit(c, "any");
    autojson json_t *west = queue_as(c, NULL, "west", 10);
    expect_rows(west, "2 two, 3 any");
    autojson json_t *nobody = queue_as(c, "nobody", NULL, 10);
    expect_rows(nobody, "");
    ck_assert_uint_eq(json_array_size(json_object_get(nobody, "running")), 0);
}
END_TEST

START_TEST(a_reservation_has_its_nodes_and_the_time_when_they_are_free)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 1);
    submit(c, "runs", .gpus = 2, .time_limit_ms = 60 * MINUTE_MS);
    running(c, "runs", "a");
    submit(c, "wants", .gpus = 3, .time_limit_ms = MINUTE_MS);
    submit(c, "after", .gpus = 2, .time_limit_ms = 60 * MINUTE_MS);
    autojson json_t *answer = queue(c);
    expect_rows(answer, "1 wants, 2 after");
    const json_t *reserved = json_array_get(json_object_get(row(answer, 0), "reservations"), 0);
    const json_t *nodes = json_object_get(reserved, "nodes");
    int64_t from_ms;
    ck_assert(text_to_wall_ms(json_string_value(json_object_get(reserved, "from")), &from_ms));
    ck_assert_int_eq((from_ms - c->wall_ms - c->now_ms) / 1000, 3600);
    ck_assert_uint_eq(json_array_size(nodes), 2);
    ck_assert_int_eq(number(json_array_get(nodes, 0), "gpus") + number(json_array_get(nodes, 1), "gpus"), 3);
    ck_assert_uint_eq(json_array_size(json_object_get(row(answer, 1), "reservations")), 0);
}
END_TEST

START_TEST(each_row_says_what_an_explanation_of_the_job_says)
{
    static const char *const jobs[] = {"one", "two", "three", "four"};
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 4);
    submit(c, "runs", .gpus = 4, .time_limit_ms = 60 * MINUTE_MS);
    running(c, "runs", "b");
    submit(c, "more", .gpus = 1, .time_limit_ms = 30 * MINUTE_MS);
    submit(c, "one", .gpus = 3, .time_limit_ms = MINUTE_MS);
    submit(c, "two", .gpus = 2, .time_limit_ms = 40 * MINUTE_MS);
    submit(c, "three", .gpus = 2, .time_limit_ms = 90 * MINUTE_MS);
    submit(c, "four", .gpus = 6, .time_limit_ms = 100 * MINUTE_MS);
    autojson json_t *answer = queue(c);
    expect_rows(answer, "1 one, 2 two, 3 three, 4 four");
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        autojson json_t *told = explain(c, jobs[i]);
        ck_assert(json_equal(json_object_get(told, "reason"), json_object_get(row(answer, i), "reason")));
        ck_assert(json_equal(json_object_get(told, "start"), json_object_get(row(answer, i), "start")));
    }
}
END_TEST

START_TEST(held_jobs_are_counted_and_an_empty_queue_is_empty)
{
    autocluster struct cluster *c = cluster_open();
    autojson json_t *none = queue(c);
    expect_rows(none, "");
    node(c, "a");
    submit(c, "waits", .hold = true);
    autojson json_t *answer = queue(c);
    expect_rows(answer, "");
    ck_assert_int_eq(number(answer, "held"), 1);
}
END_TEST

Suite *queue_list_suite(void)
{
    Suite *suite = suite_create("queue list");
    TCase *tests = tcase_create("queue list");
    tcase_add_test(tests, the_list_has_priorities_due_times_and_their_parts);
    tcase_add_test(tests, who_has_used_more_than_the_share_is_put_off_by_what_the_list_says);
    tcase_add_test(tests, equal_jobs_are_listed_one_by_one_between_others);
    tcase_add_test(tests, a_job_of_another_pool_or_owner_keeps_its_position_and_is_left_out);
    tcase_add_test(tests, a_reservation_has_its_nodes_and_the_time_when_they_are_free);
    tcase_add_test(tests, each_row_says_what_an_explanation_of_the_job_says);
    tcase_add_test(tests, held_jobs_are_counted_and_an_empty_queue_is_empty);
    suite_add_tcase(suite, tests);
    return suite;
}
