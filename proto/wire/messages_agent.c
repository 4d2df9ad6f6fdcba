/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes an agent's messages to the controller: register, heartbeat, poll, report and staging. A
 * decoded message has every required member, within the limits of a node. The core checks whether it fits the
 * state of the cluster; messages.c has the controller's messages. */
#include "proto/wire/messages.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/members.h"
#include "proto/spec/node_label.h"
#include "proto/wire/protocol.h"

/* --- attempts that live on a node --- */

static json_t *encode_attempts(const struct node_attempt *attempts, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_object();
        member_put_int(item, "epoch", (int64_t)attempts[i].attempt_id);
        member_put_text(item, "state", member_state_text(attempts[i].state));
        if (attempts[i].idle_ms >= 0) {
            member_put_int(item, "idle_ms", attempts[i].idle_ms);
        }
        json_array_append_new(array, item);
    }
    return array;
}

static bool decode_attempts(const json_t *json, struct node_attempt **ret_attempts, size_t *ret_count,
                            struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "attempts", LIMIT_NODE_ATTEMPTS, &array, err)) {
        return false;
    }
    *ret_count = json_array_size(array);
    *ret_attempts = xzalloc(*ret_count * sizeof **ret_attempts);
    for (size_t i = 0; i < *ret_count; i++) {
        const json_t *item = json_array_get(array, i);
        struct node_attempt *attempt = &(*ret_attempts)[i];
        attempt->idle_ms = -1;
        if (!member_need_attempt_id(item, "epoch", &attempt->attempt_id, err) ||
            !member_read_member_state(item, "state", true, &attempt->state, err) ||
            !json_read_int(item, "idle_ms", 0, INT64_MAX, &attempt->idle_ms, err)) {
            return member_err_inside(err, "attempts", i);
        }
    }
    return true;
}

/* --- devices that no job can get --- */

static void put_faults(json_t *json, const struct device_faults *faults)
{
    if (!faults->told) {
        return;
    }
    json_t *array = json_array();
    for (size_t i = 0; i < faults->count; i++) {
        json_t *item = json_object();
        member_put_int(item, "index", faults->items[i].index);
        member_put_text(item, "reason", faults->items[i].reason);
        json_array_append_new(array, item);
    }
    member_put(json, "unavailable", array);
}

static bool decode_fault(const json_t *json, struct device_fault *fault, struct err *err)
{
    return json_need_int(json, "index", 0, INT32_MAX, &fault->index, err) &&
           json_need_text(json, "reason", &fault->reason, err) &&
           (strlen(fault->reason) <= LIMIT_DEVICE_REASON ||
            err_field(err, ERR_FIELD, "reason", NULL, "the reason is longer than %d bytes",
                      LIMIT_DEVICE_REASON));
}

static bool decode_faults(const json_t *json, struct device_faults *faults, struct err *err)
{
    json_t *array;
    faults->told = json_object_get(json, "unavailable") != NULL;
    if (!member_read_array(json, "unavailable", LIMIT_NODE_DEVICES, &array, err)) {
        return false;
    }
    faults->count = json_array_size(array);
    faults->items = xzalloc(faults->count * sizeof *faults->items);
    for (size_t i = 0; i < faults->count; i++) {
        if (!decode_fault(json_array_get(array, i), &faults->items[i], err)) {
            return member_err_inside(err, "unavailable", i);
        }
    }
    return true;
}

/* --- register --- */

json_t *device_encode(const struct device *device)
{
    json_t *json = json_object();
    member_put_int(json, "index", device->index);
    member_put_text(json, "uuid", device->uuid);
    member_put_text(json, "type", device->type);
    member_put_int(json, "memory_bytes", device->memory_bytes);
    if (device->group >= 0) {
        member_put_int(json, "group", device->group);
    }
    return json;
}

/* Checks a text that appears in paths, job specs and tables: it must be a name. */
static bool check_name(const char *name, const char *text, struct err *err)
{
    return text == NULL || text_is_name(text, LIMIT_NAME_BYTES) ||
           err_field(err, ERR_FIELD, name,
                     "begin with a letter or digit, go on with these and '.', '_' and '-'",
                     "%s must be a name of at most %d characters", name, LIMIT_NAME_BYTES);
}

