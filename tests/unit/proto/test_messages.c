/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/messages: what is encoded is decoded again, and neighbours of other versions are understood.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/limits_controller.h"
#include "proto/wire/messages.h"
#include "proto/wire/protocol.h"
#include "tests/unit/proto/over_the_wire.h"
#include "tests/unit/proto/proto_suites.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* --- round trips --- */

START_TEST(register_arrives_as_it_was_sent)
{
    struct device devices[] = {{0, "GPU-1", "A10", 24LL * GIB, 3}, {1, "slot-1", "cpu", 0, -1}};
    autojson json_t *labels = json_pack("{s:s}", "zone", "a");
    struct node_attempt attempts[] = {{ATTEMPT_ID, MEMBER_RUNNING, -1},
                                      {UINT64_C(0x7fffffffffffffff), MEMBER_EXITED, -1}};
    struct register_message message = {.protocol = PROTOCOL,
                                       .name = "n1",
                                       .boot_id = "b",
                                       .host_id = "h",
                                       .version = "0.1.0",
                                       .address = "10.0.0.1",
                                       .pool = "big",
                                       .reserved = true,
                                       .slots = true,
                                       .millicpus = 64000,
                                       .memory_bytes = 1LL << 39,
                                       .isolation = ISOLATION_CGROUP2,
                                       .expires_at_ms = 1795253400125,
                                       .labels = labels,
                                       .devices = devices,
                                       .device_count = 2,
                                       .attempts = attempts,
                                       .attempt_count = 2,
                                       .has_nonce = true,
                                       .nonce = ATTEMPT_ID};
    SEND(register_message, &message, copy);
    ck_assert_str_eq(copy.name, "n1");
    ck_assert_str_eq(copy.pool, "big");
    ck_assert(copy.reserved && copy.slots);
    ck_assert_int_eq(copy.millicpus, 64000);
    ck_assert_int_eq(copy.memory_bytes, 1LL << 39);
    ck_assert_int_eq(copy.isolation, ISOLATION_CGROUP2);
    ck_assert_int_eq(copy.expires_at_ms, 1795253400125);
    ck_assert_uint_eq(copy.device_count, 2);
    ck_assert_str_eq(copy.devices[0].uuid, "GPU-1");
    ck_assert_int_eq(copy.devices[0].memory_bytes, 24LL * GIB);
    ck_assert_str_eq(copy.devices[1].type, "cpu");
    ck_assert_int_eq(copy.devices[0].group, 3);
    ck_assert_int_eq(copy.devices[1].group, -1);
    ck_assert(json_equal(copy.labels, labels));
    ck_assert_uint_eq(copy.attempt_count, 2);
    ck_assert_uint_eq(copy.attempts[0].attempt_id, ATTEMPT_ID);
    ck_assert_uint_eq(copy.attempts[1].attempt_id, UINT64_C(0x7fffffffffffffff));
    ck_assert_int_eq(copy.attempts[1].state, MEMBER_EXITED);
    ck_assert(copy.has_nonce);
    ck_assert_uint_eq(copy.nonce, ATTEMPT_ID);
    register_message_finish(&copy);
    ck_assert_ptr_null(copy.json);
}
END_TEST

START_TEST(register_reply_arrives_as_it_was_sent)
{
    struct register_reply message = {
        .incarnation = 3, .heartbeat_ms = HEARTBEAT_MS, .park_ms = POLL_PARK_MS, .log_limit = 7 * MIB};
    SEND(register_reply, &message, copy);
    ck_assert_int_eq(copy.incarnation, 3);
    ck_assert_int_eq(copy.heartbeat_ms, HEARTBEAT_MS);
    ck_assert_int_eq(copy.park_ms, POLL_PARK_MS);
    ck_assert_int_eq(copy.log_limit, 7 * MIB);
    ck_assert_uint_eq(copy.nonce, 0);
    register_reply_finish(&copy);
    message.nonce = ATTEMPT_ID;
    SEND(register_reply, &message, again);
    ck_assert_uint_eq(again.nonce, ATTEMPT_ID);
    register_reply_finish(&again);
}
END_TEST

