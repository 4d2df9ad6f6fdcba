/* SPDX-License-Identifier: Apache-2.0 */
/* Reads samples of nodes. It promises that a value which the node does not know is missing, and is no zero.
 */
#include "client/cli/top/data/top_samples.h"

#include <stdbool.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

/* Sets the member to the last value of a column, unless that is null. */
static void take_last(json_t *object, const char *member, const json_t *column)
{
    json_t *value = json_array_get(column, json_array_size(column) - 1);
    if (json_is_number(value)) {
        json_object_set(object, member, value);
    }
}

/* Texts of indices, as `devices` of a job has them. */
static void set_by_index(json_t *object, const json_t *of, json_t *value)
{
    autofree char *index = xprintf("%lld", (long long)json_integer_value(json_object_get(of, "index")));
    json_object_set_new(object, index, value);
}

json_t *top_sample_newest(const json_t *reply)
{
    if (json_array_size(json_object_get(reply, "at_ms")) == 0) {
        return NULL;
    }
    json_t *newest = json_object(), *gpus = json_object_in(newest, "gpus");
    take_last(newest, "cpu_percent", json_object_get(reply, "cpu_percent"));
    take_last(newest, "memory_bytes", json_object_get(reply, "memory_bytes"));
    size_t i;
    json_t *gpu;
    json_array_foreach (json_object_get(reply, "gpus"), i, gpu) {
        json_t *use = json_object();
        take_last(use, "utilization_percent", json_object_get(gpu, "utilization_percent"));
        take_last(use, "memory_bytes", json_object_get(gpu, "memory_bytes"));
        set_by_index(gpus, gpu, use);
    }
    return newest;
}

json_t *top_sample_totals(const json_t *node)
{
    json_t *totals = json_object();
    size_t i;
    json_t *device;
    json_array_foreach (json_object_get(node, "devices"), i, device) {
        json_t *bytes = json_object_get(device, "memory_bytes");
        set_by_index(totals, device, bytes != NULL ? json_incref(bytes) : json_null());
    }
    return totals;
}

/* Is the index one of "0,2,3"? */
static bool is_among(const char *index, const char *devices)
{
    size_t length = strlen(index);
    for (const char *at = devices; at != NULL && *at != '\0';) {
        size_t size = strcspn(at, ",");
        if (size == length && strncmp(at, index, size) == 0) {
            return true;
        }
        at += size + (at[size] == ',');
    }
    return devices == NULL || devices[0] == '\0';
}

/* A sum over devices. */
struct sum {
    double value;
    size_t count;
};

static void add(struct sum *sum, const json_t *value)
{
    if (json_is_number(value)) {
        sum->value += json_number_value(value);
        sum->count++;
    }
}

static void set_sum(json_t *use, const char *member, const struct sum *sum, size_t parts)
{
    if (sum->count > 0) {
        json_object_set_new(use, member, json_real(sum->value / (double)parts));
    }
}

json_t *top_sample_use(const json_t *newest, const json_t *totals, const char *devices)
{
    if (newest == NULL) {
        return NULL;
    }
    struct sum percent = {0}, memory = {0}, total = {0};
    const char *index;
    json_t *gpu;
    json_object_foreach (json_object_get(newest, "gpus"), index, gpu) {
        if (is_among(index, devices)) {
            add(&percent, json_object_get(gpu, "utilization_percent"));
            add(&memory, json_object_get(gpu, "memory_bytes"));
            add(&total,
                json_is_number(json_object_get(gpu, "memory_bytes")) ? json_object_get(totals, index) : NULL);
        }
    }
    json_t *use = json_object();
    set_sum(use, "gpu_percent", &percent, percent.count);
    set_sum(use, "gpu_memory_bytes", &memory, 1);
    set_sum(use, "gpu_memory_total_bytes", &total, 1);
    json_object_set(use, "cpu_percent", json_object_get(newest, "cpu_percent"));
    json_object_set(use, "memory_bytes", json_object_get(newest, "memory_bytes"));
    return use;
}
