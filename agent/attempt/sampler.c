/* SPDX-License-Identifier: Apache-2.0 */
/* Measures attempts, and keeps the sample of each until a heartbeat has brought it to the controller. An
 * attempt whose ranks have ended has no sample, and at most one sample waits. The loop waits for no driver: a
 * sample has the last look at the GPUs. CPU time counts from reading to reading, so that none is lost with a
 * sample. */
#include "agent/attempt/sampler.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/attempt/attempt.h"
#include "proto/base/clock.h"

#define FULL_PERCENT 100.0
/* An attempt that has run for an hour is sampled each 10 s, one that has run for a day each 4 min: each
 * doubling of its age adds as many samples, so that long jobs do not fill the controller's disk. */
#define SAMPLES_PER_AGE 360

/* --- readings ------------------------------------------------------------------------------------------- */

static struct usage_source source_of(const struct attempt *attempt)
{
    return (struct usage_source){
        .proc = "/proc", .sys = "/sys", .cgroup = attempt->cgroup, .shim = shim_process_pid(&attempt->shim)};
}

static struct usage read_usage(const struct attempt *attempt)
{
    const struct usage_source source = source_of(attempt);
    return usage_read(&source);
}

/* A sum over processes falls when one of them ends. */
double sampler_cpu_percent(const struct usage *before, const struct usage *now, int64_t elapsed_us,
                           int64_t cpus)
{
    if (before->cpu_us < 0 || now->cpu_us < before->cpu_us || elapsed_us <= 0 || cpus <= 0) {
        return -1;
    }
    double percent =
        FULL_PERCENT * (double)(now->cpu_us - before->cpu_us) / ((double)elapsed_us * (double)cpus);
    return percent < FULL_PERCENT ? percent : FULL_PERCENT;
}

/* The GPUs that are measured; CPU slots are none. */
static size_t watched(const struct attempt *attempt)
{
    size_t count = attempt->context->devices.slots ? 0 : attempt->device_count;
    return count < LIMIT_SAMPLE_GPUS ? count : LIMIT_SAMPLE_GPUS;
}

static struct gpu_sample look_at(const struct attempt *attempt, size_t i)
{
    const struct devices *devices = &attempt->context->devices;
    return devices_use(devices, devices_position(devices, attempt->devices[i]));
}

static void read_gpus(const struct attempt *attempt, struct sample *sample)
{
    sample->gpu_count = watched(attempt);
    sample->gpus = xzalloc(sample->gpu_count * sizeof *sample->gpus);
    for (size_t i = 0; i < sample->gpu_count; i++) {
        sample->gpus[i] = look_at(attempt, i);
    }
}

/* --- use of GPUs ---------------------------------------------------------------------------------------- */

static void begin_use(struct attempt *attempt)
{
    struct sampler *sampler = &attempt->sampler;
    sampler->used_us = sampler->busy_us = clock_boot_us();
    for (size_t i = 0; i < watched(attempt); i++) {
        sampler->energy_mj[i] = look_at(attempt, i).energy_mj;
    }
}

/* The counter of energy begins anew when the driver is loaded. */
static void add_energy(struct sampler *sampler, size_t i, int64_t energy_mj)
{
    if (energy_mj >= 0 && sampler->energy_mj[i] >= 0 && energy_mj > sampler->energy_mj[i]) {
        sampler->use.energy_mj += energy_mj - sampler->energy_mj[i];
    }
    sampler->energy_mj[i] = energy_mj >= 0 ? energy_mj : sampler->energy_mj[i];
}

/* The last look stands for all the time since the one before. */
static void add_use(struct attempt *attempt)
{
    struct sampler *sampler = &attempt->sampler;
    int64_t now_us = clock_boot_us(), elapsed_ms = (now_us - sampler->used_us) / 1000;
    for (size_t i = 0; i < watched(attempt); i++) {
        struct gpu_sample seen = look_at(attempt, i);
        if (seen.busy_percent >= 0) {
            sampler->use.measured_ms += elapsed_ms;
            sampler->use.idle_ms += seen.busy_percent < GPU_IDLE_PERCENT ? elapsed_ms : 0;
        }
        add_energy(sampler, i, seen.energy_mj);
    }
    sampler->used_us += elapsed_ms * 1000;
}

int64_t sampler_idle_ms(struct attempt *attempt)
{
    struct sampler *sampler = &attempt->sampler;
    if (!sampler->timer.on || watched(attempt) == 0) {
        return -1;
    }
    for (size_t i = 0; i < watched(attempt); i++) {
        int64_t percent = look_at(attempt, i).busy_percent;
        if (percent < 0) {
            return -1;
        }
        if (percent >= GPU_IDLE_PERCENT) {
            sampler->busy_us = clock_boot_us();
            return 0;
        }
    }
    int64_t idle_ms = (clock_boot_us() - sampler->busy_us) / 1000;
    return idle_ms > 0 ? idle_ms : 1;
}

/* --- samples -------------------------------------------------------------------------------------------- */

static void drop(struct sampler *sampler)
{
    sample_finish(&sampler->sample);
    sampler->sample = (struct sample){0};
    sampler->waits = false;
}

/* What a process read or wrote that has ended since may be missing from the newer sum. */
static int64_t larger(int64_t before, int64_t now)
{
    return before > now ? before : now;
}

static void keep_io(const struct usage *before, struct usage *now)
{
    now->io_read_bytes = larger(before->io_read_bytes, now->io_read_bytes);
    now->io_written_bytes = larger(before->io_written_bytes, now->io_written_bytes);
}

