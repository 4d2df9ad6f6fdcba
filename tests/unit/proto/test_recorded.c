/* SPDX-License-Identifier: Apache-2.0 */
/* What controllers and agents of earlier versions said, as tests/faults/record.py has kept it: today's
 * decoders take all of it and find in it what matters. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/messages.h"
#include "proto/wire/protocol.h"
#include "tests/unit/proto/proto_suites.h"

#define MESSAGE_BYTES (1 << 20)

#define DECODE(type, json, message)                                                                          \
    struct type message;                                                                                     \
    struct err err = {0};                                                                                    \
    ck_assert_msg(type##_decode(json, &message, &err), "%s", err.text)

/* --- what is to be found in each ------------------------------------------------------------------------ */

static void take_register(json_t *json)
{
    DECODE(register_message, json, message);
    ck_assert_int_eq(message.protocol, PROTOCOL_FIRST);
    ck_assert_int_eq(strncmp(message.name, "node", 4), 0);
    ck_assert_uint_eq(message.device_count, 2);
    ck_assert_str_eq(message.devices[1].uuid, "slot-1");
    ck_assert(message.slots);
    register_message_finish(&message);
}

static void take_register_reply(json_t *json)
{
    DECODE(register_reply, json, message);
    ck_assert_int_eq(message.incarnation, 1);
    register_reply_finish(&message);
}

static void take_heartbeat(json_t *json)
{
    DECODE(heartbeat_message, json, message);
    ck_assert_int_ge(message.seq, 1);
    heartbeat_message_finish(&message);
}

static void take_poll(json_t *json)
{
    DECODE(poll_message, json, message);
    ck_assert_int_eq(strncmp(message.node, "node", 4), 0);
    poll_message_finish(&message);
}

/* A node works an order in by its phase and its spec. */
static void take_order(json_t *json)
{
    DECODE(poll_reply, json, message);
    ck_assert_uint_eq(message.order_count, 1);
    const struct order *order = &message.orders[0];
    ck_assert_uint_eq(order->attempt_id, message.live[0]);
    if (order->phase != ORDER_STOP) {
        struct job_spec spec;
        ck_assert_msg(job_spec_decode(json_incref(order->spec), 0, &spec, &err), "%s", err.text);
        ck_assert_uint_eq(order->device_count, (size_t)order->local_ranks);
        ck_assert_int_eq(order->world, spec.gpus);
        job_spec_finish(&spec);
    }
    if (order->phase == ORDER_START) {
        ck_assert_str_eq(order->master_address, "127.0.0.1");
        ck_assert_int_gt(order->master_port, 0);
    }
    poll_reply_finish(&message);
}

static void take_stagings(json_t *json)
{
    DECODE(poll_reply, json, message);
    ck_assert_uint_eq(message.staging_count, 1);
    poll_reply_finish(&message);
}

static void take_prepared(json_t *json)
{
    DECODE(report_message, json, message);
    ck_assert_int_eq(message.kind, REPORT_PREPARED);
    ck_assert_uint_gt(message.attempt_id, UINT64_C(1) << 32);
    report_message_finish(&message);
}

static void take_running(json_t *json)
{
    DECODE(report_message, json, message);
    ck_assert_int_eq(message.kind, REPORT_RUNNING);
    ck_assert_int_gt(message.at_ms, 0);
    report_message_finish(&message);
}

static void take_failed(json_t *json)
{
    DECODE(report_message, json, message);
    ck_assert_int_eq(message.kind, REPORT_FAILED);
    ck_assert_int_eq(message.cause, CAUSE_RANK_FAILED);
    ck_assert_int_eq(message.ranks[0].code, 3);
    ck_assert_str_eq(message.said, "no luck");
    report_message_finish(&message);
}

static void take_exited(json_t *json)
{
    DECODE(report_message, json, message);
    ck_assert_int_eq(message.kind, REPORT_EXITED);
    ck_assert_uint_eq(message.rank_count, 1);
    ck_assert_int_eq(message.ranks[0].code, 0);
    ck_assert(message.flushed);
    report_message_finish(&message);
}

static void take_staged(json_t *json)
{
    DECODE(staging_message, json, message);
    ck_assert_int_eq(message.state, STAGING_READY);
    staging_message_finish(&message);
}

static void take_log_reply(json_t *json)
{
    DECODE(log_reply, json, message);
    ck_assert_int_ge(message.received, message.durable);
    log_reply_finish(&message);
}

static const struct {
    const char *file;
    void (*take)(json_t *json);
} kinds[] = {
    {"register_message.json", take_register},
    {"register_reply.json", take_register_reply},
    {"beat_message.json", take_heartbeat},
    {"poll_message.json", take_poll},
    {"poll_reply.prepare.json", take_order},
    {"poll_reply.start.json", take_order},
    {"poll_reply.run.json", take_order},
    {"poll_reply.stop.json", take_order},
    {"poll_reply.staging.json", take_stagings},
    {"report_message.prepared.json", take_prepared},
    {"report_message.running.json", take_running},
    {"report_message.failed.json", take_failed},
    {"report_message.exited.json", take_exited},
    {"staging_message.ready.json", take_staged},
    {"log_reply.json", take_log_reply},
};
#define KINDS ((int)(sizeof kinds / sizeof kinds[0]))

/* --- all that was recorded ------------------------------------------------------------------------------ */

static void take_file(const char *version, int kind)
{
    autofree char *path = xprintf("%s/%s/%s", getenv("RECORDED"), version, kinds[kind].file);
    autofree char *text = NULL;
    size_t length;
    struct err err = {0};
    ck_assert_msg(file_read(path, MESSAGE_BYTES, &text, &length, &err), "%s", err.text);
    json_t *json = json_parse(text, length, &err);
    ck_assert_msg(json != NULL, "%s: %s", path, err.text);
    kinds[kind].take(json);
}

START_TEST(what_earlier_versions_said_is_understood)
{
    size_t versions = 0;
    DIR *listing = opendir(getenv("RECORDED"));
    ck_assert_ptr_nonnull(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (entry->d_name[0] != '.') {
            take_file(entry->d_name, _i);
            versions++;
        }
    }
    closedir(listing);
    ck_assert_uint_ge(versions, 2);
}
END_TEST

Suite *recorded_suite(void)
{
    Suite *suite = suite_create("recorded");
    TCase *tcase = tcase_create("recorded");
    tcase_add_loop_test(tcase, what_earlier_versions_said_is_understood, 0, KINDS);
    suite_add_tcase(suite, tcase);
    return suite;
}
