/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on the nodes of the day: parts of attempts, from their order until it is withdrawn. A program
 * runs for as long as its plan says, ends as that says, and obeys when it is told to stop. How long GPUs were
 * held is counted here, from orders alone. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "tests/sim/day/nodes_parts.h"
#include "tests/sim/day/people.h"
#include "tests/sim/day/remains.h"

#define PICKLE_OF_7 "\x80\x04K\x07."
#define KILLED      (128 + SIGKILL)
#define CRASHED     (128 + SIGSEGV)
#define TERMINATED  (128 + SIGTERM)

static struct day *day_of(const struct piece *piece)
{
    return piece->node->cluster->day;
}

/* --- runs ----------------------------------------------------------------------------------------------- */

static struct run *run_of(struct cluster *cluster, const struct order *order)
{
    struct run *run;
    HASH_FIND(hh, cluster->runs, &order->attempt_id, sizeof order->attempt_id, run);
    if (run == NULL) {
        const char *submitted = order->array_id != NULL ? order->array_id : order->job_id;
        run = xzalloc(sizeof *run);
        *run = (struct run){.day = cluster->day,
                            .attempt_id = order->attempt_id,
                            .plan = people_plan(cluster->day->people, submitted),
                            .attempt = order->attempt,
                            .task = order->task,
                            .nodes = order->nodes,
                            .gpus = order->world,
                            .ordered_ms = cluster->day->world.now_ms,
                            .begun_ms = -1,
                            .failing_rank = -1};
        snprintf(run->job_id, sizeof run->job_id, "%s", order->job_id);
        HASH_ADD(hh, cluster->runs, attempt_id, sizeof run->attempt_id, run);
    }
    return run;
}

/* When and how it ends by itself: of some that fail, the second attempt does not. */
static void draw_end(struct run *run)
{
    struct world *world = &run->day->world;
    const struct plan *plan = run->plan;
    int64_t lasts_ms = plan->lasts_ms;
    run->begun_ms = world->now_ms;
    run->fate = plan->fate;
    if (plan->tasks > 0) { /* each task has its own */
        lasts_ms = lasts_ms * world_between(world, 70, 130) / 100;
        run->fate = world_of(world, 4) ? FATE_FAILS : FATE_WELL;
    }
    if (run->attempt > 1 && plan->retried) {
        run->fate = FATE_WELL;
    }
    bool fails = run->fate == FATE_FAILS || run->fate == FATE_OUT_OF_MEMORY || run->fate == FATE_CRASHES;
    if (fails) {
        lasts_ms = lasts_ms * world_between(world, 2, 80) / 100;
        run->failing_rank = world_between(world, 0, run->gpus - 1);
    }
    run->ends_ms = world->now_ms + (run->fate == FATE_NOT_THERE ? SECOND_MS : lasts_ms);
}

/* --- the end -------------------------------------------------------------------------------------------- */

static int64_t failing_code(enum fate fate)
{
    return fate == FATE_OUT_OF_MEMORY ? KILLED : fate == FATE_CRASHES ? CRASHED : 1;
}

static void fill_rank(const struct piece *piece, int64_t local, struct rank_exit *rank)
{
    const struct run *run = piece->run;
    *rank = (struct rank_exit){.rank = piece->first_rank + local,
                               .at_ms = world_wall_ms(&run->day->world),
                               .out_bytes = piece->out_bytes[local],
                               .err_bytes = piece->err_bytes[local]};
    if (rank->rank == run->failing_rank && run->stopped == CAUSE_NONE) {
        rank->code = failing_code(run->fate);
        rank->signal = rank->code > 128 ? rank->code - 128 : 0;
    } else if (run->stopped != CAUSE_NONE || run->failing_rank >= 0) {
        rank->code = TERMINATED;
        rank->signal = SIGTERM;
        rank->by_us = true;
    }
}

static enum cause cause_of(const struct run *run)
{
    if (run->stopped != CAUSE_NONE) {
        return run->stopped;
    }
    return run->fate == FATE_NOT_THERE       ? CAUSE_EXEC_FAILED
           : run->failing_rank < 0           ? CAUSE_NONE
           : run->fate == FATE_OUT_OF_MEMORY ? CAUSE_OUT_OF_MEMORY
                                             : CAUSE_RANK_FAILED;
}

/* What a function has returned. */
static struct rank_result result_of(int64_t rank)
{
    static uint8_t digest[HASH_BYTES];
    static char hash[HASH_HEX + 1];
    hash_bytes(PICKLE_OF_7, sizeof PICKLE_OF_7 - 1, digest);
    text_to_hex(digest, sizeof digest, hash);
    return (struct rank_result){.rank = rank,
                                .kind = RESULT_VALUE,
                                .size = sizeof PICKLE_OF_7 - 1,
                                .hash = hash,
                                .digest = digest,
                                .bytes = PICKLE_OF_7,
                                .json = "7"};
}