START_TEST(an_older_agent_knows_of_no_word)
{
    struct register_message message = {
        .name = "n", .boot_id = "b", .host_id = "h", .version = "1", .address = "a", .protocol = PROTOCOL};
    SEND(register_message, &message, copy);
    ck_assert(!copy.has_nonce);
    register_message_finish(&copy);
}
END_TEST

START_TEST(heartbeat_arrives_as_it_was_sent)
{
    struct node_attempt attempts[] = {{ATTEMPT_ID, MEMBER_PREPARED, 61000}};
    struct heartbeat_message message = {
        .node = "n1", .boot_id = "b", .agent_id = "i", .seq = 17, .attempts = attempts, .attempt_count = 1};
    SEND(heartbeat_message, &message, copy);
    ck_assert_str_eq(copy.node, "n1");
    ck_assert_str_eq(copy.boot_id, "b");
    ck_assert_str_eq(copy.agent_id, "i");
    ck_assert_int_eq(copy.seq, 17);
    ck_assert(!copy.faults.told);
    ck_assert_int_eq(copy.attempts[0].state, MEMBER_PREPARED);
    ck_assert_int_eq(copy.attempts[0].idle_ms, 61000);
    heartbeat_message_finish(&copy);
}
END_TEST

START_TEST(devices_that_cannot_be_had_arrive_with_their_reasons)
{
    struct device_fault fault = {.index = 3, .reason = "GPU is lost"};
    struct heartbeat_message heartbeat = {
        .node = "n1", .boot_id = "b", .faults = {.told = true, .items = &fault, .count = 1}};
    SEND(heartbeat_message, &heartbeat, copy);
    ck_assert(copy.faults.told);
    ck_assert_uint_eq(copy.faults.count, 1);
    ck_assert_int_eq(copy.faults.items[0].index, 3);
    ck_assert_str_eq(copy.faults.items[0].reason, "GPU is lost");
    heartbeat_message_finish(&copy);
    heartbeat.faults.count = 0;
    SEND(heartbeat_message, &heartbeat, none);
    ck_assert(none.faults.told && none.faults.count == 0);
    heartbeat_message_finish(&none);
    struct report_message report = {.node = "n1",
                                    .boot_id = "b",
                                    .attempt_id = 1,
                                    .kind = REPORT_DECLINED,
                                    .faults = {.told = true, .items = &fault, .count = 1}};
    SEND(report_message, &report, said);
    ck_assert_str_eq(said.faults.items[0].reason, "GPU is lost");
    report_message_finish(&said);
}
END_TEST

START_TEST(heartbeat_reply_arrives_as_it_was_sent)
{
    uint64_t fenced[] = {ATTEMPT_ID, ATTEMPT_ID + 1};
    struct heartbeat_reply message = {.fenced = fenced, .fenced_count = 2};
    SEND(heartbeat_reply, &message, copy);
    ck_assert_uint_eq(copy.fenced_count, 2);
    ck_assert_uint_eq(copy.fenced[0], ATTEMPT_ID);
    ck_assert_uint_eq(copy.fenced[1], ATTEMPT_ID + 1);
    heartbeat_reply_finish(&copy);
    struct heartbeat_reply nothing = {0};
    SEND(heartbeat_reply, &nothing, empty);
    ck_assert_uint_eq(empty.fenced_count, 0);
    heartbeat_reply_finish(&empty);
}
END_TEST

START_TEST(poll_arrives_as_it_was_sent)
{
    struct poll_message message = {.node = "n1", .boot_id = "b", .version = ATTEMPT_ID};
    SEND(poll_message, &message, copy);
    ck_assert_str_eq(copy.node, "n1");
    ck_assert_uint_eq(copy.version, ATTEMPT_ID);
    poll_message_finish(&copy);
}
END_TEST

