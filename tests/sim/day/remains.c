/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what the ranks of the day have said, logged and used, with the code that keeps it in the controller:
 * streams, the tracking store, and the rings of nodes. What the programs compute is made up of their plans.
 */
#include "tests/sim/day/remains.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/blob/logs.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/mlflow/tracking.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define LINES_MOST   400
#define STEPS_MOST   240
#define SAMPLES_MOST 30
#define RANKS_SHOWN  8
#define NAME_BYTES   96

struct remains {
    struct day *day;
    struct worker *worker;
    struct logs *logs;
    struct tracking *tracking;
    uint8_t key[HASH_BYTES];
    char *rings;
};

struct remains *remains_create(struct day *day)
{
    struct err err;
    struct remains *remains = xzalloc(sizeof *remains);
    autofree char *logs = xprintf("%s/logs", day->folder);
    autofree char *database = xprintf("%s/mlflow.db", day->folder);
    autofree char *key = xprintf("%s/rank.key", day->folder);
    remains->day = day;
    remains->rings = xprintf("%s/" SAMPLE_RING_FOLDER, day->folder);
    day_must((remains->worker = worker_open(&err)) != NULL &&
                 (remains->logs = logs_open(logs, logs, GIB, remains->worker, &err)) != NULL &&
                 (remains->tracking = tracking_open(database, &err)) != NULL &&
                 rank_key_open(key, remains->key, &err) &&
                 (mkdir(remains->rings, 0700) == 0 || err_errno(&err, "cannot make %s", remains->rings)),
             &err);
    return remains;
}

void remains_destroy(struct remains *remains)
{
    tracking_close(remains->tracking);
    worker_close(remains->worker);
    logs_close(remains->logs);
    free(remains->rings);
    free(remains);
}

/* --- output --------------------------------------------------------------------------------------------- */

static int64_t append(struct remains *remains, const struct run *run, int64_t rank, enum stream stream,
                      const struct text *text)
{
    struct err err;
    int64_t received = 0, durable;
    const struct log_name name = {
        .job_id = run->job_id, .attempt = run->attempt, .rank = rank, .stream = stream};
    if (text->length > 0) {
        day_must(logs_append(remains->logs, &name, 0, text->bytes, text->length, &received, &durable, &err),
                 &err);
    }
    return received;
}

/* How many of the most things that it says has a run said by now. */
static int64_t said(const struct run *run, int64_t pace_ms, int64_t most)
{
    int64_t ran_ms = run->day->world.now_ms - run->begun_ms;
    int64_t lasts_ms = run->plan->lasts_ms > 0 ? run->plan->lasts_ms : 1;
    int64_t all = lasts_ms / pace_ms + 1;
    all = all < most ? all : most;
    int64_t count = all * ran_ms / lasts_ms + 1;
    return count < most ? count : most;
}

static double loss_at(const struct run *run, int64_t step)
{
    double shape = (double)(run->plan->at_ms % 97) / 97;
    double noise = (double)((uint64_t)(step + 1) * 2654435761U % 1000) / 1000 - 0.5;
    return 0.4 + shape + (3 - shape) * exp(-(double)step / (40 + 50 * shape)) + 0.06 * noise;
}

static void write_lines(const struct run *run, int64_t rank, struct text *out)
{
    int64_t count = rank == 0 ? said(run, 15 * SECOND_MS, LINES_MOST) : 0;
    text_printf(out, "rank %lld of %lld: attempt %lld of %s\n", (long long)rank, (long long)run->gpus,
                (long long)run->attempt, run->plan->name);
    for (int64_t i = 0; i < count; i++) {
        if (run->plan->kind->trains) {
            text_printf(out, "step %5lld  loss %.4f  lr %.2e  %lld samples/s\n", (long long)(i * 10),
                        loss_at(run, i), 3e-4 * (double)(count - i) / (double)count,
                        (long long)(410 * run->gpus + i % 23));
        } else {
            text_printf(out, "batch %lld: accuracy %.4f\n", (long long)i, 0.9 - 0.2 / (double)(i + 1));
        }
    }
}

static void write_errors(const struct run *run, int64_t rank, struct text *out)
{
    bool over = run->day->world.now_ms >= run->ends_ms && run->stopped == CAUSE_NONE;
    if (!over || rank != run->failing_rank || run->fate == FATE_CRASHES) {
        return;
    }
    text_append(out, "Traceback (most recent call last):\n  File \"train.py\", line 88, in <module>\n"
                     "    main()\n  File \"train.py\", line 61, in main\n    loss.backward()\n");
    text_append(out, run->fate == FATE_OUT_OF_MEMORY
                         ? "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB\n"
                         : "RuntimeError: loss is nan at step 412\n");
}

