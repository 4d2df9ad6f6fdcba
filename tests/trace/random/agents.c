/* SPDX-License-Identifier: Apache-2.0 */
/* The ground truth of the random walk: what each simulated node really runs. Every rank that starts is
 * checked against all others that run. walk.c decides when things happen. */
#include "tests/trace/random/agents.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MAX     64
#define RANKS_MAX    16
#define REPORTS_KEPT 32
#define NEEDS        3

enum held_state { HELD_CLAIMED, HELD_PREPARED, HELD_RUNNING, HELD_EXITED, HELD_DECLINED };

/* An attempt as its node knows it. */
struct held {
    uint64_t attempt_id;
    char job_id[17];
    enum held_state state;
    bool alone;  /* the gang is on this node only */
    bool go;     /* START or RUN was read */
    bool stop;   /* STOP was read, or the lease is over */
    bool failed; /* a rank has failed */
    bool kept;   /* a rank of the gang has failed, and its nodes are kept until STOP */
    bool function;
    int64_t first_rank, local_ranks, lease_ms;
    int64_t devices[RANKS_MAX];
    size_t device_count;
};

/* A report that was taken, to be sent again. */
struct sent {
    char name[8], boot[32];
    struct report_message report;
    struct rank_exit ranks[RANKS_MAX];
    struct rank_result results[RANKS_MAX];
};

struct agent {
    char name[8], host[8], boot[32];
    const char *type;
    bool reserved;
    int64_t gpus, boots, heartbeat_ms;
    struct held held[HELD_MAX];
    size_t held_count;
    uint64_t *seen;
    size_t seen_count;
    bool ready[NEEDS];
    int64_t broken; /* index of a device that nobody can have; -1: none */
};

struct agents {
    struct cluster *cluster;
    struct chance *chance;
    bool healthy;
    struct agent all[AGENT_COUNT];
    struct sent sent[REPORTS_KEPT];
    size_t sent_count;
};

/* --- chance --------------------------------------------------------------------------------------------- */

/* Something goes wrong with this chance, but not when all is well. */
static bool mishap(struct agents *agents, unsigned percent)
{
    return chance_of(agents->chance, percent) && !agents->healthy;
}

/* --- needs ---------------------------------------------------------------------------------------------- */

static const char *const needs[NEEDS] = {"torch data", "numpy data", "code"};

/* Which need a job of this number has; NEEDS: none. */
static size_t need_of(int number)
{
    return number % 7 < NEEDS ? (size_t)(number % 7) : NEEDS;
}

const char *agents_need(int number)
{
    return need_of(number) < NEEDS ? needs[need_of(number)] : NULL;
}

static size_t need_index(const char *key)
{
    size_t index = 0;
    while (index < NEEDS && strcmp(needs[index], key) != 0) {
        index++;
    }
    assert(index < NEEDS);
    return index;
}

/* --- what is held --------------------------------------------------------------------------------------- */

static struct held *find(struct agent *agent, uint64_t attempt_id)
{
    for (size_t i = 0; i < agent->held_count; i++) {
        if (agent->held[i].attempt_id == attempt_id) {
            return &agent->held[i];
        }
    }
    return NULL;
}

static void drop(struct agent *agent, struct held *held)
{
    *held = agent->held[--agent->held_count];
}

static bool was_seen(const struct agent *agent, uint64_t attempt_id)
{
    for (size_t i = 0; i < agent->seen_count; i++) {
        if (agent->seen[i] == attempt_id) {
            return true;
        }
    }
    return false;
}

static void claim(struct agent *agent, const struct order *order)
{
    assert(agent->held_count < HELD_MAX && order->device_count <= RANKS_MAX);
    const char *name = order->array_id != NULL ? order->array_id : order->job_id;
    size_t environment = need_of(atoi(name + 1));
    assert(environment == NEEDS || agent->ready[environment] || order->phase == ORDER_STOP);
    agent->seen = xrealloc(agent->seen, (agent->seen_count + 1) * sizeof *agent->seen);
    agent->seen[agent->seen_count++] = order->attempt_id;
    struct held *held = &agent->held[agent->held_count++];
    *held = (struct held){
        .attempt_id = order->attempt_id,
        .alone = order->nodes == 1,
        .go = order->phase == ORDER_RUN,
        .first_rank = order->first_rank,
        .local_ranks = order->local_ranks,
        .lease_ms = order->lease_ms,
        .device_count = order->device_count,
    };
    held->function = name[0] == 'f';
    memcpy(held->job_id, order->job_id, sizeof held->job_id);
    memcpy(held->devices, order->devices, order->device_count * sizeof *order->devices);
}