static void assert_run(const struct order *order)
{
    ck_assert_uint_eq(order->attempt_id, ATTEMPT_ID);
    ck_assert_int_eq(order->phase, ORDER_RUN);
    ck_assert_str_eq(order->job_id, "aaaaaaaaaaaaaaaa");
    ck_assert_int_eq(order->attempt, 2);
    ck_assert_int_eq(order->node_rank, 1);
    ck_assert_int_eq(order->nodes, 2);
    ck_assert_int_eq(order->first_rank, 4);
    ck_assert_int_eq(order->local_ranks, 2);
    ck_assert_int_eq(order->world, 6);
    ck_assert_uint_eq(order->device_count, 2);
    ck_assert_int_eq(order->devices[0], 3);
    ck_assert_int_eq(order->devices[1], 5);
    ck_assert_int_eq(order->millicpus, 1500);
    ck_assert_int_eq(order->memory_bytes, 1 << 30);
    ck_assert_str_eq(order->master_address, "10.0.0.1");
    ck_assert_int_eq(order->master_port, 29500);
    ck_assert_str_eq(order->addresses, "10.0.0.1:29500,10.0.0.2:0");
    ck_assert_int_eq(order->lease_ms, 900000);
    ck_assert_int_eq(order->signal, EARLY_URG);
    ck_assert(order->gang);
    ck_assert_str_eq(order->tracking_token, "gcr_1");
    ck_assert_str_eq(order->tracking_run_id, "0f");
    ck_assert_str_eq(order->traceparent, "00-t-s-01");
    ck_assert_str_eq(order->tracestate, "a=b");
    ck_assert_uint_eq(json_array_size(order->secrets), 2);
    ck_assert_str_eq(json_string_value(json_array_get(order->secrets, 0)), "aGk=");
    ck_assert(json_is_null(json_array_get(order->secrets, 1)));
    ck_assert_int_eq(json_integer_value(json_object_get(order->spec, "gpus")), 6);
}

START_TEST(poll_reply_arrives_as_it_was_sent)
{
    autojson json_t *spec = parse_quoted("{'gpus':6,'command':['x']}");
    autojson json_t *secrets = parse_quoted("['aGk=',null]");
    int64_t devices[] = {3, 5};
    uint64_t live[] = {ATTEMPT_ID, ATTEMPT_ID + 1};
    struct order orders[] = {{.attempt_id = ATTEMPT_ID,
                              .phase = ORDER_RUN,
                              .job_id = "aaaaaaaaaaaaaaaa",
                              .attempt = 2,
                              .node_rank = 1,
                              .nodes = 2,
                              .first_rank = 4,
                              .local_ranks = 2,
                              .world = 6,
                              .devices = devices,
                              .device_count = 2,
                              .millicpus = 1500,
                              .memory_bytes = 1 << 30,
                              .master_address = "10.0.0.1",
                              .master_port = 29500,
                              .addresses = "10.0.0.1:29500,10.0.0.2:0",
                              .lease_ms = 900000,
                              .signal = EARLY_URG,
                              .kept = true,
                              .gang = true,
                              .tracking_token = "gcr_1",
                              .tracking_run_id = "0f",
                              .traceparent = "00-t-s-01",
                              .tracestate = "a=b",
                              .secrets = secrets,
                              .spec = spec},
                             {.attempt_id = ATTEMPT_ID + 1,
                              .phase = ORDER_STOP,
                              .job_id = "bbbbbbbbbbbbbbbb",
                              .grace_ms = 5000,
                              .cause = CAUSE_TIME_LIMIT}};
    autojson json_t *need =
        parse_quoted("{'key':'" HASH "','requirements':'" HASH "','python_version':'3.11',"
                     "'python':'/p','blobs':['" HASH "']}");
    struct staging stagings[] = {{.json = need}};
    struct poll_reply message = {.version = 9,
                                 .shutdown = true,
                                 .restored_ms = 77,
                                 .journal_since_ms = 66,
                                 .live = live,
                                 .live_count = 2,
                                 .orders = orders,
                                 .order_count = 2,
                                 .stagings = stagings,
                                 .staging_count = 1};
    SEND(poll_reply, &message, copy);
    ck_assert_uint_eq(copy.version, 9);
    ck_assert(copy.shutdown);
    ck_assert_int_eq(copy.restored_ms, 77);
    ck_assert_int_eq(copy.journal_since_ms, 66);
    ck_assert_uint_eq(copy.live_count, 2);
    ck_assert_uint_eq(copy.live[1], ATTEMPT_ID + 1);
    ck_assert_uint_eq(copy.order_count, 2);
    assert_run(&copy.orders[0]);
    ck_assert_int_eq(copy.orders[1].phase, ORDER_STOP);
    ck_assert(copy.orders[0].kept && !copy.orders[1].kept);
    ck_assert_int_eq(copy.orders[1].grace_ms, 5000);
    ck_assert_int_eq(copy.orders[1].cause, CAUSE_TIME_LIMIT);
    ck_assert_int_eq(copy.orders[1].signal, EARLY_NONE);
    ck_assert_ptr_null(copy.orders[1].spec);
    ck_assert_ptr_null(copy.orders[1].secrets);
    ck_assert_ptr_null(copy.orders[1].master_address);
    ck_assert_ptr_null(copy.orders[1].tracking_token);
    ck_assert_ptr_null(copy.orders[1].traceparent);
    ck_assert_uint_eq(copy.staging_count, 1);
    ck_assert_str_eq(copy.stagings[0].key, HASH);
    ck_assert_str_eq(copy.stagings[0].requirements, HASH);
    ck_assert_str_eq(copy.stagings[0].python_version, "3.11");
    ck_assert_str_eq(copy.stagings[0].python, "/p");
    ck_assert_uint_eq(copy.stagings[0].blob_count, 1);
    ck_assert_str_eq(copy.stagings[0].blobs[0], HASH);
    poll_reply_finish(&copy);
}
END_TEST

