/* SPDX-License-Identifier: Apache-2.0 */
/* Shims and ranks, in place of gpushim. A shim starts ranks only within the lease, ends the others when one
 * fails, stops when the lease is over, and writes the exit record before anyone learns of the exit; it is on
 * the disk a moment later. The name of a job determines the behaviour of its ranks. */
#include <string.h>

#include "proto/limits_agent.h"
#include "tests/sim/node/host_parts.h"
#include "tests/sim/planted.h"

static struct world *world_of_piece(const struct piece *piece)
{
    return &piece->host->sim->world;
}

/* --- ranks ---------------------------------------------------------------------------------------------- */

static void rank_ends(struct piece *piece, int64_t local, int64_t code, bool by_us);

/* A rank's own end, arranged at its start. */
struct fate {
    struct piece *piece;
    int64_t local, code;
    bool by_us;
};

static void fate_due(void *closure)
{
    struct fate fate = *(struct fate *)closure;
    if (fate.piece->live[fate.local]) {
        rank_ends(fate.piece, fate.local, fate.code, fate.by_us);
    }
}

static void arrange(struct piece *piece, int64_t local, int64_t in_ms, int64_t code, bool by_us)
{
    struct host *host = piece->host;
    struct fate *fate = world_keep(&host->sim->world, sizeof *fate);
    *fate = (struct fate){piece, local, code, by_us};
    world_in(world_of_piece(piece), in_ms, fate_due, fate, &piece->shim_life);
}

static void arrange_fate(struct piece *piece, int64_t local)
{
    struct world *world = world_of_piece(piece);
    int64_t lasts_ms = world_of(world, 10) ? world_between(world, 1, 2L * RUNNING_HOLD_MS)
                                           : world_between(world, 200, 30000);
    int64_t code = 0;
    if (strcmp(piece->manner, "long") == 0) {
        lasts_ms = world_between(world, 60000, 300000);
    } else if (strcmp(piece->manner, "hang") == 0) {
        return; /* until it is ended from outside */
    } else if (strcmp(piece->manner, "fail") == 0 && world_of(world, 50)) {
        code = world_between(world, 1, 255);
    }
    if (world_mishap(world, 20)) {
        code = world_of(world, 50) ? 139 : 1;
        world_fault(world, "%s: rank %lld of %llx will fail", piece->host->name,
                    (long long)(piece->first_rank + local), (unsigned long long)piece->attempt_id);
    }
    arrange(piece, local, lasts_ms, code, false);
}

static bool any_live(const struct piece *piece)
{
    for (int64_t i = 0; i < piece->local_ranks; i++) {
        if (piece->live[i]) {
            return true;
        }
    }
    return false;
}

static void say_exited(void *closure)
{
    piece_heard(closure, NEWS_EXITED);
}

static void power_fails(void *closure)
{
    const struct piece *piece = closure;
    host_power_off(piece->host, world_between(world_of_piece(piece), 1000, 60000));
}

/* No process is left: writes the record, then reports the exit. */
static void write_record(struct piece *piece)
{
    struct world *world = world_of_piece(piece);
    piece->recorded = true;
    piece->synced_ms = world->now_ms + SHIM_RECORD_SYNC_MS;
    piece->stage = SHIM_OVER;
    if (world_rare(world, RARE_RECORD_NOT_SYNCED)) {
        world_in(world, world_between(world, 0, SHIM_RECORD_SYNC_MS), power_fails, piece,
                 &piece->host->power);
    }
    world_note(world, "%s: exit record of %llx", piece->host->name, (unsigned long long)piece->attempt_id);
    if (world_rare(world, RARE_EXIT_HEARD_LATE)) {
        world_in(world, world_between(world, 1, 60000), say_exited, piece, &piece->host->agent);
        return;
    }
    piece_heard(piece, NEWS_EXITED);
}

static void kill_all(void *closure)
{
    struct piece *piece = closure;
    for (int64_t i = 0; i < piece->local_ranks; i++) {
        if (piece->live[i]) {
            rank_ends(piece, i, 137, true);
        }
    }
}

/* TERM now, KILL after the grace. Some ranks obey TERM, with exit code 1 or by the signal. */
static void ladder(struct piece *piece, int64_t grace_ms)
{
    struct world *world = world_of_piece(piece);
    if (piece->stage != SHIM_RUNS) {
        return;
    }
    piece->stage = SHIM_STOPS;
    for (int64_t i = 0; i < piece->local_ranks; i++) {
        if (piece->live[i] && world_of(world, 70)) {
            arrange(piece, i, world_between(world, 1, 4000), world_of(world, 20) ? 1 : 143, true);
        }
    }
    world_in(world, grace_ms + world_between(world, 0, 30), kill_all, piece, &piece->shim_life);
}

static void say_running(void *closure)
{
    struct piece *piece = closure;
    if (!piece->said_running) {
        piece->said_running = true;
        piece_heard(piece, NEWS_RUNNING);
    }
}

static bool lease_over(const struct piece *piece)
{
    return piece->term_ms != 0 && piece->term_ms <= host_now(piece->host) && !planted_is(PLANTED_NO_FENCE);
}