static void read_ranks(struct attempt *attempt, int64_t elapsed_us, int64_t cpus)
{
    struct sampler *sampler = &attempt->sampler;
    struct sample *sample = &sampler->sample;
    struct usage usages[LIMIT_SAMPLE_RANKS];
    const struct usage_source source = source_of(attempt);
    if (attempt->pid_count == 0) {
        return;
    }
    usage_read_ranks(&source, attempt->pids, attempt->pid_count, usages);
    sample->rank_count = attempt->pid_count;
    sample->ranks = xzalloc(sample->rank_count * sizeof *sample->ranks);
    for (size_t i = 0; i < sample->rank_count; i++) {
        struct usage *before = &sampler->ranks_before[i], *now = &usages[i];
        keep_io(before, now);
        sample->ranks[i] =
            (struct rank_sample){.rank = attempt_first_rank(attempt) + (int64_t)i,
                                 .cpu_percent = sampler_cpu_percent(before, now, elapsed_us, cpus),
                                 .memory_bytes = now->memory_bytes,
                                 .io_read_bytes = now->io_read_bytes,
                                 .io_written_bytes = now->io_written_bytes};
        *before = *now;
    }
}

static void take(struct attempt *attempt)
{
    struct sampler *sampler = &attempt->sampler;
    struct usage usage = read_usage(attempt);
    keep_io(&sampler->before, &usage);
    int64_t now_us = clock_boot_us(), wall_ms = clock_wall_ms(), cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t elapsed_us = now_us - sampler->read_us;
    int64_t step = (wall_ms - attempt->running_ms + 500) / 1000;
    sampler->sample = (struct sample){
        .attempt_id = attempt->attempt_id,
        .at_ms = wall_ms,
        .step = step > 0 ? step : 0,
        .cpu_percent = sampler_cpu_percent(&sampler->before, &usage, elapsed_us, cpus),
        .memory_bytes = usage.memory_bytes,
        .memory_total_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
        .io_read_bytes = usage.io_read_bytes,
        .io_written_bytes = usage.io_written_bytes,
    };
    read_ranks(attempt, elapsed_us, cpus);
    read_gpus(attempt, &sampler->sample);
    sampler->waits = sampler->sampled = true;
    sampler->before = usage;
    sampler->read_us = now_us;
}

int64_t sampler_period_ms(int64_t sample_s, int64_t age_ms)
{
    int64_t least_ms = sample_s * 1000, ms = age_ms / SAMPLES_PER_AGE;
    return ms > least_ms ? ms : least_ms;
}

static void arm(struct attempt *attempt)
{
    int64_t age_ms = clock_wall_ms() - attempt->running_ms;
    loop_arm(attempt->context->loop, &attempt->sampler.timer,
             clock_boot_ms() + sampler_period_ms(attempt->context->config.sample_s, age_ms));
}

/* A sample that still waits is not replaced: else the first of many attempts would always be in front of the
 * last. */
static void due(void *closure)
{
    struct attempt *attempt = closure;
    add_use(attempt);
    if (!attempt->sampler.waits) {
        take(attempt);
    }
    arm(attempt);
}

/* Ranks that were just started have used nothing yet. Reading that would delay each start. Those of an
 * adopted attempt run for longer, and a warm worker has imported its modules before. */
static struct usage usage_so_far(const struct attempt *attempt)
{
    return attempt->adopted || attempt->python ? read_usage(attempt) : (struct usage){0};
}

void sampler_begin(struct attempt *attempt)
{
    struct sampler *sampler = &attempt->sampler;
    if (sampler->timer.on || attempt->context->config.sample_s == 0) {
        return;
    }
    sampler->before = usage_so_far(attempt);
    for (size_t i = 0; i < LIMIT_SAMPLE_RANKS; i++) {
        sampler->ranks_before[i] = USAGE_UNKNOWN;
    }
    sampler->read_us = clock_boot_us();
    begin_use(attempt);
    loop_set(attempt->context->loop, &sampler->timer, due, attempt);
    arm(attempt);
}

static int64_t bounded(int64_t bytes)
{
    return bytes < 0 ? 0 : bytes > LIMIT_USE ? LIMIT_USE : bytes;
}

/* A cgroup counts up to here; processes that have ended count as in the last sample. */
static void add_io(struct attempt *attempt)
{
    struct sampler *sampler = &attempt->sampler;
    struct usage last = read_usage(attempt);
    sampler->use.io_read_bytes = bounded(larger(sampler->before.io_read_bytes, last.io_read_bytes));
    sampler->use.io_written_bytes = bounded(larger(sampler->before.io_written_bytes, last.io_written_bytes));
}

void sampler_end(struct attempt *attempt)
{
    if (attempt->sampler.timer.on) {
        add_use(attempt);
    }
    if (attempt->sampler.timer.on && attempt->sampler.sampled) {
        add_io(attempt);
    }
    loop_disarm(attempt->context->loop, &attempt->sampler.timer);
    drop(&attempt->sampler);
}

bool sampler_precedes(const struct attempt *attempt, const struct attempt *other)
{
    return attempt->sampler.sample.at_ms < other->sampler.sample.at_ms;
}

void sampler_unload(struct attempt *attempt, int64_t number)
{
    if (attempt->sampler.carrier == number) {
        attempt->sampler.carrier = 0;
    }
}

void sampler_carried(struct attempt *attempt, int64_t number)
{
    if (attempt->sampler.waits && attempt->sampler.carrier == number) {
        drop(&attempt->sampler);
    }
}