START_TEST(an_encoded_order_only_borrows_its_spec)
{
    autojson json_t *spec = parse_quoted("{'gpus':1}");
    struct order order = {.attempt_id = 1, .phase = ORDER_RUN, .job_id = "j", .spec = spec};
    struct poll_reply message = {.orders = &order, .order_count = 1};
    json_decref(poll_reply_encode(&message));
    ck_assert_int_eq(json_integer_value(json_object_get(spec, "gpus")), 1);
}
END_TEST

START_TEST(report_arrives_as_it_was_sent)
{
    struct rank_exit ranks[] = {
        {.rank = 4, .code = 137, .signal = 9, .at_ms = 5, .out_bytes = GIB, .err_bytes = 7},
        {.rank = 5, .by_us = true}};
    struct log_tail tails[] = {{5, STREAM_STDERR, 4096, "aGk="}};
    struct report_message message = {.node = "n1",
                                     .boot_id = "b",
                                     .attempt_id = ATTEMPT_ID,
                                     .kind = REPORT_EXITED,
                                     .address = "10.0.0.1",
                                     .master_port = 20001,
                                     .at_ms = 1795253400125,
                                     .cause = CAUSE_RANK_FAILED,
                                     .text = "rank 4 was killed",
                                     .ranks = ranks,
                                     .rank_count = 2,
                                     .tails = tails,
                                     .tail_count = 1,
                                     .checkpoint_ms = 1795253400126,
                                     .flushed = true,
                                     .use = {.io_read_bytes = 7 * GIB, .io_written_bytes = 8 * GIB},
                                     .said = "ValueError: \xc3\xa9"};
    SEND(report_message, &message, copy);
    ck_assert_uint_eq(copy.attempt_id, ATTEMPT_ID);
    ck_assert_int_eq(copy.kind, REPORT_EXITED);
    ck_assert_str_eq(copy.address, "10.0.0.1");
    ck_assert_int_eq(copy.master_port, 20001);
    ck_assert_int_eq(copy.at_ms, 1795253400125);
    ck_assert_int_eq(copy.cause, CAUSE_RANK_FAILED);
    ck_assert_str_eq(copy.text, "rank 4 was killed");
    ck_assert_uint_eq(copy.rank_count, 2);
    ck_assert_int_eq(copy.ranks[0].signal, 9);
    ck_assert_int_eq(copy.ranks[0].out_bytes, GIB);
    ck_assert_int_eq(copy.ranks[0].err_bytes, 7);
    ck_assert(!copy.ranks[0].by_us && copy.ranks[1].by_us);
    ck_assert_int_eq(copy.tails[0].stream, STREAM_STDERR);
    ck_assert_int_eq(copy.tails[0].offset, 4096);
    ck_assert_str_eq(copy.tails[0].base64, "aGk=");
    ck_assert_int_eq(copy.checkpoint_ms, 1795253400126);
    ck_assert(copy.flushed);
    ck_assert_int_eq(copy.use.io_read_bytes, 7 * GIB);
    ck_assert_int_eq(copy.use.io_written_bytes, 8 * GIB);
    ck_assert_int_eq(copy.use.measured_ms, 0);
    ck_assert_str_eq(copy.said, "ValueError: \xc3\xa9");
    ck_assert_uint_eq(copy.result_count, 0);
    report_message_finish(&copy);
}
END_TEST

