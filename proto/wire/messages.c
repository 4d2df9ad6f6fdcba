/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the controller's messages to an agent: its answers to register, heartbeat, poll and log
 * uploads. An order that starts ranks always has its job spec. messages_agent.c has the agent's messages; the
 * core decides when to give an order. */
#include "proto/wire/messages.h"

#include <stdlib.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/members.h"

/* --- register --- */

json_t *register_reply_encode(const struct register_reply *message)
{
    json_t *json = json_object();
    if (message->nonce != 0) {
        member_put_int(json, "word", (int64_t)message->nonce);
    }
    member_put_int(json, "incarnation", message->incarnation);
    member_put_int(json, "beat_ms", message->heartbeat_ms);
    member_put_int(json, "park_ms", message->park_ms);
    member_put_int(json, "log_limit", message->log_limit);
    return json;
}

bool register_reply_decode(json_t *json, struct register_reply *ret_message, struct err *err)
{
    struct register_reply message = {.json = json, .log_limit = LIMIT_STREAM_BYTES};
    int64_t nonce = 0;
    bool good = member_holder(json, err) && json_read_int(json, "word", 0, INT64_MAX, &nonce, err) &&
                json_need_int(json, "incarnation", 1, UINT32_MAX, &message.incarnation, err) &&
                json_need_int(json, "beat_ms", 1, INT32_MAX, &message.heartbeat_ms, err) &&
                json_need_int(json, "park_ms", 1, INT32_MAX, &message.park_ms, err) &&
                json_read_int(json, "log_limit", LIMIT_STREAM_MIN_BYTES, LIMIT_STREAM_MAX_BYTES,
                              &message.log_limit, err);
    if (!good) {
        register_reply_finish(&message);
        return false;
    }
    message.nonce = (uint64_t)nonce;
    *ret_message = message;
    return true;
}

void register_reply_finish(struct register_reply *message)
{
    json_decref(message->json);
    *message = (struct register_reply){0};
}

/* --- heartbeat --- */

static json_t *encode_attempt_ids(const uint64_t *attempt_ids, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_integer((int64_t)attempt_ids[i]));
    }
    return array;
}

static bool decode_attempt_ids(const json_t *json, const char *name, uint64_t **ret_attempt_ids,
                               size_t *ret_count, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, name, LIMIT_NODE_ATTEMPTS, &array, err)) {
        return false;
    }
    *ret_count = json_array_size(array);
    *ret_attempt_ids = xzalloc(*ret_count * sizeof **ret_attempt_ids);
    for (size_t i = 0; i < *ret_count; i++) {
        json_int_t attempt_id = json_integer_value(json_array_get(array, i));
        if (attempt_id <= 0) {
            err_set(err, ERR_FIELD, "must be the id of an attempt");
            return member_err_inside(err, name, i);
        }
        (*ret_attempt_ids)[i] = (uint64_t)attempt_id;
    }
    return true;
}

json_t *heartbeat_reply_encode(const struct heartbeat_reply *message)
{
    json_t *json = json_object();
    if (message->fenced_count > 0) {
        member_put(json, "fenced", encode_attempt_ids(message->fenced, message->fenced_count));
    }
    return json;
}

bool heartbeat_reply_decode(json_t *json, struct heartbeat_reply *ret_message, struct err *err)
{
    struct heartbeat_reply message = {.json = json};
    bool good = member_holder(json, err) &&
                decode_attempt_ids(json, "fenced", &message.fenced, &message.fenced_count, err);
    if (!good) {
        heartbeat_reply_finish(&message);
        return false;
    }
    *ret_message = message;
    return true;
}

void heartbeat_reply_finish(struct heartbeat_reply *message)
{
    free(message->fenced);
    json_decref(message->json);
    *message = (struct heartbeat_reply){0};
}

/* --- orders --- */

static json_t *encode_devices(const int64_t *devices, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_integer(devices[i]));
    }
    return array;
}