static bool lease_is_over(const struct agents *agents, const struct agent *agent, const struct held *held)
{
    return held->lease_ms > 0 &&
           agents->cluster->now_ms - agent->heartbeat_ms > held->lease_ms - held->lease_ms / 20;
}

/* Never two live attempts of one job, never two on one device. */
static void check_start(const struct agents *agents, const struct agent *agent, const struct held *starting)
{
    for (size_t i = 0; i < AGENT_COUNT; i++) {
        const struct agent *other = &agents->all[i];
        for (size_t j = 0; j < other->held_count; j++) {
            const struct held *held = &other->held[j];
            bool same_job =
                strcmp(held->job_id, starting->job_id) == 0 && held->attempt_id != starting->attempt_id;
            assert(held->state != HELD_RUNNING || !same_job);
            for (size_t k = 0; other == agent && held != starting && k < held->device_count; k++) {
                for (size_t l = 0; l < starting->device_count; l++) {
                    assert(held->state != HELD_RUNNING || held->devices[k] != starting->devices[l]);
                }
            }
        }
    }
}

/* --- messages ------------------------------------------------------------------------------------------- */

static void register_agent(struct agents *agents, struct agent *agent)
{
    struct node_ask ask = {.name = agent->name,
                           .type = agent->type,
                           .gpus = agent->gpus,
                           .reserved = agent->reserved,
                           .host = agent->host,
                           .boot = agent->boot,
                           .address = agent->name[0] == 'g' ? "127.0.0.1" : "10.0.0.1"};
    if (agent->name[0] != 'b') { /* that one is of an earlier version */
        ask.cpus = agent->gpus * 4;
        ask.memory_gib = agent->gpus * 16;
    }
    struct node_attempt listed[HELD_MAX];
    for (size_t i = 0; i < agent->held_count; i++) {
        static const enum member_state told[] = {MEMBER_ORDERED, MEMBER_PREPARED, MEMBER_RUNNING,
                                                 MEMBER_EXITED, MEMBER_ORDERED};
        listed[i] = (struct node_attempt){.attempt_id = agent->held[i].attempt_id,
                                          .state = told[agent->held[i].state]};
    }
    ask.attempts = listed;
    ask.attempt_count = agent->held_count;
    if (cluster_register(agents->cluster, &ask) == ERR_NONE) {
        agent->heartbeat_ms = agents->cluster->now_ms;
    }
}

static void keep_sent(struct agents *agents, const struct report_message *report)
{
    struct sent *sent = &agents->sent[agents->sent_count++ % REPORTS_KEPT];
    sent->report = *report;
    snprintf(sent->name, sizeof sent->name, "%s", report->node);
    snprintf(sent->boot, sizeof sent->boot, "%s", report->boot_id);
    for (size_t i = 0; i < report->rank_count; i++) {
        sent->ranks[i] = report->ranks[i];
    }
    for (size_t i = 0; i < report->result_count; i++) {
        sent->results[i] = report->results[i];
    }
    sent->report.node = sent->name;
    sent->report.boot_id = sent->boot;
    sent->report.ranks = sent->ranks;
    sent->report.results = sent->results;
}

/* true: taken and the answer arrived. Fenced attempts are killed. */
static bool tell(struct agents *agents, struct agent *agent, struct held *held, struct report_message *report)
{
    report->node = agent->name;
    report->boot_id = agent->boot;
    report->attempt_id = held->attempt_id;
    if (mishap(agents, 5)) {
        return false; /* lost on the way there */
    }
    enum err_code code =
        cluster_step(agents->cluster, &(struct input){.kind = INPUT_REPORT, .report = report});
    assert(code == ERR_NONE || code == ERR_FENCED || code == ERR_NOT_FOUND);
    if (code == ERR_NOT_FOUND) {
        register_agent(agents, agent);
        return false;
    }
    if (code == ERR_FENCED) {
        drop(agent, held);
        return false;
    }
    keep_sent(agents, report);
    return !mishap(agents, 5); /* or on the way back */
}

static void tell_prepared(struct agents *agents, struct agent *agent, struct held *held)
{
    struct report_message report = {.kind = REPORT_PREPARED, .address = "10.0.0.1", .master_port = 20000};
    held->state = HELD_PREPARED;
    tell(agents, agent, held, &report);
}