/* Checks a text that is displayed and compared: it must be printable ASCII. */
static bool need_plain(const json_t *json, const char *name, size_t max, const char **ret_text,
                       struct err *err)
{
    if (!json_need_text(json, name, ret_text, err)) {
        return false;
    }
    size_t length = strlen(*ret_text);
    bool plain = length > 0 && length <= max;
    for (size_t i = 0; plain && i < length; i++) {
        plain = (*ret_text)[i] >= ' ' && (*ret_text)[i] <= '~';
    }
    return plain ||
           err_field(err, ERR_FIELD, name, NULL, "%s must be 1 to %zu printable ASCII characters", name, max);
}

static bool decode_device(const json_t *json, struct device *device, struct err *err)
{
    device->group = -1;
    return json_need_int(json, "index", 0, INT32_MAX, &device->index, err) &&
           need_plain(json, "uuid", LIMIT_UUID_BYTES, &device->uuid, err) &&
           json_need_text(json, "type", &device->type, err) && check_name("type", device->type, err) &&
           json_read_int(json, "memory_bytes", 0, INT64_MAX, &device->memory_bytes, err) &&
           json_read_int(json, "group", 0, LIMIT_NODE_DEVICES, &device->group, err);
}

static bool decode_devices(const json_t *json, struct register_message *message, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "devices", LIMIT_NODE_DEVICES, &array, err)) {
        return false;
    }
    message->device_count = json_array_size(array);
    message->devices = xzalloc(message->device_count * sizeof *message->devices);
    for (size_t i = 0; i < message->device_count; i++) {
        if (!decode_device(json_array_get(array, i), &message->devices[i], err)) {
            return member_err_inside(err, "devices", i);
        }
    }
    return true;
}

static bool decode_labels(const json_t *json, struct register_message *message, struct err *err)
{
    json_t *labels = json_object_get(json, "labels");
    message->labels = json_is_null(labels) ? NULL : labels;
    return message->labels == NULL || node_labels_check(labels, err);
}

static bool read_agent_id(const json_t *json, const char **ret_agent_id, struct err *err)
{
    return json_read_text(json, "agent_id", ret_agent_id, err) &&
           (*ret_agent_id == NULL || strlen(*ret_agent_id) <= LIMIT_AGENT_ID_BYTES ||
            err_field(err, ERR_FIELD, "agent_id", NULL, "agent_id must have at most %d bytes",
                      LIMIT_AGENT_ID_BYTES));
}

/* Checks the protocol before all other members, because another protocol may spell them differently. */
static bool decode_protocol(const json_t *json, struct register_message *message, struct err *err)
{
    const char *version = NULL;
    message->protocol = PROTOCOL_FIRST;
    return json_read_int(json, "protocol", 1, INT32_MAX, &message->protocol, err) &&
           json_read_text(json, "version", &version, err) &&
           protocol_check(PROTOCOL, message->protocol, version != NULL ? version : "of no version", err);
}

json_t *register_message_encode(const struct register_message *message)
{
    json_t *json = json_object();
    member_put_int(json, "protocol", message->protocol);
    if (message->has_nonce) {
        member_put_int(json, "word", (int64_t)message->nonce);
    }
    member_put_text(json, "name", message->name);
    member_put_text(json, "boot_id", message->boot_id);
    member_put_text(json, "agent_id", message->agent_id);
    member_put_text(json, "host_id", message->host_id);
    member_put_text(json, "version", message->version);
    member_put_text(json, "address", message->address);
    member_put_text(json, "pool", message->pool);
    member_put_bool(json, "reserved", message->reserved);
    member_put_bool(json, "slots", message->slots);
    if (message->millicpus > 0) {
        member_put_int(json, "millicpus", message->millicpus);
        member_put_int(json, "memory_bytes", message->memory_bytes);
    }
    member_put_text(json, "isolation", isolation_text(message->isolation));
    if (message->expires_at_ms != 0) {
        member_put_int(json, "expires_at_ms", message->expires_at_ms);
    }
    if (message->labels != NULL) {
        member_put(json, "labels", json_deep_copy(message->labels));
    }
    json_t *devices = json_array();
    for (size_t i = 0; i < message->device_count; i++) {
        json_array_append_new(devices, device_encode(&message->devices[i]));
    }
    member_put(json, "devices", devices);
    put_faults(json, &message->faults);
    member_put(json, "attempts", encode_attempts(message->attempts, message->attempt_count));
    return json;
}

