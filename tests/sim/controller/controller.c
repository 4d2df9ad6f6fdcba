/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the simulated controller: opening, batches of the writer, deaths. Answers and orders come only
 * from states that the writer has published. After a death, everything that was not on disk is gone. asks.c
 * handles requests, orders.c orders to nodes, judge.c invariants. */
#include "tests/sim/controller/controller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/database/pages.h"
#include "proto/base/text/text.h"
#include "tests/sim/controller/controller_parts.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/node/host.h"
#include "tests/sim/checks/judge.h"
#include "tests/sim/people.h"
#include "tests/sim/planted.h"

static struct world *world_here(const struct controller *controller)
{
    return &controller->sim->world;
}

int64_t controller_now(const struct controller *controller)
{
    return clock_at(&controller->clock, world_here(controller)->now_ms);
}

static struct moment this_moment(const struct controller *controller)
{
    return (struct moment){.boot_ms = controller_now(controller),
                           .wall_ms = world_wall_ms(world_here(controller))};
}

/* --- death ---------------------------------------------------------------------------------------------- */

static void start(void *closure);

static void close_all(struct controller *controller)
{
    reader_close(controller->reader);
    writer_close(controller->writer);
    store_close(controller->store);
    controller->reader = NULL;
    controller->writer = NULL;
    controller->store = NULL;
    asks_drop(controller);
    orders_drop(controller);
}

/* power: the machine loses power, too. Connections are made void before they are closed, so that closing
 * writes nothing. */
static void die(struct controller *controller, bool power)
{
    struct world *world = world_here(controller);
    controller->life++;
    disk_restart(controller->disk, power);
    close_all(controller);
    controller->up = false;
    if (power) {
        controller->clock = (struct machine_clock){.booted_ms = world->now_ms,
                                                   .first_ms = world_between(world, 1000, 30000),
                                                   .permille = world_between(world, 960, 1040)};
    }
    wire_reset(controller->sim->wire);
    world_in(world, world->healthy ? 100 : world_between(world, 100, world_of(world, 90) ? 5000 : 200000),
             start, controller, &controller->life);
}

void controller_kill(struct controller *controller)
{
    if (controller->up) {
        world_fault(world_here(controller), "controller is killed");
        die(controller, false);
    }
}

void controller_cut_power(struct controller *controller, int64_t operations)
{
    world_fault(world_here(controller), "controller loses power in %lld operations", (long long)operations);
    disk_crash_after(controller->disk, operations + 1);
}

void controller_stall(struct controller *controller, int64_t for_ms)
{
    world_fault(world_here(controller), "controller stands still for %lld ms", (long long)for_ms);
    controller->busy_until_ms = world_here(controller)->now_ms + for_ms;
}

void controller_expect_failure(struct controller *controller)
{
    controller->failing = true;
}

static void heal(struct controller *controller)
{
    disk_heal(controller->disk);
    controller->failing = false;
}

/* --- batches -------------------------------------------------------------------------------------------- */

static void batch(void *closure);

static void arrange_batch(struct controller *controller)
{
    struct world *world = world_here(controller);
    int64_t in_ms = controller->busy_until_ms - world->now_ms;
    if (!controller->turning) {
        controller->turning = true;
        world_in(world, in_ms > 0 ? in_ms : 0, batch, controller, &controller->life);
    }
}

void controller_asked(struct controller *controller)
{
    arrange_batch(controller);
}

static void time_due(void *closure)
{
    struct controller *controller = closure;
    controller->waits_ms = INT64_MAX;
    arrange_batch(controller);
}

static void arrange_time(struct controller *controller)
{
    struct world *world = world_here(controller);
    int64_t due_ms = writer_due_ms(controller->writer);
    if (due_ms != INT64_MAX && due_ms != controller->waits_ms) {
        controller->waits_ms = due_ms;
        world_in(world, clock_until(&controller->clock, world->now_ms, due_ms), time_due, controller,
                 &controller->life);
    }
}

static void publish(struct controller *controller)
{
    struct writer_news news;
    writer_collect(controller->writer, &news);
    if (!news.failed) {
        judge_committed(controller->sim, controller->reader, &news);
    }
    for (size_t i = 0; i < news.order_count; i++) {
        orders_put(controller, news.orders[i]);
    }
    asks_answer(controller, news.answered);
    for (size_t i = 0; i < HOST_TYPES; i++) {
        judge_held(controller->sim, i, orders_held(controller, LIMITED_PROJECT, host_types[i]));
    }
    writer_news_finish(&news);
}

/* Prints the decisions of the core, for readers of a trace. */
static void show_decisions(struct controller *controller)
{
    if (controller->decisions.length > 0) {
        printf("%s", controller->decisions.bytes);
        fflush(stdout);
        text_clear(&controller->decisions);
    }
}

