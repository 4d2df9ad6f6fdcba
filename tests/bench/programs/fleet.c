/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what simulated agents send and when. Each node has a connection of its own for its poll, like an
 * agent. Other requests (register, heartbeat, report) share connections, because ten thousand agents would
 * need as many descriptors again in this process. It sends the messages of proto/wire/messages.h, pauses
 * after a failure as agents do (full jitter), and sends the reports of an attempt one by one. channel.c
 * moves the bytes. */
#include "tests/bench/programs/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "proto/wire/messages.h"
#include "proto/wire/protocol.h"
#include "tests/bench/programs/channel.h"

#define LINES      64 /* shared connections */
#define LOOK_MS    10 /* between two looks at what is due */
#define WAIT_MS    5
#define NAME_BYTES 32
#define HOST_BYTES 65
#define NEVER      INT64_MAX

enum errand_kind { ERRAND_REGISTER, ERRAND_HEARTBEAT, ERRAND_RUNNING, ERRAND_EXITED };

struct errand {
    enum errand_kind kind;
    struct node *node;
    uint64_t number; /* the attempt id, or the word of a registration */
    struct errand *next;
};

struct node {
    struct fleet *fleet;
    char name[NAME_BYTES], boot_id[NAME_BYTES], host_id[HOST_BYTES];
    struct channel *poll;
    uint64_t version; /* of the last answer */
    uint64_t *live;   /* attempt ids, as many as slots at most */
    size_t live_count;
    int64_t poll_ms, heartbeat_ms; /* when due; NEVER: not */
    int64_t seq;
    unsigned failures;
    bool parked, told;
};

struct line {
    struct fleet *fleet;
    struct channel *channel;
    struct errand *errand; /* under way; NULL: none */
};

/* An exit whose effect is waited for. */
struct probe {
    size_t left, count, room; /* to do; done, of those there is room for */
    int64_t *taken_us, *placed_us;
    bool sent;
    int64_t sent_us, answered_us, ordered_us; /* 0: not yet */
    size_t next;                              /* node */
};

