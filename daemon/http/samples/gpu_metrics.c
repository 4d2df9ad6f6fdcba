/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the lines of nodes, GPUs and allocations. One walk over the nodes fills all families of metrics,
 * each in a text of its own, because the lines of a family must stand together. Allocations are read from
 * committed rows. A sender sees those of the jobs that it may see. The lines have a bound: the nodes that
 * registered last are left out, and counted. */
#include "daemon/http/samples/gpu_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/samples/samples.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"

#define BYTES_PER_NUMBER 24

/* X(name, metric, type, help) */
#define FAMILIES(X)                                                                                          \
    X(NODE_CPU, "gpuctl_node_cpu_utilization_ratio", "gauge",                                                \
      "Part of the CPU time of a node that was used")                                                        \
    X(NODE_MEMORY, "gpuctl_node_memory_used_bytes", "gauge", "Memory of a node that is in use")              \
    X(NODE_MEMORY_TOTAL, "gpuctl_node_memory_total_bytes", "gauge", "Memory of a node")                      \
    X(GPU_BUSY, "gpuctl_gpu_utilization_ratio", "gauge", "Part of the time in which a GPU computed")         \
    X(GPU_MEMORY, "gpuctl_gpu_memory_used_bytes", "gauge", "Memory of a GPU that is in use")                 \
    X(GPU_MEMORY_TOTAL, "gpuctl_gpu_memory_total_bytes", "gauge", "Memory of a GPU")                         \
    X(GPU_POWER, "gpuctl_gpu_power_watts", "gauge", "Power that a GPU draws")                                \
    X(GPU_ENERGY, "gpuctl_gpu_energy_joules_total", "counter",                                               \
      "Energy that a GPU has used since its driver was loaded")                                              \
    X(GPU_TEMPERATURE, "gpuctl_gpu_temperature_celsius", "gauge", "Temperature of a GPU")                    \
    X(GPU_UNAVAILABLE, "gpuctl_gpu_unavailable", "gauge", "1 while no job can get a GPU; else 0")            \
    X(ALLOCATION, "gpuctl_gpu_allocation_info", "gauge",                                                     \
      "Always 1; the labels say which job of which user and project holds a GPU")

enum family {
#define FAMILY_NAME(name, metric, type, help) FAMILY_##name,
    FAMILIES(FAMILY_NAME) FAMILY_COUNT
#undef FAMILY_NAME
};

static const struct {
    const char *metric, *type, *help;
} families[FAMILY_COUNT] = {
#define FAMILY_ROW(name, metric, type, help) [FAMILY_##name] = {metric, type, help},
    FAMILIES(FAMILY_ROW)
#undef FAMILY_ROW
};

struct gpu_metrics {
    const struct request *request;
    struct exposition lines[FAMILY_COUNT];
    size_t place; /* of the next node */
    size_t end;   /* place of the first node that is left out */
    size_t nodes, gpus, nodes_left, gpus_left;
    bool walked;                /* over all nodes */
    int64_t job_key, node_rank; /* of the last allocation */
};

struct gpu_metrics *gpu_metrics_create(const struct request *request, bool open_metrics)
{
    struct gpu_metrics *metrics = xzalloc(sizeof *metrics);
    metrics->request = request;
    metrics->node_rank = -1;
    metrics->end = SIZE_MAX;
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        struct exposition *out = &metrics->lines[i];
        out->open_metrics = open_metrics;
        exposition_metric(out, families[i].metric, families[i].type, families[i].help);
    }
    return metrics;
}

void gpu_metrics_destroy(struct gpu_metrics *metrics)
{
    for (size_t i = 0; metrics != NULL && i < FAMILY_COUNT; i++) {
        text_finish(&metrics->lines[i].text);
    }
    free(metrics);
}

/* --- lines ---------------------------------------------------------------------------------------------- */

static void add(struct gpu_metrics *metrics, enum family family, const char *labels, int64_t value)
{
    if (value >= 0) {
        exposition_sample(&metrics->lines[family], families[family].metric, labels, value);
    }
}

static void add_thousandths(struct gpu_metrics *metrics, enum family family, const char *labels,
                            int64_t value)
{
    if (value >= 0) {
        exposition_thousandths(&metrics->lines[family], families[family].metric, labels, value);
    }
}

static void label_gpu(const char *node, const struct node_gpu *gpu, struct text *labels)
{
    text_clear(labels);
    exposition_label(labels, "node", node);
    text_append(labels, ",gpu=\"");
    text_append_int(labels, gpu->index);
    text_append(labels, "\"");
    exposition_label(labels, "uuid", gpu->uuid);
}

static void add_gpu(struct gpu_metrics *metrics, const char *labels, const struct gpu_sample *use)
{
    add_thousandths(metrics, FAMILY_GPU_BUSY, labels, use->busy_percent * 10);
    add(metrics, FAMILY_GPU_MEMORY, labels, use->memory_bytes);
    add(metrics, FAMILY_GPU_MEMORY_TOTAL, labels, use->memory_total_bytes);
    add_thousandths(metrics, FAMILY_GPU_POWER, labels, use->power_mw);
    add_thousandths(metrics, FAMILY_GPU_ENERGY, labels, use->energy_mj);
    add(metrics, FAMILY_GPU_TEMPERATURE, labels, use->temperature_c);
}