static bool decode_devices(const json_t *json, struct order *order, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "devices", LIMIT_NODE_DEVICES, &array, err)) {
        return false;
    }
    order->device_count = json_array_size(array);
    int64_t *devices = xzalloc(order->device_count * sizeof *devices);
    order->devices = devices;
    for (size_t i = 0; i < order->device_count; i++) {
        const json_t *item = json_array_get(array, i);
        devices[i] = json_integer_value(item);
        if (!json_is_integer(item) || devices[i] < 0) {
            err_set(err, ERR_FIELD, "must be the index of a device");
            return member_err_inside(err, "devices", i);
        }
    }
    return true;
}

static json_t *encode_order(const struct order *order)
{
    json_t *json = json_object();
    member_put_int(json, "epoch", (int64_t)order->attempt_id);
    member_put_text(json, "phase", order_phase_text(order->phase));
    member_put_text(json, "job_id", order->job_id);
    member_put_text(json, "owner", order->owner);
    member_put_int(json, "attempt", order->attempt);
    member_put_int(json, "node_rank", order->node_rank);
    member_put_int(json, "nodes", order->nodes);
    member_put_int(json, "first_rank", order->first_rank);
    member_put_int(json, "local_ranks", order->local_ranks);
    member_put_int(json, "world", order->world);
    member_put(json, "devices", encode_devices(order->devices, order->device_count));
    if (order->millicpus > 0) {
        member_put_int(json, "millicpus", order->millicpus);
        member_put_int(json, "memory_bytes", order->memory_bytes);
    }
    member_put_text(json, "master_address", order->master_address);
    member_put_int(json, "master_port", order->master_port);
    member_put_text(json, "addresses", order->addresses);
    member_put_int(json, "grace_ms", order->grace_ms);
    member_put_int(json, "lease_ms", order->lease_ms);
    member_put_text(json, "cause", cause_text(order->cause));
    if (order->signal != EARLY_NONE) {
        member_put_text(json, "signal", early_signal_text(order->signal));
    }
    if (order->kept) {
        member_put_bool(json, "kept", true);
    }
    member_put_bool(json, "gang", order->gang);
    member_put_bool(json, "restore", order->restore);
    member_put_text(json, "tracking_token", order->tracking_token);
    member_put_text(json, "tracking_run_id", order->tracking_run_id);
    member_put_text(json, "traceparent", order->traceparent);
    member_put_text(json, "tracestate", order->tracestate);
    if (order->array_id != NULL) {
        member_put_text(json, "array_id", order->array_id);
        member_put_int(json, "task", order->task);
        member_put_int(json, "tasks", order->tasks);
    }
    if (order->secrets != NULL) {
        member_put(json, "secrets", json_incref(order->secrets));
    }
    if (order->spec != NULL) {
        member_put(json, "spec", json_incref(order->spec));
    }
    return json;
}

static bool decode_spec(const json_t *json, struct order *order, struct err *err)
{
    json_t *spec = json_object_get(json, "spec");
    order->spec = json_is_object(spec) ? spec : NULL;
    if (order->spec == NULL && order->phase != ORDER_STOP) {
        return err_field(err, ERR_FIELD, "spec", NULL, "spec is missing or no object");
    }
    return true;
}

static bool decode_secrets(const json_t *json, struct order *order, struct err *err)
{
    return json_object_get(json, "secrets") == NULL ||
           member_read_array(json, "secrets", LIMIT_JOB_SECRETS, &order->secrets, err);
}