struct fleet {
    struct channel_set *set;
    struct node *nodes;
    size_t count;
    int64_t slots;
    struct line lines[LINES];
    struct errand *first, **end; /* that wait for a line */
    int64_t look_ms;
    int64_t heartbeat_every_ms; /* as the controller says */
    bool hold;
    struct probe probe;
    struct fleet_counts counts;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* --- errands --- */

static void add_errand(struct node *node, enum errand_kind kind, uint64_t number)
{
    struct errand *errand = xzalloc(sizeof *errand);
    *errand = (struct errand){.kind = kind, .node = node, .number = number};
    *node->fleet->end = errand;
    node->fleet->end = &errand->next;
}

static struct errand *take_errand(struct fleet *fleet)
{
    struct errand *errand = fleet->first;
    if (errand != NULL) {
        fleet->first = errand->next;
        if (fleet->first == NULL) {
            fleet->end = &fleet->first;
        }
    }
    return errand;
}

static json_t *registration_of(const struct node *node, uint64_t nonce)
{
    const size_t slots = (size_t)node->fleet->slots;
    struct device *devices = xzalloc(slots * sizeof *devices);
    char(*names)[NAME_BYTES] = xzalloc(slots * sizeof *names);
    for (size_t i = 0; i < slots; i++) {
        snprintf(names[i], sizeof names[i], "slot-%zu", i);
        devices[i] = (struct device){.index = (int64_t)i, .uuid = names[i], .type = "cpu", .group = -1};
    }
    const struct register_message message = {.protocol = PROTOCOL,
                                             .name = node->name,
                                             .boot_id = node->boot_id,
                                             .host_id = node->host_id,
                                             .version = "0.1.0",
                                             .address = "127.0.0.1",
                                             .slots = true,
                                             .devices = devices,
                                             .device_count = slots,
                                             .has_nonce = true,
                                             .nonce = nonce};
    json_t *json = register_message_encode(&message);
    free(names);
    free(devices);
    return json;
}

static json_t *heartbeat_of(struct node *node)
{
    struct node_attempt *attempts = xzalloc((node->live_count + 1) * sizeof *attempts);
    for (size_t i = 0; i < node->live_count; i++) {
        attempts[i] = (struct node_attempt){node->live[i], MEMBER_RUNNING};
    }
    const struct heartbeat_message message = {.node = node->name,
                                              .boot_id = node->boot_id,
                                              .seq = ++node->seq,
                                              .attempts = attempts,
                                              .attempt_count = node->live_count};
    json_t *json = heartbeat_message_encode(&message);
    free(attempts);
    return json;
}

static json_t *report_of(const struct node *node, enum report_kind kind, uint64_t attempt_id)
{
    struct rank_exit rank = {.rank = 0, .at_ms = clock_wall_ms()};
    const struct report_message message = {.node = node->name,
                                           .boot_id = node->boot_id,
                                           .attempt_id = attempt_id,
                                           .kind = kind,
                                           .at_ms = clock_wall_ms(),
                                           .ranks = kind == REPORT_EXITED ? &rank : NULL,
                                           .rank_count = kind == REPORT_EXITED ? 1 : 0,
                                           .flushed = kind == REPORT_EXITED};
    return report_message_encode(&message);
}

/* --- exits that are measured ---------------------------------------------------------------------------- */

static void forget(struct node *node, uint64_t attempt_id)
{
    for (size_t i = 0; i < node->live_count; i++) {
        if (node->live[i] == attempt_id) {
            node->live[i] = node->live[--node->live_count];
            node->fleet->counts.running--;
            return;
        }
    }
}

/* Ends an attempt of the next node that has one. */
static void begin_exit(struct fleet *fleet)
{
    struct probe *probe = &fleet->probe;
    struct node *node;
    do {
        node = &fleet->nodes[probe->next++ % fleet->count];
    } while (node->live_count == 0);
    add_errand(node, ERRAND_EXITED, node->live[0]);
    probe->sent = true;
    probe->sent_us = clock_boot_us();
    probe->answered_us = probe->ordered_us = 0;
}

static void look_at_exit(struct fleet *fleet)
{
    struct probe *probe = &fleet->probe;
    if (probe->sent && probe->answered_us != 0 && probe->ordered_us != 0) {
        probe->taken_us[probe->count] = probe->answered_us - probe->sent_us;
        probe->placed_us[probe->count++] = probe->ordered_us - probe->sent_us;
        probe->sent = false;
        probe->left--;
    }
    if (!probe->sent && probe->left > 0) {
        begin_exit(fleet);
    }
}

void fleet_hold(struct fleet *fleet)
{
    fleet->hold = true;
}

void fleet_exit(struct fleet *fleet, size_t count)
{
    struct probe *probe = &fleet->probe;
    if (fleet->counts.running == 0) {
        fail("exit", "no attempt runs");
    }
    free(probe->taken_us);
    free(probe->placed_us);
    *probe = (struct probe){.left = count, .room = count, .next = probe->next};
    probe->taken_us = xzalloc(count * sizeof *probe->taken_us);
    probe->placed_us = xzalloc(count * sizeof *probe->placed_us);
    look_at_exit(fleet);
}

size_t fleet_exits_left(const struct fleet *fleet)
{
    return fleet->probe.left;
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct fleet_exits fleet_exits(struct fleet *fleet)
{
    const struct probe *probe = &fleet->probe;
    if (probe->count > 1) {
        qsort(probe->taken_us, probe->count, sizeof *probe->taken_us, by_size);
        qsort(probe->placed_us, probe->count, sizeof *probe->placed_us, by_size);
    }
    return (struct fleet_exits){probe->count, probe->taken_us, probe->placed_us};
}

/* --- requests ------------------------------------------------------------------------------------------- */

static void go(struct line *line, struct errand *errand)
{
    struct node *node = errand->node;
    line->errand = errand;
    switch (errand->kind) {
    case ERRAND_REGISTER:
        channel_post(line->channel, "/v1/agent/register", registration_of(node, errand->number));
        return;
    case ERRAND_HEARTBEAT:
        channel_post(line->channel, "/v1/agent/beat", heartbeat_of(node));
        return;
    case ERRAND_RUNNING:
        channel_post(line->channel, "/v1/agent/report", report_of(node, REPORT_RUNNING, errand->number));
        return;
    case ERRAND_EXITED:
        channel_post(line->channel, "/v1/agent/report", report_of(node, REPORT_EXITED, errand->number));
        return;
    }
}

static void next_errand(struct line *line)
{
    struct errand *errand = channel_is_idle(line->channel) ? take_errand(line->fleet) : NULL;
    if (errand != NULL) {
        go(line, errand);
    }
}

/* --- what the controller says --- */

static void registered(struct node *node, const char *body, size_t length)
{
    struct err err;
    struct register_reply reply;
    json_t *json = json_parse(body, length, &err);
    if (json == NULL || !register_reply_decode(json, &reply, &err)) {
        fail("register", err.text);
        return;
    }
    if (reply.nonce != 0) {
        add_errand(node, ERRAND_REGISTER, reply.nonce);
    } else {
        uint32_t chance;
        random_fill(&chance, sizeof chance);
        node->fleet->heartbeat_every_ms = reply.heartbeat_ms;
        node->heartbeat_ms =
            clock_boot_ms() + chance % reply.heartbeat_ms; /* as if they had started at any time */
        node->fleet->counts.registered++;
    }
    register_reply_finish(&reply);
}

static void errand_done(struct errand *errand, int status, const char *body, size_t length)
{
    struct node *node = errand->node;
    if (status == 404) { /* a controller that does not know it */
        add_errand(node, ERRAND_REGISTER, 0);
        return;
    }
    if (status / 100 != 2) {
        fail("an errand", body);
    }
    switch (errand->kind) {
    case ERRAND_REGISTER:
        registered(node, body, length);
        return;
    case ERRAND_HEARTBEAT:
        node->fleet->counts.heartbeats++;
        return;
    case ERRAND_RUNNING:
        if (!node->fleet->hold) {
            add_errand(node, ERRAND_EXITED, errand->number);
        }
        return;
    case ERRAND_EXITED:
        forget(node, errand->number);
        node->fleet->counts.ended++;
        node->fleet->probe.answered_us = clock_boot_us();
        look_at_exit(node->fleet);
        return;
    }
}

static void line_answered(void *closure, int status, const char *body, size_t length)
{
    struct line *line = closure;
    struct errand *errand = line->errand;
    line->errand = NULL;
    errand_done(errand, status, body, length);
    free(errand);
    next_errand(line);
}

/* A heartbeat that is lost is lost; all else is said again, at the next look. */
static void line_lost(void *closure)
{
    struct line *line = closure;
    struct errand *errand = line->errand;
    line->errand = NULL;
    if (errand->kind != ERRAND_HEARTBEAT) {
        add_errand(errand->node, errand->kind, errand->number);
    }
    free(errand);
}

/* The next order for a slot can arrive before the answer to the report that has freed it. */
static size_t live_room(const struct fleet *fleet)
{
    return 2 * (size_t)fleet->slots;
}

static void obey(struct node *node, const struct poll_reply *reply)
{
    for (size_t i = 0; i < reply->order_count; i++) {
        const struct order *order = &reply->orders[i];
        if (order->phase != ORDER_RUN || node->live_count == live_room(node->fleet)) {
            fail("order", order_phase_text(order->phase));
        }
        node->live[node->live_count++] = order->attempt_id;
        node->fleet->counts.running++;
        add_errand(node, ERRAND_RUNNING, order->attempt_id);
    }
    if (reply->order_count > 0) {
        node->fleet->probe.ordered_us = clock_boot_us();
        look_at_exit(node->fleet);
    }
}

static void poll(struct node *node)
{
    const struct poll_message message = {
        .node = node->name, .boot_id = node->boot_id, .version = node->version};
    node->poll_ms = NEVER;
    channel_post(node->poll, "/v1/agent/poll", poll_message_encode(&message));
}

static void unpark(struct node *node)
{
    if (node->parked) {
        node->parked = false;
        node->fleet->counts.parked--;
    }
}

static void take_orders(struct node *node, const char *body, size_t length)
{
    struct err err;
    struct poll_reply reply;
    json_t *json = json_parse(body, length, &err);
    if (json == NULL || !poll_reply_decode(json, &reply, &err)) {
        fail("poll", err.text);
        return;
    }
    node->version = reply.version;
    node->failures = 0;
    node->fleet->counts.polls++;
    if (reply.shutdown) {
        unpark(node);
        node->told = true;
        node->fleet->counts.told++;
    } else {
        obey(node, &reply);
        poll(node);
        node->fleet->counts.parked += !node->parked;
        node->parked = true;
    }
    poll_reply_finish(&reply);
}

static int64_t backoff_ms(unsigned failures)
{
    uint32_t chance;
    int64_t most = BACKOFF_FIRST_MS << (failures < 6 ? failures : 6);
    random_fill(&chance, sizeof chance);
    return chance % ((most < BACKOFF_MAX_MS ? most : BACKOFF_MAX_MS) + 1);
}

static void poll_lost(void *closure)
{
    struct node *node = closure;
    unpark(node);
    node->fleet->counts.lost++;
    node->poll_ms = clock_boot_ms() + backoff_ms(node->failures++);
}

static void poll_answered(void *closure, int status, const char *body, size_t length)
{
    struct node *node = closure;
    if (status == 200) {
        take_orders(node, body, length);
    } else if (status == 404 || status >= 500) {
        if (status == 404) {
            add_errand(node, ERRAND_REGISTER, 0);
        }
        poll_lost(node);
    } else {
        fail("poll", body);
    }
}

/* --- the fleet --- */

static void make_node(struct fleet *fleet, size_t number)
{
    static const struct channel_hooks hooks = {poll_answered, poll_lost};
    struct node *node = &fleet->nodes[number];
    *node = (struct node){.fleet = fleet, .poll_ms = NEVER, .heartbeat_ms = NEVER};
    snprintf(node->name, sizeof node->name, "node%zu", number);
    snprintf(node->boot_id, sizeof node->boot_id, "boot-of-%zu", number);
    snprintf(node->host_id, sizeof node->host_id, "%064zx", number);
    node->live = xzalloc(live_room(fleet) * sizeof *node->live);
    node->poll = channel_create(fleet->set, &hooks, node);
}

struct fleet *fleet_create(int port, const char *token, bool tls, size_t nodes, int64_t slots)
{
    static const struct channel_hooks hooks = {line_answered, line_lost};
    struct fleet *fleet = xzalloc(sizeof *fleet);
    fleet->set = channel_set_create(port, token, tls);
    fleet->count = nodes;
    fleet->slots = slots;
    fleet->end = &fleet->first;
    fleet->nodes = xzalloc(nodes * sizeof *fleet->nodes);
    for (size_t i = 0; i < nodes; i++) {
        make_node(fleet, i);
    }
    for (size_t i = 0; i < LINES; i++) {
        fleet->lines[i].fleet = fleet;
        fleet->lines[i].channel = channel_create(fleet->set, &hooks, &fleet->lines[i]);
    }
    return fleet;
}

void fleet_destroy(struct fleet *fleet)
{
    for (size_t i = 0; i < LINES; i++) {
        channel_destroy(fleet->lines[i].channel);
        free(fleet->lines[i].errand);
    }
    for (size_t i = 0; i < fleet->count; i++) {
        channel_destroy(fleet->nodes[i].poll);
        free(fleet->nodes[i].live);
    }
    for (struct errand *errand = take_errand(fleet); errand != NULL; errand = take_errand(fleet)) {
        free(errand);
    }
    channel_set_destroy(fleet->set);
    free(fleet->probe.taken_us);
    free(fleet->probe.placed_us);
    free(fleet->nodes);
    free(fleet);
}

void fleet_register(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        add_errand(&fleet->nodes[i], ERRAND_REGISTER, 0);
    }
}

void fleet_park(struct fleet *fleet, int64_t spread_ms)
{
    const int64_t now_ms = clock_boot_ms();
    fleet->counts.told = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        struct node *node = &fleet->nodes[i];
        node->told = false;
        if (channel_is_idle(node->poll) && node->poll_ms == NEVER) {
            node->poll_ms = now_ms + spread_ms * (int64_t)i / (int64_t)fleet->count;
        }
    }
}

/* Whatever is due by now. */
static void look(struct fleet *fleet, int64_t now_ms)
{
    for (size_t i = 0; i < fleet->count; i++) {
        struct node *node = &fleet->nodes[i];
        if (node->poll_ms <= now_ms) {
            poll(node);
        }
        if (node->heartbeat_ms <= now_ms) {
            node->heartbeat_ms = now_ms + fleet->heartbeat_every_ms;
            if (!node->told) {
                add_errand(node, ERRAND_HEARTBEAT, 0);
            }
        }
    }
}

bool fleet_run(struct fleet *fleet)
{
    const int64_t now_ms = clock_boot_ms();
    if (now_ms >= fleet->look_ms) {
        fleet->look_ms = now_ms + LOOK_MS;
        look(fleet, now_ms);
    }
    for (size_t i = 0; i < LINES && fleet->first != NULL; i++) {
        next_errand(&fleet->lines[i]);
    }
    return channel_set_run(fleet->set, WAIT_MS);
}

const struct fleet_counts *fleet_counts(const struct fleet *fleet)
{
    return &fleet->counts;
}