static struct gpu_use use_of(const struct piece *piece)
{
    const struct kind *kind = piece->run->plan->kind;
    int64_t ran_ms = piece->begun ? day_of(piece)->world.now_ms - piece->run->begun_ms : 0;
    int64_t watts = node_model(piece->node)->watts;
    int64_t power = watts / 8 + watts * kind->busy_percent * 7 / 800;
    return (struct gpu_use){.measured_ms = ran_ms * piece->local_ranks,
                            .idle_ms = kind->busy_percent < 5 ? ran_ms * piece->local_ranks * 9 / 10 : 0,
                            .energy_mj = power * ran_ms * piece->local_ranks,
                            .io_read_bytes = ran_ms * 3000,
                            .io_written_bytes = ran_ms * 200};
}

/* All processes on the node are gone. */
static void exits(struct piece *piece)
{
    struct run *run = piece->run;
    struct rank_exit ranks[NODE_GPUS];
    struct rank_result result = result_of(piece->first_rank);
    piece->over = true;
    piece->life++;
    remains_output(run->day->remains, piece);
    struct report_message report = node_report(piece, REPORT_EXITED);
    report.cause = cause_of(run);
    report.text = run->fate == FATE_NOT_THERE ? "pyhton: No such file or directory" : NULL;
    report.said = run->fate == FATE_FAILS ? "RuntimeError: loss is nan at step 412" : NULL;
    report.flushed = true;
    report.ranks = ranks;
    report.use = use_of(piece);
    for (int64_t i = 0; piece->begun && run->fate != FATE_NOT_THERE && i < piece->local_ranks; i++) {
        fill_rank(piece, i, &ranks[report.rank_count++]);
    }
    if (run->plan->kind->function && report.cause == CAUSE_NONE) {
        report.results = &result;
        report.result_count = 1;
    }
    if (piece->begun) {
        report.timing = (struct node_timing){.begun_us = 900,
                                             .running_us = 9000,
                                             .output_us = 240000,
                                             .ended_us = (run->day->world.now_ms - run->begun_ms) * 1000};
    }
    if (!run->told && run->begun_ms >= 0) {
        run->told = true;
        remains_run(run->day->remains, run, true);
    }
    node_say(piece, &report);
}

/* The node of the rank that fails first tells so before all its processes are gone. */
static void ends(void *closure)
{
    struct piece *piece = closure;
    struct run *run = piece->run;
    int64_t local = run->failing_rank - piece->first_rank;
    if (run->failing_rank >= 0 && (local < 0 || local >= piece->local_ranks)) {
        return; /* it is told to stop */
    }
    if (run->failing_rank >= 0 && run->nodes > 1) {
        struct rank_exit rank;
        struct report_message report = node_report(piece, REPORT_FAILED);
        fill_rank(piece, local, &rank);
        report.cause = cause_of(run);
        report.ranks = &rank;
        report.rank_count = 1;
        lifetime life = piece->life;
        node_say(piece, &report);
        if (piece->life != life) {
            return;
        }
    }
    exits(piece);
}

static void obeys(void *closure)
{
    exits(closure);
}

/* --- the beginning -------------------------------------------------------------------------------------- */

static void begins(void *closure)
{
    struct piece *piece = closure;
    struct run *run = piece->run;
    struct world *world = &run->day->world;
    if (run->begun_ms < 0) {
        draw_end(run);
    }
    piece->begun = true;
    if (run->fate != FATE_NOT_THERE) {
        struct report_message report = node_report(piece, REPORT_RUNNING);
        report.at_ms = world_wall_ms(world);
        report.start = "cold";
        report.timing = (struct node_timing){.begun_us = 900, .running_us = 9000};
        node_say(piece, &report);
    }
    world_in(world, run->ends_ms - world->now_ms, ends, piece, &piece->life);
}

static void prepared(void *closure)
{
    struct piece *piece = closure;
    struct report_message report = node_report(piece, REPORT_PREPARED);
    report.address = piece->node->address;
    report.master_port = DEFAULT_PORT_FIRST;
    report.timing.prepared_us = 350000;
    node_say(piece, &report);
}

static void declines(void *closure)
{
    struct piece *piece = closure;
    struct report_message report = node_report(piece, REPORT_DECLINED);
    piece->over = true;
    report.cause = CAUSE_DECLINED;
    report.text = "GPU 0 is held by a process that is not ours";
    node_say(piece, &report);
}

/* --- orders --------------------------------------------------------------------------------------------- */

static struct piece *piece_of(const struct node *node, uint64_t attempt_id)
{
    struct piece *piece = node->pieces;
    while (piece != NULL && piece->run->attempt_id != attempt_id) {
        piece = piece->next;
    }
    return piece;
}

