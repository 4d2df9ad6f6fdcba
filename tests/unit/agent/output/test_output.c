/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/output: the metrics of a node beside the output of its ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/attempt/attempt.h"
#include "agent/output/output.h"
#include "agent/base/folder_pool.h"
#include "agent/base/trash.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/clock.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

#define LINE "{\"metric\": \"loss\", \"value\": 1, \"rank\": 2, \"time\": 1}\n"

static struct trash *trash;
static struct folder_pool *folder_pool;
static struct outputs *outputs;
static struct output *output;
static bool retires; /* the output does, once all is sent */
static int64_t retired_ms;
static int64_t stored; /* bytes of each stream that the controller has from before */

static void setup(void)
{
    rig_setup();
    autofree char *folder = rig_path("trash"), *ready = rig_path("spare");
    trash = trash_create(folder, NULL);
    folder_pool = folder_pool_create(ready, trash, NULL);
    outputs = outputs_create("alpha", GIB, rig.controller, rig.loop, folder_pool);
    stored = 0;
    retires = false;
    rig_write_text("5/2.stdout", "");
    rig_write_text("5/2.stderr", "");
}

static void teardown(void)
{
    output_destroy(output);
    outputs_destroy(outputs);
    folder_pool_destroy(folder_pool);
    trash_destroy(trash);
    rig_teardown();
}

static void sent(void *closure)
{
    if (retires) {
        retires = false;
        retired_ms = clock_boot_ms();
        output_retire(output);
    } else {
        loop_end(rig.loop);
    }
}

static void begin(bool resume)
{
    autofree char *folder = rig_path("5");
    output = output_create(outputs, 5, folder, resume, sent, NULL);
    output_add_rank(output, 2);
    output_add_metrics(output, 2);
}

static struct rig_answer keep(struct rig *server, const struct rig_request *request)
{
    int64_t offset = strtoll(strstr(request->target, "offset=") + strlen("offset="), NULL, 10);
    int64_t received = offset + (int64_t)request->body.length;
    received = received > stored ? received : stored;
    text_clear(&server->reply);
    text_printf(&server->reply, "{\"received\":%lld,\"durable\":%lld}", (long long)received,
                (long long)received);
    return (struct rig_answer){200, server->reply.bytes};
}

START_TEST(metrics_are_a_stream_of_their_own)
{
    rig.answer = keep;
    rig_write_text("5/2.metrics", LINE);
    begin(false);
    output_close(output);
    rig_run();
    ck_assert_uint_eq(rig.request_count, 1);
    ck_assert_str_eq(rig.requests[0].target,
                     "/v1/agent/logs?node=alpha&epoch=5&rank=2&stream=metrics&offset=0");
    ck_assert_str_eq(rig.requests[0].body.bytes, LINE);
    ck_assert(output_is_sent(output));
}
END_TEST

START_TEST(metrics_that_nobody_sent_cost_no_request)
{
    begin(true);
    output_close(output);
    ck_assert_uint_eq(rig.request_count, 0);
    ck_assert(output_is_sent(output));
}
END_TEST

static struct rig_answer refuse_stdout(struct rig *server, const struct rig_request *request)
{
    if (strstr(request->target, "stream=stdout") != NULL) {
        return (struct rig_answer){413, "{\"code\":\"too_large\",\"detail\":\"a stream has at most 1 MiB\"}"};
    }
    return keep(server, request);
}

START_TEST(a_stream_that_the_controller_finds_too_large_holds_up_no_other)
{
    rig.answer = refuse_stdout;
    rig_write_text("5/2.stdout", "much\n");
    rig_write_text("5/2.metrics", LINE);
    begin(false);
    output_close(output);
    rig_run();
    ck_assert_uint_eq(rig.request_count, 2);
    ck_assert_str_eq(rig.requests[1].body.bytes, LINE);
    ck_assert(output_is_sent(output));
    struct log_tail *tails;
    size_t count;
    ck_assert(output_tails(output, &tails, &count));
    ck_assert_uint_eq(count, 0);
    output_free_tails(tails, count);
}
END_TEST

#define FOLLOWED 3

/* Has all bytes, none of them on disk; ends the loop with the last of the questions whether they are. */
static struct rig_answer not_durable(struct rig *server, const struct rig_request *request)
{
    struct rig_answer answer = keep(server, request);
    server->reply.length = (size_t)(strstr(server->reply.bytes, "\"durable\":") - server->reply.bytes);
    text_append(&server->reply, "\"durable\":0}");
    answer.body = server->reply.bytes;
    if (server->request_count == 2 * FOLLOWED) {
        loop_end(rig.loop);
    }
    return answer;
}

