/* SPDX-License-Identifier: Apache-2.0 */
/* Decides on admission: whether the registered nodes, busy or not, could ever run a job. A refusal changes
 * nothing and names the field and the remedy. A job whose class exists needs no look at the nodes. place.c
 * decides when it runs. */
#include "daemon/core/scheduler/admission.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/fleet/constraint.h"
#include "daemon/core/fleet/pool.h"
#include "daemon/core/fleet/request.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/scheduler/largest.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/spec/node_label.h"

/* Whether a registered node has one of the types in the resource request. */
static bool has_a_type(const struct core *core, const char *alternatives)
{
    size_t rank;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (pool_type_matches(alternatives, partition->type, &rank)) {
            return true;
        }
    }
    return false;
}

static bool check_type(const struct core *core, const struct resource_request *request, struct err *err)
{
    if (request->gpu_type == NULL || has_a_type(core, request->gpu_type)) {
        return true;
    }
    autotext struct text types = {0};
    pool_list_types(core, &types);
    bool several = strchr(request->gpu_type, '|') != NULL;
    err_field(err, ERR_GPU_TYPE, "gpu_type", NULL, "no registered node has %s %.128s",
              several ? "any of the GPU types" : "the GPU type", request->gpu_type);
    const char *nearest = several ? NULL : pool_nearest_type(core, request->gpu_type);
    if (nearest == NULL) {
        return err_hint(err, "registered: %.150s", types.bytes);
    }
    return err_hint(err, "did you mean %.64s? Registered: %.150s", nearest, types.bytes);
}

static bool check_pool(const struct core *core, const struct resource_request *request, struct err *err)
{
    enum pool_kind kind;
    if (request->pool == NULL) {
        return true;
    }
    if (!pool_kind_of(core, request->pool, NULL, &kind)) {
        autotext struct text pools = {0};
        pool_list_names(core, &pools);
        err_field(err, ERR_FIELD, "pool", NULL, "there is no pool %.64s", request->pool);
        return err_hint(err, "pools: %.200s", pools.bytes);
    }
    bool wants_other = (request->use_reserved == USE_RESERVED_TRUE && kind != POOL_RESERVED) ||
                       (request->use_reserved == USE_RESERVED_FALSE && kind != POOL_ON_DEMAND);
    if (wants_other) {
        return err_field(err, ERR_FIELD, "use_reserved_pool",
                         "name a pool, or whether it is reserved; not both", "pool %.64s is %s",
                         request->pool, pool_kind_text(kind));
    }
    return true;
}

static bool check_reserved(const struct core *core, const struct resource_request *request, struct err *err)
{
    if (request->use_reserved != USE_RESERVED_TRUE) {
        return true;
    }
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (partition->kind == POOL_RESERVED) {
            return true;
        }
    }
    return err_field(err, ERR_CAPACITY, "use_reserved_pool",
                     "ask for on-demand GPUs, or for any, or start a gpuagent with --reserved",
                     "no reserved pool is registered");
}

static bool check_host(const struct core *core, const struct resource_request *request, struct err *err)
{
    if (request->host_id == NULL) {
        return true;
    }
    for (size_t i = 0; i < core->node_count; i++) {
        if (core->nodes[i]->state != NODE_LOST && strcmp(core->nodes[i]->host_id, request->host_id) == 0) {
            return true;
        }
    }
    return err_field(err, ERR_NO_LOCAL_NODE, "remote", "set remote=true to run on any node",
                     "remote=false wants a node on the submitter's host, and none is registered there");
}

/* Counts the nodes that fit the resource request and the constraint; constraint NULL: all its constraints.
 * *ret_asked counts nodes that fit the request whatever their labels. */
