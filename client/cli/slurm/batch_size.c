/* SPDX-License-Identifier: Apache-2.0 */
/* Calculates the size of a batch job: nodes, tasks and GPUs may each be given in several ways. It promises
 * to refuse two ways that do not agree, naming both. */
#include "client/cli/slurm/batch.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

/* One way to say how many GPUs there are in all. */
struct gpu_total {
    const char *option;
    int64_t gpus; /* negative: not said */
};

static bool read_count(const char *option, const char *text, int64_t *ret_count, struct err *err)
{
    return text == NULL || text_to_int(text, 1, LIMIT_GPUS, ret_count) ||
           err_field(err, ERR_USAGE, option, NULL, "--%s must be a number from 1 on, not \"%s\"", option,
                     text);
}

/* "2", or "2-4", of which the least is taken. */
static bool read_nodes(const char *text, int64_t *ret_nodes, struct notes *notes, struct err *err)
{
    const char *dash = text != NULL ? strchr(text, '-') : NULL;
    autofree char *least =
        text != NULL ? xstrndup(text, dash != NULL ? (size_t)(dash - text) : strlen(text)) : NULL;
    if (!read_count("nodes", least, ret_nodes, err)) {
        return false;
    }
    if (dash != NULL) {
        notes_add(notes, "--nodes %s: %s are asked for", text, least);
    }
    return true;
}

static bool set_type(struct batch_size *size, const char *option, const char *type, struct err *err)
{
    if (type[0] == '\0') {
        return true;
    }
    if (size->type[0] != '\0' && strcasecmp(size->type, type) != 0) {
        return err_field(err, ERR_USAGE, option, "name one type",
                         "--%s asks for the type %s, another option for %s", option, type, size->type);
    }
    snprintf(size->type, sizeof size->type, "%s", type);
    return true;
}

/* *ret_count stays as it is where the option was not given. */
static bool read_gpus(const char *option, const char *text, struct batch_size *size, int64_t *ret_count,
                      struct err *err)
{
    struct slurm_gpus gpus;
    if (text == NULL) {
        return true;
    }
    if (!slurm_gpus(text, &gpus)) {
        return err_field(err, ERR_USAGE, option, NULL, "--%s must be N or TYPE:N, not \"%s\"", option, text);
    }
    *ret_count = gpus.count;
    return set_type(size, option, gpus.type, err);
}

static bool read_gres(const char *text, struct batch_size *size, int64_t *ret_count, struct err *err)
{
    struct slurm_gpus gpus;
    if (text == NULL) {
        return true;
    }
    if (!slurm_gres(text, &gpus)) {
        return err_field(err, ERR_USAGE, "gres", "gpu:2 or gpu:a100:2 for instance",
                         "--gres must be gpu[:TYPE]:N, not \"%s\"", text);
    }
    *ret_count = gpus.count;
    return set_type(size, "gres", gpus.type, err);
}

/* --- sums --- */

static bool agree(const struct gpu_total *totals, size_t count, int64_t *ret_gpus, struct err *err)
{
    const struct gpu_total *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (totals[i].gpus < 0) {
            continue;
        }
        if (first != NULL && first->gpus != totals[i].gpus) {
            return err_field(err, ERR_USAGE, totals[i].option, "leave one of them out",
                             "--%s and --%s contradict each other: %lld GPUs and %lld in all", first->option,
                             totals[i].option, (long long)first->gpus, (long long)totals[i].gpus);
        }
        first = first != NULL ? first : &totals[i];
    }
    *ret_gpus = first != NULL ? first->gpus : -1;
    return true;
}

static bool check_shares(const struct batch_size *size, struct err *err)
{
    if (size->gpus % size->nodes != 0) {
        return err_field(err, ERR_USAGE, "gpus", "give each node as many",
                         "%lld GPUs cannot be shared out evenly by %lld nodes", (long long)size->gpus,
                         (long long)size->nodes);
    }
    return size->tasks % size->nodes == 0 || err_field(err, ERR_USAGE, "ntasks", "give each node as many",
                                                       "%lld tasks cannot be shared out evenly by %lld nodes",
                                                       (long long)size->tasks, (long long)size->nodes);
}

/* Without GPUs a job has one node here. */
static bool take_no_gpus(struct batch_size *size, bool said, struct notes *notes, struct err *err)
{
    if (size->nodes == 1) {
        size->gpus = 0;
        size->type[0] = '\0';
        return true;
    }
    if (said) {
        return err_field(err, ERR_USAGE, "nodes", "ask for GPUs, or submit the script once for each node",
                         "--nodes: a job without GPUs has one node, not %lld", (long long)size->nodes);
    }
    size->slots = true;
    size->gpus = size->tasks;
    notes_add(notes, "asks for no GPU on several nodes: %lld slots are taken, one for each task",
              (long long)size->gpus);
    return true;
}

/* Derives the numbers that are not given. */
static void complete_tasks(struct batch_size *size, int64_t per_node, int64_t total)
{
    if (size->nodes == 0) {
        size->nodes = per_node > 0 && size->tasks > 0 ? (size->tasks + per_node - 1) / per_node : 1;
    }
    if (size->tasks == 0) {
        bool shared = per_node == 0 && size->per_task > 0 && total > 0 && total % size->per_task == 0;
        size->tasks = per_node > 0 ? per_node * size->nodes : shared ? total / size->per_task : size->nodes;
    }
}

bool batch_measure(const struct batch_options *options, struct batch_size *ret_size, struct notes *notes,
                   struct err *err)
{
    struct batch_size size = {0};
    int64_t tasks_per_node = 0, total = -1, by_node = -1, by_task = -1, by_gres = -1;
    if (!read_nodes(options->nodes, &size.nodes, notes, err) ||
        !read_count("ntasks", options->ntasks, &size.tasks, err) ||
        !read_count("ntasks-per-node", options->ntasks_per_node, &tasks_per_node, err) ||
        !read_gpus("gpus", options->gpus, &size, &total, err) ||
        !read_gpus("gpus-per-node", options->gpus_per_node, &size, &by_node, err) ||
        !read_gpus("gpus-per-task", options->gpus_per_task, &size, &by_task, err) ||
        !read_gres(options->gres, &size, &by_gres, err)) {
        return false;
    }
    if (size.nodes == 0 && by_node > 0 && total > 0 && total % by_node == 0) {
        size.nodes = total / by_node;
    }
    size.per_task = by_task > 0 ? by_task : 0;
    complete_tasks(&size, tasks_per_node, total);
    const struct gpu_total totals[] = {{"gpus", total},
                                       {"gpus-per-node", by_node * size.nodes},
                                       {"gres", by_gres * size.nodes},
                                       {"gpus-per-task", by_task * size.tasks}};
    if (!agree(totals, sizeof totals / sizeof totals[0], &size.gpus, err)) {
        return false;
    }
    if (size.gpus <= 0 && !take_no_gpus(&size, size.gpus == 0, notes, err)) {
        return false;
    }
    *ret_size = size;
    return check_shares(&size, err);
}
