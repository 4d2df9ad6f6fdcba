/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's work for one attempt, in place of agent/attempt/attempt.c: it claims, stages, listens to the
 * shim, waits for empty devices, forgets. It gives the same guarantees as that file, and no more: an attempt
 * id is claimed once per boot, and no attempt is called over while a process lives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "tests/sim/node/host_parts.h"
#include "tests/sim/planted.h"

struct piece *piece_find(const struct host *host, uint64_t attempt_id)
{
    for (size_t i = 0; i < host->piece_count; i++) {
        if (host->pieces[i]->attempt_id == attempt_id) {
            return host->pieces[i];
        }
    }
    return NULL;
}

void piece_free(struct piece *piece)
{
    free(piece);
}

void piece_heard(struct piece *piece, enum reconciler_news news)
{
    struct host *host = piece->host;
    if (host->reconciler != NULL) {
        reconciler_heard(host->reconciler, piece->attempt_id, news);
        host_wake(host, 0);
    }
}

/* During a run pieces are removed only by piece_forget, so that appointments for them find valid memory; a
 * changed lifetime cancels an appointment. */
static struct piece *add(struct host *host, const struct order *order)
{
    struct piece *piece = xzalloc(sizeof *piece);
    *piece = (struct piece){.host = host,
                            .attempt_id = order->attempt_id,
                            .node_rank = order->node_rank,
                            .nodes = order->nodes > 0 ? order->nodes : 1,
                            .first_rank = order->first_rank,
                            .local_ranks = order->local_ranks,
                            .world_size = order->world,
                            .gang = order->gang,
                            .asked = order->phase,
                            .shim_life = 1,
                            .laid = 1};
    snprintf(piece->job_id, sizeof piece->job_id, "%s", order->job_id != NULL ? order->job_id : "");
    const char *name = order->spec != NULL ? json_string_value(json_object_get(order->spec, "name")) : NULL;
    snprintf(piece->manner, sizeof piece->manner, "%s", name != NULL ? name : "short");
    piece->function = order->spec != NULL && json_object_get(order->spec, "function") != NULL;
    piece->keep = order->spec != NULL && json_object_get(order->spec, "keep_on_failure_s") != NULL;
    for (size_t i = 0; i < order->device_count && i < RANKS_MAX; i++) {
        piece->devices[piece->device_count++] = order->devices[i];
    }
    host->pieces = xrealloc(host->pieces, (host->piece_count + 1) * sizeof(struct piece *));
    host->pieces[host->piece_count++] = piece;
    return piece;
}

static void over(struct piece *piece, enum cause cause)
{
    piece->laying = piece->waiting = false;
    piece->laid++;
    piece->cause = cause;
    piece_heard(piece, NEWS_EXITED);
}

static void decline(struct piece *piece)
{
    piece->laying = piece->waiting = false;
    piece->laid++;
    piece_heard(piece, NEWS_DECLINED);
}

/* --- from order to shim --------------------------------------------------------------------------------- */

static void lay_done(void *closure)
{
    struct piece *piece = closure;
    struct world *world = &piece->host->sim->world;
    if (world_mishap(world, 30)) {
        world_fault(world, "%s: declines %llx", piece->host->name, (unsigned long long)piece->attempt_id);
        decline(piece);
        return;
    }
    if (piece->term_ms != 0 && piece->term_ms <= host_now(piece->host)) {
        piece->waiting = true; /* a newer lease continues from here */
        return;
    }
    piece->laying = false;
    shim_begin(piece, piece->asked == ORDER_RUN);
}

void piece_claim(struct host *host, const struct reconciler_action *action)
{
    struct piece *piece = add(host, action->order);
    struct world *world = &host->sim->world;
    piece->term_ms = action->term_ms;
    piece->kill_ms = action->kill_ms;
    if (!host_claim(host, piece->attempt_id)) {
        over(piece, CAUSE_SHIM_LOST);
        return;
    }
    piece->laying = true;
    world_in(world, world_between(world, 1, world_mishap(world, 50) ? 90000 : 30), lay_done, piece,
             &piece->laid);
}

void piece_tombstone(struct host *host, const struct reconciler_action *action)
{
    struct piece *piece = add(host, action->order);
    host_claim(host, piece->attempt_id);
    over(piece, action->cause);
}

/* --- what is told --------------------------------------------------------------------------------------- */

void piece_tell_prepare(struct piece *piece)
{
    if (piece->shim && piece->stage == SHIM_READY) {
        piece_heard(piece, NEWS_PREPARED);
    }
}

