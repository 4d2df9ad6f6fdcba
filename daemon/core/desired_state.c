/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the orders of a node: what it should do for each attempt that it should hold. Orders follow from
 * the state alone, so a restart gives the same ones. The HTTP thread sends them. */
#include <stdio.h>
#include <string.h>

#include "daemon/core/core.h"
#include "daemon/core/model/state.h"
#include "daemon/core/quota/account_state.h"
#include "proto/limits.h"

/* An exited member gets STOP, so that an agent that forgot it reports the exit again; this alone does not
 * raise the version. */
static enum order_phase phase_of(const struct member *member)
{
    const struct attempt *attempt = member->attempt;
    if (member->state == MEMBER_EXITED) {
        return ORDER_STOP;
    }
    switch (attempt->state) {
    case ATTEMPT_RESERVED:
    case ATTEMPT_PREPARING:
    case ATTEMPT_PREPARED:
        return ORDER_PREPARE;
    case ATTEMPT_STARTED:
    case ATTEMPT_KEPT:
        return attempt->member_count > 1 ? ORDER_START : ORDER_RUN;
    case ATTEMPT_STOPPING:
    case ATTEMPT_FLUSHING:
        return ORDER_STOP;
    case ATTEMPT_ENDED:
    case ATTEMPT_STATE_COUNT:
        break;
    }
    abort();
}

/* Users may set the time for ranks to end properly; ranks of a failed gang have no use for it. */
static int64_t grace_of(const struct attempt *attempt)
{
    bool asked = attempt->cause == CAUSE_CANCELED || attempt->cause == CAUSE_TIME_LIMIT ||
                 attempt->cause == CAUSE_PREEMPTED;
    return asked ? attempt->job->grace_ms : FAILED_GRACE_MS;
}

/* The signal for running ranks before their limit, or instead of TERM when they are preempted. */
static enum early_signal signal_of(const struct attempt *attempt, enum order_phase phase)
{
    switch (phase) {
    case ORDER_START:
    case ORDER_RUN:
        return attempt->warned_ms != 0 ? attempt->job->early_signal.signal : EARLY_NONE;
    case ORDER_STOP:
        return attempt->cause == CAUSE_PREEMPTED ? attempt->job->early_signal.signal : EARLY_NONE;
    case ORDER_PREPARE:
        return EARLY_NONE;
    case ORDER_PHASE_COUNT:
        break;
    }
    abort();
}

static struct order order_of(const struct member *member)
{
    const struct attempt *attempt = member->attempt;
    const struct job *job = attempt->job;
    enum order_phase phase = phase_of(member);
    bool by_node = job->launch_mode == LAUNCH_NODE;
    int64_t world = by_node ? (int64_t)attempt->member_count : job->job_class->request.units;
    return (struct order){
        .attempt_id = attempt->attempt_id,
        .phase = phase,
        .attempt = attempt->number,
        .node_rank = member->node_rank,
        .nodes = (int64_t)attempt->member_count,
        .first_rank = member->first_rank,
        .local_ranks = member->local_ranks,
        .world = world,
        .device_count = member->device_count,
        .millicpus = member->millicpus,
        .memory_bytes = member->memory_bytes,
        .master_port = phase == ORDER_START ? attempt->master_port : 0,
        .grace_ms = phase == ORDER_STOP ? grace_of(attempt) : 0,
        .lease_ms = job->on_disconnect == ON_DISCONNECT_KEEP ? 0 : job->lease_ms,
        .cause = phase == ORDER_STOP ? attempt->cause : CAUSE_NONE,
        .signal = signal_of(attempt, phase),
        .kept = attempt->state == ATTEMPT_KEPT && phase != ORDER_STOP,
        .gang = world > 1,
    };
}

/* Adds the members of a task; its spec is that of its array. */
static void copy_array(const struct job *job, struct node_order *item)
{
    item->spec_key = job->place;
    if (array_is_task(job)) {
        memcpy(item->array_id, job->array->whole->id, sizeof item->array_id);
        item->order.array_id = item->array_id;
        item->order.task = job->task;
        item->order.tasks = job->array->of;
    }
}

/* NULL: the gang is too large to list it in every order. */
static char *addresses_of(const struct attempt *attempt)
{
    struct text list = {0};
    if (attempt->member_count > LIMIT_ADDRESSED_NODES) {
        return NULL;
    }
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        const char *address = member->node->address;
        bool colons = strchr(address, ':') != NULL;
        text_printf(&list, colons ? "%s[%s]:%lld" : "%s%s:%lld", i > 0 ? "," : "", address,
                    (long long)member->port);
    }
    return text_take(&list);
}

static void copy_order(const struct member *member, struct node_order *item)
{
    const struct attempt *attempt = member->attempt;
    item->order = order_of(member);
    copy_array(attempt->job, item);
    item->version = member->version;
    item->devices = xalloc(member->device_count * sizeof *item->devices);
    memcpy(item->devices, member->devices, member->device_count * sizeof *item->devices);
    item->order.devices = item->devices;
    memcpy(item->job_id, attempt->job->id, sizeof item->job_id);
    item->order.job_id = item->job_id;
    snprintf(item->owner, sizeof item->owner, "%s", attempt->job->owner->name);
    item->order.owner = item->owner;
    if (item->order.phase == ORDER_START) {
        assert(attempt->master_address != NULL); /* node rank 0 has reported it: take_prepared in report.c */
        item->master_address = xstrdup(attempt->master_address);
        item->addresses = addresses_of(attempt);
    }
    item->order.addresses = item->addresses;
    item->order.master_address = item->master_address;
}

static void copy_stagings(const struct node *node, struct node_orders *orders)
{
    orders->stagings = xzalloc((node->ordered_count + 1) * sizeof *orders->stagings);
    for (const struct environment_copy *copy = node->copies; copy != NULL; copy = copy->next) {
        if (copy->state == COPY_ORDERED) {
            orders->stagings[orders->staging_count++] = (struct node_staging){
                .key = xstrdup(copy->environment->key), .text = xstrdup(copy->environment->text)};
        }
    }
}

struct node_orders *core_orders(const struct core *core, const char *name)
{
    const struct node *node = node_find(core, name);
    if (node == NULL) {
        return NULL;
    }
    struct node_orders *orders = xzalloc(sizeof *orders);
    orders->node = xstrdup(node->name);
    orders->boot_id = xstrdup(node->boot_id);
    orders->agent_id = xstrdup(node->agent_id);
    orders->version = node->orders_version;
    size_t room = 0;
    for (const struct member *member = node->members; member != NULL; member = member->next) {
        room += member_is_listed(member);
    }
    orders->items = xzalloc(room * sizeof *orders->items);
    for (const struct member *member = node->members; member != NULL; member = member->next) {
        if (member_is_listed(member)) {
            copy_order(member, &orders->items[orders->count++]);
        }
    }
    copy_stagings(node, orders);
    return orders;
}

void node_orders_destroy(struct node_orders *orders)
{
    if (orders == NULL) {
        return;
    }
    for (size_t i = 0; i < orders->count; i++) {
        free(orders->items[i].devices);
        free(orders->items[i].master_address);
        free(orders->items[i].addresses);
    }
    for (size_t i = 0; i < orders->staging_count; i++) {
        free(orders->stagings[i].key);
        free(orders->stagings[i].text);
    }
    free(orders->stagings);
    free(orders->items);
    free(orders->node);
    free(orders->boot_id);
    free(orders->agent_id);
    free(orders);
}