static void tell_declined(struct agents *agents, struct agent *agent, struct held *held)
{
    struct report_message report = {.kind = REPORT_DECLINED, .cause = CAUSE_DECLINED};
    held->state = HELD_DECLINED; /* for good, whether or not anybody hears of it */
    if (tell(agents, agent, held, &report)) {
        drop(agent, held);
    }
}

/* What ranks that ended left behind: exceptions, or values, of which some may be missing. */
static void leave_results(struct agents *agents, const struct held *held, struct report_message *report)
{
    static const uint8_t digest[32] = {7};
    for (size_t i = 0; i < report->rank_count; i++) {
        bool good = report->ranks[i].code == 0;
        if (!held->stop && !mishap(agents, good ? 5 : 50)) {
            report->results[report->result_count++] =
                (struct rank_result){.rank = report->ranks[i].rank,
                                     .kind = good ? RESULT_VALUE : RESULT_EXCEPTION,
                                     .size = 1,
                                     .digest = digest,
                                     .bytes = chance_of(agents->chance, 50) ? "p" : NULL};
        }
    }
}

/* ran: its ranks were started. Whether it ends well is up to chance and to what happened to it. */
static void tell_exited(struct agents *agents, struct agent *agent, struct held *held, bool ran)
{
    struct rank_exit exits[RANKS_MAX];
    struct rank_result results[RANKS_MAX];
    struct report_message report = {
        .kind = REPORT_EXITED, .ranks = exits, .results = results, .flushed = !mishap(agents, 25)};
    bool bad = held->failed || (!held->stop && mishap(agents, 10));
    for (int64_t i = 0; ran && i < held->local_ranks; i++) {
        exits[report.rank_count++] = (struct rank_exit){.rank = held->first_rank + i,
                                                        .code = held->stop ? 143 : bad,
                                                        .by_us = held->stop && !held->failed};
    }
    if (held->function) {
        leave_results(agents, held, &report);
    }
    report.cause = !ran && !held->stop ? CAUSE_SHIM_LOST : CAUSE_NONE;
    held->state = HELD_EXITED;
    if (tell(agents, agent, held, &report) && report.flushed) {
        drop(agent, held);
    }
}

static void tell_flushed(struct agents *agents, struct agent *agent, struct held *held)
{
    struct report_message report = {.kind = REPORT_EXITED, .flushed = true};
    if (tell(agents, agent, held, &report)) {
        drop(agent, held);
    }
}

static void tell_failed(struct agents *agents, struct agent *agent, struct held *held)
{
    struct rank_exit exit = {.rank = held->first_rank, .code = 1};
    struct report_message report = {.kind = REPORT_FAILED, .ranks = &exit, .rank_count = 1};
    report.cause = chance_of(agents->chance, 20) ? CAUSE_PORT_TAKEN : CAUSE_RANK_FAILED;
    held->failed = true;
    tell(agents, agent, held, &report);
}

static void start_ranks(struct agents *agents, struct agent *agent, struct held *held)
{
    if (lease_is_over(agents, agent, held)) {
        tell_declined(agents, agent, held);
        return;
    }
    check_start(agents, agent, held);
    held->state = HELD_RUNNING;
    if (!mishap(agents, 20)) {
        struct report_message report = {.kind = REPORT_RUNNING};
        tell(agents, agent, held, &report);
    }
}

/* --- what one agent does -------------------------------------------------------------------------------- */

static void go_on(struct agents *agents, struct agent *agent, struct held *held)
{
    switch (held->state) {
    case HELD_CLAIMED:
        if (held->stop) {
            tell_exited(agents, agent, held, false);
        } else if (mishap(agents, 10)) {
            tell_declined(agents, agent, held);
        } else if (held->alone) {
            start_ranks(agents, agent, held);
        } else {
            tell_prepared(agents, agent, held);
        }
        return;
    case HELD_PREPARED:
        if (held->stop || mishap(agents, 3)) {
            tell_exited(agents, agent, held, false);
        } else if (held->go) {
            start_ranks(agents, agent, held);
        } else {
            tell_prepared(agents, agent, held);
        }
        return;
    case HELD_RUNNING:
        if (!held->failed && !held->stop && mishap(agents, 15)) {
            tell_failed(agents, agent, held);
        } else if (!held->kept || held->stop || mishap(agents, 10)) {
            tell_exited(agents, agent, held, true);
        }
        return;
    case HELD_EXITED:
        tell_flushed(agents, agent, held);
        return;
    case HELD_DECLINED:
        tell_declined(agents, agent, held);
        return;
    }
}

