/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the CPU, memory and GPU use of attempts in a heartbeat. A decoded value is within what
 * a machine can have. An absent value is -1. */
#include <stdlib.h>

#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"
#include "proto/wire/messages.h"

#define FULL_PERCENT 100

static void put_known(json_t *json, const char *name, int64_t value)
{
    if (value >= 0) {
        member_put_int(json, name, value);
    }
}

static json_t *encode_gpu(const struct gpu_sample *gpu)
{
    json_t *json = json_object();
    put_known(json, "busy_percent", gpu->busy_percent);
    put_known(json, "memory_bytes", gpu->memory_bytes);
    put_known(json, "memory_total_bytes", gpu->memory_total_bytes);
    put_known(json, "power_mw", gpu->power_mw);
    return json;
}

static json_t *encode_sample(const struct sample *sample)
{
    json_t *json = json_object();
    json_t *gpus = json_array();
    member_put_int(json, "epoch", (int64_t)sample->attempt_id);
    member_put_int(json, "at_ms", sample->at_ms);
    member_put_int(json, "step", sample->step);
    if (sample->cpu_percent >= 0) {
        member_put(json, "cpu_percent", json_real(sample->cpu_percent));
    }
    put_known(json, "memory_bytes", sample->memory_bytes);
    put_known(json, "memory_total_bytes", sample->memory_total_bytes);
    for (size_t i = 0; i < sample->gpu_count; i++) {
        json_array_append_new(gpus, encode_gpu(&sample->gpus[i]));
    }
    member_put(json, "gpus", gpus);
    return json;
}

void samples_put(json_t *json, const struct sample *samples, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, encode_sample(&samples[i]));
    }
    if (count > 0) {
        member_put(json, "samples", array);
    } else {
        json_decref(array);
    }
}

static bool read_percent(const json_t *json, const char *name, double *ret_value, struct err *err)
{
    const json_t *value = json_object_get(json, name);
    double percent = json_number_value(value);
    *ret_value = value != NULL ? percent : -1;
    return value == NULL || (json_is_number(value) && percent >= 0 && percent <= FULL_PERCENT) ||
           err_field(err, ERR_FIELD, name, NULL, "%s is a number from 0 to %d", name, FULL_PERCENT);
}

static bool decode_gpu(const json_t *json, struct gpu_sample *gpu, struct err *err)
{
    *gpu = (struct gpu_sample){-1, -1, -1, -1};
    return json_read_int(json, "busy_percent", 0, FULL_PERCENT, &gpu->busy_percent, err) &&
           json_read_int(json, "memory_bytes", 0, INT64_MAX, &gpu->memory_bytes, err) &&
           json_read_int(json, "memory_total_bytes", 0, INT64_MAX, &gpu->memory_total_bytes, err) &&
           json_read_int(json, "power_mw", 0, INT64_MAX, &gpu->power_mw, err);
}

static bool decode_gpus(const json_t *json, struct sample *sample, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "gpus", LIMIT_SAMPLE_GPUS, &array, err)) {
        return false;
    }
    sample->gpu_count = json_array_size(array);
    sample->gpus = xzalloc(sample->gpu_count * sizeof *sample->gpus);
    for (size_t i = 0; i < sample->gpu_count; i++) {
        if (!decode_gpu(json_array_get(array, i), &sample->gpus[i], err)) {
            return member_err_inside(err, "gpus", i);
        }
    }
    return true;
}

static bool decode_sample(const json_t *json, struct sample *sample, struct err *err)
{
    sample->memory_bytes = sample->memory_total_bytes = -1;
    return member_need_attempt_id(json, "epoch", &sample->attempt_id, err) &&
           json_need_int(json, "at_ms", 0, LIMIT_WALL_MS, &sample->at_ms, err) &&
           json_need_int(json, "step", 0, INT64_MAX, &sample->step, err) &&
           read_percent(json, "cpu_percent", &sample->cpu_percent, err) &&
           json_read_int(json, "memory_bytes", 0, INT64_MAX, &sample->memory_bytes, err) &&
           json_read_int(json, "memory_total_bytes", 0, INT64_MAX, &sample->memory_total_bytes, err) &&
           decode_gpus(json, sample, err);
}

bool samples_decode(const json_t *json, struct sample **ret_samples, size_t *ret_count, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "samples", LIMIT_SAMPLES, &array, err)) {
        return false;
    }
    *ret_count = json_array_size(array);
    *ret_samples = xzalloc(*ret_count * sizeof **ret_samples);
    for (size_t i = 0; i < *ret_count; i++) {
        if (!decode_sample(json_array_get(array, i), &(*ret_samples)[i], err)) {
            return member_err_inside(err, "samples", i);
        }
    }
    return true;
}

void samples_free(struct sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(samples[i].gpus);
    }
    free(samples);
}