bool register_message_decode(json_t *json, struct register_message *ret_message, struct err *err)
{
    struct register_message message = {.json = json};
    int64_t nonce = -1;
    bool good = member_holder(json, err) && decode_protocol(json, &message, err) &&
                json_need_text(json, "name", &message.name, err) && check_name("name", message.name, err) &&
                need_plain(json, "boot_id", LIMIT_NODE_TEXT_BYTES, &message.boot_id, err) &&
                read_agent_id(json, &message.agent_id, err) &&
                need_plain(json, "host_id", LIMIT_NODE_TEXT_BYTES, &message.host_id, err) &&
                need_plain(json, "version", LIMIT_NODE_TEXT_BYTES, &message.version, err) &&
                need_plain(json, "address", LIMIT_NODE_TEXT_BYTES, &message.address, err) &&
                json_read_text(json, "pool", &message.pool, err) && check_name("pool", message.pool, err) &&
                json_read_bool(json, "reserved", &message.reserved, err) &&
                json_read_bool(json, "slots", &message.slots, err) &&
                json_read_int(json, "millicpus", 0, LIMIT_CPUS * 1000LL, &message.millicpus, err) &&
                json_read_int(json, "memory_bytes", 0, LIMIT_MEMORY_BYTES, &message.memory_bytes, err) &&
                member_read_isolation(json, "isolation", false, &message.isolation, err) &&
                json_read_int(json, "expires_at_ms", 0, LIMIT_WALL_MS, &message.expires_at_ms, err) &&
                json_read_int(json, "word", 0, INT64_MAX, &nonce, err) &&
                decode_labels(json, &message, err) && decode_devices(json, &message, err) &&
                decode_faults(json, &message.faults, err) &&
                decode_attempts(json, &message.attempts, &message.attempt_count, err);
    if (!good) {
        register_message_finish(&message);
        return false;
    }
    message.has_nonce = nonce >= 0;
    message.nonce = message.has_nonce ? (uint64_t)nonce : 0;
    *ret_message = message;
    return true;
}

void register_message_finish(struct register_message *message)
{
    free(message->devices);
    free(message->faults.items);
    free(message->attempts);
    json_decref(message->json);
    *message = (struct register_message){0};
}

/* --- heartbeat --- */

json_t *heartbeat_message_encode(const struct heartbeat_message *message)
{
    json_t *json = json_object();
    member_put_text(json, "node", message->node);
    member_put_text(json, "boot_id", message->boot_id);
    member_put_text(json, "agent_id", message->agent_id);
    member_put_int(json, "seq", message->seq);
    put_faults(json, &message->faults);
    member_put(json, "attempts", encode_attempts(message->attempts, message->attempt_count));
    samples_put(json, message->samples, message->sample_count);
    machine_sample_put(json, message->machine);
    return json;
}

bool heartbeat_message_decode(json_t *json, struct heartbeat_message *ret_message, struct err *err)
{
    struct heartbeat_message message = {.json = json};
    bool good = member_holder(json, err) && json_need_text(json, "node", &message.node, err) &&
                json_need_text(json, "boot_id", &message.boot_id, err) &&
                read_agent_id(json, &message.agent_id, err) &&
                json_need_int(json, "seq", 0, INT64_MAX, &message.seq, err) &&
                decode_faults(json, &message.faults, err) &&
                decode_attempts(json, &message.attempts, &message.attempt_count, err) &&
                samples_decode(json, &message.samples, &message.sample_count, err) &&
                machine_sample_decode(json, &message.machine, err);
    if (!good) {
        heartbeat_message_finish(&message);
        return false;
    }
    *ret_message = message;
    return true;
}