/* An order for an attempt id that is not held. One that was seen is refused. */
static void take_new(struct agents *agents, struct agent *agent, const struct order *order)
{
    bool seen = was_seen(agent, order->attempt_id);
    claim(agent, order);
    struct held *held = &agent->held[agent->held_count - 1];
    held->stop = order->phase == ORDER_STOP;
    if (seen || order->phase == ORDER_START) {
        tell_exited(agents, agent, held, false);
    }
}

static void poll_orders(struct agents *agents, struct agent *agent)
{
    struct node_orders *orders = core_orders(agents->cluster->core, agent->name);
    bool mine = orders != NULL && strcmp(orders->boot_id, agent->boot) == 0;
    for (size_t i = agent->held_count; mine && i > 0; i--) {
        bool live = false;
        for (size_t j = 0; j < orders->count; j++) {
            live = live || orders->items[j].order.attempt_id == agent->held[i - 1].attempt_id;
        }
        if (!live) {
            drop(agent, &agent->held[i - 1]);
        }
    }
    for (size_t i = 0; mine && i < orders->count; i++) {
        const struct order *order = &orders->items[i].order;
        struct held *held = find(agent, order->attempt_id);
        if (held == NULL) {
            take_new(agents, agent, order);
        } else {
            held->go = held->go || order->phase == ORDER_START;
            held->stop = held->stop || order->phase == ORDER_STOP;
            held->kept = order->kept;
        }
    }
    node_orders_destroy(orders);
}

static enum staging_state get_ready(struct agents *agents, struct agent *agent,
                                    struct staging_message *message)
{
    if (!mishap(agents, 25)) {
        agent->ready[need_index(message->key)] = true;
        return STAGING_READY;
    }
    message->by_user = chance_of(agents->chance, 30);
    message->lasting = chance_of(agents->chance, 20);
    message->text = "no space left";
    return STAGING_FAILED;
}

/* Answers one of the stagings that are ordered, or one that is not ordered any more. */
static void stage_one(struct agents *agents, struct agent *agent)
{
    struct node_orders *orders = core_orders(agents->cluster->core, agent->name);
    bool mine = orders != NULL && strcmp(orders->boot_id, agent->boot) == 0;
    size_t count = mine ? orders->staging_count : 0;
    struct staging_message message = {.boot_id = agent->boot};
    if (count > 0) {
        message.key = orders->stagings[chance_below(agents->chance, count)].key;
    } else if (mine && mishap(agents, 10)) {
        message.key = needs[chance_below(agents->chance, NEEDS)];
    }
    if (message.key != NULL) {
        message.state = get_ready(agents, agent, &message);
        cluster_staging(agents->cluster, agent->name, &message);
    }
    node_orders_destroy(orders);
}

/* What was taken before must change nothing. */
static void repeat(struct agents *agents)
{
    if (agents->sent_count == 0) {
        return;
    }
    size_t kept = agents->sent_count < REPORTS_KEPT ? agents->sent_count : REPORTS_KEPT;
    struct sent *sent = &agents->sent[chance_below(agents->chance, kept)];
    cluster_step(agents->cluster, &(struct input){.kind = INPUT_REPORT, .report = &sent->report});
    assert(agents->cluster->step.change_count == 0 && agents->cluster->step.dirty_count == 0);
}

static void reboot(struct agents *agents, struct agent *agent)
{
    snprintf(agent->boot, sizeof agent->boot, "boot-%lld", (long long)++agent->boots);
    agent->held_count = 0;
    agent->seen_count = 0;
    memset(agent->ready, 0, sizeof agent->ready);
    register_agent(agents, agent);
}

void agents_act(struct agents *agents, size_t which, unsigned kind)
{
    struct agent *agent = &agents->all[which];
    switch (kind) {
    case 0:
        poll_orders(agents, agent);
        return;
    case 1:
        if (agent->held_count > 0) {
            go_on(agents, agent, &agent->held[chance_below(agents->chance, agent->held_count)]);
        }
        return;
    case 2:
        repeat(agents);
        return;
    case 3:
        if (chance_of(agents->chance, 20)) {
            agent->held_count = 0; /* its shims died, too */
        }
        register_agent(agents, agent);
        return;
    case 5:
        stage_one(agents, agent);
        return;
    default:
        reboot(agents, agent);
        return;
    }
}

