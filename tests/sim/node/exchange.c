/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a simulated agent, in place of agent/node/exchange.c: the real messages, encoded and
 * decoded, and the meaning of their answers for the reconciler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/protocol.h"
#include "tests/sim/node/host_parts.h"

#define HOST_CPUS_EACH   8 /* for each device */
#define HOST_MEMORY_EACH (32 * GIB)

static char *text_and_free(json_t *json)
{
    char *text = json_text(json);
    json_decref(json);
    return text;
}

static uint64_t call(struct host *host, enum wire_kind kind, json_t *body, int64_t timeout_ms,
                     bool persistent, void (*done)(void *, const struct wire_answer *), void *closure)
{
    return wire_send(host->sim->wire, &(struct wire_call){.link = &host->link,
                                                          .kind = kind,
                                                          .body = text_and_free(body),
                                                          .who = "node",
                                                          .timeout_ms = timeout_ms,
                                                          .persistent = persistent,
                                                          .done = done,
                                                          .closure = closure,
                                                          .owner = &host->agent});
}

static int64_t sent_at(const struct host *host, const struct wire_answer *answer)
{
    return clock_at(&host->clock, answer->sent_ms);
}

static json_t *parse(const char *body)
{
    return body != NULL ? json_parse(body, strlen(body), NULL) : NULL;
}

/* --- register ------------------------------------------------------------------------------------------- */

static void register_again(void *closure)
{
    exchange_register(closure);
}

static void register_done(void *closure, const struct wire_answer *answer)
{
    struct host *host = closure;
    struct register_reply reply;
    struct err err;
    json_t *json = parse(answer->body);
    if (answer->status / 100 != 2 || json == NULL || !register_reply_decode(json, &reply, &err)) {
        /* after a fast reboot registration is refused until the controller gives the former agent up */
        bool wrong = answer->status / 100 == 4 && answer->status != 409;
        world_check(&host->sim->world, !wrong, "protocol", "%s may not register: %d, %s", host->name,
                    answer->status, answer->body != NULL ? answer->body : "");
        world_in(&host->sim->world, BACKOFF_MAX_MS, register_again, host, &host->agent);
        return;
    }
    if (reply.nonce != 0) {
        host->nonce = reply.nonce;
        register_reply_finish(&reply);
        exchange_register(host);
        return;
    }
    reconciler_registered(host->reconciler, &reply, sent_at(host, answer));
    register_reply_finish(&reply);
    host_wake(host, 0);
}

void exchange_register(struct host *host)
{
    char address[48];
    char uuids[RANKS_MAX][64];
    struct device devices[RANKS_MAX];
    snprintf(address, sizeof address, "10.0.0.%zu", host->index + 1);
    for (int64_t i = 0; i < host->device_count; i++) {
        snprintf(uuids[i], sizeof uuids[i], "GPU-%zu-%lld", host->index, (long long)i);
        devices[i] =
            (struct device){.index = i, .uuid = uuids[i], .type = host->type, .memory_bytes = 1, .group = -1};
    }
    struct register_message message = {.name = host->name,
                                       .boot_id = host->boot_id,
                                       .agent_id = host->name,
                                       .host_id = host->name,
                                       .version = GPUCTL_VERSION,
                                       .protocol = PROTOCOL,
                                       .address = address,
                                       .reserved = host->reserved,
                                       .isolation = ISOLATION_CGROUP2,
                                       .millicpus = host->device_count * HOST_CPUS_EACH * 1000,
                                       .memory_bytes = host->device_count * HOST_MEMORY_EACH,
                                       .devices = devices,
                                       .device_count = (size_t)host->device_count,
                                       .has_nonce = true,
                                       .nonce = host->nonce};
    message.attempts = reconciler_list(host->reconciler, &message.attempt_count);
    wire_cancel(host->sim->wire, host->polling);
    host->polling = 0;
    call(host, WIRE_REGISTER, register_message_encode(&message), REQUEST_TIMEOUT_MS, true, register_done,
         host);
    free(message.attempts);
}

/* --- heartbeat ------------------------------------------------------------------------------------------ */

/* A heartbeat under way. */
struct beating {
    struct host *host;
    int64_t number;
};