void heartbeat_message_finish(struct heartbeat_message *message)
{
    machine_sample_free(message->machine);
    samples_free(message->samples, message->sample_count);
    free(message->faults.items);
    free(message->attempts);
    json_decref(message->json);
    *message = (struct heartbeat_message){0};
}

/* --- poll --- */

json_t *poll_message_encode(const struct poll_message *message)
{
    json_t *json = json_object();
    member_put_text(json, "node", message->node);
    member_put_text(json, "boot_id", message->boot_id);
    member_put_text(json, "agent_id", message->agent_id);
    member_put_int(json, "version", (int64_t)message->version);
    return json;
}

bool poll_message_decode(json_t *json, struct poll_message *ret_message, struct err *err)
{
    struct poll_message message = {.json = json};
    int64_t version = 0;
    bool good = member_holder(json, err) && json_need_text(json, "node", &message.node, err) &&
                json_need_text(json, "boot_id", &message.boot_id, err) &&
                read_agent_id(json, &message.agent_id, err) &&
                json_need_int(json, "version", 0, INT64_MAX, &version, err);
    if (!good) {
        poll_message_finish(&message);
        return false;
    }
    message.version = (uint64_t)version;
    *ret_message = message;
    return true;
}

void poll_message_finish(struct poll_message *message)
{
    json_decref(message->json);
    *message = (struct poll_message){0};
}

/* --- report --- */

static json_t *encode_rank(const struct rank_exit *rank)
{
    json_t *json = json_object();
    member_put_int(json, "rank", rank->rank);
    member_put_int(json, "code", rank->code);
    member_put_int(json, "signal", rank->signal);
    member_put_int(json, "at_ms", rank->at_ms);
    member_put_int(json, "out_bytes", rank->out_bytes);
    member_put_int(json, "err_bytes", rank->err_bytes);
    member_put_bool(json, "by_us", rank->by_us);
    return json;
}

static bool decode_rank(const json_t *json, struct rank_exit *rank, struct err *err)
{
    return json_need_int(json, "rank", 0, LIMIT_GPUS - 1, &rank->rank, err) &&
           json_need_int(json, "code", 0, 255, &rank->code, err) &&
           json_read_int(json, "signal", 0, 127, &rank->signal, err) &&
           json_read_int(json, "at_ms", 0, INT64_MAX, &rank->at_ms, err) &&
           json_read_int(json, "out_bytes", 0, INT64_MAX, &rank->out_bytes, err) &&
           json_read_int(json, "err_bytes", 0, INT64_MAX, &rank->err_bytes, err) &&
           json_read_bool(json, "by_us", &rank->by_us, err);
}

static bool decode_ranks(const json_t *json, struct report_message *message, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "ranks", LIMIT_NODE_DEVICES, &array, err)) {
        return false;
    }
    message->rank_count = json_array_size(array);
    message->ranks = xzalloc(message->rank_count * sizeof *message->ranks);
    for (size_t i = 0; i < message->rank_count; i++) {
        if (!decode_rank(json_array_get(array, i), &message->ranks[i], err)) {
            return member_err_inside(err, "ranks", i);
        }
    }
    return true;
}

static json_t *encode_tail(const struct log_tail *tail)
{
    json_t *json = json_object();
    member_put_int(json, "rank", tail->rank);
    member_put_text(json, "stream", stream_text(tail->stream));
    member_put_int(json, "offset", tail->offset);
    member_put_text(json, "base64", tail->base64);
    return json;
}

static bool decode_tail(const json_t *json, struct log_tail *tail, struct err *err)
{
    return json_need_int(json, "rank", 0, LIMIT_GPUS - 1, &tail->rank, err) &&
           member_read_stream(json, "stream", true, &tail->stream, err) &&
           json_need_int(json, "offset", 0, INT64_MAX, &tail->offset, err) &&
           json_need_text(json, "base64", &tail->base64, err);
}

static bool decode_tails(const json_t *json, struct report_message *message, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "tails", (size_t)STREAM_COUNT * LIMIT_NODE_DEVICES, &array, err)) {
        return false;
    }
    message->tail_count = json_array_size(array);
    message->tails = xzalloc(message->tail_count * sizeof *message->tails);
    for (size_t i = 0; i < message->tail_count; i++) {
        if (!decode_tail(json_array_get(array, i), &message->tails[i], err)) {
            return member_err_inside(err, "tails", i);
        }
    }
    return true;
}

