/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/usage: sums by step and name, live attempts, prices. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/usage/prices.h"
#include "daemon/http/usage/tally.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "tests/unit/http/http_suites.h"

static struct use_question question;
static struct prices prices;
static struct tally *tally;
static struct err err;

static void set_up(void)
{
    question = (struct use_question){
        .since_ms = 0, .until_ms = 100 * HOUR_MS, .step_ms = INT64_MAX, .by_owner = true};
    prices = (struct prices){0};
    tally = NULL;
}

static void tear_down(void)
{
    if (tally != NULL) {
        tally_destroy(tally);
    }
    prices_finish(&prices);
}

static void begin(struct tally_by by, int64_t now_ms)
{
    tally = tally_create(&question, by, &prices, now_ms);
}

static void add_hours(int64_t at_ms, const char *owner, const char *pool, int64_t gpu_ms)
{
    const struct use_record record = {.row = {.hour_ms = at_ms,
                                              .project = "",
                                              .owner = owner,
                                              .pool = pool,
                                              .gpu_type = "A10",
                                              .attempts = 1,
                                              .gpu_ms = gpu_ms,
                                              .measured_ms = gpu_ms / 2,
                                              .idle_ms = gpu_ms / 4,
                                              .energy_mj = 5}};
    ck_assert(tally_add(tally, &record, &err));
}

static void add_live(int64_t since_ms, const char *owner, int64_t gpus)
{
    const struct use_record record = {
        .gpus = gpus,
        .row = {.hour_ms = since_ms, .project = "", .owner = owner, .pool = "main", .gpu_type = "A10"}};
    ck_assert(tally_add(tally, &record, &err));
}

/* "NAME SECONDS" of each row, and of the total without a name. */
static char *rows(const char *name)
{
    autotext struct text json = {0}, said = {0};
    text_append(&json, "{");
    tally_write(tally, &json);
    text_append(&json, "}");
    autojson json_t *answer = json_parse(json.bytes, json.length, NULL);
    ck_assert_msg(answer != NULL, "%s", json.bytes);
    size_t i;
    json_t *row;
    json_array_foreach (json_object_get(answer, "usage"), i, row) {
        text_printf(&said, "%s %.3f\n", json_string_of(row, name),
                    json_number_value(json_object_get(row, "gpu_seconds")));
    }
    text_printf(&said, "%.3f",
                json_number_value(json_object_get(json_object_get(answer, "total"), "gpu_seconds")));
    return text_take(&said);
}

static void expect(const char *name, const char *expected)
{
    autofree char *seen = rows(name);
    ck_assert_str_eq(seen, expected);
}

START_TEST(rows_that_differ_in_nothing_that_was_asked_for_are_one)
{
    begin((struct tally_by){0}, 0);
    add_hours(0, "bob", "main", 1001);
    add_hours(0, "anna", "main", 2000);
    add_hours(0, "anna", "spot", 500);
    expect("owner", "anna 2.500\nbob 1.001\n3.501");
}
END_TEST

START_TEST(rows_of_several_pools_are_told_apart_when_they_are_to_be)
{
    begin((struct tally_by){.pool = true}, 0);
    add_hours(0, "anna", "spot", 500);
    add_hours(0, "anna", "main", 2000);
    expect("pool", "main 2.000\nspot 0.500\n2.500");
}
END_TEST

START_TEST(a_live_attempt_counts_from_its_beginning_until_now)
{
    begin((struct tally_by){0}, 7000);
    add_live(2000, "anna", 3);
    add_hours(0, "anna", "main", 1000);
    add_live(8000, "bob", 3); /* the clock was turned back */
    expect("owner", "anna 16.000\n16.000");
}
END_TEST

START_TEST(a_live_attempt_counts_only_within_the_time_that_was_asked_for)
{
    question.since_ms = HOUR_MS;
    question.until_ms = 2 * HOUR_MS;
    begin((struct tally_by){0}, 5 * HOUR_MS);
    add_live(0, "anna", 2);
    expect("owner", "anna 7200.000\n7200.000");
}
END_TEST

