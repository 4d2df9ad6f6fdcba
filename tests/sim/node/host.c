/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated machine: its clock, its folders, its agent. The agent decides by the real
 * agent/reconciler/reconciler.c. The same state survives the death of agent or machine as in reality: claimed
 * attempt ids until a reboot, exit records for ever. piece.c simulates attempts, shim.c shims and ranks,
 * exchange.c requests. */
#include "tests/sim/node/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "tests/sim/node/host_parts.h"
#include "tests/sim/planted.h"

const char *host_name(const struct host *host)
{
    return host->name;
}

const char *const host_types[HOST_TYPES] = {"A10", "H100"};

const char *host_type(const struct host *host)
{
    return host->type;
}

struct link_state *host_link(struct host *host)
{
    return &host->link;
}

bool host_is_on(const struct host *host)
{
    return host->on;
}

int64_t host_now(const struct host *host)
{
    return clock_at(&host->clock, host->sim->world.now_ms);
}

/* --- claimed attempt ids -------------------------------------------------------------------------------- */

bool host_claim(struct host *host, uint64_t attempt_id)
{
    for (size_t i = 0; i < host->claimed_count; i++) {
        if (host->claimed[i] == attempt_id) {
            return false;
        }
    }
    host->claimed = xrealloc(host->claimed, (host->claimed_count + 1) * sizeof *host->claimed);
    host->claimed[host->claimed_count++] = attempt_id;
    return true;
}

/* --- the agent's loop ----------------------------------------------------------------------------------- */

static void act_on_piece(struct host *host, const struct reconciler_action *action)
{
    struct piece *piece = piece_find(host, action->attempt_id);
    switch (action->act) {
    case ACT_CLAIM:
        piece_claim(host, action);
        return;
    case ACT_TOMBSTONE:
        piece_tombstone(host, action);
        return;
    case ACT_PREPARE:
        piece_tell_prepare(piece);
        return;
    case ACT_RUN:
        piece_tell_run(piece);
        return;
    case ACT_START:
        piece_tell_start(piece);
        return;
    case ACT_KEEP:
        piece_tell_keep(piece);
        return;
    case ACT_STOP:
        piece_tell_stop(piece, action->grace_ms, action->cause);
        return;
    case ACT_LEASE:
        piece_tell_lease(piece, action->term_ms, action->kill_ms);
        return;
    case ACT_KILL:
        if (piece->shim) {
            piece_kill_shim(piece);
        }
        return;
    case ACT_CLEAR:
        piece_clear(piece);
        return;
    case ACT_REPORT:
        exchange_report(piece, action->report);
        return;
    case ACT_FORGET:
        piece_forget(piece);
        return;
    case ACT_WARN:
    case ACT_REGISTER:
    case ACT_POLL:
    case ACT_HEARTBEAT:
    case ACT_END:
        return;
    }
}

static void act_on(struct host *host, const struct reconciler_action *action)
{
    world_note(&host->sim->world, "%s: %s %llx", host->name, reconciler_act_text(action->act),
               (unsigned long long)action->attempt_id);
    switch (action->act) {
    case ACT_REGISTER:
        exchange_register(host);
        return;
    case ACT_POLL:
        exchange_poll(host);
        return;
    case ACT_HEARTBEAT:
        exchange_heartbeat(host, action);
        return;
    case ACT_CLAIM:
    case ACT_TOMBSTONE:
    case ACT_PREPARE:
    case ACT_RUN:
    case ACT_START:
    case ACT_WARN:
    case ACT_KEEP:
    case ACT_STOP:
    case ACT_LEASE:
    case ACT_KILL:
    case ACT_CLEAR:
    case ACT_REPORT:
    case ACT_FORGET:
    case ACT_END:
        act_on_piece(host, action);
        return;
    }
}

static void work_due(void *closure)
{
    host_work(closure);
}

/* No action runs inside another: code with news schedules this function. */
void host_work(struct host *host)
{
    struct reconciler_action action;
    if (host->reconciler == NULL) {
        return;
    }
    reconciler_tick(host->reconciler, host_now(host));
    while (reconciler_next(host->reconciler, &action)) {
        if (world_rare(&host->sim->world, RARE_BETWEEN_ACTIONS)) {
            host_kill_agent(host);
            return;
        }
        act_on(host, &action);
    }
    int64_t deadline_ms = reconciler_deadline(host->reconciler);
    if (deadline_ms != INT64_MAX && deadline_ms != host->waits_ms) {
        host->waits_ms = deadline_ms;
        world_in(&host->sim->world, clock_until(&host->clock, host->sim->world.now_ms, deadline_ms), work_due,
                 host, &host->agent);
    }
}