void piece_tell_run(struct piece *piece)
{
    if (piece->shim && piece->stage == SHIM_READY) {
        shim_start(piece);
    }
}

void piece_tell_start(struct piece *piece)
{
    if (piece->shim && piece->stage == SHIM_READY) {
        shim_start(piece);
    }
}

void piece_tell_stop(struct piece *piece, int64_t grace_ms, enum cause cause)
{
    if (piece->laying) {
        over(piece, cause);
    } else if (piece->shim) {
        shim_stop(piece, grace_ms, cause);
    }
}

void piece_tell_keep(struct piece *piece)
{
    if (piece->shim) {
        shim_keep(piece);
    }
}

void piece_tell_lease(struct piece *piece, int64_t term_ms, int64_t kill_ms)
{
    struct world *world = &piece->host->sim->world;
    piece->term_ms = term_ms;
    piece->kill_ms = kill_ms;
    if (piece->waiting) {
        piece->waiting = false;
        world_in(world, 0, lay_done, piece, &piece->laid);
    } else if (piece->shim) {
        shim_lease(piece);
    }
}

/* --- the end -------------------------------------------------------------------------------------------- */

static void cleared(void *closure)
{
    piece_heard(closure, NEWS_CLEARED);
}

void piece_clear(struct piece *piece)
{
    struct world *world = &piece->host->sim->world;
    bool lingers = world_mishap(world, 30);
    if (lingers) {
        world_fault(world, "%s: devices of %llx are not empty at once", piece->host->name,
                    (unsigned long long)piece->attempt_id);
    }
    world_in(world, world_between(world, 0, lingers ? 20000 : 5), cleared, piece, &piece->host->agent);
}

/* Keeps the memory until the end of the run for pending appointments, which are all cancelled. */
void piece_forget(struct piece *piece)
{
    struct host *host = piece->host;
    piece->laid++;
    piece->shim_life++;
    for (size_t i = 0; i < host->piece_count; i++) {
        if (host->pieces[i] == piece) {
            memmove(&host->pieces[i], &host->pieces[i + 1],
                    (host->piece_count - i - 1) * sizeof(struct piece *));
            host->piece_count--;
            host->forgotten = xrealloc(host->forgotten, (host->forgotten_count + 1) * sizeof(struct piece *));
            host->forgotten[host->forgotten_count++] = piece;
            return;
        }
    }
}

/* --- deaths --------------------------------------------------------------------------------------------- */

void piece_adopt(struct piece *piece)
{
    host_claim(piece->host, piece->attempt_id); /* again, if a reboot has emptied the folder of claims */
    if (piece->shim || piece->recorded) {
        shim_speak(piece);
        return;
    }
    over(piece, CAUSE_SHIM_LOST);
}

void piece_lose_agent(struct piece *piece)
{
    piece->laid++;
    piece->laying = piece->waiting = false;
}

/* A file that was not synced is there, or is not, or has what its blocks held before: a record of another
 * attempt, perhaps. */
static void lose_record(struct piece *piece)
{
    struct world *world = &piece->host->sim->world;
    if (!piece->recorded || world->now_ms >= piece->synced_ms || world_of(world, 30)) {
        return;
    }
    world_note(world, "%s: exit record of %llx is lost", piece->host->name,
               (unsigned long long)piece->attempt_id);
    if (planted_is(PLANTED_RECORD_OF_ANOTHER)) {
        for (size_t i = 0; i < piece->exit_count; i++) {
            piece->exits[i].code = 0;
        }
        piece->cause = CAUSE_NONE;
    } else {
        piece->recorded = piece->failed = false;
        piece->exit_count = 0;
    }
}

void piece_lose_power(struct piece *piece)
{
    piece->shim = false;
    piece->shim_life++;
    memset(piece->live, 0, sizeof piece->live);
    lose_record(piece);
}

static void remains_gone(void *closure)
{
    struct piece *piece = closure;
    if (!piece->shim && !piece->recorded) {
        over(piece, CAUSE_SHIM_LOST);
    }
}

/* The ranks die with their shim, because each has asked the kernel for that. */
void piece_kill_shim(struct piece *piece)
{
    struct host *host = piece->host;
    for (int64_t i = 0; i < piece->local_ranks; i++) {
        if (piece->live[i]) {
            piece->live[i] = false;
            truth_end(host->sim->truth, piece->attempt_id, host->index, piece->first_rank + i, 137, true);
        }
    }
    piece->shim = false;
    piece->shim_life++;
    world_in(&host->sim->world, 20, remains_gone, piece, &host->agent);
}