static json_t *encode_result(const struct rank_result *result)
{
    json_t *json = json_object();
    member_put_int(json, "rank", result->rank);
    member_put_text(json, "kind", result_kind_text(result->kind));
    member_put_int(json, "size", result->size);
    member_put_text(json, "sha256", result->hash);
    member_put_text(json, "base64", result->base64);
    member_put_text(json, "json", result->json);
    return json;
}

static bool decode_result(const json_t *json, struct rank_result *result, struct err *err)
{
    return json_need_int(json, "rank", 0, LIMIT_GPUS - 1, &result->rank, err) &&
           member_read_result_kind(json, "kind", true, &result->kind, err) &&
           json_read_int(json, "size", 0, LIMIT_BLOB_BYTES, &result->size, err) &&
           json_read_text(json, "sha256", &result->hash, err) &&
           json_read_text(json, "base64", &result->base64, err) &&
           json_read_text(json, "json", &result->json, err);
}

static bool decode_results(const json_t *json, struct report_message *message, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "results", LIMIT_NODE_DEVICES, &array, err)) {
        return false;
    }
    message->result_count = json_array_size(array);
    message->results = xzalloc(message->result_count * sizeof *message->results);
    for (size_t i = 0; i < message->result_count; i++) {
        if (!decode_result(json_array_get(array, i), &message->results[i], err)) {
            return member_err_inside(err, "results", i);
        }
    }
    return true;
}

static void put_use(json_t *json, const struct gpu_use *use)
{
    bool io = use->io_read_bytes > 0 || use->io_written_bytes > 0;
    if (use->measured_ms > 0 || use->energy_mj > 0 || io) {
        json_t *object = json_object();
        member_put_int(object, "measured_ms", use->measured_ms);
        member_put_int(object, "idle_ms", use->idle_ms);
        member_put_int(object, "energy_mj", use->energy_mj);
        if (io) {
            member_put_int(object, "io_read_bytes", use->io_read_bytes);
            member_put_int(object, "io_written_bytes", use->io_written_bytes);
        }
        member_put(json, "use", object);
    }
}

static bool decode_use(const json_t *json, struct gpu_use *use, struct err *err)
{
    const json_t *object = json_object_get(json, "use");
    if (object == NULL || json_is_null(object)) {
        return true;
    }
    if (!json_is_object(object)) {
        return err_field(err, ERR_FIELD, "use", NULL, "use must be an object");
    }
    return json_need_int(object, "measured_ms", 0, LIMIT_USE, &use->measured_ms, err) &&
           json_need_int(object, "idle_ms", 0, use->measured_ms, &use->idle_ms, err) &&
           json_need_int(object, "energy_mj", 0, LIMIT_USE, &use->energy_mj, err) &&
           json_read_int(object, "io_read_bytes", 0, LIMIT_USE, &use->io_read_bytes, err) &&
           json_read_int(object, "io_written_bytes", 0, LIMIT_USE, &use->io_written_bytes, err);
}

json_t *report_message_encode(const struct report_message *message)
{
    json_t *json = json_object();
    member_put_text(json, "node", message->node);
    member_put_text(json, "boot_id", message->boot_id);
    member_put_text(json, "agent_id", message->agent_id);
    member_put_int(json, "epoch", (int64_t)message->attempt_id);
    member_put_text(json, "kind", report_kind_text(message->kind));
    member_put_text(json, "address", message->address);
    member_put_int(json, "master_port", message->master_port);
    member_put_int(json, "at_ms", message->at_ms);
    member_put_text(json, "cause", cause_text(message->cause));
    member_put_text(json, "text", message->text);
    json_t *ranks = json_array();
    for (size_t i = 0; i < message->rank_count; i++) {
        json_array_append_new(ranks, encode_rank(&message->ranks[i]));
    }
    member_put(json, "ranks", ranks);
    json_t *tails = json_array();
    for (size_t i = 0; i < message->tail_count; i++) {
        json_array_append_new(tails, encode_tail(&message->tails[i]));
    }
    member_put(json, "tails", tails);
    member_put_int(json, "checkpoint_ms", message->checkpoint_ms);
    member_put_bool(json, "flushed", message->flushed);
    member_put_text(json, "said", message->said);
    json_t *results = json_array();
    for (size_t i = 0; i < message->result_count; i++) {
        json_array_append_new(results, encode_result(&message->results[i]));
    }
    member_put(json, "results", results);
    member_put_text(json, "start", message->start);
    put_faults(json, &message->faults);
    put_use(json, &message->use);
    timing_put(json, &message->timing);
    return json;
}