static void add_node(struct gpu_metrics *metrics, const struct node_sample *sample)
{
    autotext struct text labels = {0};
    exposition_label(&labels, "node", sample->node);
    add_thousandths(metrics, FAMILY_NODE_CPU, labels.bytes, (int64_t)(sample->cpu_percent * 10));
    add(metrics, FAMILY_NODE_MEMORY, labels.bytes, sample->memory_bytes);
    add(metrics, FAMILY_NODE_MEMORY_TOTAL, labels.bytes, sample->memory_total_bytes);
    for (size_t i = 0; i < sample->gpu_count; i++) {
        label_gpu(sample->node, &sample->gpus[i], &labels);
        add_gpu(metrics, labels.bytes, &sample->gpus[i].use);
        add(metrics, FAMILY_GPU_UNAVAILABLE, labels.bytes, sample->gpus[i].unavailable);
    }
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void walk_node(struct gpu_metrics *metrics, const struct node_sample *sample)
{
    if (metrics->nodes_left > 0 || metrics->nodes == LIMIT_METRICS_NODES ||
        metrics->gpus + sample->gpu_count > LIMIT_METRICS_GPUS) {
        metrics->end = metrics->nodes_left == 0 ? sample->place : metrics->end;
        metrics->nodes_left++;
        metrics->gpus_left += sample->gpu_count;
        return;
    }
    add_node(metrics, sample);
    metrics->nodes++;
    metrics->gpus += sample->gpu_count;
}

/* A node that is removed meanwhile makes the last one leave its place: one may be missing on this page, and
 * none is there twice. */
static void walk_nodes(struct gpu_metrics *metrics)
{
    const struct server *server = metrics->request->server;
    const struct samples *samples = server->samples;
    for (int i = 0; i < METRICS_PIECE_NODES && metrics->place < samples->count; i++) {
        const struct node_sample *sample = samples->items[metrics->place++];
        if (samples_fresh(server, sample)) {
            walk_node(metrics, sample);
        }
    }
    metrics->walked = metrics->place >= samples->count;
}

/* --- allocations ---------------------------------------------------------------------------------------- */

static const struct node_gpu *find_gpu(const struct node_sample *sample, int64_t index)
{
    for (size_t i = 0; i < sample->gpu_count; i++) {
        if (sample->gpus[i].index == index) {
            return &sample->gpus[i];
        }
    }
    return NULL;
}

static void add_allocation(struct gpu_metrics *metrics, const struct allocation *allocation)
{
    const struct node_sample *sample = samples_find(metrics->request->server, allocation->node);
    autotext struct text labels = {0};
    if (sample == NULL || sample->place >= metrics->end || !samples_fresh(metrics->request->server, sample)) {
        return;
    }
    for (const char *at = allocation->devices; *at != '\0'; at += *at == ',') {
        const struct node_gpu *gpu = find_gpu(sample, strtoll(at, (char **)(uintptr_t)&at, 10));
        if (gpu == NULL) {
            continue;
        }
        label_gpu(sample->node, gpu, &labels);
        exposition_label(&labels, "job_id", allocation->job_id);
        exposition_label(&labels, "user", allocation->owner);
        exposition_label(&labels, "project", allocation->project);
        add(metrics, FAMILY_ALLOCATION, labels.bytes, 1);
    }
}

/* A token for metrics alone is made by an administrator, and knows of every job no more than this. */
static bool sees_all(const struct request *request)
{
    return identity_role(request->who) == ROLE_MONITOR;
}

static enum pieces_state walk_allocations(struct gpu_metrics *metrics, struct err *err)
{
    autorows struct rows rows = reader_allocations(metrics->request->server->reader, metrics->job_key,
                                                   metrics->node_rank, METRICS_PIECE_ALLOCATIONS, err);
    struct allocation allocation;
    int count = 0;
    for (; rows_allocation(&rows, &allocation); count++) {
        metrics->job_key = allocation.job_key;
        metrics->node_rank = allocation.node_rank;
        if (sees_all(metrics->request) ||
            request_may_see(metrics->request, allocation.owner, allocation.project)) {
            add_allocation(metrics, &allocation);
        }
    }
    return rows.failed ? PIECES_FAILED : count == METRICS_PIECE_ALLOCATIONS ? PIECES_MORE : PIECES_DONE;
}

enum pieces_state gpu_metrics_step(struct gpu_metrics *metrics, struct err *err)
{
    if (metrics->walked) {
        return walk_allocations(metrics, err);
    }
    walk_nodes(metrics);
    return PIECES_MORE;
}

void gpu_metrics_write(const struct gpu_metrics *metrics, struct exposition *out)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        text_append_bytes(&out->text, metrics->lines[i].text.bytes, metrics->lines[i].text.length);
    }
    exposition_metric(out, "gpuctl_nodes_left_out", "gauge", "Nodes with samples that have no lines here");
    exposition_sample(out, "gpuctl_nodes_left_out", "", (int64_t)metrics->nodes_left);
    exposition_metric(out, "gpuctl_gpus_left_out", "gauge", "GPUs with samples that have no lines here");
    exposition_sample(out, "gpuctl_gpus_left_out", "", (int64_t)metrics->gpus_left);
}