static bool decode_order(json_t *json, struct order *order, struct err *err)
{
    order->json = json;
    return member_need_attempt_id(json, "epoch", &order->attempt_id, err) &&
           member_read_order_phase(json, "phase", true, &order->phase, err) &&
           json_need_text(json, "job_id", &order->job_id, err) &&
           json_read_text(json, "owner", &order->owner, err) &&
           json_read_int(json, "attempt", 0, INT64_MAX, &order->attempt, err) &&
           json_read_int(json, "node_rank", 0, LIMIT_ATTEMPT_NODES - 1, &order->node_rank, err) &&
           json_read_int(json, "nodes", 0, LIMIT_ATTEMPT_NODES, &order->nodes, err) &&
           json_read_int(json, "first_rank", 0, LIMIT_GPUS - 1, &order->first_rank, err) &&
           json_read_int(json, "local_ranks", 0, LIMIT_NODE_DEVICES, &order->local_ranks, err) &&
           json_read_int(json, "world", 0, LIMIT_GPUS, &order->world, err) &&
           decode_devices(json, order, err) &&
           json_read_int(json, "millicpus", 0, LIMIT_CPUS * 1000LL, &order->millicpus, err) &&
           json_read_int(json, "memory_bytes", 0, LIMIT_MEMORY_BYTES, &order->memory_bytes, err) &&
           json_read_text(json, "master_address", &order->master_address, err) &&
           json_read_int(json, "master_port", 0, 65535, &order->master_port, err) &&
           json_read_text(json, "addresses", &order->addresses, err) &&
           json_read_int(json, "grace_ms", 0, LIMIT_GRACE_MS, &order->grace_ms, err) &&
           json_read_int(json, "lease_ms", 0, LIMIT_LEASE_MAX_MS, &order->lease_ms, err) &&
           member_read_cause(json, "cause", false, &order->cause, err) &&
           member_read_early_signal(json, "signal", false, &order->signal, err) &&
           json_read_bool(json, "kept", &order->kept, err) &&
           json_read_bool(json, "gang", &order->gang, err) &&
           json_read_bool(json, "restore", &order->restore, err) &&
           json_read_text(json, "tracking_token", &order->tracking_token, err) &&
           json_read_text(json, "tracking_run_id", &order->tracking_run_id, err) &&
           json_read_text(json, "traceparent", &order->traceparent, err) &&
           json_read_text(json, "tracestate", &order->tracestate, err) &&
           json_read_text(json, "array_id", &order->array_id, err) &&
           json_read_int(json, "task", 0, LIMIT_ARRAY_TASKS - 1, &order->task, err) &&
           json_read_int(json, "tasks", 0, LIMIT_ARRAY_TASKS, &order->tasks, err) &&
           decode_secrets(json, order, err) && decode_spec(json, order, err);
}

/* --- poll --- */

static void put_streams(json_t *json, const struct poll_reply *message)
{
    json_t *streams = message->stream_count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < message->stream_count; i++) {
        const struct stream_order *order = &message->streams[i];
        json_t *item = json_object();
        member_put_text(item, "id", order->id);
        member_put_text(item, "job_id", order->job_id);
        member_put_int(item, "epoch", (int64_t)order->attempt_id);
        member_put(item, "request", json_incref(order->request));
        json_array_append_new(streams, item);
    }
    if (streams != NULL) {
        member_put(json, "streams", streams);
    }
}

json_t *poll_reply_encode(const struct poll_reply *message)
{
    json_t *json = json_object();
    member_put_int(json, "version", (int64_t)message->version);
    member_put_bool(json, "shutdown", message->shutdown);
    if (message->restored_ms > 0) {
        member_put_int(json, "restored_ms", message->restored_ms);
        member_put_int(json, "journal_since_ms", message->journal_since_ms);
    }
    member_put(json, "live", encode_attempt_ids(message->live, message->live_count));
    json_t *orders = json_array();
    for (size_t i = 0; i < message->order_count; i++) {
        json_array_append_new(orders, encode_order(&message->orders[i]));
    }
    member_put(json, "orders", orders);
    json_t *stagings = json_array();
    for (size_t i = 0; i < message->staging_count; i++) {
        json_array_append(stagings, message->stagings[i].json);
    }
    member_put(json, "stagings", stagings);
    put_streams(json, message);
    return json;
}

/* The list is required, because an absent one would fence every live attempt. */
static bool decode_live(const json_t *json, struct poll_reply *message, struct err *err)
{
    const json_t *live = json_object_get(json, "live");
    if (live == NULL || json_is_null(live)) {
        return err_field(err, ERR_FIELD, "live", NULL, "live is missing");
    }
    return decode_attempt_ids(json, "live", &message->live, &message->live_count, err);
}