START_TEST(what_a_node_says_of_the_time_of_a_start_arrives_as_it_was_sent)
{
    struct timing_mark marks[] = {{"first all-reduce", 3, 77}, {"loaded ~", 0, 0}};
    struct report_message message = {.node = "n1",
                                     .boot_id = "b",
                                     .attempt_id = ATTEMPT_ID,
                                     .kind = REPORT_EXITED,
                                     .start = "cold: python3 is not kept warm",
                                     .timing = {1, 2, 3, 4, 5, marks, 2},
                                     .start_sent_us = 9};
    SEND(report_message, &message, copy);
    ck_assert_str_eq(copy.start, "cold: python3 is not kept warm");
    ck_assert_int_eq(copy.timing.prepared_us, 1);
    ck_assert_int_eq(copy.timing.begun_us, 2);
    ck_assert_int_eq(copy.timing.running_us, 3);
    ck_assert_int_eq(copy.timing.output_us, 4);
    ck_assert_int_eq(copy.timing.ended_us, 5);
    ck_assert_uint_eq(copy.timing.mark_count, 2);
    ck_assert_str_eq(copy.timing.marks[0].name, "first all-reduce");
    ck_assert_int_eq(copy.timing.marks[0].rank, 3);
    ck_assert_int_eq(copy.timing.marks[0].after_us, 77);
    ck_assert_str_eq(copy.timing.marks[1].name, "loaded ~");
    ck_assert_int_eq(copy.start_sent_us, 0); /* the receiver's */
    report_message_finish(&copy);
}
END_TEST

START_TEST(a_report_that_says_nothing_of_time_is_as_good_as_any)
{
    struct report_message message = {
        .node = "n1", .boot_id = "b", .attempt_id = ATTEMPT_ID, .kind = REPORT_RUNNING};
    autojson json_t *json = report_message_encode(&message);
    ck_assert_ptr_null(json_object_get(json, "timing"));
    ck_assert_ptr_null(json_object_get(json, "start"));
    json_object_set_new(json, "timing", json_null());
    struct report_message copy;
    struct err err;
    ck_assert(report_message_decode(json_incref(json), &copy, &err));
    ck_assert_ptr_null(copy.start);
    ck_assert_int_eq(copy.timing.running_us, 0);
    ck_assert_uint_eq(copy.timing.mark_count, 0);
    report_message_finish(&copy);
}
END_TEST

static void assert_same_result(const struct rank_result *copy, const struct rank_result *sent)
{
    ck_assert_int_eq(copy->rank, sent->rank);
    ck_assert_int_eq(copy->kind, sent->kind);
    ck_assert_int_eq(copy->size, sent->size);
    ck_assert_pstr_eq(copy->hash, sent->hash);
    ck_assert_pstr_eq(copy->base64, sent->base64);
    ck_assert_pstr_eq(copy->json, sent->json);
    ck_assert_ptr_null(copy->digest);
    ck_assert_ptr_null(copy->bytes);
}