static void heartbeat_done(void *closure, const struct wire_answer *answer)
{
    const struct beating *beating = closure;
    struct host *host = beating->host;
    struct heartbeat_reply reply;
    json_t *json = answer->status / 100 == 2 ? parse(answer->body) : NULL;
    bool taken = json != NULL && heartbeat_reply_decode(json, &reply, NULL);
    reconciler_heartbeat_done(host->reconciler, beating->number, taken ? &reply : NULL,
                              sent_at(host, answer));
    if (taken) {
        heartbeat_reply_finish(&reply);
    } else if (answer->status == 404) {
        reconciler_stranger(host->reconciler);
    }
    host_wake(host, 0);
}

void exchange_heartbeat(struct host *host, const struct reconciler_action *action)
{
    struct heartbeat_message message = {
        .node = host->name, .boot_id = host->boot_id, .agent_id = host->name, .seq = ++host->heartbeats};
    struct beating *beating = world_keep(&host->sim->world, sizeof *beating);
    *beating = (struct beating){host, action->number};
    message.attempts = reconciler_list(host->reconciler, &message.attempt_count);
    call(host, WIRE_HEARTBEAT, heartbeat_message_encode(&message), action->timeout_ms, false, heartbeat_done,
         beating);
    free(message.attempts);
}

/* --- staging -------------------------------------------------------------------------------------------- */

struct building {
    struct host *host;
    size_t index;
};

static void staging_told(void *closure, const struct wire_answer *answer)
{
    struct host *host = closure;
    if (answer->status == 404) {
        reconciler_stranger(host->reconciler);
        host_wake(host, 0);
    }
}

static void built(void *closure)
{
    struct building building = *(struct building *)closure;
    struct host *host = building.host;
    struct world *world = &host->sim->world;
    struct need_state *need = &host->needs[building.index];
    need->busy = false;
    struct staging_message message = {
        .node = host->name, .boot_id = host->boot_id, .key = need->key, .state = STAGING_READY};
    if (world_mishap(world, 200)) {
        world_fault(world, "%s: cannot build an environment", host->name);
        message.state = STAGING_FAILED;
        message.text = "no space left on device";
        message.by_user = world_of(world, 10);
    }
    need->ready = message.state == STAGING_READY;
    call(host, WIRE_STAGING, staging_message_encode(&message), REQUEST_TIMEOUT_MS, true, staging_told, host);
}

static size_t need_index(struct host *host, const char *key)
{
    for (size_t i = 0; i < host->need_count; i++) {
        if (strcmp(host->needs[i].key, key) == 0) {
            return i;
        }
    }
    host->needs = xrealloc(host->needs, (host->need_count + 1) * sizeof *host->needs);
    host->needs[host->need_count] = (struct need_state){.key = xstrdup(key)};
    return host->need_count++;
}

static void build(struct host *host, const struct staging *staging)
{
    struct world *world = &host->sim->world;
    size_t index = need_index(host, staging->key);
    struct need_state *need = &host->needs[index];
    if (need->busy) {
        return;
    }
    need->busy = true;
    struct building *building = world_keep(&host->sim->world, sizeof *building);
    *building = (struct building){host, index};
    world_in(world, need->ready ? 1 : world_between(world, 500, 20000), built, building, &host->agent);
}

/* --- poll ----------------------------------------------------------------------------------------------- */

static void poll_done(void *closure, const struct wire_answer *answer)
{
    struct host *host = closure;
    struct poll_reply reply;
    struct err err;
    json_t *json = parse(answer->body);
    host->polling = 0;
    if (answer->status / 100 != 2 || json == NULL || !poll_reply_decode(json, &reply, &err)) {
        reconciler_stranger(host->reconciler);
        host_wake(host, answer->status == 404 ? 0 : BACKOFF_MAX_MS);
        return;
    }
    reconciler_polled(host->reconciler, &reply);
    host_work(host); /* now, because the orders are borrowed from the reply */
    for (size_t i = 0; i < reply.staging_count; i++) {
        build(host, &reply.stagings[i]);
    }
    poll_reply_finish(&reply);
}

void exchange_poll(struct host *host)
{
    const struct poll_message message = {.node = host->name,
                                         .boot_id = host->boot_id,
                                         .agent_id = host->name,
                                         .version = reconciler_version(host->reconciler)};
    wire_cancel(host->sim->wire,
                host->polling); /* cancels a pending poll: two polls would answer each other for ever */
    host->polling = call(host, WIRE_POLL, poll_message_encode(&message), POLL_PARK_MS + REQUEST_TIMEOUT_MS,
                         true, poll_done, host);
}

/* --- report --------------------------------------------------------------------------------------------- */

static void drained(void *closure)
{
    struct piece *piece = closure;
    piece->flushed = true;
    piece_heard(piece, NEWS_DRAINED);
}

