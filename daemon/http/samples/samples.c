/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the latest sample of each node, and has a record of it written into the node's ring each 30 s. No
 * heartbeat waits for the disk: a helper thread writes, a bounded number of records waits for it, and those
 * above it are dropped, because the next ones come soon. */
#include "daemon/http/samples/samples.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/blob/sample_ring.h"
#include "daemon/http/base/space.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* --- the latest samples --------------------------------------------------------------------------------- */

struct node_sample *samples_find(const struct server *server, const char *node)
{
    struct node_sample *sample;
    HASH_FIND_STR(server->samples->by_name, node, sample);
    return sample;
}

bool samples_fresh(const struct server *server, const struct node_sample *sample)
{
    return sample->heard_ms >= 0 && server->now_ms - sample->heard_ms <= SAMPLE_STALE_MS;
}

static void free_gpus(struct node_sample *sample)
{
    for (size_t i = 0; i < sample->gpu_count; i++) {
        free(sample->gpus[i].uuid);
    }
    free(sample->gpus);
}

static void drop(struct samples *samples, struct node_sample *sample)
{
    struct node_sample *last = samples->items[--samples->count];
    samples->items[sample->place] = last;
    last->place = sample->place;
    HASH_DEL(samples->by_name, sample);
    free_gpus(sample);
    free(sample->node);
    free(sample);
}

/* Retention removes nodes without a word to the HTTP thread. Stale samples go when the table would have to
 * grow. */
static void drop_stale(struct server *server)
{
    struct samples *samples = server->samples;
    for (size_t i = samples->count; i > 0; i--) {
        if (!samples_fresh(server, samples->items[i - 1])) {
            drop(samples, samples->items[i - 1]);
        }
    }
}

static struct node_sample *add(struct server *server, const char *node)
{
    struct samples *samples = server->samples;
    struct node_sample *sample = xzalloc(sizeof *sample);
    if (samples->count == samples->room) {
        drop_stale(server);
    }
    sample->node = xstrdup(node);
    sample->heard_ms = -1;
    sample->place = samples->count;
    XGROW(samples->items, samples->count, samples->room, 16);
    samples->items[samples->count++] = sample;
    HASH_ADD_KEYPTR(hh, samples->by_name, sample->node, strlen(sample->node), sample);
    return sample;
}

static void set_gpus(struct node_sample *sample, const json_t *devices)
{
    size_t count = json_array_size(devices);
    sample->gpu_count = count < LIMIT_SAMPLE_GPUS ? count : LIMIT_SAMPLE_GPUS;
    sample->gpus = xzalloc(sample->gpu_count * sizeof *sample->gpus);
    for (size_t i = 0; i < sample->gpu_count; i++) {
        const json_t *device = json_array_get(devices, i);
        sample->gpus[i] = (struct node_gpu){.index = json_integer_value(json_object_get(device, "index")),
                                            .uuid = xstrdup(json_string_of(device, "uuid")),
                                            .use = GPU_SAMPLE_UNKNOWN};
    }
}

/* Agents do not register again when the controller was restarted: the row has their devices. NULL: the node
 * was removed meanwhile. */
static struct node_sample *find_or_add(struct server *server, const char *node)
{
    struct node_sample *sample = samples_find(server, node);
    if (sample != NULL) {
        return sample;
    }
    autofree char *text = reader_node_gpus(server->reader, node);
    autojson json_t *devices = text != NULL ? json_parse(text, strlen(text), NULL) : NULL;
    if (devices == NULL) {
        return NULL;
    }
    sample = add(server, node);
    set_gpus(sample, devices);
    return sample;
}

static void drop_node(struct server *server, const char *node)
{
    struct node_sample *sample = samples_find(server, node);
    if (sample != NULL) {
        drop(server->samples, sample);
    }
}

void samples_register(struct server *server, const char *node)
{
    drop_node(server, node);
}

/* --- rings ---------------------------------------------------------------------------------------------- */

/* Work on a node's ring: a record to be written, or its removal. */
struct ring_task {
    struct task task; /* first */
    struct samples *samples;
    char node[LIMIT_NAME_BYTES + 1];
    struct ring_record record;
    bool anew, ok;
    struct err err;
    size_t gpu_count;
    struct ring_gpu gpus[];
};

static struct ring_task *ring_task_create(struct samples *samples, const char *node, size_t gpu_count)
{
    struct ring_task *work = xzalloc(sizeof *work + gpu_count * sizeof work->gpus[0]);
    work->samples = samples;
    work->gpu_count = gpu_count;
    memcpy(work->node, node, strnlen(node, LIMIT_NAME_BYTES));
    return work;
}

static void put(struct task *task)
{
    struct ring_task *work = (struct ring_task *)task;
    work->ok = sample_ring_put(work->samples->folder, work->node, &work->record, work->gpus, work->gpu_count,
                               &work->anew, &work->err);
}