START_TEST(results_arrive_as_they_were_sent)
{
    struct rank_result results[] = {
        {.rank = 4, .size = 2, .hash = "00ff", .base64 = "aGk=", .json = "{\"a\": \"\\u0000\"}"},
        {.rank = 5, .size = GIB, .hash = "11ff"},
        {.rank = LIMIT_GPUS - 1, .kind = RESULT_EXCEPTION, .json = "{}"},
    };
    const uint8_t digest[32] = {1};
    struct report_message message = {.node = "n1",
                                     .boot_id = "b",
                                     .attempt_id = ATTEMPT_ID,
                                     .kind = REPORT_EXITED,
                                     .results = results,
                                     .result_count = 3};
    results[1].digest = digest; /* of the receiver: not sent */
    results[1].bytes = "x";
    SEND(report_message, &message, copy);
    ck_assert_uint_eq(copy.result_count, 3);
    ck_assert_ptr_null(copy.said);
    for (size_t i = 0; i < 3; i++) {
        assert_same_result(&copy.results[i], &results[i]);
    }
    report_message_finish(&copy);
}
END_TEST

START_TEST(staging_arrives_as_it_was_sent)
{
    struct staging_message message = {.node = "n1",
                                      .boot_id = "b",
                                      .key = HASH,
                                      .state = STAGING_FAILED,
                                      .by_user = true,
                                      .lasting = true,
                                      .text = "no such package\nnumpyy"};
    SEND(staging_message, &message, copy);
    ck_assert_str_eq(copy.node, "n1");
    ck_assert_str_eq(copy.boot_id, "b");
    ck_assert_str_eq(copy.key, HASH);
    ck_assert_int_eq(copy.state, STAGING_FAILED);
    ck_assert(copy.by_user && copy.lasting);
    ck_assert_str_eq(copy.text, "no such package\nnumpyy");
    staging_message_finish(&copy);
}
END_TEST

START_TEST(a_journal_arrives_as_it_was_sent)
{
    struct journal_entry entries[] = {
        {.attempt_id = UINT64_C(0x7fffffff00000001), .job_id = "abcdefghijklmnop", .began_ms = 5, .code = -1},
        {.attempt_id = 2, .job_id = "ponmlkjihgfedcba", .began_ms = 6, .ended_ms = 7, .code = 0},
    };
    struct journal_message message = {.node = "n1", .boot_id = "b", .entries = entries, .entry_count = 2};
    SEND(journal_message, &message, copy);
    ck_assert_str_eq(copy.node, "n1");
    ck_assert_str_eq(copy.boot_id, "b");
    ck_assert_uint_eq(copy.entry_count, 2);
    ck_assert_uint_eq(copy.entries[0].attempt_id, UINT64_C(0x7fffffff00000001));
    ck_assert_str_eq(copy.entries[0].job_id, "abcdefghijklmnop");
    ck_assert_int_eq(copy.entries[0].began_ms, 5);
    ck_assert_int_eq(copy.entries[0].ended_ms, 0);
    ck_assert_int_eq(copy.entries[0].code, -1);
    ck_assert_int_eq(copy.entries[1].ended_ms, 7);
    ck_assert_int_eq(copy.entries[1].code, 0);
    journal_message_finish(&copy);
}
END_TEST

START_TEST(a_journal_without_ids_or_too_long_is_refused)
{
    struct err err = {0};
    struct journal_message message;
    json_t *json =
        parse_quoted("{'node':'n','boot_id':'b','entries':[{'epoch':1,'job_id':'x','began_ms':1}]}");
    ck_assert(!journal_message_decode(json, &message, &err));
    ck_assert_str_eq(err.field, "entries[0].job_id");
    json = parse_quoted("{'node':'n','boot_id':'b'}");
    json_t *entries = json_array();
    for (int i = 0; i <= LIMIT_JOURNAL_ENTRIES; i++) {
        json_array_append_new(entries, parse_quoted("{'epoch':1,'job_id':'abcdefghijklmnop','began_ms':1}"));
    }
    json_object_set_new(json, "entries", entries);
    ck_assert(!journal_message_decode(json, &message, &err));
    ck_assert_str_eq(err.field, "entries");
}
END_TEST

START_TEST(log_reply_arrives_as_it_was_sent)
{
    struct log_reply message = {.received = 20, .durable = 10};
    SEND(log_reply, &message, copy);
    ck_assert_int_eq(copy.received, 20);
    ck_assert_int_eq(copy.durable, 10);
    log_reply_finish(&copy);
}
END_TEST