static bool decode_orders(const json_t *json, struct poll_reply *message, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "orders", LIMIT_NODE_ATTEMPTS, &array, err)) {
        return false;
    }
    message->order_count = json_array_size(array);
    message->orders = xzalloc(message->order_count * sizeof *message->orders);
    for (size_t i = 0; i < message->order_count; i++) {
        if (!decode_order(json_array_get(array, i), &message->orders[i], err)) {
            return member_err_inside(err, "orders", i);
        }
    }
    return true;
}

static bool decode_stagings(const json_t *json, struct poll_reply *message, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "stagings", LIMIT_NODE_STAGINGS, &array, err)) {
        return false;
    }
    message->stagings = xzalloc((json_array_size(array) + 1) * sizeof *message->stagings);
    for (; message->staging_count < json_array_size(array); message->staging_count++) {
        json_t *item = json_incref(json_array_get(array, message->staging_count));
        if (!staging_decode(item, &message->stagings[message->staging_count], err)) {
            return member_err_inside(err, "stagings", message->staging_count);
        }
    }
    return true;
}

static bool decode_stream(const json_t *json, struct stream_order *order, struct err *err)
{
    order->request = json_object_get(json, "request");
    return json_need_text(json, "id", &order->id, err) &&
           (text_is_id(order->id) || err_field(err, ERR_FIELD, "id", NULL, "id is no id")) &&
           json_need_text(json, "job_id", &order->job_id, err) &&
           member_need_attempt_id(json, "epoch", &order->attempt_id, err) &&
           (json_is_object(order->request) ||
            err_field(err, ERR_FIELD, "request", NULL, "request is no object"));
}

static bool decode_streams(const json_t *json, struct poll_reply *message, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "streams", LIMIT_NODE_STREAMS, &array, err)) {
        return false;
    }
    message->streams = xzalloc((json_array_size(array) + 1) * sizeof *message->streams);
    for (; message->stream_count < json_array_size(array); message->stream_count++) {
        size_t i = message->stream_count;
        if (!decode_stream(json_array_get(array, i), &message->streams[i], err)) {
            return member_err_inside(err, "streams", i);
        }
    }
    return true;
}

bool poll_reply_decode(json_t *json, struct poll_reply *ret_message, struct err *err)
{
    struct poll_reply message = {.json = json};
    int64_t version = 0;
    bool good = member_holder(json, err) && json_need_int(json, "version", 0, INT64_MAX, &version, err) &&
                json_read_bool(json, "shutdown", &message.shutdown, err) &&
                json_read_int(json, "restored_ms", 0, INT64_MAX, &message.restored_ms, err) &&
                json_read_int(json, "journal_since_ms", 0, INT64_MAX, &message.journal_since_ms, err) &&
                decode_live(json, &message, err) && decode_orders(json, &message, err) &&
                decode_stagings(json, &message, err) && decode_streams(json, &message, err);
    if (!good) {
        poll_reply_finish(&message);
        return false;
    }
    message.version = (uint64_t)version;
    *ret_message = message;
    return true;
}

void poll_reply_finish(struct poll_reply *message)
{
    for (size_t i = 0; i < message->order_count; i++) {
        member_release(message->orders[i].devices);
    }
    for (size_t i = 0; i < message->staging_count; i++) {
        staging_finish(&message->stagings[i]);
    }
    free(message->stagings);
    free(message->streams);
    free(message->orders);
    free(message->live);
    json_decref(message->json);
    *message = (struct poll_reply){0};
}

/* --- log uploads --- */

json_t *log_reply_encode(const struct log_reply *message)
{
    json_t *json = json_object();
    member_put_int(json, "received", message->received);
    member_put_int(json, "durable", message->durable);
    return json;
}

bool log_reply_decode(json_t *json, struct log_reply *ret_message, struct err *err)
{
    struct log_reply message = {.json = json};
    bool good = member_holder(json, err) &&
                json_need_int(json, "received", 0, INT64_MAX, &message.received, err) &&
                json_need_int(json, "durable", 0, INT64_MAX, &message.durable, err);
    if (!good) {
        log_reply_finish(&message);
        return false;
    }
    *ret_message = message;
    return true;
}

void log_reply_finish(struct log_reply *message)
{
    json_decref(message->json);
    *message = (struct log_reply){0};
}
