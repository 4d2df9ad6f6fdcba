/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks and deliveries: which is to be tried first, what is given up, and what goes when it is old. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static struct change webhook(const char *id, bool enabled)
{
    return (struct change){.kind = CHANGE_WEBHOOK_PUT,
                           .webhook = {.id = id,
                                       .owner = "anna",
                                       .url = "https://example.com/",
                                       .secret = "whsec_",
                                       .kinds = "failed",
                                       .created_ms = 1,
                                       .enabled = enabled}};
}

static struct change delivery(int64_t key, const char *id, int64_t job_key, int64_t next_ms)
{
    return (struct change){.kind = CHANGE_DELIVERY_INSERT,
                           .delivery = {.key = key,
                                        .webhook = id,
                                        .job_key = job_key,
                                        .seq = key,
                                        .created_ms = key,
                                        .next_ms = next_ms}};
}

static struct change outcome(int64_t key, enum delivery_state state)
{
    return (struct change){.kind = CHANGE_DELIVERY_UPDATE, .delivery = {.key = key, .state = state}};
}

static void expect_next(const char *expected)
{
    autotext struct text seen = {0};
    autorows struct rows rows = reader_next_deliveries(rig.reader, &rig.err);
    struct delivery_row row;
    struct webhook_row of;
    text_append(&seen, "");
    while (rows_next_delivery(&rows, &row, &of)) {
        text_printf(&seen, "%s:%lld ", of.id, (long long)row.key);
    }
    ck_assert_msg(!rows.failed, "%s", rig.err.text);
    ck_assert_str_eq(seen.bytes, expected);
}

static void expect_all(const char *id, const char *expected)
{
    autotext struct text seen = {0};
    autorows struct rows rows = reader_deliveries(rig.reader, id, INT64_MAX, NULL, 100, &rig.err);
    struct delivery_record record;
    text_append(&seen, "");
    while (rows_delivery(&rows, &record)) {
        text_printf(&seen, "%lld:%s ", (long long)record.row.key, delivery_state_text(record.row.state));
    }
    ck_assert_msg(!rows.failed, "%s", rig.err.text);
    ck_assert_str_eq(seen.bytes, expected);
}

START_TEST(each_enabled_webhook_has_one_that_is_next_and_jobs_keep_their_order)
{
    rig_write((struct change[]){webhook("a", true), webhook("b", true), webhook("c", false),
                                delivery(1, "a", 7, 50), delivery(2, "a", 7, 10), delivery(3, "a", 8, 40),
                                delivery(4, "b", 7, 20), delivery(5, "c", 7, 1)},
              8);
    expect_next("b:4 a:3 "); /* 2 is due before, but 1 is of the same job */
    rig_write((struct change[]){outcome(1, DELIVERY_DELIVERED)}, 1);
    expect_next("a:2 b:4 ");
    rig_write((struct change[]){outcome(2, DELIVERY_FAILED), outcome(3, DELIVERY_DELIVERED)}, 2);
    expect_next("b:4 ");
}
END_TEST

START_TEST(a_test_waits_for_no_other_test)
{
    rig_write((struct change[]){webhook("a", true), delivery(1, "a", 0, 1000), delivery(2, "a", 0, 20)}, 3);
    expect_next("a:2 ");
}
END_TEST

START_TEST(deliveries_are_given_up_up_to_a_key_and_go_with_their_webhook)
{
    rig_write((struct change[]){webhook("a", true), delivery(1, "a", 7, 0), delivery(2, "a", 7, 0),
                                delivery(3, "a", 7, 0), delivery(4, "b", 7, 0)},
              5);
    rig_write((struct change[]){{.kind = CHANGE_DELIVERIES_GIVE_UP,
                                 .delivery = {.webhook = "a", .key = 2, .error = "too many"}}},
              1);
    expect_all("a", "3:PENDING 2:FAILED 1:FAILED ");
    rig_write((struct change[]){{.kind = CHANGE_WEBHOOK_DELETE, .webhook = {.id = "a"}}}, 1);
    expect_all("a", "");
    expect_all("b", "4:PENDING ");
}
END_TEST

START_TEST(old_deliveries_go_but_those_that_wait)
{
    bool found;
    rig_write((struct change[]){webhook("a", true), delivery(1, "a", 7, 0), delivery(2, "a", 7, 0),
                                delivery(3, "a", 7, 0)},
              4);
    ck_assert(reader_old_deliveries(rig.reader, 9, &found, &rig.err) && !found);
    rig_write((struct change[]){outcome(2, DELIVERY_DELIVERED), outcome(3, DELIVERY_FAILED)}, 2);
    ck_assert(reader_old_deliveries(rig.reader, 1, &found, &rig.err) && !found);
    ck_assert(reader_old_deliveries(rig.reader, 2, &found, &rig.err) && found);
    rig_write(
        (struct change[]){{.kind = CHANGE_DELIVERIES_TRIM, .delivery = {.webhook = "", .created_ms = 2}}}, 1);
    expect_all("a", "3:FAILED 1:PENDING ");
}
END_TEST

Suite *store_webhooks_suite(void)
{
    Suite *suite = suite_create("store_webhooks");
    TCase *tests = tcase_create("webhooks");
    tcase_add_checked_fixture(tests, rig_begin, rig_end);
    tcase_add_test(tests, each_enabled_webhook_has_one_that_is_next_and_jobs_keep_their_order);
    tcase_add_test(tests, a_test_waits_for_no_other_test);
    tcase_add_test(tests, deliveries_are_given_up_up_to_a_key_and_go_with_their_webhook);
    tcase_add_test(tests, old_deliveries_go_but_those_that_wait);
    suite_add_tcase(suite, tests);
    return suite;
}
