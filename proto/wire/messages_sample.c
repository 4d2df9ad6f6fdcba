/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the CPU, memory and GPU use of attempts, and of the node, in a heartbeat. A decoded
 * value is within what a machine can have. An absent value is -1. */
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
    put_known(json, "temperature_c", gpu->temperature_c);
    put_known(json, "energy_mj", gpu->energy_mj);
    return json;
}

static json_t *encode_gpus(const struct gpu_sample *gpus, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, encode_gpu(&gpus[i]));
    }
    return array;
}

static void put_percent(json_t *json, const char *name, double percent)
{
    if (percent >= 0) {
        member_put(json, name, json_real(percent));
    }
}

static json_t *encode_ranks(const struct rank_sample *ranks, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *json = json_object();
        member_put_int(json, "rank", ranks[i].rank);
        put_percent(json, "cpu_percent", ranks[i].cpu_percent);
        put_known(json, "memory_bytes", ranks[i].memory_bytes);
        put_known(json, "io_read_bytes", ranks[i].io_read_bytes);
        put_known(json, "io_written_bytes", ranks[i].io_written_bytes);
        json_array_append_new(array, json);
    }
    return array;
}

static json_t *encode_sample(const struct sample *sample)
{
    json_t *json = json_object();
    member_put_int(json, "epoch", (int64_t)sample->attempt_id);
    member_put_int(json, "at_ms", sample->at_ms);
    member_put_int(json, "step", sample->step);
    put_percent(json, "cpu_percent", sample->cpu_percent);
    put_known(json, "memory_bytes", sample->memory_bytes);
    put_known(json, "memory_total_bytes", sample->memory_total_bytes);
    put_known(json, "io_read_bytes", sample->io_read_bytes);
    put_known(json, "io_written_bytes", sample->io_written_bytes);
    member_put(json, "gpus", encode_gpus(sample->gpus, sample->gpu_count));
    if (sample->rank_count > 0) {
        member_put(json, "ranks", encode_ranks(sample->ranks, sample->rank_count));
    }
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
    *gpu = GPU_SAMPLE_UNKNOWN;
    return json_read_int(json, "busy_percent", 0, FULL_PERCENT, &gpu->busy_percent, err) &&
           json_read_int(json, "memory_bytes", 0, INT64_MAX, &gpu->memory_bytes, err) &&
           json_read_int(json, "memory_total_bytes", 0, INT64_MAX, &gpu->memory_total_bytes, err) &&
           json_read_int(json, "power_mw", 0, INT64_MAX, &gpu->power_mw, err) &&
           json_read_int(json, "temperature_c", 0, UINT8_MAX, &gpu->temperature_c, err) &&
           json_read_int(json, "energy_mj", 0, INT64_MAX, &gpu->energy_mj, err);
}

static bool decode_gpus(const json_t *json, struct gpu_sample **ret_gpus, size_t *ret_count, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "gpus", LIMIT_SAMPLE_GPUS, &array, err)) {
        return false;
    }
    *ret_count = json_array_size(array);
    *ret_gpus = xzalloc(*ret_count * sizeof **ret_gpus);
    for (size_t i = 0; i < *ret_count; i++) {
        if (!decode_gpu(json_array_get(array, i), &(*ret_gpus)[i], err)) {
            return member_err_inside(err, "gpus", i);
        }
    }
    return true;
}

static bool decode_rank(const json_t *json, struct rank_sample *rank, struct err *err)
{
    *rank = (struct rank_sample){.memory_bytes = -1, .io_read_bytes = -1, .io_written_bytes = -1};
    return json_need_int(json, "rank", 0, LIMIT_GPUS - 1, &rank->rank, err) &&
           read_percent(json, "cpu_percent", &rank->cpu_percent, err) &&
           json_read_int(json, "memory_bytes", 0, INT64_MAX, &rank->memory_bytes, err) &&
           json_read_int(json, "io_read_bytes", 0, INT64_MAX, &rank->io_read_bytes, err) &&
           json_read_int(json, "io_written_bytes", 0, INT64_MAX, &rank->io_written_bytes, err);
}

