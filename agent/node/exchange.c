/* SPDX-License-Identifier: Apache-2.0 */
/* The requests between node and controller: register, heartbeat, poll, report. Every answer is passed on to
 * reconciler.c. Orders are carried out before the reply from which they are borrowed is freed. */
#include <stdlib.h>
#include <string.h>

#include "agent/node/node_parts.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/protocol.h"

/* --- register ------------------------------------------------------------------------------------------- */

static json_t *register_body(void *closure)
{
    struct node *node = closure;
    struct agent_context *context = node->context;
    char host_id[65];
    file_host_id(host_id);
    struct register_message message = {
        .protocol = PROTOCOL,
        .name = context->config.name,
        .boot_id = context->boot_id,
        .agent_id = context->agent_id,
        .host_id = host_id,
        .version = GPUCTL_VERSION,
        .address = context->address,
        .pool = context->config.pool,
        .reserved = context->config.reserved,
        .slots = context->devices.slots,
        .millicpus = context->size.millicpus,
        .memory_bytes = context->size.memory_bytes,
        .isolation = context->cgroups.isolation,
        .expires_at_ms = context->config.expires_at_ms,
        .labels = context->config.labels,
        .devices = context->devices.items,
        .device_count = context->devices.count,
        .has_nonce = true,
        .nonce = node->nonce,
    };
    message.attempts = reconciler_list(node->reconciler, &message.attempt_count);
    message.faults = context->faults(context->closure);
    json_t *json = register_message_encode(&message);
    free(message.faults.items);
    free(message.attempts);
    return json;
}

static void learn_address(struct agent_context *context, const char *local_address)
{
    if (context->config.address[0] == '\0' && local_address[0] != '\0') {
        memcpy(context->address, local_address, strnlen(local_address, ADDRESS_BYTES - 1) + 1);
    }
}

/* A refusal lasts until a person or time ends it: it is logged once, and the request is repeated at growing
 * intervals. */
static void refused(struct node *node, const struct controller_answer *answer, const struct err *err)
{
    if (node->refusal == NULL || strcmp(node->refusal, err->text) != 0) {
        log_error("node refused", "name=%s status=%d problem=\"%s\" hint=\"%s\"", node->context->config.name,
                  answer->status, err->text, err->hint);
        free(node->refusal);
        node->refusal = xstrdup(err->text);
    }
    int64_t wait_ms = REFUSED_FIRST_MS;
    for (int64_t i = 0; i < node->refusals && wait_ms < REFUSED_MAX_MS; i++) {
        wait_ms *= 2;
    }
    node->refusals++;
    loop_arm(node->context->loop, &node->again,
             clock_boot_ms() + (wait_ms < REFUSED_MAX_MS ? wait_ms : REFUSED_MAX_MS));
}

static void accepted(struct node *node)
{
    node->refusals = 0;
    free(node->refusal);
    node->refusal = NULL;
}

static void register_done(void *closure, const struct controller_answer *answer)
{
    struct node *node = closure;
    struct register_reply reply;
    struct err err = answer->problem;
    node->registering = NULL;
    if (answer->status / 100 != 2 || !register_reply_decode(json_incref(answer->json), &reply, &err)) {
        refused(node, answer, &err);
        return;
    }
    if (reply.nonce != 0) {
        node->nonce = reply.nonce;
        register_reply_finish(&reply);
        exchange_register(node);
        return;
    }
    accepted(node);
    log_info("node registered", "name=%s incarnation=%lld", node->context->config.name,
             (long long)reply.incarnation);
    learn_address(node->context, answer->local_address);
    token_renewal_begin(node->token_renewal);
    node->park_ms = reply.park_ms;
    node->context->log_limit = reply.log_limit;
    reconciler_registered(node->reconciler, &reply, answer->sent_ms);
    register_reply_finish(&reply);
    node_wake(node, 0);
}

void exchange_register(struct node *node)
{
    if (leave_holds_register(node)) {
        return;
    }
    controller_cancel(node->polling);
    node->polling = NULL;
    node->poll_due = false;
    node->registering =
        controller_post(node->context->controller, "/v1/agent/register", register_body, register_done, node);
}

bool exchange_cancel_register(struct node *node)
{
    bool registers = node->registering != NULL || node->again.on;
    controller_cancel(node->registering);
    node->registering = NULL;
    loop_disarm(node->context->loop, &node->again);
    return registers;
}

/* --- heartbeat ------------------------------------------------------------------------------------------ */