static size_t count_fitting(const struct core *core, const struct resource_request *request,
                            const struct constraint *constraint, size_t *ret_asked)
{
    size_t fitting = 0;
    *ret_asked = 0;
    for (size_t i = 0; i < core->node_count; i++) {
        bool asked = false, fits = false;
        for (const struct capacity *capacity = core->nodes[i]->capacities; capacity != NULL;
             capacity = capacity->next) {
            bool here = request_asks(request, capacity->partition);
            asked = asked || here;
            fits = fits ||
                   (here && (constraint != NULL ? constraint_holds(constraint, capacity)
                                                : constraints_allow(request->constraints, core, capacity)));
        }
        *ret_asked += asked;
        fitting += fits;
    }
    return fitting;
}

/* Lists "zone=a fails on 3 of 3 nodes, exclude n1 on 1"; returns the field of the first constraint that fails
 * on all. */
static const char *list_failures(const struct core *core, const struct resource_request *request,
                                 struct text *out)
{
    const char *field = NULL;
    for (size_t i = 0; i < request->constraints->count; i++) {
        const struct constraint *constraint = &request->constraints->items[i];
        size_t asked, fitting = count_fitting(core, request, constraint, &asked);
        if (constraint->kind == CONSTRAINT_AVOID || fitting == asked) {
            continue;
        }
        bool first = out->length == 0;
        text_append(out, first ? "" : ", ");
        constraint_write(constraint, out);
        text_printf(out, first ? " fails on %zu of %zu node%s" : " on %zu", asked - fitting, asked,
                    asked == 1 ? "" : "s");
        if (fitting == 0 && field == NULL) {
            field = constraint->kind == CONSTRAINT_EXCLUDE ? "exclude" : constraint->key;
        }
    }
    return field;
}

void admission_say_failures(const struct core *core, const struct resource_request *request, struct text *out)
{
    size_t asked;
    autotext struct text failures = {0};
    if (request->constraints != NULL && count_fitting(core, request, NULL, &asked) == 0 && asked > 0) {
        list_failures(core, request, &failures);
        text_printf(out, ": %.300s", failures.bytes);
    }
}

/* Whether nodes are left that fit the constraints, if the resource request may use any nodes at all. */
static bool check_constraints(const struct core *core, const struct resource_request *request,
                              struct err *err)
{
    size_t asked;
    if (request->constraints == NULL || count_fitting(core, request, NULL, &asked) > 0 || asked == 0) {
        return true;
    }
    autotext struct text failures = {0};
    const char *key = list_failures(core, request, &failures);
    char field[LIMIT_NAME_BYTES + 1] = "constraints";
    if (key != NULL && strncmp(key, VOLUME_LABEL, strlen(VOLUME_LABEL)) == 0) {
        return err_field(err, ERR_CAPACITY, "volumes",
                         "gpuctl nodes list -o wide shows the volumes as labels; start a gpuagent with "
                         "--volume NAME=DIR",
                         "no registered node fits: %.300s", failures.bytes);
    }
    if (key != NULL && strcmp(key, IMAGES_LABEL) == 0) {
        return err_field(err, ERR_CAPACITY, "image",
                         "install crun, skopeo and umoci on a node, and start its gpuagent again",
                         "no registered node runs jobs in container images: %.300s", failures.bytes);
    }
    if (key != NULL) {
        bool excluded = strcmp(key, "exclude") == 0;
        snprintf(field, sizeof field, "%s%.*s", excluded ? "" : "constraints.", LIMIT_NAME_BYTES - 12, key);
    }
    return err_field(
        err, ERR_CAPACITY, field,
        "gpuctl nodes list -o wide shows the labels; leave a constraint out, or start a gpuagent "
        "with --label",
        "no registered node fits: %.300s", failures.bytes);
}