#define YEAR_MS (365LL * 24 * 3600 * 1000)

START_TEST(a_full_node_fits_the_limits_of_its_bodies)
{
    static struct node_attempt attempts[LIMIT_NODE_ATTEMPTS];
    static struct rank_exit ranks[LIMIT_NODE_DEVICES];
    static struct rank_result results[LIMIT_NODE_DEVICES];
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    for (size_t i = 0; i < LIMIT_NODE_ATTEMPTS; i++) {
        attempts[i] = (struct node_attempt){UINT64_C(0x7fffffffffff0000) + i, MEMBER_PREPARED, YEAR_MS};
        ranks[i] = (struct rank_exit){LIMIT_GPUS - 1, 137, 9, 1795253400125, GIB, GIB, false};
        results[i] = (struct rank_result){
            .rank = LIMIT_GPUS - 1, .kind = RESULT_EXCEPTION, .size = LIMIT_BLOB_BYTES, .hash = hash};
    }
    struct heartbeat_message heartbeat = {
        .node = "n1", .boot_id = "b", .seq = 1, .attempts = attempts, .attempt_count = LIMIT_NODE_ATTEMPTS};
    autojson json_t *heartbeat_json = heartbeat_message_encode(&heartbeat);
    autofree char *heartbeat_text = json_text(heartbeat_json);
    ck_assert_int_le((long long)strlen(heartbeat_text), LIMIT_REPORT_BYTES);
    struct report_message report = {.node = "n1",
                                    .boot_id = "b",
                                    .attempt_id = 1,
                                    .ranks = ranks,
                                    .rank_count = LIMIT_NODE_DEVICES,
                                    .results = results,
                                    .result_count = LIMIT_NODE_DEVICES};
    autojson json_t *report_json = report_message_encode(&report);
    autofree char *report_text = json_text(report_json);
    long long tails = (LIMIT_EXIT_TAIL_BYTES + 2) / 3 * 4;
    long long pickles = (LIMIT_EXIT_RESULT_BYTES + 2) / 3 * 4;
    long long json = LIMIT_EXIT_JSON_BYTES + LIMIT_EXIT_ERROR_BYTES;
    ck_assert_int_le((long long)strlen(report_text) + tails + pickles + json, LIMIT_REPORT_BYTES);
}
END_TEST

START_TEST(text_that_is_not_utf8_arrives_mended)
{
    struct report_message message = {
        .node = "n1", .boot_id = "b", .attempt_id = 1, .kind = REPORT_DECLINED, .text = "no \xff file"};
    SEND(report_message, &message, copy);
    ck_assert_str_eq(copy.text, "no \xef\xbf\xbd file");
    report_message_finish(&copy);
}
END_TEST

START_TEST(a_join_arrives_as_it_was_sent)
{
    struct err err;
    struct join_message message = {.token = "gcj_x", .name = "n1", .secret = {0xab, 0xcd}}, copy;
    ck_assert(join_message_decode(join_message_encode(&message), &copy, &err));
    ck_assert_str_eq(copy.token, "gcj_x");
    ck_assert_str_eq(copy.name, "n1");
    ck_assert_mem_eq(copy.secret, message.secret, sizeof copy.secret);
    join_message_finish(&copy);
    struct join_reply reply = {.token_id = "abc", .pool = "p", .reserved = true}, again;
    ck_assert(join_reply_decode(join_reply_encode(&reply), &again, &err));
    ck_assert_str_eq(again.token_id, "abc");
    ck_assert_str_eq(again.pool, "p");
    ck_assert(again.reserved);
    join_reply_finish(&again);
    ck_assert(
        !join_message_decode(parse_quoted("{'token':'t','name':'a/b','secret_sha256':''}"), &copy, &err));
    ck_assert_str_eq(err.field, "name");
    ck_assert(
        !join_message_decode(parse_quoted("{'token':'t','name':'a','secret_sha256':'12'}"), &copy, &err));
    ck_assert_str_eq(err.field, "secret_sha256");
}
END_TEST