/* The attempt with the oldest sample that waits and is not in this heartbeat yet; NULL: there is none. */
static struct attempt *next_sampled(struct node *node, int64_t number)
{
    struct attempt *oldest = NULL;
    struct entry *entry, *next;
    HASH_ITER (hh, node->entries, entry, next) {
        struct attempt *attempt = entry->attempt;
        if (attempt->sampler.waits && attempt->sampler.carrier != number &&
            (oldest == NULL || sampler_precedes(attempt, oldest))) {
            oldest = attempt;
        }
    }
    return oldest;
}

static size_t parts_of(const struct sample *sample)
{
    return sample->gpu_count + sample->rank_count;
}

/* As many samples as there is room for; what these own stays with their attempts. */
static struct sample *collect_samples(struct node *node, int64_t number, size_t *ret_count)
{
    struct sample *samples = xalloc(LIMIT_SAMPLES * sizeof *samples);
    size_t count = 0, parts = 0;
    struct attempt *attempt;
    struct entry *entry, *next;
    HASH_ITER (hh, node->entries, entry, next) {
        sampler_unload(entry->attempt, number); /* the heartbeat may be made anew, for another connection */
    }
    while (count < LIMIT_SAMPLES && (attempt = next_sampled(node, number)) != NULL &&
           parts + parts_of(&attempt->sampler.sample) <= LIMIT_SAMPLE_GPUS + LIMIT_SAMPLE_RANKS) {
        attempt->sampler.carrier = number;
        samples[count++] = attempt->sampler.sample;
        parts += parts_of(&attempt->sampler.sample);
    }
    *ret_count = count;
    return samples;
}

static void samples_carried(struct node *node, int64_t number)
{
    struct entry *entry, *next;
    HASH_ITER (hh, node->entries, entry, next) {
        sampler_carried(entry->attempt, number);
    }
}

static void add_idle(struct node *node, struct node_attempt *attempts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = node_find(node, attempts[i].attempt_id);
        attempts[i].idle_ms = entry != NULL ? sampler_idle_ms(entry->attempt) : -1;
    }
}

static json_t *heartbeat_body(void *closure)
{
    const struct heartbeat *heartbeat = closure;
    struct node *node = heartbeat->node;
    struct heartbeat_message message = {
        .node = node->context->config.name,
        .boot_id = node->context->boot_id,
        .agent_id = node->context->agent_id,
        .seq = ++node->heartbeat_seq,
    };
    message.attempts = reconciler_list(node->reconciler, &message.attempt_count);
    add_idle(node, message.attempts, message.attempt_count);
    message.faults = node->context->faults(node->context->closure);
    message.samples = collect_samples(node, heartbeat->number, &message.sample_count);
    message.machine =
        machine_sampler_take(&node->machine, "/proc", &node->context->devices, node->context->config.sample_s,
                             heartbeat->number, clock_boot_ms());
    json_t *json = heartbeat_message_encode(&message);
    machine_sample_free(message.machine);
    free(message.samples);
    free(message.faults.items);
    free(message.attempts);
    return json;
}

static void heartbeat_done(void *closure, const struct controller_answer *answer)
{
    struct heartbeat *heartbeat = closure;
    struct node *node = heartbeat->node;
    struct heartbeat_reply reply;
    heartbeat->request = NULL;
    bool taken = answer->status / 100 == 2 && heartbeat_reply_decode(json_incref(answer->json), &reply, NULL);
    reconciler_heartbeat_done(node->reconciler, heartbeat->number, taken ? &reply : NULL, answer->sent_ms);
    if (taken) {
        heartbeat_reply_finish(&reply);
        samples_carried(node, heartbeat->number);
        token_renewal_begin(node->token_renewal);
    } else if (answer->status == 404) {
        reconciler_stranger(node->reconciler);
    }
    node_wake(node, 0);
}

static struct heartbeat *free_heartbeat(struct node *node)
{
    size_t i = 0;
    while (node->heartbeats[i].request != NULL) {
        i++; /* the reconciler never has more heartbeats under way than there are slots */
    }
    return &node->heartbeats[i];
}

void exchange_heartbeat(struct node *node, const struct reconciler_action *action)
{
    struct heartbeat *heartbeat = free_heartbeat(node);
    heartbeat->node = node;
    heartbeat->number = action->number;
    heartbeat->request = controller_send(node->context->controller, &(struct controller_call){
                                                                        .path = "/v1/agent/beat",
                                                                        .body = heartbeat_body,
                                                                        .timeout_ms = action->timeout_ms,
                                                                        .done = heartbeat_done,
                                                                        .closure = heartbeat,
                                                                    });
}

/* --- poll ----------------------------------------------------------------------------------------------- */