void remains_output(struct remains *remains, struct piece *piece)
{
    const struct run *run = piece->run;
    for (int64_t i = 0; piece->begun && run->fate != FATE_NOT_THERE && i < piece->local_ranks; i++) {
        autotext struct text lines = {0}, errors = {0};
        int64_t rank = piece->first_rank + i;
        write_lines(run, rank, &lines);
        write_errors(run, rank, &errors);
        piece->out_bytes[i] = append(remains, run, rank, STREAM_STDOUT, &lines);
        piece->err_bytes[i] = append(remains, run, rank, STREAM_STDERR, &errors);
    }
}

/* --- metrics -------------------------------------------------------------------------------------------- */

/* Points in the making, and the stream that they come in. */
struct points {
    struct tracking_point *items;
    size_t count, room;
    struct text stream;
};

static void add_point(struct points *points, const char *name, int64_t rank, double value, int64_t step,
                      int64_t at_ms)
{
    XGROW(points->items, points->count, points->room, 256);
    points->items[points->count++] =
        (struct tracking_point){.name = name, .rank = rank, .value = value, .step = step, .at_ms = at_ms};
}

static int64_t wall_of(const struct run *run, int64_t at_ms)
{
    const struct world *world = &run->day->world;
    return world_wall_ms(world) - world->now_ms + at_ms;
}

static int64_t moment_of(const struct run *run, int64_t index, int64_t count)
{
    return wall_of(run, run->begun_ms + (run->day->world.now_ms - run->begun_ms) * (index + 1) / (count + 1));
}

static void log_training(const struct run *run, struct points *points)
{
    int64_t count = said(run, 30 * SECOND_MS, STEPS_MOST);
    int64_t ranks = run->gpus / run->nodes < RANKS_SHOWN ? run->gpus / run->nodes : RANKS_SHOWN;
    for (int64_t i = 0; i < count; i++) {
        int64_t at_ms = moment_of(run, i, count);
        add_point(points, "loss", 0, loss_at(run, i), i * 10, at_ms);
        if (i % 10 == 9) {
            add_point(points, "accuracy", 0, 1 - loss_at(run, i) / 5, i * 10, at_ms);
        }
        for (int64_t rank = 0; i % 4 == 0 && rank < ranks; rank++) {
            add_point(points, "samples_per_s", rank, 400 + (double)((i * 7 + rank * 13) % 29), i * 10, at_ms);
        }
    }
    for (size_t i = 0; i < points->count; i++) {
        const struct tracking_point *point = &points->items[i];
        text_printf(&points->stream,
                    "{\"metric\":\"%s\",\"value\":%.6f,\"step\":%lld,\"rank\":%lld,\"time\":%lld.%03lld}\n",
                    point->name, point->value, (long long)point->step, (long long)point->rank,
                    (long long)(point->at_ms / 1000), (long long)(point->at_ms % 1000));
    }
    int64_t now_ms = wall_of(run, run->day->world.now_ms);
    double part = (double)(run->day->world.now_ms - run->begun_ms) / (double)(run->plan->lasts_ms + 1);
    text_printf(
        &points->stream, "{\"progress\":%.3f,\"text\":\"step %lld of %d\",\"rank\":0,\"time\":%lld.000}\n",
        part < 1 ? part : 1, (long long)((count - 1) * 10), STEPS_MOST * 10, (long long)(now_ms / 1000));
}

/* As the agents' samples come into a run, daemon/http/mlflow/mlflow_samples.c; of the first node. */
static void add_samples(const struct run *run, struct points *points, char (*names)[NAME_BYTES])
{
    static const char *const parts[] = {"cpu_utilization_percentage", "system_memory_usage_megabytes",
                                        "gpu_%lld_utilization_percentage", "gpu_%lld_memory_usage_megabytes",
                                        "gpu_%lld_power_usage_watts"};
    int64_t count = said(run, 2 * MINUTE_MS, SAMPLES_MOST), gpus = run->gpus / run->nodes;
    const struct kind *kind = run->plan->kind;
    const double values[] = {35, 61000, (double)kind->busy_percent, 800 * (double)kind->memory_percent,
                             4 * (double)kind->busy_percent};
    size_t used = 0;
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
        for (int64_t gpu = 0; gpu < (part < 2 ? 1 : gpus); gpu++, used++) {
            int length = snprintf(names[used], NAME_BYTES, "system/%s/", run->first_node);
            char *rest = names[used] + length;
            if (part < 2) {
                snprintf(rest, NAME_BYTES - (size_t)length, "%s", parts[part]);
            } else {
                const char *unit = strstr(parts[part], "lld_") + 4;
                snprintf(rest, NAME_BYTES - (size_t)length, "gpu_%lld_%s", (long long)gpu, unit);
            }
            for (int64_t i = 0; i < count; i++) {
                int64_t at_ms = moment_of(run, i, count);
                double wave = 1 + 0.03 * (double)((i * 11 + gpu * 5) % 7 - 3);
                add_point(points, names[used], 0, floor(values[part] * wave * 10) / 10,
                          (at_ms - wall_of(run, run->begun_ms)) / 1000, at_ms);
            }
        }
    }
}

