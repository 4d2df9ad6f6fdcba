/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of samples, what attempts use on their nodes, from a heartbeat into the runs of these
 * attempts, under the names that MLflow's client gives to what it measures. It promises that no heartbeat
 * waits for the tracking store, and that what waits for it has a bound: samples above that are dropped, for
 * the next ones come soon. Which attempts have their samples stored is left to mlflow_jobs.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/worker.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/limits.h"

#define MEGABYTE  1e6 /* as MLflow counts it */
#define FULL      100.0
#define OF_NODE   3 /* values of a sample beside those of GPUs */
#define OF_GPU    4
#define MOST      (OF_NODE + OF_GPU * LIMIT_SAMPLE_GPUS)
#define KEY_BYTES 64

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
    struct tracking_point items[MOST]; /* own their names and values */
    size_t count;
};

/* --- names and values ----------------------------------------------------------------------------------- */

static double round_tenth(double value)
{
    return (double)(int64_t)(value * 10 + 0.5) / 10;
}

static void add(struct points *points, double value, const char *key)
{
    const struct delivery *delivery = points->delivery;
    points->items[points->count++] =
        (struct tracking_point){.name = xprintf("system/%s/%s", delivery->node, key),
                                .value = json_real(round_tenth(value)),
                                .step = delivery->sample.step,
                                .at_ms = delivery->sample.at_ms};
}

/* prefix is that of the keys: "system_memory", "gpu_0_memory". */
static void add_memory(struct points *points, const char *prefix, int64_t used_bytes, int64_t total_bytes)
{
    char key[KEY_BYTES];
    if (used_bytes >= 0) {
        snprintf(key, sizeof key, "%s_usage_megabytes", prefix);
        add(points, (double)used_bytes / MEGABYTE, key);
    }
    if (used_bytes >= 0 && total_bytes > 0) {
        snprintf(key, sizeof key, "%s_usage_percentage", prefix);
        add(points, FULL * (double)used_bytes / (double)total_bytes, key);
    }
}

static void add_gpu(struct points *points, size_t number, const struct gpu_sample *gpu)
{
    char key[KEY_BYTES];
    if (gpu->busy_percent >= 0) {
        snprintf(key, sizeof key, "gpu_%zu_utilization_percentage", number);
        add(points, (double)gpu->busy_percent, key);
    }
    snprintf(key, sizeof key, "gpu_%zu_memory", number);
    add_memory(points, key, gpu->memory_bytes, gpu->memory_total_bytes);
    if (gpu->power_mw >= 0) {
        snprintf(key, sizeof key, "gpu_%zu_power_usage_watts", number);
        add(points, (double)gpu->power_mw / 1000, key);
    }
}

static void fill(struct points *points)
{
    const struct sample *sample = &points->delivery->sample;
    if (sample->cpu_percent >= 0) {
        add(points, sample->cpu_percent, "cpu_utilization_percentage");
    }
    add_memory(points, "system_memory", sample->memory_bytes, sample->memory_total_bytes);
    for (size_t i = 0; i < sample->gpu_count; i++) {
        add_gpu(points, i, &sample->gpus[i]);
    }
}

static void finish(struct points *points)
{
    for (size_t i = 0; i < points->count; i++) {
        free((void *)(uintptr_t)points->items[i].name);
        json_decref((json_t *)(uintptr_t)points->items[i].value);
    }
}

/* --- the store ------------------------------------------------------------------------------------------ */

static void deliver(struct task *task)
{
    struct delivery *delivery = (struct delivery *)task;
    struct points points = {.delivery = delivery};
    fill(&points);
    delivery->ok =
        tracking_job_log(delivery->tracking, delivery->run_id, points.items, points.count, &delivery->error);
    finish(&points);
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
    free(delivery->sample.gpus);
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
