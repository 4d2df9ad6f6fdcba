/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the whole node: CPU and memory from files of the kernel that wait for nothing, and the GPUs from
 * the helper's last look at them. A sample that is lost with its heartbeat is not sent again, because the
 * next one comes soon. */
#include "agent/node/machine_sampler.h"

#include <fcntl.h>

#include "agent/common/cgroup_tree.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define FULL_PERCENT 100.0

/* Time in which a CPU waits for a disk counts as idle. The time of guests is within that of users. */
static struct cpu_ticks read_ticks(const char *proc)
{
    long long user, nice, system, idle, waiting, irq, softirq, stolen;
    autofree char *path = xprintf("%s/stat", proc);
    autofclose FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &user, &nice, &system,
                               &idle, &waiting, &irq, &softirq, &stolen) != 8) {
        return (struct cpu_ticks){-1, -1};
    }
    int64_t busy = user + nice + system + irq + softirq + stolen;
    return (struct cpu_ticks){.busy = busy, .all = busy + idle + waiting};
}

/* The kernel's count of idle time may fall a little. */
static double percent_between(const struct cpu_ticks *before, const struct cpu_ticks *now)
{
    if (before->all < 0 || now->busy < before->busy || now->all <= before->all) {
        return -1;
    }
    double percent = FULL_PERCENT * (double)(now->busy - before->busy) / (double)(now->all - before->all);
    return percent < FULL_PERCENT ? percent : FULL_PERCENT;
}

static void read_memory(const char *proc, struct machine_sample *sample)
{
    autoclose int folder = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int64_t total = folder >= 0 ? cgroup_counter(folder, "meminfo", "MemTotal:") : -1;
    int64_t available = folder >= 0 ? cgroup_counter(folder, "meminfo", "MemAvailable:") : -1;
    sample->memory_total_bytes = total >= 0 ? total * KIB : -1;
    sample->memory_bytes = available >= 0 && available <= total ? (total - available) * KIB : -1;
}

static void read_gpus(const struct devices *devices, struct machine_sample *sample)
{
    if (devices->slots) {
        return;
    }
    sample->gpu_count = devices->count < LIMIT_SAMPLE_GPUS ? devices->count : LIMIT_SAMPLE_GPUS;
    sample->gpus = xzalloc(sample->gpu_count * sizeof *sample->gpus);
    for (size_t i = 0; i < sample->gpu_count; i++) {
        sample->gpus[i] = devices_use(devices, i);
    }
}

void machine_sampler_init(struct machine_sampler *sampler, const char *proc)
{
    *sampler = (struct machine_sampler){.before = read_ticks(proc)};
}

/* A heartbeat comes a little early or late: the samples keep their pace on average. */
static bool is_due(struct machine_sampler *sampler, int64_t interval_ms, int64_t number, int64_t now_ms)
{
    if (interval_ms == 0 || (now_ms < sampler->due_ms && number != sampler->carrier)) {
        return false;
    }
    if (number != sampler->carrier) {
        int64_t next_ms = sampler->due_ms + interval_ms;
        sampler->due_ms = next_ms > now_ms ? next_ms : now_ms + interval_ms;
    }
    sampler->carrier = number;
    return true;
}

struct machine_sample *machine_sampler_take(struct machine_sampler *sampler, const char *proc,
                                            const struct devices *devices, int64_t interval_s, int64_t number,
                                            int64_t now_ms)
{
    if (!is_due(sampler, interval_s * 1000, number, now_ms)) {
        return NULL;
    }
    struct machine_sample *sample = xzalloc(sizeof *sample);
    struct cpu_ticks now = read_ticks(proc);
    sample->cpu_percent = percent_between(&sampler->before, &now);
    read_memory(proc, sample);
    read_gpus(devices, sample);
    sampler->before = now;
    return sample;
}
