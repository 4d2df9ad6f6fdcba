/* SPDX-License-Identifier: Apache-2.0 */
/* Runs scheduling passes within a budget. A pass visits the whole queue in order, first for entitled and then
 * for borrowing jobs. One that is too long for a step stops, keeps its reservations, and goes on where it
 * stopped in a later step. So a long queue costs each step a bounded time, and no job is passed over. After
 * one that took long, the next one waits for a moment. An event meanwhile, as a submission or an exit, is
 * looked at by the next pass. place.c does the visits. */
#include "daemon/core/scheduler/pass.h"

#include "daemon/core/lifecycle/array.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/turn.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/scheduler/place.h"
#include "daemon/core/scheduler/reservation.h"
#include "proto/limits_controller.h"

static void begin(struct core *core)
{
    struct pass *pass = &core->pass;
    *pass = (struct pass){.open = true,
                          .registry = core->registry,
                          .node_count = core->node_count,
                          .reservations = xalloc(sizeof *pass->reservations)};
    core->look_again_ms = NEVER;
    core->pass_count++;
    reservations_begin(pass->reservations, core);
    pass->nodes = pass->reservations->nodes;
    turn_refresh(core);
    turn_pass_begin(core);
}

void pass_drop(struct core *core)
{
    if (core->pass.open) {
        reservations_end(core->pass.reservations);
        free(core->pass.reservations);
        core->pass = (struct pass){0};
    }
}

/* First serves entitled jobs, then, from the rest, borrowing ones. So no job takes back at once what it has
 * just given back. true: the pass is complete; false: it has used up its work, and
 * a later step goes on with it. */
static bool go_on(struct core *core, int64_t most)
{
    struct pass *pass = &core->pass;
    for (bool through = true; through && pass->open;) {
        struct walk walk = {.core = core,
                            .reservations = pass->reservations,
                            .apply = true,
                            .from = pass->begun ? &pass->from : NULL,
                            .most = most};
        through = place_walk(&walk);
        pass->moved = pass->moved || walk.moved;
        pass->begun = !through;
        pass->turn = core->turns.number;
        pass->from = walk.reached;
        if (through && (pass->reservations->borrow || !account_any_limited(core))) {
            turn_pass_end(core);
            return true;
        }
        pass->reservations->borrow = pass->reservations->borrow || through;
    }
    reservations_forget_jobs(pass->reservations, core);
    return false;
}

/* Whether moves may affect an earlier job: its staging, its reservations, or a limit of its accounts. */
static bool moves_matter(const struct core *core)
{
    return !place_reserves_all(core) || account_any_limited(core) ||
           HASH_COUNT(core->environments) > core->idle_environment_count;
}

/* As many passes as the work allows. true: there is more to do. */
static bool run_passes(struct core *core, bool *ret_moved)
{
    int64_t most = core->config.pass_work > 0 ? core->config.pass_work : LIMIT_PASS_WORK;
    bool more = true;
    core->pass_work = 0;
    *ret_moved = false;
    while (more && (core->pass_work < most || core->pass_work == 0)) {
        array_queue_due(core);
        if (!core->pass.open) {
            core->pass_put_off = core->pass_in_parts = false;
            begin(core);
        }
        bool through = go_on(core, most), moved = core->pass.moved;
        *ret_moved = *ret_moved || moved;
        if (!through) {
            core->pass_in_parts = true;
            return true;
        }
        pass_drop(core);
        more = (moved && moves_matter(core)) || core->due_arrays != NULL || core->pass_put_off;
    }
    return more;
}

/* How long others have the time after a step of passes. Where jobs start, the next step is soon; where many
 * only wait, passes take a fifth of the time. */
static int64_t rest_ms(const struct core *core, bool more, bool moved)
{
    int64_t share_ms = core->pass_work * PASS_REST_MS / LIMIT_PASS_WORK;
    int64_t rest_ms = more || share_ms > PASS_REST_MS ? PASS_REST_MS : share_ms;
    return moved && rest_ms > 1 ? 1 : rest_ms;
}

void pass_run(struct core *core)
{
    struct pass *pass = &core->pass;
    bool event = core->place_wanted || core->now_ms >= core->look_again_ms;
    core->place_wanted = false;
    core->pass_put_off = core->pass_put_off || event;
    array_queue_due(core);
    if (core->now_ms < core->pass_rest_ms) {
        core->again_ms = core->pass_rest_ms;
        return;
    }
    if (pass->open && (pass->registry != core->registry || pass->node_count != core->node_count)) {
        pass_drop(core); /* its reservations are of other nodes */
    }
    bool moved;
    core->look_ms = core->now_ms;
    bool more = run_passes(core, &moved);
    core->pass_rest_ms = core->now_ms + rest_ms(core, more, moved);
    array_queue_due(core);
    core->place_wanted = false;
    core->again_ms = more ? core->pass_rest_ms : core->look_again_ms;
}