static enum reconciler_answer understand(struct piece *piece, enum report_kind kind,
                                         const struct wire_answer *answer)
{
    struct world *world = &piece->host->sim->world;
    if (answer->status == 404) {
        return ANSWER_STRANGER;
    }
    if (answer->status == 409) {
        return ANSWER_FENCED;
    }
    world_check(world, answer->status / 100 == 2, "protocol", "a %s report of %s was answered with %d: %s",
                report_kind_text(kind), piece->host->name, answer->status,
                answer->body != NULL ? answer->body : "");
    if (kind != REPORT_EXITED) {
        return ANSWER_TAKEN;
    }
    if (piece->tails) {
        return ANSWER_FLUSHED;
    }
    world_in(world, world_between(world, 10, 30000), drained, piece, &piece->host->agent);
    return ANSWER_TAKEN;
}

/* The subject of a report under way. */
struct reporting {
    struct host *host;
    uint64_t attempt_id;
    enum report_kind kind;
};

static void report_done(void *closure, const struct wire_answer *answer)
{
    const struct reporting *reporting = closure;
    struct host *host = reporting->host;
    struct piece *piece = piece_find(host, reporting->attempt_id);
    if (piece != NULL) {
        reconciler_answered(host->reconciler, reporting->attempt_id,
                            understand(piece, reporting->kind, answer));
        host_wake(host, 0);
    }
}

/* Lists the values of a function's ranks: a pickle each, already stored as a blob. */
static size_t fill_results(const struct piece *piece, struct rank_result *results,
                           char (*hashes)[HASH_HEX + 1])
{
    size_t count = 0;
    for (size_t i = 0; piece->function && piece->recorded && i < piece->exit_count; i++) {
        char value[64];
        if (piece->exits[i].code == 0) {
            snprintf(value, sizeof value, "%llu/%lld", (unsigned long long)piece->attempt_id,
                     (long long)piece->exits[i].rank);
            hash_hex(value, strlen(value), hashes[count]);
            results[count] = (struct rank_result){
                .rank = piece->exits[i].rank, .kind = RESULT_VALUE, .size = 10, .hash = hashes[count]};
            count++;
        }
    }
    return count;
}

static int by_rank(const void *a, const void *b)
{
    const struct rank_exit *left = a, *right = b;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

static void fill_exited(struct piece *piece, struct report_message *message)
{
    struct world *world = &piece->host->sim->world;
    bool user = piece->cause == CAUSE_NONE || piece->cause == CAUSE_RANK_FAILED;
    message->cause = user && piece->failed ? CAUSE_RANK_FAILED : piece->cause;
    if (piece->recorded) {
        qsort(piece->exits, piece->exit_count, sizeof piece->exits[0], by_rank);
        message->ranks = piece->exits;
        message->rank_count = piece->exit_count;
    }
    piece->tails = piece->flushed || !world_mishap(world, 200);
    message->flushed = piece->tails;
}

void exchange_report(struct piece *piece, enum report_kind kind)
{
    struct host *host = piece->host;
    struct rank_result results[RANKS_MAX];
    char hashes[RANKS_MAX][HASH_HEX + 1];
    struct report_message message = {.node = host->name,
                                     .boot_id = host->boot_id,
                                     .agent_id = host->name,
                                     .attempt_id = piece->attempt_id,
                                     .kind = kind,
                                     .results = results};
    switch (kind) {
    case REPORT_PREPARED:
        message.address = piece->node_rank == 0 ? "10.0.0.9" : NULL;
        message.master_port = piece->node_rank == 0 ? 20000 : 0;
        break;
    case REPORT_DECLINED:
        message.cause = CAUSE_DECLINED;
        break;
    case REPORT_RUNNING:
        message.at_ms = world_wall_ms(&host->sim->world);
        break;
    case REPORT_FAILED:
        message.cause = CAUSE_RANK_FAILED;
        message.ranks = &piece->first_failed;
        message.rank_count = 1;
        break;
    case REPORT_EXITED:
        fill_exited(piece, &message);
        message.result_count = fill_results(piece, results, hashes);
        break;
    case REPORT_KIND_COUNT:
        break;
    }
    struct reporting *reporting = world_keep(&host->sim->world, sizeof *reporting);
    *reporting = (struct reporting){host, piece->attempt_id, kind};
    call(host, WIRE_REPORT, report_message_encode(&message), REQUEST_TIMEOUT_MS, true, report_done,
         reporting);
}