static bool decode_start(const json_t *json, struct report_message *message, struct err *err)
{
    return json_read_text(json, "start", &message->start, err) &&
           (message->start == NULL || strlen(message->start) <= LIMIT_START_TEXT ||
            err_field(err, ERR_FIELD, "start", NULL, "start must have at most %d bytes", LIMIT_START_TEXT)) &&
           timing_read(json, &message->timing, err);
}

bool report_message_decode(json_t *json, struct report_message *ret_message, struct err *err)
{
    struct report_message message = {.json = json};
    bool good = member_holder(json, err) && json_need_text(json, "node", &message.node, err) &&
                json_need_text(json, "boot_id", &message.boot_id, err) &&
                read_agent_id(json, &message.agent_id, err) &&
                member_need_attempt_id(json, "epoch", &message.attempt_id, err) &&
                member_read_report_kind(json, "kind", true, &message.kind, err) &&
                json_read_text(json, "address", &message.address, err) &&
                json_read_int(json, "master_port", 0, 65535, &message.master_port, err) &&
                json_read_int(json, "at_ms", 0, INT64_MAX, &message.at_ms, err) &&
                member_read_cause(json, "cause", false, &message.cause, err) &&
                json_read_text(json, "text", &message.text, err) && decode_ranks(json, &message, err) &&
                decode_tails(json, &message, err) &&
                json_read_int(json, "checkpoint_ms", 0, INT64_MAX, &message.checkpoint_ms, err) &&
                json_read_bool(json, "flushed", &message.flushed, err) &&
                json_read_text(json, "said", &message.said, err) && decode_results(json, &message, err) &&
                decode_faults(json, &message.faults, err) && decode_use(json, &message.use, err) &&
                decode_start(json, &message, err);
    if (!good) {
        report_message_finish(&message);
        return false;
    }
    *ret_message = message;
    return true;
}

void report_message_finish(struct report_message *message)
{
    free(message->ranks);
    free(message->tails);
    free(message->results);
    free(message->faults.items);
    timing_finish(&message->timing);
    json_decref(message->json);
    *message = (struct report_message){0};
}

/* --- staging --- */

json_t *staging_message_encode(const struct staging_message *message)
{
    json_t *json = json_object();
    member_put_text(json, "node", message->node);
    member_put_text(json, "boot_id", message->boot_id);
    member_put_text(json, "key", message->key);
    member_put_text(json, "state", staging_state_text(message->state));
    member_put_bool(json, "by_user", message->by_user);
    member_put_bool(json, "lasting", message->lasting);
    member_put_text(json, "text", message->text);
    return json;
}

bool staging_message_decode(json_t *json, struct staging_message *ret_message, struct err *err)
{
    struct staging_message message = {.json = json};
    bool good = member_holder(json, err) && json_need_text(json, "node", &message.node, err) &&
                json_need_text(json, "boot_id", &message.boot_id, err) &&
                json_need_text(json, "key", &message.key, err) &&
                member_read_staging_state(json, "state", true, &message.state, err) &&
                json_read_bool(json, "by_user", &message.by_user, err) &&
                json_read_bool(json, "lasting", &message.lasting, err) &&
                json_read_text(json, "text", &message.text, err);
    if (!good) {
        staging_message_finish(&message);
        return false;
    }
    *ret_message = message;
    return true;
}

void staging_message_finish(struct staging_message *message)
{
    json_decref(message->json);
    *message = (struct staging_message){0};
}