/* Runs a batch. A commit takes time: its results appear afterwards, and requests in between wait. */
static void batch(void *closure)
{
    struct controller *controller = closure;
    struct world *world = world_here(controller);
    controller->turning = false;
    if (controller->busy_until_ms > world->now_ms) {
        arrange_batch(controller);
        return;
    }
    bool slow = world_mishap(world, 2);
    controller->busy_until_ms = world->now_ms + world_between(world, 1, slow ? 5000 : 3);
    bool ok = writer_run_batch(controller->writer, this_moment(controller));
    if (!ok || disk_crashed(controller->disk)) {
        world_fault(world, "controller fails: %s", disk_crashed(controller->disk) ? "no power" : "the disk");
        bool power = disk_crashed(controller->disk);
        if (!power && world_of(world, 50)) {
            publish(controller); /* its last answers may still get out */
        }
        heal(controller);
        die(controller, power);
        return;
    }
    show_decisions(controller);
    if (world_rare(world, RARE_BEFORE_ANSWERS)) {
        controller_kill(controller);
        return;
    }
    publish(controller);
    if (world_rare(world, RARE_BATCH_WITHOUT_WORK)) {
        arrange_batch(controller);
    }
    core_check(writer_core(controller->writer));
    arrange_time(controller);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static bool open_all(struct controller *controller)
{
    const struct writer_config config = {.heartbeat_ms = controller->heartbeat_ms,
                                         .policy = controller->policy,
                                         .pass_work = controller->pass_work};
    struct err err;
    controller->store = store_open(controller->path, &err);
    if (controller->store != NULL) {
        controller->writer = writer_open(controller->store, &config, this_moment(controller), &err);
    }
    if (controller->writer != NULL && !disk_crashed(controller->disk)) {
        controller->reader = reader_open(controller->path, &err);
    }
    if (controller->reader != NULL) {
        return true;
    }
    world_note(world_here(controller), "controller cannot start: %s", err.text);
    return false;
}

static void start(void *closure)
{
    struct controller *controller = closure;
    struct world *world = world_here(controller);
    if (world_mishap(world, 100)) {
        controller_cut_power(controller, world_between(world, 0, 60)); /* while it recovers */
    }
    if (!open_all(controller)) {
        bool power = disk_crashed(controller->disk);
        world_check(world, power || controller->failing, "I23",
                    "the controller cannot start on a sound disk");
        heal(controller);
        die(controller, power);
        return;
    }
    controller->up = true;
    controller->turning = false;
    controller->waits_ms = INT64_MAX;
    controller->busy_until_ms = 0;
    if (world->tracing) {
        writer_trace(controller->writer, &controller->decisions);
    }
    world_note(world, "controller serves, incarnation %u", store_incarnation(controller->store));
    judge_booted(controller->sim, controller->reader, store_incarnation(controller->store));
    publish(controller);
    core_check(writer_core(controller->writer));
    arrange_time(controller);
}

struct controller *controller_create(struct sim *sim, const char *folder)
{
    static const enum policy policies[] = {POLICY_DEFAULT, POLICY_DEFAULT, POLICY_FIFO, POLICY_EASY,
                                           POLICY_SJF};
    struct controller *controller = xzalloc(sizeof *controller);
    uint8_t seed[8];
    controller->sim = sim;
    controller->path = xprintf("%s/gpuctl.db", folder);
    world_bytes(&sim->world, seed, sizeof seed);
    uint64_t number;
    memcpy(&number, seed, sizeof number);
    controller->disk = disk_create("sim", true, number | 1);
    disk_lie(controller->disk, planted_is(PLANTED_SKIP_FSYNC));
    disk_sync_early(controller->disk, planted_is(PLANTED_FRAME_AFTER_SYNC) ? PAGE_BYTES / 512 : 0);
    controller->policy = policies[world_between(&sim->world, 0, 4)];
    /* Every third run visits one queue entry a step. */
    controller->pass_work = sim->world.seed % 3 == 0 ? 1 : 0;
    controller->heartbeat_ms = world_of(&sim->world, 50) ? 10000 : 20000;
    controller->clock = (struct machine_clock){.booted_ms = 0, .first_ms = 5000, .permille = 1000};
    controller->life = 1;
    world_in(&sim->world, 0, start, controller, &controller->life);
    return controller;
}

void controller_destroy(struct controller *controller)
{
    if (controller == NULL) {
        return;
    }
    disk_restart(controller->disk, false);
    close_all(controller);
    disk_destroy(controller->disk);
    text_finish(&controller->decisions);
    free(controller->path);
    free(controller);
}

bool controller_is_up(const struct controller *controller)
{
    return controller->up;
}

struct disk *controller_disk(struct controller *controller)
{
    return controller->disk;
}

struct reader *controller_reader(struct controller *controller)
{
    return controller->reader;
}

const struct core *controller_core(const struct controller *controller)
{
    return controller->up ? writer_core(controller->writer) : NULL;
}