static struct piece *add_piece(struct node *node, const struct order *order)
{
    struct world *world = &node->cluster->day->world;
    struct piece *piece = world_keep(world, sizeof *piece); /* appointments name it */
    *piece = (struct piece){.node = node,
                            .run = run_of(node->cluster, order),
                            .node_rank = order->node_rank,
                            .first_rank = order->first_rank,
                            .local_ranks = order->local_ranks,
                            .next = node->pieces};
    memcpy(piece->devices, order->devices, order->device_count * sizeof *order->devices);
    if (order->node_rank == 0) {
        piece->run->first_node = node->name;
    }
    piece->run->pieces++;
    node->pieces = piece;
    return piece;
}

static void obey(struct piece *piece, const struct order *order, bool fresh)
{
    struct world *world = &day_of(piece)->world;
    if (order->phase == ORDER_STOP) {
        if (!piece->over && !piece->stopping) {
            piece->stopping = true;
            piece->life++;
            bool by_failure = piece->run->failing_rank >= 0 && piece->run->ends_ms <= world->now_ms;
            piece->run->stopped = by_failure ? CAUSE_NONE : order->cause;
            world_in(world, world_between(world, 200, 12 * SECOND_MS), obeys, piece, &piece->life);
        }
    } else if (fresh && world_between(world, 0, 999) < 3) {
        world_in(world, 300, declines, piece, &piece->life);
    } else if (fresh && order->phase == ORDER_RUN) {
        world_in(world, world_between(world, 40, 900), begins, piece, &piece->life);
    } else if (fresh && order->phase == ORDER_PREPARE) {
        world_in(world, world_between(world, 300, 4000), prepared, piece, &piece->life);
    } else if (!piece->begun && !piece->over && !piece->starting && order->phase == ORDER_START) {
        piece->starting = true;
        world_in(world, world_between(world, 10, 60), begins, piece, &piece->life);
    }
}

static void count(json_t *of, const char *name, int64_t gpu_ms)
{
    json_int_t before = json_integer_value(json_object_get(of, name));
    json_object_set_new(of, name, json_integer(before + gpu_ms));
}

/* The controller wants nothing of it any more. The GPUs of all pieces are free when the last one has gone. */
static void withdrawn(struct piece *piece)
{
    struct run *run = piece->run;
    const json_t *held = piece->node->cluster->held;
    piece->life++;
    if (--run->pieces == 0) {
        int64_t gpu_ms = (run->day->world.now_ms - run->ordered_ms) * run->gpus;
        count(json_object_get(held, "owners"), run->plan->owner, gpu_ms);
        count(json_object_get(held, "projects"), run->plan->project, gpu_ms);
        count(json_object_get(held, "types"), node_model(piece->node)->name, gpu_ms);
    }
}

static bool lists(const struct node_orders *orders, uint64_t attempt_id)
{
    for (size_t i = 0; i < orders->count; i++) {
        if (orders->items[i].order.attempt_id == attempt_id) {
            return true;
        }
    }
    return false;
}

/* A deaf node hears nothing of it, but what is withdrawn is so for the controller. */
void pieces_ordered(struct node *node, const struct node_orders *orders)
{
    for (struct piece **at = &node->pieces; *at != NULL;) {
        struct piece *piece = *at;
        if (lists(orders, piece->run->attempt_id)) {
            at = &piece->next;
        } else {
            withdrawn(piece);
            *at = piece->next;
        }
    }
    for (size_t i = 0; i < orders->count; i++) {
        const struct order *order = &orders->items[i].order;
        struct piece *piece = piece_of(node, order->attempt_id);
        bool fresh = piece == NULL;
        piece = fresh ? add_piece(node, order) : piece;
        if (!node->deaf) {
            obey(piece, order, fresh);
        }
    }
}

void pieces_vanish(struct node *node)
{
    for (struct piece *piece = node->pieces; piece != NULL; piece = piece->next) {
        piece->over = true;
        piece->life++;
    }
}

/* --- the end of the day --------------------------------------------------------------------------------- */

void nodes_stop(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->count; i++) {
        for (struct piece *piece = cluster->nodes[i].pieces; piece != NULL; piece = piece->next) {
            struct run *run = piece->run;
            if (piece->begun && !piece->over) {
                remains_output(cluster->day->remains, piece);
            }
            if (!run->told && run->begun_ms >= 0) {
                run->told = true;
                remains_run(cluster->day->remains, run, false);
            }
        }
    }
}

void pieces_free(struct cluster *cluster)
{
    struct run *run, *next;
    HASH_ITER (hh, cluster->runs, run, next) {
        HASH_DEL(cluster->runs, run);
        free(run);
    }
}
