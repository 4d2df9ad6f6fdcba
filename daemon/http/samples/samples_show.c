/* SPDX-License-Identifier: Apache-2.0 */
/* Serves GET /v1/nodes/{name}/samples: the ring of a node, or a part of it, as columns. The helper thread of
 * the rings reads it with one call, and writes the answer: 0.4 MB for a day of 8 GPUs. */
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/sample_ring.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/samples/samples.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"

struct showing {
    struct request_work work; /* first */
    const char *folder;
    char *node;      /* owned */
    json_t *devices; /* owned: an array of {index, uuid} */
    int64_t since_ms, until_ms;
    bool ok;
    struct err err;
    struct text json;
};

/* --- columns -------------------------------------------------------------------------------------------- */

static void write_value(struct text *out, int64_t value)
{
    member_separate(out);
    if (value < 0) {
        text_append(out, "null");
    } else {
        text_append_int(out, value);
    }
}

static void write_percent(struct text *out, double percent)
{
    member_separate(out);
    if (percent < 0) {
        text_append(out, "null");
    } else {
        text_printf(out, "%.1f", percent);
    }
}

/* Each value of a GPU in a record; -1: not known. */
static int64_t busy_of(const struct ring_gpu *gpu)
{
    return gpu->busy_percent != UINT8_MAX ? gpu->busy_percent : -1;
}

static int64_t memory_of(const struct ring_gpu *gpu)
{
    return gpu->memory_mib != UINT32_MAX ? (int64_t)gpu->memory_mib * MIB : -1;
}

static int64_t power_of(const struct ring_gpu *gpu)
{
    return gpu->power_w != UINT16_MAX ? gpu->power_w : -1;
}

static int64_t temperature_of(const struct ring_gpu *gpu)
{
    return gpu->temperature_c != UINT8_MAX ? gpu->temperature_c : -1;
}

static const struct {
    const char *key;
    int64_t (*value)(const struct ring_gpu *gpu);
} gpu_columns[] = {{",\"utilization_percent\":[", busy_of},
                   {",\"memory_bytes\":[", memory_of},
                   {",\"power_w\":[", power_of},
                   {",\"temperature_c\":[", temperature_of}};

static void write_gpu(const struct ring_span *span, size_t number, const json_t *device, struct text *out)
{
    member_separate(out);
    member_write_int(out, "{\"index\":", json_integer_value(json_object_get(device, "index")));
    member_write_text(out, ",\"uuid\":", json_string_of(device, "uuid"));
    for (size_t column = 0; column < sizeof gpu_columns / sizeof gpu_columns[0]; column++) {
        text_append(out, gpu_columns[column].key);
        for (size_t i = 0; i < span->count; i++) {
            write_value(out, gpu_columns[column].value(&span->gpus[i * span->gpu_count + number]));
        }
        text_append(out, "]");
    }
    text_append(out, "}");
}

static void write_span(const struct showing *showing, const struct ring_span *span, struct text *out)
{
    member_write_text(out, "{\"node\":", showing->node);
    text_append(out, ",\"at_ms\":[");
    for (size_t i = 0; i < span->count; i++) {
        write_value(out, span->records[i].at_ms);
    }
    text_append(out, "],\"cpu_percent\":[");
    for (size_t i = 0; i < span->count; i++) {
        write_percent(out, span->records[i].cpu_percent);
    }
    text_append(out, "],\"memory_bytes\":[");
    for (size_t i = 0; i < span->count; i++) {
        write_value(out, span->records[i].memory_bytes);
    }
    text_append(out, "],\"gpus\":[");
    for (size_t i = 0; i < span->gpu_count && i < json_array_size(showing->devices); i++) {
        write_gpu(span, i, json_array_get(showing->devices, i), out);
    }
    text_append(out, "]}");
}

/* --- the request ---------------------------------------------------------------------------------------- */

static void show(struct task *task)
{
    struct showing *showing = (struct showing *)task;
    struct ring_span span;
    showing->ok = sample_ring_read(showing->folder, showing->node, showing->since_ms, showing->until_ms,
                                   &span, &showing->err);
    if (showing->ok) {
        write_span(showing, &span, &showing->json);
    }
    ring_span_finish(&span);
}

static void reply(struct request_work *work)
{
    struct showing *showing = (struct showing *)work;
    if (showing->ok) {
        request_reply_json(work->request, 200, &showing->json);
    } else {
        request_fail(work->request, &showing->err);
    }
}

static void showing_free(struct request_work *work)
{
    struct showing *showing = (struct showing *)work;
    text_finish(&showing->json);
    json_decref(showing->devices);
    free(showing->node);
    free(showing);
}

/* The devices of the node, which the caller owns; NULL with *err. */
static json_t *find_devices(struct reader *reader, const char *node, struct err *err)
{
    autorows struct rows rows = reader_node(reader, node, err);
    struct node_row row;
    struct node_used used;
    if (rows_node(&rows, &row, &used)) {
        return json_parse(row.devices, strlen(row.devices), err);
    }
    if (!rows.failed) {
        err_set(err, ERR_NOT_FOUND, "there is no node %s", node);
    }
    return NULL;
}

static bool read_span(const struct request *request, int64_t *ret_since_ms, int64_t *ret_until_ms,
                      struct err *err)
{
    *ret_until_ms = request->server->wall_ms;
    if (!query_moment(request->query, "until", ret_until_ms, err)) {
        return false;
    }
    int64_t day_ms = (int64_t)SAMPLE_RING_SLOTS * SAMPLE_RING_STEP_MS;
    *ret_since_ms = *ret_until_ms > day_ms ? *ret_until_ms - day_ms : 0;
    return query_moment(request->query, "since", ret_since_ms, err) &&
           (*ret_since_ms <= *ret_until_ms ||
            err_field(err, ERR_FIELD, "since", NULL, "since must not be later than until"));
}

bool samples_show(struct request *request, struct err *err)
{
    const struct server *server = request->server;
    int64_t since_ms, until_ms;
    if (!read_span(request, &since_ms, &until_ms, err)) {
        return false;
    }
    json_t *devices = find_devices(server->reader, request->argument, err);
    if (devices == NULL) {
        return false;
    }
    struct showing *showing = xzalloc(sizeof *showing);
    showing->folder = server->samples->folder;
    showing->node = xstrdup(request->argument);
    showing->devices = devices;
    showing->since_ms = since_ms;
    showing->until_ms = until_ms;
    request_work_begin(&showing->work, request, showing_free);
    return request_work_give(&showing->work, server->samples->worker, show, reply);
}