static const char *capacity_hint(const struct resource_request *request)
{
    if (request->host_id != NULL) {
        return "ask for fewer GPUs, or set remote=true; remote=false runs on one node of this host";
    }
    if (request->nodes > 1) {
        return "ask for fewer GPUs on each node, or for fewer nodes; a gang is of one pool and type";
    }
    if (request->constraints != NULL) {
        return "ask for fewer GPUs, or loosen constraints and exclude; a gang is of one pool and type";
    }
    if (request->use_reserved == USE_RESERVED_AUTO && request->pool == NULL) {
        return "ask for fewer GPUs, for another pool or type, or for on-demand GPUs; a gang is of one pool "
               "and type";
    }
    return "ask for fewer GPUs, or name another pool or type; a gang is of one pool and type";
}

static bool would_fit(struct core *core, const struct resource_request *request)
{
    return largest_gang(core, request, NULL) >= request->units;
}

/* Whether the job would fit if it did not name CPUs, or memory: then these are too many. A job without GPUs
 * has a CPU, which a node has whose agent says what there is. */
static bool check_amounts(struct core *core, const struct resource_request *request, struct err *err)
{
    struct resource_request less = *request;
    bool named = request->each.millicpus > 0 || request->each.memory_bytes > 0;
    less.each = (struct amount){0};
    if (!named || would_fit(core, request) || !would_fit(core, &less)) {
        return true;
    }
    less.each.millicpus = request->each.millicpus;
    bool cpus = request->each.millicpus > 0 && !would_fit(core, &less);
    return err_field(err, ERR_CAPACITY, cpus ? "cpus" : "memory",
                     "ask for less; gpuctl nodes list -o wide shows what nodes have",
                     "no nodes that the job may use have %s%s", cpus ? "as many CPUs" : "as much memory",
                     request->gpuless ? "" : " beside its GPUs");
}

static bool check_capacity(struct core *core, const struct resource_request *request, struct err *err)
{
    struct job_class *job_class = queue_find(core, request);
    bool known = job_class != NULL && job_class->registry == core->registry;
    if (!known && largest_fits_one_node(core, request)) { /* most do, and the largest gang is a long search */
        return true;
    }
    if (job_class != NULL && largest_of_job_class(core, job_class) >= request->units) {
        return true;
    }
    const struct partition *where;
    if (!check_amounts(core, request, err)) {
        return false;
    }
    int64_t largest = largest_gang(core, request, &where);
    if (largest >= request->units) {
        return true;
    }
    if (!check_constraints(core, request, err)) {
        return false;
    }
    if (where == NULL && request->gpuless) {
        return err_field(err, ERR_CAPACITY, "gpus", "ask for a GPU, or start a newer gpuagent",
                         "no node that the job may use runs jobs without GPUs");
    }
    if (where == NULL) {
        return err_field(err, ERR_CAPACITY, "gpus", capacity_hint(request),
                         "the job needs %lld GPUs, and no node that it may use has any",
                         (long long)request->units);
    }
    char nodes[40] = "";
    if (request->nodes > 1) {
        snprintf(nodes, sizeof nodes, " on %lld nodes", (long long)request->nodes);
    }
    return err_field(err, ERR_CAPACITY, "gpus", capacity_hint(request),
                     "the job needs %lld GPUs%s, and the most it can get is %lld of type %.64s in pool %.64s",
                     (long long)request->units, nodes, (long long)largest, where->type, where->pool);
}

bool admission_check(struct core *core, const struct resource_request *request, struct err *err)
{
    if (core->partitions == NULL) {
        return err_field(err, ERR_CAPACITY, "gpus", "start gpuagent on a machine with GPUs",
                         "no node with GPUs is registered");
    }
    if (HASH_CNT(by_id, core->jobs_by_id) >= LIMIT_LIVE_JOBS) {
        return err_field(err, ERR_TOO_MANY, NULL, "wait until some have ended", "there are %d live jobs",
                         LIMIT_LIVE_JOBS);
    }
    return check_type(core, request, err) && check_pool(core, request, err) &&
           check_reserved(core, request, err) && check_host(core, request, err) &&
           check_capacity(core, request, err);
}