static json_t *poll_body(void *closure)
{
    struct node *node = closure;
    struct poll_message message = {
        .node = node->context->config.name,
        .boot_id = node->context->boot_id,
        .agent_id = node->context->agent_id,
        .version = reconciler_version(node->reconciler),
    };
    return poll_message_encode(&message);
}

/* Known attempts keep the newest order for their later steps. */
static void keep_orders(struct node *node, const struct poll_reply *reply)
{
    for (size_t i = 0; i < reply->order_count; i++) {
        struct entry *entry = node_find(node, reply->orders[i].attempt_id);
        if (entry != NULL) {
            attempt_order(entry->attempt, &reply->orders[i]);
        }
    }
}

static void poll_done(void *closure, const struct controller_answer *answer)
{
    struct node *node = closure;
    struct poll_reply reply;
    struct err err = answer->problem;
    node->polling = NULL;
    node->context->heard_us = clock_boot_us();
    if (answer->status / 100 != 2 || !poll_reply_decode(json_incref(answer->json), &reply, &err)) {
        if (node->leave.reason == NULL) { /* else it may be gone already */
            log_warning("poll refused", "status=%d problem=\"%s\"", answer->status, err.text);
        }
        reconciler_stranger(node->reconciler);
        node_wake(node, answer->status == 404 ? 0 : clock_boot_ms() + BACKOFF_MAX_MS);
        return;
    }
    keep_orders(node, &reply);
    reconciler_polled(node->reconciler, &reply);
    node_work(node); /* now, because the orders are borrowed from the reply */
    for (size_t i = 0; i < reply.stream_count; i++) {
        streams_join(node->streams, &reply.streams[i]);
    }
    recall_hear(node->recall, &reply);
    stagings_set(node->context->stagings, reply.stagings, reply.staging_count, answer->sent_ms);
    leave_look(node);
    poll_reply_finish(&reply);
}

void exchange_poll(struct node *node)
{
    node->poll_due = false;
    controller_cancel(node->polling);
    node->polling =
        controller_send(node->context->controller, &(struct controller_call){
                                                       .path = "/v1/agent/poll",
                                                       .body = poll_body,
                                                       .timeout_ms = node->park_ms + REQUEST_TIMEOUT_MS,
                                                       .persistent = true,
                                                       .done = poll_done,
                                                       .closure = node,
                                                   });
}

/* --- report --------------------------------------------------------------------------------------------- */

static json_t *report_body(void *closure)
{
    struct entry *entry = closure;
    return report_make(entry->attempt, entry->report);
}

static enum reconciler_answer understand(struct entry *entry, const struct controller_answer *answer)
{
    if (answer->status / 100 == 2) {
        return report_taken(entry->attempt, entry->report);
    }
    if (answer->problem.code == ERR_FENCED) {
        return ANSWER_FENCED;
    }
    if (answer->status == 404) {
        return ANSWER_STRANGER;
    }
    log_warning("report refused", "attempt_id=%llu kind=%s status=%d problem=\"%s\"",
                (unsigned long long)entry->attempt_id, report_kind_text(entry->report), answer->status,
                answer->problem.text);
    if (report_refused(entry->attempt, entry->report, &answer->problem)) {
        reconciler_heard(entry->node->reconciler, entry->attempt_id,
                         NEWS_DRAINED); /* so that it is reported once more */
        return ANSWER_TAKEN;
    }
    return report_taken(entry->attempt, entry->report);
}

static void report_done(void *closure, const struct controller_answer *answer)
{
    struct entry *entry = closure;
    struct node *node = entry->node;
    entry->attempt->report = NULL;
    reconciler_answered(node->reconciler, entry->attempt_id, understand(entry, answer));
    node_wake(node, 0);
    if (entry->attempt->output != NULL && entry->attempt->draining) {
        output_grown(entry->attempt->output);
    }
}

void exchange_report(struct entry *entry, enum report_kind kind)
{
    log_debug("attempt report", "attempt_id=%llu kind=%s", (unsigned long long)entry->attempt_id,
              report_kind_text(kind));
    entry->report = kind;
    entry->attempt->report = controller_post(entry->node->context->controller, "/v1/agent/report",
                                             report_body, report_done, entry);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void again_due(void *closure)
{
    exchange_register(closure);
}

void exchange_init(struct node *node)
{
    node->again = (struct loop_timer){.due = again_due, .closure = node};
    machine_sampler_init(&node->machine, "/proc");
}

void exchange_finish(struct node *node)
{
    exchange_cancel_register(node);
    controller_cancel(node->polling);
    for (size_t i = 0; i < HEARTBEATS_OUT; i++) {
        controller_cancel(node->heartbeats[i].request);
    }
    free(node->refusal);
}
