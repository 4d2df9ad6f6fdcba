/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/writer on a real store: what has been committed when its news are collected. The test is
 * the thread, so that it can look between two batches. */
#include <stdlib.h>

#include "daemon/writer/writer.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/limits_controller.h"
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

/* --- several inputs in one request ---------------------------------------------------------------------- */

#define MANY (LIMIT_WRITER_BATCH - 24)

/* Submissions of a request, with what became of each: "+" or "-". */
struct many {
    struct writer_request request;
    struct input inputs[MANY];
    char ids[MANY][ID_LENGTH + 1];
};

static const struct job_spec fits = {.gpus = 1, .remote = true, .lease_ms = LIMIT_LEASE_MIN_MS};
static const struct job_spec too_large = {.gpus = 9, .remote = true, .lease_ms = LIMIT_LEASE_MIN_MS};

static void render_sign(const struct writer_request *request, size_t index, const struct step *step,
                        struct text *out)
{
    ck_assert_int_eq(step->ok ? ERR_NONE : ERR_CAPACITY, step->err.code);
    text_append(out, step->ok ? "+" : "-");
}

static int render_last(const struct writer_request *request, const struct step *step, struct text *out)
{
    text_append(out, ".");
    return 200;
}

static struct many *many_create(const char *letter, size_t count)
{
    struct many *many = xzalloc(sizeof *many);
    many->request = (struct writer_request){.kind = WRITER_INPUTS,
                                            .inputs = many->inputs,
                                            .input_count = count,
                                            .arrived_ms = ++now_ms,
                                            .keyed = true,
                                            .scope = {(uint8_t)*letter},
                                            .render = render_last,
                                            .render_each = render_sign};
    for (size_t i = 0; i < count; i++) {
        snprintf(many->ids[i], sizeof many->ids[i], "%c%015u", *letter, (unsigned)i % 10000);
        many->inputs[i] = (struct input){.kind = INPUT_SUBMIT,
                                         .submit = {.id = many->ids[i],
                                                    .owner = "ann",
                                                    .spec = i == 1 ? &too_large : &fits,
                                                    .body = "{}",
                                                    .body_length = 2}};
    }
    return many;
}

static void many_destroy(struct many *many)
{
    text_finish(&many->request.answer);
    free(many);
}

static void run_batch(void)
{
    struct writer_news news;
    ck_assert(writer_run_batch(writer, (struct moment){.boot_ms = now_ms, .wall_ms = now_ms}));
    writer_collect(writer, &news);
    for (size_t i = 0; i < news.order_count; i++) {
        node_orders_destroy(news.orders[i]);
    }
    writer_news_finish(&news);
}

static bool is_stored(const char *id)
{
    struct err err = {0};
    autorows struct rows rows = reader_job(reader, id, &err);
    struct job_record job;
    return rows_job(&rows, &job);
}

START_TEST(a_refused_input_does_not_stop_the_others_of_its_request)
{
    struct many *many = many_create("a", 4), *again = many_create("a", 4);
    add_node("n");
    ck_assert(writer_ask(writer, &many->request));
    run_batch();
    ck_assert_int_eq(many->request.status, 200);
    ck_assert_str_eq(many->request.answer.bytes, "+-++.");
    ck_assert(is_stored(many->ids[0]) && !is_stored(many->ids[1]) && is_stored(many->ids[3]));
    size_t live = writer_live_jobs(writer);
    ck_assert(writer_ask(writer, &again->request));
    run_batch();
    ck_assert(again->request.replayed);
    ck_assert_str_eq(again->request.answer.bytes, "+-++.");
    ck_assert_uint_eq(writer_live_jobs(writer), live);
    many_destroy(many);
    many_destroy(again);
}
END_TEST

START_TEST(the_inputs_of_a_request_are_one_transaction_and_count_one_by_one)
{
    struct many *first = many_create("a", MANY), *second = many_create("b", MANY);
    add_node("n");
    ck_assert(writer_ask(writer, &first->request));
    ck_assert(writer_ask(writer, &second->request));
    ck_assert_uint_eq(writer_waiting(writer), 2 * MANY);
    run_batch();
    ck_assert_int_eq(first->request.status, 200);
    ck_assert_int_eq(second->request.status, 0); /* both together are more than a batch */
    ck_assert_uint_eq(writer_waiting(writer), MANY);
    ck_assert(is_stored(first->ids[MANY - 1]) && !is_stored(second->ids[0]));
    run_batch();
    ck_assert_int_eq(second->request.status, 200);
    ck_assert(is_stored(second->ids[MANY - 1]));
    many_destroy(first);
    many_destroy(second);
}
END_TEST

START_TEST(requests_share_the_time_of_their_commit)
{
    struct many *first = many_create("a", MANY - 1), *second = many_create("b", 1);
    add_node("n");
    ck_assert(writer_ask(writer, &first->request));
    ck_assert(writer_ask(writer, &second->request));
    run_batch();
    int64_t work_us = first->request.took_us + second->request.took_us + 1;
    int64_t commit_us = first->request.commit_us + second->request.commit_us;
    ck_assert_int_gt(commit_us, 0);
    ck_assert_int_gt(first->request.commit_us, second->request.commit_us);
    ck_assert_int_le(labs(first->request.commit_us * work_us - commit_us * first->request.took_us),
                     2 * work_us);
    many_destroy(first);
    many_destroy(second);
}
END_TEST

START_TEST(a_full_queue_takes_no_further_request_of_many)
{
    struct many *asked[LIMIT_WRITER_QUEUE / MANY + 2];
    size_t count = 0;
    add_node("n");
    do {
        asked[count] = many_create((const char[]){(char)('a' + count), '\0'}, MANY);
    } while (writer_ask(writer, &asked[count]->request) && ++count < sizeof asked / sizeof asked[0]);
    ck_assert_uint_eq(count, LIMIT_WRITER_QUEUE / MANY + 1);
    while (writer_waiting(writer) > 0) {
        run_batch();
    }
    for (size_t i = 0; i <= count; i++) {
        ck_assert_int_eq(asked[i]->request.status, i < count ? 200 : 0);
        many_destroy(asked[i]);
    }
}
END_TEST

Suite *writer_suite(void)
{
    Suite *suite = suite_create("writer");
    TCase *cases = tcase_create("writer");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_set_timeout(cases, 60); /* 16,384 jobs under a sanitizer */
    tcase_add_test(cases, orders_take_what_waits_for_a_commit_to_the_disk_before_they_leave);
    tcase_add_test(cases, what_waits_is_on_disk_a_moment_later_though_nobody_asks);
    tcase_add_test(cases, a_refused_input_does_not_stop_the_others_of_its_request);
    tcase_add_test(cases, the_inputs_of_a_request_are_one_transaction_and_count_one_by_one);
    tcase_add_test(cases, requests_share_the_time_of_their_commit);
    tcase_add_test(cases, a_full_queue_takes_no_further_request_of_many);
    suite_add_tcase(suite, cases);
    return suite;
}