static void rank_ends(struct piece *piece, int64_t local, int64_t code, bool by_us)
{
    struct host *host = piece->host;
    struct world *world = world_of_piece(piece);
    int64_t rank = piece->first_rank + local;
    piece->live[local] = false;
    by_us = by_us && code != 0;
    truth_end(host->sim->truth, piece->attempt_id, host->index, rank, code, by_us);
    piece->exits[piece->exit_count++] =
        (struct rank_exit){.rank = rank, .code = code, .at_ms = world_wall_ms(world), .by_us = by_us};
    if (code != 0 && !by_us && !piece->failed) {
        piece->failed = true;
        piece->keeps = piece->keep;
        piece->first_failed = piece->exits[piece->exit_count - 1];
        say_running(piece);
        piece_heard(piece, NEWS_FAILED);
        ladder(piece, FAILED_GRACE_MS);
    }
    if (!any_live(piece) && piece->keeps && !lease_over(piece)) {
        piece->stage = SHIM_KEPT;
    } else if (!any_live(piece) || (planted_is(PLANTED_EXIT_TOO_EARLY) && !piece->recorded)) {
        write_record(piece);
    }
}

/* --- the lease ------------------------------------------------------------------------------------------ */

static void lease_due(void *closure)
{
    struct piece *piece = closure;
    if (!lease_over(piece)) {
        return; /* the lease was renewed */
    }
    world_note(world_of_piece(piece), "%s: lease of %llx is over", piece->host->name,
               (unsigned long long)piece->attempt_id);
    if (piece->stage == SHIM_READY) {
        piece->shim = false;
        piece->shim_life++;
        piece_heard(piece, NEWS_DECLINED);
    } else if (piece->stage == SHIM_RUNS) {
        piece->cause = CAUSE_NODE_LOST;
        int64_t left_ms = piece->kill_ms - host_now(piece->host);
        ladder(piece, left_ms > 0 ? left_ms : 0);
    } else if (piece->stage == SHIM_KEPT) {
        write_record(piece);
    } else if (piece->stage == SHIM_STOPS && piece->kill_ms <= host_now(piece->host)) {
        kill_all(piece);
    }
}

void shim_lease(struct piece *piece)
{
    struct world *world = world_of_piece(piece);
    const struct machine_clock *clock = &piece->host->clock;
    if (piece->term_ms != 0) {
        world_in(world, clock_until(clock, world->now_ms, piece->term_ms), lease_due, piece,
                 &piece->shim_life);
        world_in(world, clock_until(clock, world->now_ms, piece->kill_ms), lease_due, piece,
                 &piece->shim_life);
    }
}

/* --- life ----------------------------------------------------------------------------------------------- */

static struct truth_gang gang_of(const struct piece *piece)
{
    return (struct truth_gang){.attempt_id = piece->attempt_id,
                               .job_id = piece->job_id,
                               .nodes = piece->nodes,
                               .world_size = piece->world_size};
}

static void ready(void *closure)
{
    struct piece *piece = closure;
    struct truth_gang gang = gang_of(piece);
    if (piece->stage != SHIM_READY) {
        return; /* it was stopped before it was ready */
    }
    truth_prepared(piece->host->sim->truth, &gang, piece->node_rank);
    if (piece->asked == ORDER_RUN) {
        shim_start(piece);
    } else {
        piece_heard(piece, NEWS_PREPARED);
    }
}

void shim_begin(struct piece *piece, bool run)
{
    struct world *world = world_of_piece(piece);
    piece->shim = true;
    piece->stage = SHIM_READY;
    shim_lease(piece);
    world_in(world, world_between(world, 1, 10), ready, piece, &piece->shim_life);
}

void shim_start(struct piece *piece)
{
    struct host *host = piece->host;
    struct truth_gang gang = gang_of(piece);
    if (lease_over(piece)) {
        lease_due(piece);
        return;
    }
    world_note(&host->sim->world, "%s: ranks of %llx start", host->name,
               (unsigned long long)piece->attempt_id);
    piece->stage = SHIM_RUNS;
    piece->started = true;
    truth_start(host->sim->truth, &gang, host->index, piece->first_rank, piece->local_ranks, piece->devices,
                piece->device_count);
    for (int64_t i = 0; i < piece->local_ranks; i++) {
        piece->live[i] = true;
        arrange_fate(piece, i);
    }
    world_in(world_of_piece(piece), RUNNING_HOLD_MS, say_running, piece, &host->agent);
}

void shim_keep(struct piece *piece)
{
    if (piece->stage == SHIM_RUNS) {
        piece->cause = CAUSE_RANK_FAILED;
        piece->keeps = true;
        ladder(piece, FAILED_GRACE_MS);
    }
}

void shim_stop(struct piece *piece, int64_t grace_ms, enum cause cause)
{
    piece->keeps = false;
    if (piece->stage == SHIM_KEPT) {
        write_record(piece);
    } else if (piece->stage == SHIM_READY) {
        piece->cause = cause;
        write_record(piece);
    } else if (piece->stage == SHIM_RUNS) {
        piece->cause = cause;
        ladder(piece, grace_ms);
    }
}

/* Repeats the reports in their original order. */
void shim_speak(struct piece *piece)
{
    if (piece->recorded) {
        piece_heard(piece, NEWS_EXITED);
        return;
    }
    if (piece->stage == SHIM_READY) {
        struct truth_gang gang = gang_of(piece);
        truth_prepared(piece->host->sim->truth, &gang, piece->node_rank);
        piece_heard(piece, NEWS_PREPARED);
        return;
    }
    piece_heard(piece, NEWS_RUNNING);
    if (piece->failed) {
        piece_heard(piece, NEWS_FAILED);
    }
}