/* The device that is broken at the moment, whoever has it; -1: none. */
static int64_t break_or_mend(struct agents *agents, struct agent *agent)
{
    if (agents->healthy) {
        agent->broken = -1;
    } else if (chance_of(agents->chance, 20)) {
        bool breaks = chance_of(agents->chance, 50);
        agent->broken = breaks ? (int64_t)chance_below(agents->chance, (uint64_t)agent->gpus) : -1;
    }
    return agent->broken;
}

/* All that the agent holds; its GPUs are used, idle, or it cannot tell. */
static size_t list_held(struct agents *agents, const struct agent *agent, struct node_attempt *listed)
{
    for (size_t i = 0; i < agent->held_count; i++) {
        int64_t idle_ms = (int64_t)chance_below(agents->chance, 4) * 20000 - 1;
        listed[i] = (struct node_attempt){.attempt_id = agent->held[i].attempt_id,
                                          .state = MEMBER_RUNNING,
                                          .idle_ms = agents->healthy ? 0 : idle_ms};
    }
    return agent->held_count;
}

void agents_heartbeat(struct agents *agents, unsigned percent)
{
    for (size_t i = 0; i < AGENT_COUNT; i++) {
        struct agent *agent = &agents->all[i];
        if (chance_of(agents->chance, percent) || agents->healthy) {
            struct device_fault fault = {.index = break_or_mend(agents, agent), .reason = "GPU is lost"};
            struct node_attempt listed[HELD_MAX];
            const struct heartbeat_message message = {
                .node = agent->name,
                .boot_id = agent->boot,
                .attempts = listed,
                .attempt_count = list_held(agents, agent, listed),
                .faults = {.told = true, .items = &fault, .count = fault.index >= 0 ? 1 : 0}};
            if (cluster_step(agents->cluster,
                             &(struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &message}) == ERR_NONE) {
                agent->heartbeat_ms = agents->cluster->now_ms;
            } else {
                register_agent(agents, agent);
            }
        }
        for (size_t j = 0; j < agent->held_count; j++) {
            struct held *held = &agent->held[j];
            if (held->state == HELD_RUNNING && lease_is_over(agents, agent, held)) {
                held->state = HELD_EXITED; /* killed by its shim */
            }
        }
    }
}

void agents_fence(struct agents *agents, size_t which)
{
    agents->all[which].held_count = 0;
    fence(agents->cluster, agents->all[which].name);
}

void agents_remove(struct agents *agents, size_t which)
{
    agents->all[which].held_count = 0;
    remove_node(agents->cluster, agents->all[which].name, true);
}

void agents_forget_reports(struct agents *agents)
{
    agents->sent_count = 0;
}

const char *agents_name(const struct agents *agents, size_t which)
{
    return agents->all[which].name;
}

const char *agents_host(const struct agents *agents, size_t which)
{
    return agents->all[which].host;
}

void agents_heal(struct agents *agents)
{
    agents->healthy = true;
    for (size_t i = 0; i < AGENT_COUNT; i++) {
        register_agent(agents, &agents->all[i]);
        resume(agents->cluster, agents->all[i].name);
    }
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct agents *agents_create(struct cluster *cluster, struct chance *chance)
{
    static const struct {
        const char *host, *type;
        int64_t gpus;
        bool reserved;
    } fleet[AGENT_COUNT] = {
        {"desk", "A10", 2, false}, {"rack", "A10", 4, false},  {"rack", "A10", 4, false},
        {"far", "H100", 8, false}, {"near", "H100", 2, false}, {"kept", "H100", 4, true},
        {"desk", "a10", 1, false},
    };
    struct agents *agents = xzalloc(sizeof *agents);
    agents->cluster = cluster;
    agents->chance = chance;
    for (size_t i = 0; i < AGENT_COUNT; i++) {
        struct agent *agent = &agents->all[i];
        snprintf(agent->name, sizeof agent->name, "%c", (char)('a' + i));
        snprintf(agent->host, sizeof agent->host, "%s", fleet[i].host);
        agent->type = fleet[i].type;
        agent->gpus = fleet[i].gpus;
        agent->reserved = fleet[i].reserved;
        agent->broken = -1;
        reboot(agents, agent);
    }
    return agents;
}

void agents_destroy(struct agents *agents)
{
    for (size_t i = 0; i < AGENT_COUNT; i++) {
        free(agents->all[i].seen);
    }
    free(agents);
}