START_TEST(a_leave_arrives_as_it_was_sent)
{
    struct leave_message message = {
        .node = "n1", .boot_id = "b", .agent_id = "a", .reason = "idle", .stop = true, .forget = true};
    SEND(leave_message, &message, copy);
    ck_assert_str_eq(copy.node, "n1");
    ck_assert_str_eq(copy.boot_id, "b");
    ck_assert_str_eq(copy.agent_id, "a");
    ck_assert_str_eq(copy.reason, "idle");
    ck_assert(copy.stop && copy.forget);
    leave_message_finish(&copy);
    struct leave_reply reply = {.gone = true};
    SEND(leave_reply, &reply, again);
    ck_assert(again.gone);
    leave_reply_finish(&again);
}
END_TEST

/* --- neighbours of other versions --- */

START_TEST(members_that_are_not_known_are_ignored)
{
    struct err err;
    struct heartbeat_message heartbeat;
    ck_assert(
        heartbeat_message_decode(parse_quoted("{'node':'n','boot_id':'b','seq':0,'mood':'good','attempts':[{"
                                              "'epoch':1,'state':'RUNNING','x':[]}]}"),
                                 &heartbeat, &err));
    ck_assert_uint_eq(heartbeat.attempts[0].attempt_id, 1);
    heartbeat_message_finish(&heartbeat);
}
END_TEST

START_TEST(members_that_may_be_absent_have_their_defaults)
{
    struct err err;
    struct report_message report;
    ck_assert(report_message_decode(
        parse_quoted("{'node':'n','boot_id':'b','epoch':1,'kind':'running','text':null}"), &report, &err));
    ck_assert_int_eq(report.cause, CAUSE_NONE);
    ck_assert_ptr_null(report.text);
    ck_assert_uint_eq(report.rank_count + report.tail_count + report.result_count, 0);
    ck_assert_ptr_null(report.said);
    ck_assert(!report.flushed);
    report_message_finish(&report);
}
END_TEST

Suite *messages_suite(void)
{
    Suite *suite = suite_create("messages");
    TCase *trips = tcase_create("round trips");
    tcase_add_test(trips, register_arrives_as_it_was_sent);
    tcase_add_test(trips, register_reply_arrives_as_it_was_sent);
    tcase_add_test(trips, an_older_agent_knows_of_no_word);
    tcase_add_test(trips, heartbeat_arrives_as_it_was_sent);
    tcase_add_test(trips, heartbeat_reply_arrives_as_it_was_sent);
    tcase_add_test(trips, devices_that_cannot_be_had_arrive_with_their_reasons);
    tcase_add_test(trips, poll_arrives_as_it_was_sent);
    tcase_add_test(trips, poll_reply_arrives_as_it_was_sent);
    tcase_add_test(trips, an_encoded_order_only_borrows_its_spec);
    tcase_add_test(trips, report_arrives_as_it_was_sent);
    tcase_add_test(trips, what_a_node_says_of_the_time_of_a_start_arrives_as_it_was_sent);
    tcase_add_test(trips, a_report_that_says_nothing_of_time_is_as_good_as_any);
    tcase_add_test(trips, results_arrive_as_they_were_sent);
    tcase_add_test(trips, staging_arrives_as_it_was_sent);
    tcase_add_test(trips, a_journal_arrives_as_it_was_sent);
    tcase_add_test(trips, a_journal_without_ids_or_too_long_is_refused);
    tcase_add_test(trips, log_reply_arrives_as_it_was_sent);
    tcase_add_test(trips, a_join_arrives_as_it_was_sent);
    tcase_add_test(trips, a_leave_arrives_as_it_was_sent);
    tcase_add_test(trips, a_full_node_fits_the_limits_of_its_bodies);
    tcase_add_test(trips, text_that_is_not_utf8_arrives_mended);
    tcase_add_test(trips, members_that_are_not_known_are_ignored);
    tcase_add_test(trips, members_that_may_be_absent_have_their_defaults);
    suite_add_tcase(suite, trips);
    return suite;
}
