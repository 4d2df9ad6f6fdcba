/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/writer on a real store: what has been committed when its news are collected. The test is
 * the thread, so that it can look between two batches. */
#include <stdlib.h>

#include "daemon/writer/writer.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/limits.h"
#include "tests/unit/store/each_row.h"
#include "tests/unit/http/http_suites.h"

static char folder[64];
static struct store *store;
static struct reader *reader;
static struct writer *writer;
static int64_t now_ms;

static void must(bool ok, const struct err *err)
{
    ck_assert_msg(ok, "%s", err->text);
}

static void setup(void)
{
    const struct writer_config config = {.heartbeat_ms = HEARTBEAT_MS, .policy = POLICY_DEFAULT};
    struct err err = {0};
    snprintf(folder, sizeof folder, "/tmp/test-writer-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    autofree char *path = xprintf("%s/gpuctl.db", folder);
    now_ms = 1000;
    must((store = store_open(path, &err)) != NULL, &err);
    must((reader = reader_open(path, &err)) != NULL, &err);
    writer = writer_open(store, &config, (struct moment){.boot_ms = now_ms, .wall_ms = now_ms}, &err);
    must(writer != NULL, &err);
}

static void teardown(void)
{
    writer_close(writer);
    reader_close(reader);
    store_close(store);
    file_remove_tree(folder, NULL);
}

static int render_nothing(const struct writer_request *request, const struct step *step, struct text *out)
{
    return 200;
}

/* One batch for one input; the number of nodes that get orders by it. */
static size_t ask(struct input input)
{
    struct writer_news news;
    struct writer_request request = {.input = input, .arrived_ms = ++now_ms, .render = render_nothing};
    request.input.wall_ms = now_ms;
    ck_assert(writer_ask(writer, &request));
    ck_assert(writer_run_batch(writer, (struct moment){.boot_ms = now_ms, .wall_ms = now_ms}));
    writer_collect(writer, &news);
    ck_assert_msg(request.status == 200, "%s", request.error.text);
    size_t told = news.order_count;
    for (size_t i = 0; i < told; i++) {
        node_orders_destroy(news.orders[i]);
    }
    writer_news_finish(&news);
    return told;
}

static void add_node(const char *name)
{
    struct device device = {.uuid = (char *)(uintptr_t)name, .type = "A10", .group = -1};
    const struct register_message message = {.name = name,
                                             .boot_id = "boot",
                                             .host_id = name,
                                             .version = "1",
                                             .address = "10.0.0.1",
                                             .devices = &device,
                                             .device_count = 1};
    ask((struct input){.kind = INPUT_REGISTER, .node_register = &message});
}

static void submit(const char *id, int64_t gpus, const char *need_key)
{
    const struct job_spec spec = {.gpus = gpus, .remote = true, .lease_ms = LIMIT_LEASE_MIN_MS};
    struct environment_spec environment = {.key = need_key, .text = "{}"};
    ask((struct input){.kind = INPUT_SUBMIT,
                       .submit = {.id = id,
                                  .owner = "ann",
                                  .spec = &spec,
                                  .body = "{}",
                                  .body_length = 2,
                                  .environment = need_key != NULL ? &environment : NULL}});
}

static bool take_member(const struct member_row *row, void *closure)
{
    *(struct member_row *)closure = *row;
    return false;
}

static bool take_attempt_id(const struct attempt_row *row, void *closure)
{
    *(uint64_t *)closure = row->attempt_id;
    return false;
}

/* The only member of the attempt of the first job, as it is on disk. */
static struct member_row stored_member(uint64_t *ret_attempt_id)
{
    struct err err = {0};
    struct member_row row = {0};
    must(each_attempt(reader_attempts(reader, 1, ALL_ATTEMPTS, &err), take_attempt_id, ret_attempt_id), &err);
    must(each_member(reader_members(reader, *ret_attempt_id, &err), take_member, &row), &err);
    return row;
}

/* C6: a report that ranks run may wait for the next commit; orders that leave before that are made from the
 * state that has it. */
START_TEST(orders_take_what_waits_for_a_commit_to_the_disk_before_they_leave)
{
    uint64_t attempt_id = 0;
    add_node("a");
    submit("aaaaaaaaaaaaaaaa", 1, NULL);
    add_node("b");
    add_node("c");
    submit("bbbbbbbbbbbbbbbb", 2, "need");
    ck_assert_int_eq(stored_member(&attempt_id).state, MEMBER_ORDERED);
    const struct report_message running = {
        .node = "a", .boot_id = "boot", .attempt_id = attempt_id, .kind = REPORT_RUNNING};
    ck_assert_uint_eq(ask((struct input){.kind = INPUT_REPORT, .report = &running}), 0);
    ck_assert_int_eq(stored_member(&attempt_id).state, MEMBER_ORDERED); /* it waits */
    const struct staging_message ready = {
        .node = "b", .boot_id = "boot", .key = "need", .state = STAGING_READY};
    ck_assert_uint_eq(ask((struct input){.kind = INPUT_STAGING, .staging = &ready}), 1);
    ck_assert_int_eq(stored_member(&attempt_id).state, MEMBER_RUNNING);
}
END_TEST

START_TEST(what_waits_is_on_disk_a_moment_later_though_nobody_asks)
{
    uint64_t attempt_id = 0;
    add_node("a");
    submit("aaaaaaaaaaaaaaaa", 1, NULL);
    stored_member(&attempt_id);
    const struct report_message running = {
        .node = "a", .boot_id = "boot", .attempt_id = attempt_id, .kind = REPORT_RUNNING};
    ask((struct input){.kind = INPUT_REPORT, .report = &running});
    ck_assert_int_le(writer_due_ms(writer), now_ms + LAZY_COMMIT_MS);
    now_ms = writer_due_ms(writer);
    ck_assert(writer_run_batch(writer, (struct moment){.boot_ms = now_ms, .wall_ms = now_ms}));
    ck_assert_int_eq(stored_member(&attempt_id).state, MEMBER_RUNNING);
}
END_TEST

Suite *writer_suite(void)
{
    Suite *suite = suite_create("writer");
    TCase *cases = tcase_create("writer");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, orders_take_what_waits_for_a_commit_to_the_disk_before_they_leave);
    tcase_add_test(cases, what_waits_is_on_disk_a_moment_later_though_nobody_asks);
    suite_add_tcase(suite, cases);
    return suite;
}