static bool decode_ranks(const json_t *json, struct sample *sample, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "ranks", LIMIT_SAMPLE_RANKS, &array, err)) {
        return false;
    }
    sample->rank_count = json_array_size(array);
    sample->ranks = xzalloc(sample->rank_count * sizeof *sample->ranks);
    for (size_t i = 0; i < sample->rank_count; i++) {
        if (!decode_rank(json_array_get(array, i), &sample->ranks[i], err)) {
            return member_err_inside(err, "ranks", i);
        }
    }
    return true;
}

static bool decode_sample(const json_t *json, struct sample *sample, struct err *err)
{
    sample->memory_bytes = sample->memory_total_bytes = -1;
    sample->io_read_bytes = sample->io_written_bytes = -1;
    return member_need_attempt_id(json, "epoch", &sample->attempt_id, err) &&
           json_need_int(json, "at_ms", 0, LIMIT_WALL_MS, &sample->at_ms, err) &&
           json_need_int(json, "step", 0, INT64_MAX, &sample->step, err) &&
           read_percent(json, "cpu_percent", &sample->cpu_percent, err) &&
           json_read_int(json, "memory_bytes", 0, INT64_MAX, &sample->memory_bytes, err) &&
           json_read_int(json, "memory_total_bytes", 0, INT64_MAX, &sample->memory_total_bytes, err) &&
           json_read_int(json, "io_read_bytes", 0, INT64_MAX, &sample->io_read_bytes, err) &&
           json_read_int(json, "io_written_bytes", 0, INT64_MAX, &sample->io_written_bytes, err) &&
           decode_gpus(json, &sample->gpus, &sample->gpu_count, err) && decode_ranks(json, sample, err);
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

void sample_finish(struct sample *sample)
{
    free(sample->gpus);
    free(sample->ranks);
}

void samples_free(struct sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sample_finish(&samples[i]);
    }
    free(samples);
}

/* --- the node ------------------------------------------------------------------------------------------- */

void machine_sample_put(json_t *json, const struct machine_sample *machine)
{
    if (machine == NULL) {
        return;
    }
    json_t *item = json_object();
    put_percent(item, "cpu_percent", machine->cpu_percent);
    put_known(item, "memory_bytes", machine->memory_bytes);
    put_known(item, "memory_total_bytes", machine->memory_total_bytes);
    member_put(item, "gpus", encode_gpus(machine->gpus, machine->gpu_count));
    member_put(json, "machine", item);
}

static bool decode_machine(const json_t *json, struct machine_sample *machine, struct err *err)
{
    machine->memory_bytes = machine->memory_total_bytes = -1;
    return read_percent(json, "cpu_percent", &machine->cpu_percent, err) &&
           json_read_int(json, "memory_bytes", 0, INT64_MAX, &machine->memory_bytes, err) &&
           json_read_int(json, "memory_total_bytes", 0, INT64_MAX, &machine->memory_total_bytes, err) &&
           decode_gpus(json, &machine->gpus, &machine->gpu_count, err);
}

bool machine_sample_decode(const json_t *json, struct machine_sample **ret_machine, struct err *err)
{
    const json_t *item = json_object_get(json, "machine");
    *ret_machine = NULL;
    if (item == NULL || json_is_null(item)) {
        return true;
    }
    *ret_machine = xzalloc(sizeof **ret_machine);
    return json_is_object(item) ? decode_machine(item, *ret_machine, err)
                                : err_field(err, ERR_FIELD, "machine", NULL, "machine must be an object");
}

void machine_sample_free(struct machine_sample *machine)
{
    if (machine != NULL) {
        free(machine->gpus);
        free(machine);
    }
}