START_TEST(all_streams_are_asked_for_at_once_whether_they_are_on_disk)
{
    rig.answer = not_durable;
    rig_write_text("5/2.stdout", "out\n");
    rig_write_text("5/2.stderr", "err\n");
    rig_write_text("5/2.metrics", LINE);
    begin(false);
    retires = true;
    output_close(output);
    rig_run();
    ck_assert_uint_eq(rig.request_count, 2 * FOLLOWED);
    for (size_t i = FOLLOWED; i < rig.request_count; i++) {
        ck_assert_uint_eq(rig.requests[i].body.length, 0);
    }
    ck_assert_int_lt(clock_boot_ms() - retired_ms, 2 * LOG_SETTLE_MS);
}
END_TEST

START_TEST(the_last_metrics_ride_in_the_exit_report)
{
    rig_write_text("5/2.metrics", LINE);
    begin(false);
    struct log_tail *tails;
    size_t count;
    ck_assert(!output_is_sent(output));
    ck_assert(output_tails(output, &tails, &count));
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(tails[0].stream, STREAM_METRICS);
    ck_assert_int_eq(tails[0].rank, 2);
    output_free_tails(tails, count);
    output_taken(output);
    ck_assert(output_is_sent(output));
}
END_TEST

/* It was put back from a backup, and had said that it has a line. */
START_TEST(a_controller_that_lacks_what_came_before_the_tails_gets_all_of_it)
{
    struct log_tail *tails;
    size_t count;
    rig.answer = keep;
    rig_write_text("5/2.metrics", LINE);
    begin(false);
    output_taken(output);
    rig_write_text("5/2.metrics", LINE LINE);
    ck_assert(output_tails(output, &tails, &count));
    ck_assert_int_eq(tails[0].offset, (int64_t)strlen(LINE));
    output_free_tails(tails, count);
    output_doubt(output);
    ck_assert(!output_tails(output, &tails, &count));
    ck_assert(!output_is_sent(output));
    output_close(output);
    rig_run();
    ck_assert_uint_eq(rig.request_count, 2); /* one asks */
    ck_assert_uint_eq(rig.requests[0].body.length, 0);
    ck_assert_ptr_nonnull(strstr(rig.requests[1].target, "stream=metrics&offset=0"));
    ck_assert_str_eq(rig.requests[1].body.bytes, LINE LINE);
    ck_assert(output_is_sent(output));
}
END_TEST

static struct device_faults no_faults(void *closure)
{
    return (struct device_faults){0};
}

static bool is_flushed(struct attempt *attempt)
{
    autojson json_t *report = report_make(attempt, REPORT_EXITED);
    return json_is_true(json_object_get(report, "flushed"));
}

/* Such a refusal is not the end: else the controller would never hear of the exit. */
START_TEST(an_exit_report_whose_tails_do_not_join_is_sent_again_without_them)
{
    struct err gap = {.code = ERR_CONFLICT, .field = "offset"}, other = {.code = ERR_CONFLICT};
    struct agent_context context = {.config = {.name = "alpha"}, .boot_id = "boot", .faults = no_faults};
    rig_write_text("5/2.metrics", LINE);
    begin(false);
    struct attempt attempt = {.context = &context, .attempt_id = 5, .output = output};
    ck_assert(is_flushed(&attempt));
    ck_assert(!report_refused(&attempt, REPORT_EXITED, &other));
    ck_assert(!report_refused(&attempt, REPORT_FAILED, &gap));
    ck_assert(is_flushed(&attempt));
    ck_assert(report_refused(&attempt, REPORT_EXITED, &gap));
    ck_assert(!is_flushed(&attempt));
    ck_assert_int_eq(report_taken(&attempt, REPORT_EXITED), ANSWER_TAKEN);
    ck_assert(attempt.draining);
}
END_TEST

START_TEST(metrics_go_on_where_the_controller_has_them)
{
    rig.answer = keep;
    stored = strlen(LINE);
    rig_write_text("5/2.metrics", LINE LINE);
    begin(true);
    output_close(output);
    rig_run();
    ck_assert_uint_eq(rig.request_count, 2);
    ck_assert_uint_eq(rig.requests[0].body.length, 0);
    autofree char *end = xprintf("stream=metrics&offset=%zu", strlen(LINE));
    ck_assert_ptr_nonnull(strstr(rig.requests[1].target, end));
    ck_assert_str_eq(rig.requests[1].body.bytes, LINE);
}
END_TEST

Suite *output_suite(void)
{
    Suite *suite = suite_create("output");
    TCase *tcase = tcase_create("output");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, metrics_are_a_stream_of_their_own);
    tcase_add_test(tcase, metrics_that_nobody_sent_cost_no_request);
    tcase_add_test(tcase, a_stream_that_the_controller_finds_too_large_holds_up_no_other);
    tcase_add_test(tcase, all_streams_are_asked_for_at_once_whether_they_are_on_disk);
    tcase_add_test(tcase, the_last_metrics_ride_in_the_exit_report);
    tcase_add_test(tcase, a_controller_that_lacks_what_came_before_the_tails_gets_all_of_it);
    tcase_add_test(tcase, an_exit_report_whose_tails_do_not_join_is_sent_again_without_them);
    tcase_add_test(tcase, metrics_go_on_where_the_controller_has_them);
    suite_add_tcase(suite, tcase);
    return suite;
}
