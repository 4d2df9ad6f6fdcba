/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a run: a time with faults, a time to come to rest, and the last audit. */
#include "tests/sim/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/files/files.h"
#include "tests/sim/controller/controller.h"
#include "tests/sim/node/host.h"
#include "tests/sim/controller/janitor.h"
#include "tests/sim/checks/judge.h"
#include "tests/sim/nemesis.h"
#include "tests/sim/people.h"
#include "tests/sim/planted.h"

#define FAULTS_MS     1200000LL /* at least this long, */
#define FAULTS_MIN    300       /* and until there were this many faults */
#define FAULTS_MAX_MS (12 * FAULTS_MS)
#define REST_MS       28800000LL /* enough for the longest job, and for all jobs that wait behind it */
#define REST_LOOK_MS  60000

static void open_all(struct sim *sim, uint64_t seed, const char *folder, bool tracing)
{
    *sim = (struct sim){0};
    planted_begin();
    world_init(&sim->world, seed, tracing);
    sim->wire = wire_create(&sim->world, controller_serve, sim);
    sim->truth = truth_create(&sim->world);
    sim->judge = judge_create();
    sim->host_count = (size_t)world_between(&sim->world, 2, world_of(&sim->world, 80) ? 5 : SIM_HOSTS_MAX);
    sim->people = people_create(sim);
    sim->controller = controller_create(sim, folder);
    for (size_t i = 0; i < sim->host_count; i++) {
        sim->hosts[i] = host_create(sim, i);
    }
    nemesis_begin(sim);
    janitor_begin(sim);
}

static void close_all(struct sim *sim)
{
    for (size_t i = 0; i < sim->host_count; i++) {
        host_destroy(sim->hosts[i]);
    }
    controller_destroy(sim->controller);
    people_destroy(sim->people);
    judge_destroy(sim->judge);
    truth_destroy(sim->truth);
    wire_destroy(sim->wire);
    world_finish(&sim->world);
}

static void run_until(struct sim *sim, int64_t until_ms)
{
    while (world_step(&sim->world, until_ms)) {
    }
}

static bool at_rest(struct sim *sim)
{
    bool empty = controller_is_up(sim->controller) && people_are_served(sim->people) &&
                 core_live_jobs(controller_core(sim->controller)) == 0;
    for (size_t i = 0; i < sim->host_count; i++) {
        empty = empty && host_is_empty(sim->hosts[i]);
    }
    return empty;
}

static void come_to_rest(struct sim *sim)
{
    struct world *world = &sim->world;
    int64_t until_ms = world->now_ms + REST_MS;
    world_note(world, "from here on nothing goes wrong");
    world->healthy = true;
    nemesis_end(sim);
    people_come_to_rest(sim->people);
    do {
        run_until(sim, world->now_ms + REST_LOOK_MS);
    } while (!world->violated && world->now_ms < until_ms && !at_rest(sim));
    if (!world->violated &&
        world_check(world, controller_is_up(sim->controller), "I17", "the controller is down")) {
        judge_rest(sim, controller_reader(sim->controller));
    }
}

void run_seed(uint64_t seed, const char *folder, bool tracing, struct verdict *ret_verdict)
{
    struct sim sim;
    struct err err;
    const struct submission *submissions;
    file_remove_tree(folder, &err); /* removes the files of an earlier run */
    mkdir(folder, 0700);
    open_all(&sim, seed, folder, tracing);
    struct world *world = &sim.world;
    do {
        run_until(&sim, world->now_ms + FAULTS_MS / 8);
    } while (!world->violated && (world->now_ms < FAULTS_MS || world->faults < FAULTS_MIN) &&
             world->now_ms < FAULTS_MAX_MS);
    if (!world->violated) {
        come_to_rest(&sim);
    }
    *ret_verdict = (struct verdict){.seed = seed,
                                    .hash = world->hash,
                                    .faults = world->faults,
                                    .checks = world->checks,
                                    .jobs = (int64_t)people_submissions(sim.people, &submissions),
                                    .simulated_ms = world->now_ms,
                                    .violated = world->violated};
    memcpy(ret_verdict->violation, world->violation, sizeof ret_verdict->violation);
    close_all(&sim);
}
