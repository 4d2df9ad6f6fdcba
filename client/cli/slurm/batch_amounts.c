/* SPDX-License-Identifier: Apache-2.0 */
/* Calculates the CPUs and the memory of a batch job in total from what Slurm's options say for each node,
 * task, CPU or GPU. It promises to refuse two options that do not agree, naming both, and to note what has no
 * meaning here. */
#include "client/cli/slurm/batch.h"

#include "client/cli/slurm/slurm_values.h"
#include "proto/base/text/text.h"

/* One way to say how much there is in all. */
struct way {
    const char *option, *text; /* text NULL: not said */
    int64_t times;             /* of what the text says; 0: means nothing for this job */
};

/* *ret_total is -1 where no way was said. */
static bool total_of(const struct way *ways, size_t count, bool (*read)(const char *text, int64_t *ret_value),
                     const char *form, int64_t *ret_total, struct notes *notes, struct err *err)
{
    const struct way *first = NULL;
    *ret_total = -1;
    for (const struct way *way = ways; way < ways + count; way++) {
        int64_t value, total;
        if (way->text == NULL) {
            continue;
        }
        if (!read(way->text, &value) || __builtin_mul_overflow(value, way->times, &total)) {
            return err_field(err, ERR_USAGE, way->option, form, "--%s \"%s\" is no amount", way->option,
                             way->text);
        }
        if (total == 0) {
            notes_add(notes, "--%s is left out: %s", way->option,
                      way->times == 0 ? "no GPU is asked for" : "all memory of a node cannot be asked for");
            continue;
        }
        if (first != NULL && total != *ret_total) {
            return err_field(err, ERR_USAGE, way->option, "leave one of them out",
                             "--%s and --%s contradict each other", first->option, way->option);
        }
        first = way;
        *ret_total = total;
    }
    return true;
}

static bool read_cpus(const char *text, int64_t *ret_cpus)
{
    return text_to_int(text, 1, LIMIT_CPUS, ret_cpus);
}

bool batch_amounts(const struct batch_options *options, const struct batch_size *size, json_t *spec,
                   struct notes *notes, struct err *err)
{
    int64_t cpus, bytes;
    int64_t gpus = size->slots ? 0 : size->gpus;
    const struct way of_cpus[] = {{"cpus-per-task", options->cpus_per_task, size->tasks},
                                  {"cpus-per-gpu", options->cpus_per_gpu, gpus}};
    if (!total_of(of_cpus, 2, read_cpus, "a number from 1 on", &cpus, notes, err)) {
        return false;
    }
    if (cpus < 0 && size->gpus == 0 && size->tasks > 1) {
        cpus = size->tasks;
    }
    const struct way of_memory[] = {{"mem", options->mem, size->nodes},
                                    {"mem-per-cpu", options->mem_per_cpu, cpus > 0 ? cpus : size->tasks},
                                    {"mem-per-gpu", options->mem_per_gpu, gpus}};
    if (!total_of(of_memory, 3, slurm_memory, "a number of MiB, or with a unit: 64G, 512M", &bytes, notes,
                  err)) {
        return false;
    }
    if (cpus > 0) {
        json_object_set_new(spec, "cpus", json_integer(cpus));
    }
    if (bytes > 0) {
        json_object_set_new(spec, "memory", json_integer(bytes));
    }
    return true;
}