static void put_done(struct task *task)
{
    struct ring_task *work = (struct ring_task *)task;
    struct samples *samples = work->samples;
    samples->waiting--;
    if (!work->ok && !samples->failing) {
        log_warning("samples left", "node=%s text=\"%s\"", work->node, work->err.text);
    } else if (work->anew) {
        log_warning("samples begun anew", "node=%s gpus=%zu", work->node, work->gpu_count);
    }
    samples->failing = !work->ok;
    free(work);
}

static void take_away(struct task *task)
{
    struct ring_task *work = (struct ring_task *)task;
    work->ok = sample_ring_remove(work->samples->folder, work->node, &work->err);
}

static void take_away_done(struct task *task)
{
    struct ring_task *work = (struct ring_task *)task;
    if (!work->ok) {
        log_warning("samples stay", "node=%s text=\"%s\"", work->node, work->err.text);
    }
    free(work);
}

/* A value that is above the largest shows as that one. */
static uint64_t bounded(int64_t value, uint64_t unknown)
{
    return value < 0 ? unknown : (uint64_t)value < unknown ? (uint64_t)value : unknown - 1;
}

static struct ring_gpu gpu_record(const struct gpu_sample *use)
{
    return (struct ring_gpu){
        .busy_percent = (uint8_t)bounded(use->busy_percent, UINT8_MAX),
        .temperature_c = (uint8_t)bounded(use->temperature_c, UINT8_MAX),
        .power_w = (uint16_t)bounded(use->power_mw < 0 ? -1 : (use->power_mw + 500) / 1000, UINT16_MAX),
        .memory_mib = (uint32_t)bounded(use->memory_bytes < 0 ? -1 : use->memory_bytes / MIB, UINT32_MAX)};
}

/* The controller's clock: the times of one node are in order, and all nodes have the same. */
static void write_record(struct server *server, struct node_sample *sample)
{
    struct samples *samples = server->samples;
    int64_t window = server->wall_ms / SAMPLE_RING_STEP_MS;
    if (window == sample->window || samples->waiting >= LIMIT_RINGS_WAITING || space_is_full(server->space)) {
        return;
    }
    struct ring_task *work = ring_task_create(samples, sample->node, sample->gpu_count);
    work->task = (struct task){.work = put, .done = put_done};
    work->record = (struct ring_record){
        .at_ms = server->wall_ms, .cpu_percent = sample->cpu_percent, .memory_bytes = sample->memory_bytes};
    for (size_t i = 0; i < sample->gpu_count; i++) {
        work->gpus[i] = gpu_record(&sample->gpus[i].use);
    }
    sample->window = window;
    samples->waiting++;
    worker_give(samples->worker, &work->task);
}

/* --- news of nodes -------------------------------------------------------------------------------------- */

static void take_faults(struct node_sample *sample, const struct device_faults *faults)
{
    for (size_t i = 0; faults->told && i < sample->gpu_count; i++) {
        struct node_gpu *gpu = &sample->gpus[i];
        gpu->unavailable = false;
        for (size_t j = 0; j < faults->count; j++) {
            gpu->unavailable = gpu->unavailable || faults->items[j].index == gpu->index;
        }
    }
}

void samples_hear(struct server *server, const struct heartbeat_message *heartbeat)
{
    const struct machine_sample *machine = heartbeat->machine;
    struct node_sample *sample = machine != NULL ? find_or_add(server, heartbeat->node) : NULL;
    if (sample == NULL || machine->gpu_count != sample->gpu_count) {
        return;
    }
    sample->cpu_percent = machine->cpu_percent;
    sample->memory_bytes = machine->memory_bytes;
    sample->memory_total_bytes = machine->memory_total_bytes;
    for (size_t i = 0; i < sample->gpu_count; i++) {
        sample->gpus[i].use = machine->gpus[i];
    }
    take_faults(sample, &heartbeat->faults);
    sample->heard_ms = server->now_ms;
    write_record(server, sample);
}

void samples_forget(struct server *server, const char *node)
{
    struct samples *samples = server->samples;
    drop_node(server, node);
    struct ring_task *work = ring_task_create(samples, node, 0);
    work->task = (struct task){.work = take_away, .done = take_away_done};
    worker_give(samples->worker, &work->task);
}

size_t samples_waiting(const struct server *server)
{
    return server->samples->waiting;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

bool samples_open(struct server *server, struct err *err)
{
    struct samples *samples = server->samples = xzalloc(sizeof *samples);
    samples->folder = xprintf("%s/" SAMPLE_RING_FOLDER, server->config.state_directory);
    if (!file_make_directories(samples->folder, 0700, err) || (samples->worker = worker_open(err)) == NULL) {
        return false;
    }
    samples->watch =
        (struct watch){.fd = worker_fd(samples->worker), .ready = worker_ready, .closure = samples->worker};
    return server_watch(server, &samples->watch, err);
}

void samples_close(struct server *server)
{
    struct samples *samples = server->samples;
    if (samples == NULL) {
        return;
    }
    worker_close(samples->worker);
    while (samples->count > 0) {
        drop(samples, samples->items[samples->count - 1]);
    }
    free(samples->items);
    free(samples->folder);
    free(samples);
    server->samples = NULL;
}