START_TEST(a_live_attempt_is_divided_at_each_step)
{
    question.since_ms = HOUR_MS;
    question.step_ms = 2 * HOUR_MS;
    begin((struct tally_by){0}, 5 * HOUR_MS - 1000);
    add_live(0, "anna", 1);
    add_hours(HOUR_MS, "anna", "main",
              500); /* what the database makes of the first step: it begins with since */
    expect("at", "1970-01-01T01:00:00.000Z 3600.500\n1970-01-01T02:00:00.000Z 7200.000\n"
                 "1970-01-01T04:00:00.000Z 3599.000\n14399.500");
}
END_TEST

START_TEST(a_cost_follows_from_the_price_of_type_and_pool)
{
    ck_assert(prices_read("a10=2,A10/spot=0.5, H100=9", &prices, &err));
    begin((struct tally_by){0}, 0);
    add_hours(0, "anna", "main", HOUR_MS);
    add_hours(0, "anna", "spot", 2 * HOUR_MS);
    autotext struct text json = {0};
    tally_write(tally, &json);
    ck_assert_ptr_nonnull(strstr(json.bytes, "\"cost\":3.000000"));
}
END_TEST

START_TEST(without_prices_there_is_no_cost)
{
    begin((struct tally_by){0}, 0);
    add_hours(0, "anna", "main", HOUR_MS);
    autotext struct text json = {0};
    tally_write(tally, &json);
    ck_assert_ptr_null(strstr(json.bytes, "cost"));
    ck_assert_ptr_nonnull(
        strstr(json.bytes, "\"idle_gpu_seconds\":900.000,\"energy_joules\":0.005,\"attempts\":1"));
}
END_TEST

START_TEST(too_many_rows_are_refused_with_the_remedy)
{
    begin((struct tally_by){0}, 0);
    for (int i = 0; i < LIMIT_USAGE_ROWS; i++) {
        autofree char *owner = xprintf("user-%d", i);
        add_hours(0, owner, "main", 1);
    }
    const struct use_record more = {.row = {.project = "", .owner = "one", .pool = "", .gpu_type = ""}};
    ck_assert(!tally_add(tally, &more, &err));
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
}
END_TEST

START_TEST(a_wrong_price_is_named)
{
    static const char *const wrong[] = {"A10",       "=1",     "A10=",      "A10=x",   "A10=-1",
                                        "A10=1e300", "A10/=1", "A10=1;B=2", "A10=nan", "a b=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!prices_read(wrong[i], &prices, &err), "%s", wrong[i]);
        ck_assert_int_eq(err.code, ERR_FIELD);
        ck_assert_str_eq(err.field, "prices");
    }
    ck_assert(prices_read(NULL, &prices, &err));
    ck_assert_uint_eq(prices.count, 0);
}
END_TEST

Suite *tally_suite(void)
{
    Suite *suite = suite_create("tally");
    TCase *cases = tcase_create("tally");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, rows_that_differ_in_nothing_that_was_asked_for_are_one);
    tcase_add_test(cases, rows_of_several_pools_are_told_apart_when_they_are_to_be);
    tcase_add_test(cases, a_live_attempt_counts_from_its_beginning_until_now);
    tcase_add_test(cases, a_live_attempt_counts_only_within_the_time_that_was_asked_for);
    tcase_add_test(cases, a_live_attempt_is_divided_at_each_step);
    tcase_add_test(cases, a_cost_follows_from_the_price_of_type_and_pool);
    tcase_add_test(cases, without_prices_there_is_no_cost);
    tcase_add_test(cases, too_many_rows_are_refused_with_the_remedy);
    tcase_add_test(cases, a_wrong_price_is_named);
    suite_add_tcase(suite, cases);
    return suite;
}