/* --- runs ----------------------------------------------------------------------------------------------- */

static void tracked(bool ok, const struct tracking_error *error)
{
    struct err err;
    day_must(ok || err_set(&err, ERR_IO, "%s", error->message), &err);
}

static void begin_run(struct remains *remains, const struct run *run, const char *run_id)
{
    struct tracking_error error;
    const struct plan *plan = run->plan;
    const struct tracking_job job = {.run_id = run_id,
                                     .experiment = plan->name,
                                     .run_name = plan->name,
                                     .owner = plan->owner,
                                     .job_id = run->job_id,
                                     .attempt = run->attempt,
                                     .project = plan->project,
                                     .nodes = run->nodes,
                                     .gpus = run->gpus,
                                     .start_ms = wall_of(run, run->begun_ms)};
    tracked(tracking_job_begin(remains->tracking, &job, &error), &error);
}

/* What a program that trains tells of itself, through MLflow's client. */
static void describe(struct remains *remains, const struct run *run, const char *run_id)
{
    struct tracking_error error;
    autotext struct text out = {0};
    int64_t salt = run->plan->at_ms + run->task;
    autofree char *rate = xprintf("%.4g", 1e-4 * (double)(1 + salt % 9));
    autofree char *batch = xprintf("%lld", 16LL << salt % 4);
    autojson json_t *body = json_pack(
        "{ss,s[{ss,ss},{ss,ss},{ss,ss}],s[{ss,ss}]}", "run_id", run_id, "params", "key", "learning_rate",
        "value", rate, "key", "batch_size", "value", batch, "key", "optimizer", "value",
        salt % 3 == 0 ? "lion" : "adamw", "tags", "key", "dataset", "value", run->plan->project);
    const struct tracking_request request = {
        .body = body, .owner = run->plan->owner, .own_run = run_id, .now_ms = wall_of(run, run->begun_ms)};
    const struct tracking_endpoint *endpoint = tracking_endpoint_find("POST", "runs/log-batch");
    tracked(tracking_serve(remains->tracking, endpoint, &request, &out, &error), &error);
}

static enum tracking_status status_of(const struct run *run)
{
    return run->stopped != CAUSE_NONE                             ? TRACKING_RUN_KILLED
           : run->fate == FATE_WELL || run->fate == FATE_TOO_LONG ? TRACKING_RUN_FINISHED
                                                                  : TRACKING_RUN_FAILED;
}

/* A job that is over before it was measured has none. */
void remains_run(struct remains *remains, const struct run *run, bool over)
{
    char run_id[TRACKING_RUN_ID_BYTES];
    char(*names)[NAME_BYTES];
    struct tracking_error error;
    struct points metrics = {0}, samples = {0};
    if (run->day->world.now_ms - run->begun_ms < MINUTE_MS) {
        return;
    }
    rank_run_id(remains->key, run->attempt_id, run_id);
    begin_run(remains, run, run_id);
    if (run->plan->kind->trains) {
        describe(remains, run, run_id);
        log_training(run, &metrics);
        append(remains, run, 0, STREAM_METRICS, &metrics.stream);
        const struct tracking_copy copy = {.run_id = run_id,
                                           .points = metrics.items,
                                           .point_count = metrics.count,
                                           .bytes = (int64_t)metrics.stream.length};
        tracked(tracking_job_copy(remains->tracking, &copy, &error), &error);
    }
    names = xzalloc((2 + 3 * NODE_GPUS) * sizeof *names);
    add_samples(run, &samples, names);
    tracked(tracking_job_log(remains->tracking, run_id, samples.items, samples.count, &error), &error);
    if (over) {
        int64_t end_ms = wall_of(run, run->day->world.now_ms);
        tracked(tracking_job_end(remains->tracking, run_id, status_of(run), end_ms, &error), &error);
    }
    text_finish(&metrics.stream);
    free(metrics.items);
    free(samples.items);
    free(names);
}

/* --- samples of nodes ----------------------------------------------------------------------------------- */

void remains_sample(struct remains *remains, const char *node, const struct ring_gpu *gpus, size_t count,
                    double cpu_percent, int64_t memory_bytes)
{
    struct err err;
    bool anew;
    const struct ring_record record = {.at_ms = world_wall_ms(&remains->day->world),
                                       .cpu_percent = cpu_percent,
                                       .memory_bytes = memory_bytes};
    day_must(sample_ring_put(remains->rings, node, &record, gpus, count, &anew, &err), &err);
}
