/* SPDX-License-Identifier: Apache-2.0 */
/* Brings samples, the measurements of what attempts use on their nodes, from a heartbeat into the runs of
 * these attempts, under the names that MLflow's client gives to what it measures. No heartbeat waits for the
 * tracking store. The samples that wait for it have a bound: those above it are dropped, because the next
 * ones come soon. mlflow_jobs.c says which attempts have their samples stored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/worker.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_tracking.h"

#define MEGABYTE   1e6 /* as MLflow counts it */
#define FULL       100.0
#define OF_NODE    5 /* values of a sample beside those of GPUs */
#define OF_GPU     4
#define OF_RANK    4
#define MOST       (OF_NODE + OF_GPU * LIMIT_SAMPLE_GPUS + OF_RANK * LIMIT_SAMPLE_RANKS)
#define PART_BYTES 40
#define NAME_BYTES (LIMIT_NAME_BYTES + 96)

/* A sample on its way to the store. */
struct delivery {
    struct task task; /* first */
    struct server *server;
    struct tracking *tracking;
    char run_id[TRACKING_RUN_ID_BYTES];
    char node[LIMIT_NAME_BYTES + 1];
    struct sample sample;
    bool ok;
    struct tracking_error error;
};

/* The points of a sample. */
struct points {
    const struct delivery *delivery;
    struct tracking_point items[MOST];
    char names[MOST][NAME_BYTES];
    size_t count;
};

/* --- names and values ----------------------------------------------------------------------------------- */

static double round_tenth(double value)
{
    return (double)(int64_t)(value * 10 + 0.5) / 10;
}

/* Adds a value unless it is negative: that is one which the node does not know. part is that of the key:
 * "system_memory", "gpu_0". */
static void add(struct points *points, double value, const char *part, const char *unit)
{
    const struct delivery *delivery = points->delivery;
    if (value < 0) {
        return;
    }
    char *name = points->names[points->count];
    snprintf(name, NAME_BYTES, "system/%s/%s_%s", delivery->node, part, unit);
    points->items[points->count++] = (struct tracking_point){.name = name,
                                                             .value = round_tenth(value),
                                                             .step = delivery->sample.step,
                                                             .at_ms = delivery->sample.at_ms};
}

static void add_memory(struct points *points, const char *part, int64_t used_bytes, int64_t total_bytes)
{
    double used = (double)used_bytes;
    add(points, used / MEGABYTE, part, "usage_megabytes");
    add(points, total_bytes > 0 ? FULL * used / (double)total_bytes : -1, part, "usage_percentage");
}

/* Under the names of the node's, with the ending that metrics of ranks have. */
static void fill_ranks(struct points *points)
{
    const struct sample *sample = &points->delivery->sample;
    for (size_t i = 0; i < sample->rank_count; i++) {
        const struct rank_sample *rank = &sample->ranks[i];
        char percent[PART_BYTES], megabytes[PART_BYTES], read[PART_BYTES], written[PART_BYTES];
        snprintf(percent, sizeof percent, "utilization_percentage/rank_%lld", (long long)rank->rank);
        snprintf(megabytes, sizeof megabytes, "usage_megabytes/rank_%lld", (long long)rank->rank);
        snprintf(read, sizeof read, "read_megabytes/rank_%lld", (long long)rank->rank);
        snprintf(written, sizeof written, "written_megabytes/rank_%lld", (long long)rank->rank);
        add(points, rank->cpu_percent, "cpu", percent);
        add(points, (double)rank->memory_bytes / MEGABYTE, "system_memory", megabytes);
        add(points, (double)rank->io_read_bytes / MEGABYTE, "io", read);
        add(points, (double)rank->io_written_bytes / MEGABYTE, "io", written);
    }
}

static void fill(struct points *points)
{
    const struct sample *sample = &points->delivery->sample;
    add(points, sample->cpu_percent, "cpu", "utilization_percentage");
    add_memory(points, "system_memory", sample->memory_bytes, sample->memory_total_bytes);
    add(points, (double)sample->io_read_bytes / MEGABYTE, "io", "read_megabytes");
    add(points, (double)sample->io_written_bytes / MEGABYTE, "io", "written_megabytes");
    fill_ranks(points);
    for (size_t i = 0; i < sample->gpu_count; i++) {
        const struct gpu_sample *gpu = &sample->gpus[i];
        char part[PART_BYTES], memory[PART_BYTES];
        snprintf(part, sizeof part, "gpu_%zu", i);
        snprintf(memory, sizeof memory, "gpu_%zu_memory", i);
        add(points, (double)gpu->busy_percent, part, "utilization_percentage");
        add_memory(points, memory, gpu->memory_bytes, gpu->memory_total_bytes);
        add(points, (double)gpu->power_mw / 1000, part, "power_usage_watts");
    }
}

