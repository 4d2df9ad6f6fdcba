/* SPDX-License-Identifier: Apache-2.0 */
/* Checks statements about jobs from outside the core, batch by batch. A state that a reader has seen is never
 * contradicted: no sequence number goes back, no terminal state changes, and nothing is granted that another
 * attempt still has. audit.c checks everything that is stored. */
#include "tests/sim/checks/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "proto/base/text/text.h"
#include "tests/sim/checks/judge_parts.h"

struct judge *judge_create(void)
{
    struct judge *judge = xzalloc(sizeof *judge);
    judge->limit = -1;
    return judge;
}

void judge_destroy(struct judge *judge)
{
    struct seen *seen, *next;
    HASH_ITER (hh, judge->seen, seen, next) {
        HASH_DEL(judge->seen, seen);
        free(seen);
    }
    free(judge);
}

struct seen *judge_seen(struct judge *judge, const char *id)
{
    struct seen *seen;
    HASH_FIND_STR(judge->seen, id, seen);
    if (seen == NULL) {
        seen = xzalloc(sizeof *seen);
        snprintf(seen->id, sizeof seen->id, "%s", id);
        seen->state = JOB_STATE_COUNT;
        HASH_ADD_STR(judge->seen, id, seen);
    }
    return seen;
}

void judge_saw(struct sim *sim, struct judge *judge, const char *id, enum job_state state, int64_t seq)
{
    struct world *world = &sim->world;
    struct seen *seen = judge_seen(judge, id);
    if (seen->state != JOB_STATE_COUNT) {
        world_check(world, seq >= seen->seq, "I18", "job %s went from seq %lld back to %lld", id,
                    (long long)seen->seq, (long long)seq);
        world_check(world, seq != seen->seq || state == seen->state, "I9", "job %s is %s and %s at seq %lld",
                    id, job_state_text(seen->state), job_state_text(state), (long long)seq);
        world_check(world, !job_state_terminal(seen->state) || (state == seen->state), "I10",
                    "job %s was %s and is now %s", id, job_state_text(seen->state), job_state_text(state));
    }
    seen->state = state;
    seen->seq = seq;
    if (job_state_terminal(state)) {
        truth_over(sim->truth, id);
    }
}

/* --- removals ------------------------------------------------------------------------------------------- */

void judge_removal_asked(struct sim *sim, const struct job_record *job)
{
    judge_saw(sim, sim->judge, job->birth.id, job->life.state, job->life.seq);
    judge_seen(sim->judge, job->birth.id)->removal_asked = true;
}

void judge_removed(struct sim *sim, const char *id, bool known)
{
    struct seen *seen = judge_seen(sim->judge, id);
    seen->removed = seen->removed || known;
    seen->removed_now = known;
    sim->judge->removals = true;
    seen->excused = seen->excused || !known;
}

/* The end of a removed job was told no later than its removal. */
static void check_removed(struct sim *sim)
{
    for (struct seen *seen = sim->judge->removals ? sim->judge->seen : NULL; seen != NULL;
         seen = seen->hh.next) {
        world_check(&sim->world, !seen->removed_now || job_state_terminal(seen->state), "I3",
                    "job %s was removed while it was %s", seen->id, job_state_text(seen->state));
        seen->removed_now = false;
    }
    sim->judge->removals = false;
}

/* A controller that died has perhaps not told of ends. */
static void excuse_removed(struct judge *judge)
{
    for (struct seen *seen = judge->seen; seen != NULL; seen = seen->hh.next) {
        seen->excused = seen->excused || seen->removed_now;
        seen->removed_now = false;
    }
}

/* --- grants --------------------------------------------------------------------------------------------- */

static size_t host_index(const struct sim *sim, const char *node)
{
    (void)sim;
    return (size_t)atoi(node + strlen("node-"));
}

/* An attempt with an order other than stop may run from now on. */
static void check_grants(struct sim *sim, const struct node_orders *orders)
{
    for (size_t i = 0; i < orders->count; i++) {
        const struct order *order = &orders->items[i].order;
        if (order->phase != ORDER_STOP) {
            truth_granted(sim->truth, order->attempt_id, order->job_id, host_index(sim, orders->node),
                          order->devices, order->device_count);
        }
    }
}

void judge_committed(struct sim *sim, struct reader *reader, const struct writer_news *news)
{
    for (size_t i = 0; i < news->order_count; i++) {
        check_grants(sim, news->orders[i]);
    }
    for (size_t i = 0; i < news->touched_count; i++) {
        const struct job_touch *touch = &news->touched[i];
        world_note(&sim->world, "job %s: %s, seq %lld", touch->id, job_state_text(touch->state),
                   (long long)touch->seq);
        judge_saw(sim, sim->judge, touch->id, touch->state, touch->seq);
    }
    check_removed(sim);
}

void judge_booted(struct sim *sim, struct reader *reader, uint32_t incarnation)
{
    struct judge *judge = sim->judge;
    world_check(&sim->world, incarnation > judge->incarnation, "I5", "incarnation %u follows %u", incarnation,
                judge->incarnation);
    judge->incarnation = incarnation;
    excuse_removed(judge);
    if (world_of(&sim->world, 25)) { /* the audit reads everything; the last one finds the rest */
        judge_audit(sim, reader);
    }
}

/* --- limits --------------------------------------------------------------------------------------------- */

void judge_limit(struct sim *sim, int64_t gpus)
{
    sim->judge->limit = gpus;
    for (size_t i = 0; i < HOST_TYPES; i++) {
        sim->judge->allowed[i] = INT64_MAX;
    }
}

void judge_held(struct sim *sim, size_t type, int64_t gpus)
{
    struct judge *judge = sim->judge;
    int64_t *allowed = &judge->allowed[type];
    if (judge->limit < 0) {
        return;
    }
    world_check(&sim->world, gpus <= judge->limit || gpus <= *allowed, "I16",
                "a project holds %lld %s, and may have %lld", (long long)gpus, host_types[type],
                (long long)judge->limit);
    *allowed = gpus < *allowed ? gpus : *allowed;
}
