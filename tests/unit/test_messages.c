/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/messages: what is encoded is decoded again, neighbours of other versions are understood, and
 * what means nothing is refused by the name of its member. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/base/text.h"
#include "proto/limits.h"
#include "proto/messages.h"
#include "proto/protocol.h"
#include "tests/unit/proto_suites.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#define EPOCH UINT64_C(12884901889) /* incarnation 3, attempt 1 */

/* The bytes of a message on the wire, parsed as the receiver does; takes over json. */
static json_t *over_the_wire(json_t *json)
{
    autofree char *text = json_text(json);
    json_decref(json);
    struct err err;
    json_t *received = json_parse(text, strlen(text), &err);
    ck_assert_msg(received != NULL, "%s", err.text);
    return received;
}

/* Sends a message and reads it into `copy`, whose own encoding must be the same. */
#define SEND(type, message, copy)                                                                            \
    struct type copy;                                                                                        \
    do {                                                                                                     \
        struct err err = {0};                                                                                \
        ck_assert_msg(type##_decode(over_the_wire(type##_encode(message)), &copy, &err), "%s", err.text);    \
        autojson json_t *first = type##_encode(message);                                                     \
        autojson json_t *second = type##_encode(&copy);                                                      \
        ck_assert(json_equal(first, second));                                                                \
    } while (0)

/* --- round trips --- */

START_TEST(register_arrives_as_it_was_sent)
{
    struct device devices[] = {{0, "GPU-1", "A10", 24LL * GIB, 3}, {1, "slot-1", "cpu", 0, -1}};
    autojson json_t *labels = json_pack("{s:s}", "zone", "a");
    struct node_attempt attempts[] = {{EPOCH, MEMBER_RUNNING}, {UINT64_C(0x7fffffffffffffff), MEMBER_EXITED}};
    struct register_message message = {.protocol = PROTOCOL,
                                       .name = "n1",
                                       .boot_id = "b",
                                       .host_id = "h",
                                       .version = "0.1.0",
                                       .address = "10.0.0.1",
                                       .pool = "big",
                                       .reserved = true,
                                       .slots = true,
                                       .isolation = ISOLATION_CGROUP2,
                                       .expires_at_ms = 1795253400125,
                                       .labels = labels,
                                       .devices = devices,
                                       .device_count = 2,
                                       .attempts = attempts,
                                       .attempt_count = 2,
                                       .has_word = true,
                                       .word = EPOCH};
    SEND(register_message, &message, copy);
    ck_assert_str_eq(copy.name, "n1");
    ck_assert_str_eq(copy.pool, "big");
    ck_assert(copy.reserved && copy.slots);
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
    ck_assert_uint_eq(copy.attempts[0].epoch, EPOCH);
    ck_assert_uint_eq(copy.attempts[1].epoch, UINT64_C(0x7fffffffffffffff));
    ck_assert_int_eq(copy.attempts[1].state, MEMBER_EXITED);
    ck_assert(copy.has_word);
    ck_assert_uint_eq(copy.word, EPOCH);
    register_message_finish(&copy);
    ck_assert_ptr_null(copy.json);
}
END_TEST

START_TEST(register_reply_arrives_as_it_was_sent)
{
    struct register_reply message = {
        .incarnation = 3, .beat_ms = BEAT_MS, .park_ms = POLL_PARK_MS, .log_limit = 7 * MIB};
    SEND(register_reply, &message, copy);
    ck_assert_int_eq(copy.incarnation, 3);
    ck_assert_int_eq(copy.beat_ms, BEAT_MS);
    ck_assert_int_eq(copy.park_ms, POLL_PARK_MS);
    ck_assert_int_eq(copy.log_limit, 7 * MIB);
    ck_assert_uint_eq(copy.word, 0);
    register_reply_finish(&copy);
    message.word = EPOCH;
    SEND(register_reply, &message, again);
    ck_assert_uint_eq(again.word, EPOCH);
    register_reply_finish(&again);
}
END_TEST

START_TEST(an_older_agent_knows_of_no_word)
{
    struct register_message message = {
        .name = "n", .boot_id = "b", .host_id = "h", .version = "1", .address = "a", .protocol = PROTOCOL};
    SEND(register_message, &message, copy);
    ck_assert(!copy.has_word);
    register_message_finish(&copy);
}
END_TEST

START_TEST(beat_arrives_as_it_was_sent)
{
    struct node_attempt attempts[] = {{EPOCH, MEMBER_PREPARED}};
    struct beat_message message = {
        .node = "n1", .boot_id = "b", .seq = 17, .attempts = attempts, .attempt_count = 1};
    SEND(beat_message, &message, copy);
    ck_assert_str_eq(copy.node, "n1");
    ck_assert_str_eq(copy.boot_id, "b");
    ck_assert_int_eq(copy.seq, 17);
    ck_assert_int_eq(copy.attempts[0].state, MEMBER_PREPARED);
    beat_message_finish(&copy);
}
END_TEST

START_TEST(beat_reply_arrives_as_it_was_sent)
{
    uint64_t fenced[] = {EPOCH, EPOCH + 1};
    struct beat_reply message = {.fenced = fenced, .fenced_count = 2};
    SEND(beat_reply, &message, copy);
    ck_assert_uint_eq(copy.fenced_count, 2);
    ck_assert_uint_eq(copy.fenced[0], EPOCH);
    ck_assert_uint_eq(copy.fenced[1], EPOCH + 1);
    beat_reply_finish(&copy);
    struct beat_reply nothing = {0};
    SEND(beat_reply, &nothing, empty);
    ck_assert_uint_eq(empty.fenced_count, 0);
    beat_reply_finish(&empty);
}
END_TEST

START_TEST(poll_arrives_as_it_was_sent)
{
    struct poll_message message = {.node = "n1", .boot_id = "b", .version = EPOCH};
    SEND(poll_message, &message, copy);
    ck_assert_str_eq(copy.node, "n1");
    ck_assert_uint_eq(copy.version, EPOCH);
    poll_message_finish(&copy);
}
END_TEST

static void assert_run(const struct order *order)
{
    ck_assert_uint_eq(order->epoch, EPOCH);
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
    ck_assert_str_eq(order->master_address, "10.0.0.1");
    ck_assert_int_eq(order->master_port, 29500);
    ck_assert_int_eq(order->lease_ms, 900000);
    ck_assert_int_eq(order->signal, EARLY_URG);
    ck_assert(order->gang);
    ck_assert_str_eq(order->tracking_token, "gcr_1");
    ck_assert_str_eq(order->tracking_run_id, "0f");
    ck_assert_int_eq(json_integer_value(json_object_get(order->spec, "gpus")), 6);
}

START_TEST(poll_reply_arrives_as_it_was_sent)
{
    autojson json_t *spec = parse_quoted("{'gpus':6,'command':['x']}");
    int64_t devices[] = {3, 5};
    uint64_t live[] = {EPOCH, EPOCH + 1};
    struct order orders[] = {{.epoch = EPOCH,
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
                              .master_address = "10.0.0.1",
                              .master_port = 29500,
                              .lease_ms = 900000,
                              .signal = EARLY_URG,
                              .gang = true,
                              .tracking_token = "gcr_1",
                              .tracking_run_id = "0f",
                              .spec = spec},
                             {.epoch = EPOCH + 1,
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
    ck_assert_uint_eq(copy.live[1], EPOCH + 1);
    ck_assert_uint_eq(copy.order_count, 2);
    assert_run(&copy.orders[0]);
    ck_assert_int_eq(copy.orders[1].phase, ORDER_STOP);
    ck_assert_int_eq(copy.orders[1].grace_ms, 5000);
    ck_assert_int_eq(copy.orders[1].cause, CAUSE_TIME_LIMIT);
    ck_assert_int_eq(copy.orders[1].signal, EARLY_NONE);
    ck_assert_ptr_null(copy.orders[1].spec);
    ck_assert_ptr_null(copy.orders[1].master_address);
    ck_assert_ptr_null(copy.orders[1].tracking_token);
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
    struct order order = {.epoch = 1, .phase = ORDER_RUN, .job_id = "j", .spec = spec};
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
                                     .epoch = EPOCH,
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
                                     .said = "ValueError: \xc3\xa9"};
    SEND(report_message, &message, copy);
    ck_assert_uint_eq(copy.epoch, EPOCH);
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
    ck_assert_str_eq(copy.said, "ValueError: \xc3\xa9");
    ck_assert_uint_eq(copy.result_count, 0);
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
                                     .epoch = EPOCH,
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
        {.epoch = UINT64_C(0x7fffffff00000001), .job_id = "abcdefghijklmnop", .began_ms = 5, .code = -1},
        {.epoch = 2, .job_id = "ponmlkjihgfedcba", .began_ms = 6, .ended_ms = 7, .code = 0},
    };
    struct journal_message message = {.node = "n1", .boot_id = "b", .entries = entries, .entry_count = 2};
    SEND(journal_message, &message, copy);
    ck_assert_str_eq(copy.node, "n1");
    ck_assert_str_eq(copy.boot_id, "b");
    ck_assert_uint_eq(copy.entry_count, 2);
    ck_assert_uint_eq(copy.entries[0].epoch, UINT64_C(0x7fffffff00000001));
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

START_TEST(a_full_node_fits_the_limits_of_its_bodies)
{
    static struct node_attempt attempts[LIMIT_NODE_ATTEMPTS];
    static struct rank_exit ranks[LIMIT_NODE_DEVICES];
    static struct rank_result results[LIMIT_NODE_DEVICES];
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    for (size_t i = 0; i < LIMIT_NODE_ATTEMPTS; i++) {
        attempts[i] = (struct node_attempt){UINT64_C(0x7fffffffffff0000) + i, MEMBER_PREPARED};
        ranks[i] = (struct rank_exit){LIMIT_GPUS - 1, 137, 9, 1795253400125, GIB, GIB, false};
        results[i] = (struct rank_result){
            .rank = LIMIT_GPUS - 1, .kind = RESULT_EXCEPTION, .size = LIMIT_BLOB_BYTES, .hash = hash};
    }
    struct beat_message beat = {
        .node = "n1", .boot_id = "b", .seq = 1, .attempts = attempts, .attempt_count = LIMIT_NODE_ATTEMPTS};
    autojson json_t *beat_json = beat_message_encode(&beat);
    autofree char *beat_text = json_text(beat_json);
    ck_assert_int_le((long long)strlen(beat_text), LIMIT_JSON_BYTES);
    struct report_message report = {.node = "n1",
                                    .boot_id = "b",
                                    .epoch = 1,
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
        .node = "n1", .boot_id = "b", .epoch = 1, .kind = REPORT_DECLINED, .text = "no \xff file"};
    SEND(report_message, &message, copy);
    ck_assert_str_eq(copy.text, "no \xef\xbf\xbd file");
    report_message_finish(&copy);
}
END_TEST

/* --- neighbours of other versions --- */

START_TEST(members_that_are_not_known_are_ignored)
{
    struct err err;
    struct beat_message beat;
    ck_assert(beat_message_decode(parse_quoted("{'node':'n','boot_id':'b','seq':0,'mood':'good','attempts':[{"
                                               "'epoch':1,'state':'RUNNING','x':[]}]}"),
                                  &beat, &err));
    ck_assert_uint_eq(beat.attempts[0].epoch, 1);
    beat_message_finish(&beat);
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

/* --- refusals --- */

#define TRY(type)                                                                                            \
    static bool try_##type(json_t *json, struct err *err)                                                    \
    {                                                                                                        \
        struct type message;                                                                                 \
        if (!type##_decode(json, &message, err)) {                                                           \
            return false;                                                                                    \
        }                                                                                                    \
        type##_finish(&message);                                                                             \
        return true;                                                                                         \
    }
TRY(register_message)
TRY(register_reply)
TRY(beat_message)
TRY(beat_reply)
TRY(poll_message)
TRY(poll_reply)
TRY(report_message)
TRY(staging_message)
TRY(journal_message)
TRY(log_reply)

/* A sound message of each kind: with a member taken away, or with another type in its place, it is refused.
 */
struct sound {
    bool (*try)(json_t *json, struct err *err);
    const char *needed; /* an object of the members that must be there */
    const char *others; /* an object of those that may be absent */
};

static const struct sound sounds[] = {
    {try_register_message, "{'name':'n','boot_id':'b','host_id':'h','version':'1','address':'a'}",
     "{'protocol':1,'pool':'p','reserved':false,'slots':true,'isolation':'none','devices':[],'attempts':[]}"},
    {try_register_reply, "{'incarnation':1,'beat_ms':5000,'park_ms':25000}", "{}"},
    {try_beat_message, "{'node':'n','boot_id':'b','seq':1}", "{'attempts':[]}"},
    {try_beat_reply, "{}", "{'fenced':[1]}"},
    {try_poll_message, "{'node':'n','boot_id':'b','version':0}", "{}"},
    {try_poll_reply, "{'version':1,'live':[1]}",
     "{'orders':[],'shutdown':true,'restored_ms':2,'journal_since_ms':1,"
     "'stagings':[]}"},
    {try_report_message, "{'node':'n','boot_id':'b','epoch':1,'kind':'exited'}",
     "{'address':'a','master_port':1,'at_ms':1,'cause':'NONE','text':'t','ranks':[],'tails':[],'flushed':"
     "true,'said':'s','results':[]}"},
    {try_staging_message, "{'node':'n','boot_id':'b','key':'k','state':'ready'}",
     "{'by_user':true,'lasting':false,'text':'t'}"},
    {try_journal_message, "{'node':'n','boot_id':'b'}", "{'entries':[]}"},
    {try_log_reply, "{'received':1,'durable':1}", "{}"},
};
#define SOUNDS ((int)(sizeof sounds / sizeof sounds[0]))

static json_t *sound_json(const struct sound *sound)
{
    json_t *json = parse_quoted(sound->needed);
    autojson json_t *others = parse_quoted(sound->others);
    json_object_update(json, others);
    return json;
}

static void assert_names(const struct sound *sound, json_t *json, const char *member)
{
    struct err err = {0};
    ck_assert_msg(!sound->try(json, &err), "%s", member);
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_str_eq(err.field, member);
    ck_assert_msg(strstr(err.text, member) != NULL, "%s", err.text);
}

START_TEST(a_sound_message_is_taken)
{
    struct err err = {0};
    ck_assert_msg(sounds[_i].try(sound_json(&sounds[_i]), &err), "%s", err.text);
    ck_assert_msg(sounds[_i].try(parse_quoted(sounds[_i].needed), &err), "%s", err.text);
}
END_TEST

START_TEST(a_message_without_a_needed_member_is_refused)
{
    autojson json_t *needed = parse_quoted(sounds[_i].needed);
    for (void *at = json_object_iter(needed); at != NULL; at = json_object_iter_next(needed, at)) {
        json_t *json = sound_json(&sounds[_i]);
        json_object_del(json, json_object_iter_key(at));
        assert_names(&sounds[_i], json, json_object_iter_key(at));
    }
}
END_TEST

START_TEST(a_member_of_another_type_is_refused)
{
    autojson json_t *whole = sound_json(&sounds[_i]);
    for (void *at = json_object_iter(whole); at != NULL; at = json_object_iter_next(whole, at)) {
        json_t *json = sound_json(&sounds[_i]);
        json_object_set_new(json, json_object_iter_key(at), parse_quoted("{'x':1}"));
        assert_names(&sounds[_i], json, json_object_iter_key(at));
    }
}
END_TEST

START_TEST(a_body_that_is_no_object_is_refused)
{
    struct err err = {0};
    ck_assert(!sounds[_i].try(parse_quoted("[]"), &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    ck_assert(!sounds[_i].try(NULL, &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    bool empty_is_sound = strcmp(sounds[_i].needed, "{}") == 0;
    ck_assert(sounds[_i].try(parse_quoted("{}"), NULL) == empty_is_sound);
}
END_TEST

struct broken {
    bool (*try)(json_t *json, struct err *err);
    const char *needed;
    const char *member; /* as it is, with its fault */
    const char *field;
};

#define REPORT "{'node':'n','boot_id':'b','epoch':1,'kind':'exited'}"
#define NODE   "{'name':'n','boot_id':'b','host_id':'h','version':'1','address':'a'}"
#define STAGED "{'node':'n','boot_id':'b','key':'k','state':'ready'}"
#define POLLED "{'version':1,'live':[1]}"

static const struct broken brokens[] = {
    {try_report_message, REPORT, "{'epoch':0}", "epoch"},
    {try_report_message, REPORT, "{'epoch':-1}", "epoch"},
    {try_report_message, REPORT, "{'epoch':1.0}", "epoch"},
    {try_report_message, REPORT, "{'kind':'EXITED'}", "kind"},
    {try_report_message, REPORT, "{'cause':'none'}", "cause"},
    {try_report_message, REPORT, "{'master_port':65536}", "master_port"},
    {try_report_message, REPORT, "{'ranks':[{'rank':0,'code':0},{'rank':1}]}", "ranks[1].code"},
    {try_report_message, REPORT, "{'ranks':[{'rank':0,'code':256}]}", "ranks[0].code"},
    {try_report_message, REPORT, "{'ranks':[{'rank':-1,'code':0}]}", "ranks[0].rank"},
    {try_report_message, REPORT, "{'ranks':[7]}", "ranks[0].rank"},
    {try_report_message, REPORT, "{'tails':[{'rank':0,'stream':'stdin','offset':0,'base64':''}]}",
     "tails[0].stream"},
    {try_report_message, REPORT, "{'tails':[{'rank':0,'stream':'stdout','base64':''}]}", "tails[0].offset"},
    {try_report_message, REPORT, "{'tails':[{'rank':0,'stream':'stdout','offset':0}]}", "tails[0].base64"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value'},{'kind':'value'}]}",
     "results[1].rank"},
    {try_report_message, REPORT, "{'results':[{'rank':65536,'kind':'value'}]}", "results[0].rank"},
    {try_report_message, REPORT, "{'results':[{'rank':0}]}", "results[0].kind"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'VALUE'}]}", "results[0].kind"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value','size':-1}]}", "results[0].size"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value','sha256':1}]}", "results[0].sha256"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value','base64':1}]}", "results[0].base64"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value','json':{}}]}", "results[0].json"},
    {try_register_message, NODE, "{'protocol':0}", "protocol"},
    {try_register_message, NODE, "{'isolation':'jail'}", "isolation"},
    {try_register_message, NODE, "{'expires_at_ms':-1}", "expires_at_ms"},
    {try_register_message, NODE, "{'word':-1}", "word"},
    {try_register_message, NODE, "{'devices':[{'index':0,'type':'A10'}]}", "devices[0].uuid"},
    {try_register_message, NODE, "{'devices':[{'index':0,'uuid':'u'}]}", "devices[0].type"},
    {try_register_message, NODE, "{'devices':[{'index':-1,'uuid':'u','type':'A10'}]}", "devices[0].index"},
    {try_register_message, NODE, "{'labels':['zone=a']}", "labels"},
    {try_register_message, NODE, "{'labels':{'zone':'a b'}}", "labels.zone"},
    {try_register_message, NODE, "{'labels':{'zone':'a,b'}}", "labels.zone"},
    {try_register_message, NODE, "{'labels':{'pool':'a'}}", "labels.pool"},
    {try_register_message, NODE, "{'devices':[{'index':0,'uuid':'u','type':'A10','group':-2}]}",
     "devices[0].group"},
    {try_register_message, NODE, "{'attempts':[{'epoch':1,'state':'running'}]}", "attempts[0].state"},
    {try_register_message, NODE, "{'attempts':[{'state':'RUNNING'}]}", "attempts[0].epoch"},
    {try_beat_reply, "{}", "{'fenced':[1,-1]}", "fenced[1]"},
    {try_poll_reply, POLLED, "{'live':[1,0]}", "live[1]"},
    {try_poll_reply, POLLED, "{'live':['1']}", "live[0]"},
    {try_poll_reply, POLLED, "{'orders':[{'epoch':1,'phase':'go','job_id':'j'}]}", "orders[0].phase"},
    {try_poll_reply, POLLED, "{'orders':[{'epoch':1,'phase':'stop'}]}", "orders[0].job_id"},
    {try_poll_reply, POLLED, "{'orders':[{'epoch':1,'phase':'run','job_id':'j'}]}", "orders[0].spec"},
    {try_poll_reply, POLLED,
     "{'orders':[{'epoch':1,'phase':'run','job_id':'j','spec':{},'devices':[0,'1']}]}",
     "orders[0].devices[1]"},
    {try_poll_reply, POLLED, "{'orders':[{'epoch':1,'phase':'stop','job_id':'j','devices':[0,-1]}]}",
     "orders[0].devices[1]"},
    {try_poll_reply, POLLED, "{'stagings':[{'blobs':[]}]}", "stagings[0].key"},
    {try_poll_reply, POLLED, "{'stagings':[{'key':'k'}]}", "stagings[0].key"},
    {try_poll_reply, POLLED, "{'stagings':[{'key':'" HASH "','requirements':'x'}]}",
     "stagings[0].requirements"},
    {try_poll_reply, POLLED, "{'stagings':[{'key':'" HASH "','blobs':['" HASH "','x']}]}",
     "stagings[0].blobs[1]"},
    {try_staging_message, STAGED, "{'state':'READY'}", "state"},
    {try_staging_message, STAGED, "{'by_user':'yes'}", "by_user"},
    {try_staging_message, STAGED, "{'lasting':1}", "lasting"},
};
#define BROKENS ((int)(sizeof brokens / sizeof brokens[0]))

START_TEST(a_wrong_part_is_named_by_its_whole_path)
{
    const struct broken *broken = &brokens[_i];
    json_t *json = parse_quoted(broken->needed);
    autojson json_t *member = parse_quoted(broken->member);
    json_object_update(json, member);
    struct err err = {0};
    ck_assert_msg(!broken->try(json, &err), "%s", broken->member);
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_str_eq(err.field, broken->field);
    ck_assert_msg(strncmp(err.text, broken->field, strlen(broken->field)) == 0, "%s", err.text);
}
END_TEST

START_TEST(more_results_than_a_node_has_ranks_are_refused)
{
    json_t *json = parse_quoted(REPORT);
    json_t *results = json_array();
    for (int64_t i = 0; i <= LIMIT_NODE_DEVICES; i++) {
        json_array_append_new(results, parse_quoted("{'rank':0,'kind':'value'}"));
    }
    json_object_set_new(json, "results", results);
    struct err err = {0};
    ck_assert(!try_report_message(json, &err));
    ck_assert_str_eq(err.field, "results");
}
END_TEST

START_TEST(more_stagings_than_a_node_may_have_are_refused)
{
    json_t *json = parse_quoted(POLLED);
    json_t *stagings = json_array();
    for (int64_t i = 0; i <= LIMIT_NODE_STAGINGS; i++) {
        json_array_append_new(stagings, parse_quoted("{'key':'" HASH "','blobs':[]}"));
    }
    json_object_set_new(json, "stagings", stagings);
    struct err err = {0};
    ck_assert(!try_poll_reply(json, &err));
    ck_assert_str_eq(err.field, "stagings");
}
END_TEST

START_TEST(more_items_than_a_node_can_have_are_refused)
{
    json_t *json = parse_quoted(POLLED);
    json_t *live = json_array();
    for (int64_t i = 0; i <= LIMIT_NODE_ATTEMPTS; i++) {
        json_array_append_new(live, json_integer(i + 1));
    }
    json_object_set_new(json, "live", live);
    struct err err = {0};
    ck_assert(!try_poll_reply(json, &err));
    ck_assert_str_eq(err.field, "live");
    ck_assert_str_eq(err.text, "live has 1025 items, the limit is 1024");
}
END_TEST

Suite *messages_suite(void)
{
    Suite *suite = suite_create("messages");
    TCase *trips = tcase_create("round trips");
    tcase_add_test(trips, register_arrives_as_it_was_sent);
    tcase_add_test(trips, register_reply_arrives_as_it_was_sent);
    tcase_add_test(trips, an_older_agent_knows_of_no_word);
    tcase_add_test(trips, beat_arrives_as_it_was_sent);
    tcase_add_test(trips, beat_reply_arrives_as_it_was_sent);
    tcase_add_test(trips, poll_arrives_as_it_was_sent);
    tcase_add_test(trips, poll_reply_arrives_as_it_was_sent);
    tcase_add_test(trips, an_encoded_order_only_borrows_its_spec);
    tcase_add_test(trips, report_arrives_as_it_was_sent);
    tcase_add_test(trips, results_arrive_as_they_were_sent);
    tcase_add_test(trips, staging_arrives_as_it_was_sent);
    tcase_add_test(trips, a_journal_arrives_as_it_was_sent);
    tcase_add_test(trips, a_journal_without_ids_or_too_long_is_refused);
    tcase_add_test(trips, log_reply_arrives_as_it_was_sent);
    tcase_add_test(trips, a_full_node_fits_the_limits_of_its_bodies);
    tcase_add_test(trips, text_that_is_not_utf8_arrives_mended);
    tcase_add_test(trips, members_that_are_not_known_are_ignored);
    tcase_add_test(trips, members_that_may_be_absent_have_their_defaults);
    suite_add_tcase(suite, trips);
    TCase *refusals = tcase_create("refusals");
    tcase_add_loop_test(refusals, a_sound_message_is_taken, 0, SOUNDS);
    tcase_add_loop_test(refusals, a_message_without_a_needed_member_is_refused, 0, SOUNDS);
    tcase_add_loop_test(refusals, a_member_of_another_type_is_refused, 0, SOUNDS);
    tcase_add_loop_test(refusals, a_body_that_is_no_object_is_refused, 0, SOUNDS);
    tcase_add_loop_test(refusals, a_wrong_part_is_named_by_its_whole_path, 0, BROKENS);
    tcase_add_test(refusals, more_results_than_a_node_has_ranks_are_refused);
    tcase_add_test(refusals, more_stagings_than_a_node_may_have_are_refused);
    tcase_add_test(refusals, more_items_than_a_node_can_have_are_refused);
    suite_add_tcase(suite, refusals);
    return suite;
}