void host_wake(struct host *host, int64_t in_ms)
{
    world_in(&host->sim->world, in_ms, work_due, host, &host->agent);
}

/* --- the agent's life ----------------------------------------------------------------------------------- */

static void start_agent(void *closure)
{
    struct host *host = closure;
    if (!host->on || host->reconciler != NULL) {
        return;
    }
    world_note(&host->sim->world, "%s: agent starts, boot %s", host->name, host->boot_id);
    host->reconciler = reconciler_create();
    host->nonce = 0;
    host->waits_ms = 0;
    for (size_t i = 0; i < host->piece_count && !planted_is(PLANTED_NO_ADOPTION); i++) {
        reconciler_adopt(host->reconciler, host->pieces[i]->attempt_id);
        piece_adopt(host->pieces[i]);
    }
    reconciler_start(host->reconciler);
    host_wake(host, 0);
}

static void end_agent(struct host *host)
{
    reconciler_destroy(host->reconciler);
    host->reconciler = NULL;
    host->agent++;
    for (size_t i = 0; i < host->piece_count; i++) {
        piece_lose_agent(host->pieces[i]);
    }
    for (size_t i = 0; i < host->need_count; i++) {
        host->needs[i].busy = false;
    }
}

void host_kill_agent(struct host *host)
{
    struct world *world = &host->sim->world;
    if (host->reconciler == NULL) {
        return;
    }
    world_fault(world, "%s: agent is killed", host->name);
    end_agent(host);
    world_in(world, world_between(world, 50, world_of(world, 80) ? 2000 : 120000), start_agent, host,
             &host->power);
}

void host_kill_shim(struct host *host)
{
    struct world *world = &host->sim->world;
    for (size_t i = 0; i < host->piece_count; i++) {
        struct piece *piece = host->pieces[(i + host->claimed_count) % host->piece_count];
        if (piece->shim) {
            world_fault(world, "%s: shim of %llx is killed", host->name,
                        (unsigned long long)piece->attempt_id);
            piece_kill_shim(piece);
            return;
        }
    }
}

static void power_on(void *closure)
{
    struct host *host = closure;
    struct world *world = &host->sim->world;
    host->on = true;
    host->boots++;
    host->clock = (struct machine_clock){.booted_ms = world->now_ms,
                                         .first_ms = world_between(world, 1000, 30000),
                                         .permille = world_between(world, 960, 1040)};
    snprintf(host->boot_id, sizeof host->boot_id, "boot-%zu-%lld", host->index, (long long)host->boots);
    start_agent(host);
}

bool host_power_off(struct host *host, int64_t for_ms)
{
    struct world *world = &host->sim->world;
    if (!host->on) {
        return false;
    }
    world_fault(world, "%s: loses power", host->name);
    host->on = false;
    host->power++;
    truth_host_died(host->sim->truth, host->index);
    end_agent(host);
    for (size_t i = 0; i < host->piece_count; i++) {
        piece_lose_power(host->pieces[i]);
    }
    host->claimed_count = 0;
    world_in(world, for_ms, power_on, host, &host->power);
    return true;
}

bool host_is_empty(const struct host *host)
{
    return host->piece_count == 0;
}

struct host *host_create(struct sim *sim, size_t index)
{
    struct host *host = xzalloc(sizeof *host);
    struct world *world = &sim->world;
    host->sim = sim;
    host->index = index;
    snprintf(host->name, sizeof host->name, "node-%zu", index);
    host->link.name = host->name;
    host->type = host_types[index % 3 / 2]; /* two A10 hosts for each H100 host */
    host->device_count = world_between(world, 1, 4);
    host->reserved = index % 5 == 4;
    host->power = host->agent = 1;
    power_on(host);
    return host;
}

void host_destroy(struct host *host)
{
    if (host == NULL) {
        return;
    }
    reconciler_destroy(host->reconciler);
    while (host->piece_count > 0) {
        piece_free(host->pieces[--host->piece_count]);
    }
    while (host->forgotten_count > 0) {
        piece_free(host->forgotten[--host->forgotten_count]);
    }
    free(host->forgotten);
    for (size_t i = 0; i < host->need_count; i++) {
        free(host->needs[i].key);
    }
    free(host->needs);
    free(host->pieces);
    free(host->claimed);
    free(host);
}