/* --- the store ------------------------------------------------------------------------------------------ */

static void deliver(struct task *task)
{
    struct delivery *delivery = (struct delivery *)task;
    struct points *points = xzalloc(sizeof *points);
    points->delivery = delivery;
    fill(points);
    delivery->ok = tracking_job_log(delivery->tracking, delivery->run_id, points->items, points->count,
                                    &delivery->error);
    free(points);
}

/* What a full disk refused is not tried again: the next sample comes soon. */
static void delivered(struct task *task)
{
    struct delivery *delivery = (struct delivery *)task;
    if (delivery->server->mlflow != NULL) {
        delivery->server->mlflow->samples--;
    }
    if (!delivery->ok && delivery->error.code != TRACKING_RESOURCE_DOES_NOT_EXIST &&
        delivery->error.code != TRACKING_TEMPORARILY_UNAVAILABLE) {
        log_warning("sample left", "run=%s node=%s text=\"%s\"", delivery->run_id, delivery->node,
                    delivery->error.message);
    }
    sample_finish(&delivery->sample);
    free(delivery);
}

static void hand_over(struct server *server, const char *node, struct sample *sample)
{
    struct delivery *delivery = xzalloc(sizeof *delivery);
    delivery->task = (struct task){.work = deliver, .done = delivered};
    delivery->server = server;
    delivery->tracking = server->mlflow->tracking;
    rank_run_id(server->rank_key, sample->attempt_id, delivery->run_id);
    snprintf(delivery->node, sizeof delivery->node, "%s", node);
    delivery->sample = *sample;
    sample->gpus = NULL;
    sample->gpu_count = 0;
    sample->ranks = NULL;
    sample->rank_count = 0;
    server->mlflow->samples++;
    worker_give(server->mlflow->worker, &delivery->task);
}

void mlflow_samples(struct server *server, const char *node, struct sample *samples, size_t count)
{
    for (size_t i = 0; i < count && !space_is_full(server->space); i++) {
        if (server->mlflow->samples < LIMIT_SAMPLES_WAITING &&
            job_runs_measured(server->mlflow->runs, samples[i].attempt_id)) {
            hand_over(server, node, &samples[i]);
        }
    }
}

/* --- the end -------------------------------------------------------------------------------------------- */

static bool is_on(const struct server *server, uint64_t attempt_id, const char *node)
{
    struct err err;
    autorows struct rows rows = reader_members(server->reader, attempt_id, &err);
    struct member_row row;
    bool on = false;
    while (!on && rows_member(&rows, &row)) {
        on = strcmp(row.node, node) == 0;
    }
    return on;
}

bool mlflow_wants_last(const struct server *server, const struct report_message *exit)
{
    return (exit->use.io_read_bytes > 0 || exit->use.io_written_bytes > 0) && exit->timing.running_us > 0 &&
           exit->timing.ended_us >= exit->timing.running_us && is_on(server, exit->attempt_id, exit->node) &&
           job_runs_measured(server->mlflow->runs, exit->attempt_id);
}

/* Its step is behind that of the last sample. */
void mlflow_last(struct server *server, const struct report_message *exit)
{
    struct sample sample = {.attempt_id = exit->attempt_id,
                            .at_ms = server->wall_ms,
                            .step = (exit->timing.ended_us - exit->timing.running_us) / 1000000 + 1,
                            .cpu_percent = -1,
                            .memory_bytes = -1,
                            .memory_total_bytes = -1,
                            .io_read_bytes = exit->use.io_read_bytes,
                            .io_written_bytes = exit->use.io_written_bytes};
    if (server->mlflow->samples < LIMIT_SAMPLES_WAITING && !space_is_full(server->space)) {
        hand_over(server, exit->node, &sample);
    }
}
