/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the faults. Each run draws its own character, so that some runs concentrate on one fault and others
 * mix all. The affected parts implement the faults. */
#include "tests/sim/nemesis.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "tests/sim/controller/controller.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/node/host.h"
#include "tests/sim/checks/judge.h"
#include "tests/sim/people.h"

#define YEAR_MS (365LL * 24 * 3600 * 1000)

struct nemesis {
    struct sim *sim;
    int64_t pace_ms;
};

struct cut {
    struct nemesis *nemesis;
    struct link_state *link;
    bool there, back;
};

static struct host *some_host(struct sim *sim)
{
    return sim->hosts[world_between(&sim->world, 0, (int64_t)sim->host_count - 1)];
}

/* --- links ---------------------------------------------------------------------------------------------- */

static void mend(void *closure)
{
    struct link_state *link = closure;
    link->cut_there = link->cut_back = false;
}

static int64_t cut_for(struct world *world)
{
    return world_of(world, 60) ? world_between(world, 500, 40000) : world_between(world, 40000, 400000);
}

static void cut_link(struct nemesis *nemesis)
{
    struct world *world = &nemesis->sim->world;
    struct link_state *link = host_link(some_host(nemesis->sim));
    int64_t way = world_between(world, 0, 2);
    link->cut_there = way != 1;
    link->cut_back = way != 0;
    int64_t for_ms = cut_for(world);
    world_fault(world, "%s: cut off %s for %lld ms", link->name,
                way == 0   ? "there"
                : way == 1 ? "back"
                           : "both ways",
                (long long)for_ms);
    world_in(world, for_ms, mend, link, NULL);
}

/* Cuts all links one after the other; they come back in another order. */
static void swizzle(struct nemesis *nemesis)
{
    struct sim *sim = nemesis->sim;
    struct world *world = &sim->world;
    for (size_t i = 0; i < sim->host_count; i++) {
        struct link_state *link = host_link(sim->hosts[i]);
        link->cut_there = link->cut_back = true;
        world_fault(world, "%s: cut off with all others", link->name);
        world_in(world, cut_for(world), mend, link, NULL);
    }
}

/* --- machines ------------------------------------------------------------------------------------------- */

static void kill_agent(struct nemesis *nemesis)
{
    host_kill_agent(some_host(nemesis->sim));
}

static void kill_shim(struct nemesis *nemesis)
{
    host_kill_shim(some_host(nemesis->sim));
}

static void power_off(struct nemesis *nemesis)
{
    struct world *world = &nemesis->sim->world;
    host_power_off(some_host(nemesis->sim), world_between(world, 2000, world_of(world, 70) ? 30000 : 900000));
}

static void heard(void *closure, const struct wire_answer *answer)
{
}

static const lifetime forever = 1;

static struct link_state operator_link = {.name = "operator"};

static void operate(struct sim *sim, const char *verb, const char *name, bool persistent)
{
    wire_send(sim->wire, &(struct wire_call){.link = &operator_link,
                                             .kind = WIRE_JOB,
                                             .path = xprintf("%s/%s", verb, name),
                                             .body = xstrdup(""),
                                             .who = "operator",
                                             .timeout_ms = 5000,
                                             .persistent = persistent,
                                             .done = heard,
                                             .owner = &forever});
}

/* The operator declares a node dead, after switching it off. The request may be late, or wait while the
 * controller stands still, so the node stays off for longer than both. */
static void fence(struct nemesis *nemesis)
{
    struct host *host = some_host(nemesis->sim);
    if (host_power_off(host, world_between(&nemesis->sim->world, 450000, 700000))) {
        operate(nemesis->sim, "fence", host_name(host), false);
    }
}

/* At most 2 GPUs of each type; 1 A10 is guaranteed, the others are borrowed. */
#define LIMITS      "{\"max_gpus\":{\"A10\":2,\"H100\":2},\"quota\":{\"A10\":1}}"
#define LIMITS_GPUS 2

static void limited(void *closure, const struct wire_answer *answer)
{
    struct sim *sim = closure;
    if (world_check(&sim->world, answer->status == 200, "protocol", "a limit was answered with %d",
                    answer->status)) {
        judge_limit(sim, LIMITS_GPUS);
    }
}

