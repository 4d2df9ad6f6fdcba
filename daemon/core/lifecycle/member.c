/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the states of members, each one node's part of a gang. A member only moves forward, so a late or
 * repeated report changes nothing. attempt.c decides about the gang. */
#include "daemon/core/lifecycle/member.h"

#include "daemon/core/fleet/departure.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/orders.h"
#include "daemon/core/fleet/pool.h"
#include "daemon/core/fleet/request.h"
#include "daemon/core/fleet/topology.h"
#include "daemon/core/model/label.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/rule.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"

static void trust_node(struct core *core, struct member *member)
{
    member->node->declines = 0;
}

static const struct member_rule {
    enum member_state from;
    enum member_event event;
    enum member_state to;
    void (*effect)(struct core *core, struct member *member); /* or NULL */
} rules[] = {
    {MEMBER_ORDERED, MEMBER_EVENT_PREPARE, MEMBER_PREPARED, NULL},
    {MEMBER_ORDERED, MEMBER_EVENT_RUN, MEMBER_RUNNING, trust_node},
    {MEMBER_PREPARED, MEMBER_EVENT_RUN, MEMBER_RUNNING, trust_node},
    {MEMBER_ORDERED, MEMBER_EVENT_DECLINE, MEMBER_FLUSHED, orders_dropped},
    {MEMBER_PREPARED, MEMBER_EVENT_DECLINE, MEMBER_FLUSHED, orders_dropped},
    {MEMBER_RUNNING, MEMBER_EVENT_DECLINE, MEMBER_FLUSHED,
     orders_dropped}, /* a decline means that no process is left */
    {MEMBER_ORDERED, MEMBER_EVENT_EXIT, MEMBER_EXITED, NULL},
    {MEMBER_PREPARED, MEMBER_EVENT_EXIT, MEMBER_EXITED, NULL},
    {MEMBER_RUNNING, MEMBER_EVENT_EXIT, MEMBER_EXITED, NULL},
    {MEMBER_EXITED, MEMBER_EVENT_FLUSH, MEMBER_FLUSHED, orders_dropped},
    {MEMBER_ORDERED, MEMBER_EVENT_LOSE, MEMBER_LOST, orders_dropped},
    {MEMBER_PREPARED, MEMBER_EVENT_LOSE, MEMBER_LOST, orders_dropped},
    {MEMBER_RUNNING, MEMBER_EVENT_LOSE, MEMBER_LOST, orders_dropped},
};

DEFINE_RULE_OF(member)

bool member_fire(struct core *core, struct member *member, enum member_event event)
{
    const struct member_rule *rule = rule_of(member->state, event);
    if (rule == NULL) {
        return false;
    }
    const struct attempt *attempt = member->attempt;
    trace_line(core, "member %s/%lld@%s %s -> %s", attempt->job->id, (long long)attempt->number,
               member->node->name, member_state_text(rule->from), member_state_text(rule->to));
    member->state = rule->to;
    record_member(core, member);
    if (rule->effect != NULL) {
        rule->effect(core, member);
    }
    return true;
}

struct member *member_create(struct core *core, struct attempt *attempt, const struct share *share,
                             int64_t node_rank, int64_t first_rank)
{
    struct member *member = xzalloc(sizeof *member);
    member->attempt = attempt;
    member->node = share->capacity->node;
    assert(!member->node->away);
    member->node_rank = node_rank;
    member->first_rank = first_rank;
    member->local_ranks = attempt->job->launch_mode == LAUNCH_NODE ? 1 : share->count;
    const struct amount each = request_each(&attempt->job->job_class->request, member->node);
    member->millicpus = share->count * each.millicpus;
    member->memory_bytes = share->count * each.memory_bytes;
    assert(member->millicpus <= node_left(member->node).millicpus || each.millicpus == 0);
    assert(member->memory_bytes <= node_left(member->node).memory_bytes || each.memory_bytes == 0);
    member->isolated = label_isolated(member->node);
    member->state = MEMBER_ORDERED;
    member->results_missing = attempt->job->function ? member->local_ranks : 0;
    member->device_count = partition_is_gpuless(share->capacity->partition) ? 0 : (size_t)share->count;
    member->devices = topology_choose(share->capacity, member->device_count);
    member_settle_on(core, member);
    return member;
}

void member_free(struct member *member)
{
    MEMBER_OWN_ROW(ROW_FREE, *member)
    free(member->devices);
    free(member);
}

void member_settle_on(struct core *core, struct member *member)
{
    struct node *node = member->node;
    struct member *after = node->members;
    while (after != NULL && after->attempt->attempt_id < member->attempt->attempt_id) {
        after = after->next;
    }
    if (after != NULL) {
        DL_PREPEND_ELEM(node->members, after, member);
    } else {
        DL_APPEND(node->members, member);
    }
    for (size_t i = 0; i < member->device_count; i++) {
        pool_take(core, node_device(node, member->devices[i]), member);
    }
    pool_take_amount(core, member);
    deadline_note(core, departure_due_ms(member));
}