static void tell_limits(struct sim *sim, const char *limits, void (*done)(void *, const struct wire_answer *))
{
    wire_send(sim->wire, &(struct wire_call){.link = &operator_link,
                                             .kind = WIRE_JOB,
                                             .path = xstrdup("limit/" LIMITED_PROJECT),
                                             .body = xstrdup(limits),
                                             .who = "operator",
                                             .timeout_ms = 5000,
                                             .persistent = true,
                                             .done = done,
                                             .closure = sim,
                                             .owner = &forever});
}

static void drain(struct nemesis *nemesis)
{
    const char *verb = world_of(&nemesis->sim->world, 30) ? "drain" : "resume";
    operate(nemesis->sim, verb, host_name(some_host(nemesis->sim)), false);
}

/* --- the controller ------------------------------------------------------------------------------------- */

static void kill_controller(struct nemesis *nemesis)
{
    controller_kill(nemesis->sim->controller);
}

static void cut_power(struct nemesis *nemesis)
{
    controller_cut_power(nemesis->sim->controller, world_between(&nemesis->sim->world, 0, 30));
}

static void stall(struct nemesis *nemesis)
{
    struct world *world = &nemesis->sim->world;
    controller_stall(nemesis->sim->controller,
                     world_between(world, 100, world_of(world, 70) ? 5000 : 300000));
}

static void fail_disk(struct nemesis *nemesis)
{
    struct world *world = &nemesis->sim->world;
    int code = world_of(world, 50) ? SQLITE_IOERR : SQLITE_FULL;
    int64_t operations = world_between(world, 0, 20);
    world_fault(world, "controller: the disk %s in %lld operations",
                code == SQLITE_FULL ? "is full" : "fails", (long long)operations);
    controller_expect_failure(nemesis->sim->controller);
    disk_fail_after(controller_disk(nemesis->sim->controller), operations, code, world_of(world, 50));
}

static void set_wall_clock(struct nemesis *nemesis)
{
    struct world *world = &nemesis->sim->world;
    int64_t limit_ms = world_of(world, 50) ? 10000 : 10 * YEAR_MS;
    world->wall_shift_ms += world_between(world, -limit_ms, limit_ms);
    world_fault(world, "the wall clock is set to %lld", (long long)world_wall_ms(world));
}

/* --- the choice ----------------------------------------------------------------------------------------- */

static const struct {
    unsigned weight;
    void (*make)(struct nemesis *nemesis);
} faults[] = {{10, cut_link}, {1, swizzle}, {10, kill_agent}, {4, kill_shim},
              {4, power_off}, {1, fence},   {3, drain},       {6, kill_controller},
              {5, cut_power}, {4, stall},   {3, fail_disk},   {2, set_wall_clock}};

static void strike(void *closure)
{
    struct nemesis *nemesis = closure;
    struct world *world = &nemesis->sim->world;
    if (world->healthy) {
        return;
    }
    int64_t total = 0;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        total += faults[i].weight;
    }
    int64_t drawn = world_between(world, 0, total - 1);
    size_t which = 0;
    while (drawn >= (int64_t)faults[which].weight) {
        drawn -= faults[which++].weight;
    }
    faults[which].make(nemesis);
    world_in(world, world_between(world, 1, 2 * nemesis->pace_ms), strike, nemesis, NULL);
}

void nemesis_begin(struct sim *sim)
{
    struct world *world = &sim->world;
    struct nemesis *nemesis = world_keep(world, sizeof *nemesis);
    *nemesis = (struct nemesis){.sim = sim, .pace_ms = world_between(world, 10000, 60000)};
    if (world_of(world, 40)) {
        tell_limits(sim, LIMITS, limited);
    }
    world_in(world, world_between(world, 10000, 40000), strike, nemesis, NULL);
}

/* Removes the limits, too: older work may be too large ever to run under them. */
static void resume_all(void *closure)
{
    struct sim *sim = closure;
    judge_limit(sim, -1);
    tell_limits(sim, "{}", heard);
    for (size_t i = 0; i < sim->host_count; i++) {
        operate(sim, "resume", host_name(sim->hosts[i]), true);
    }
}

void nemesis_end(struct sim *sim)
{
    world_in(&sim->world, 120000, resume_all, sim, NULL); /* after the arrival of earlier requests */
    disk_heal(controller_disk(sim->controller));
    disk_crash_after(controller_disk(sim->controller), -1);
    for (size_t i = 0; i < sim->host_count; i++) {
        mend(host_link(sim->hosts[i]));
    }
}
