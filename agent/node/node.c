/* SPDX-License-Identifier: Apache-2.0 */
/* The attempts of this node. Every action of reconciler.c is carried out in order, and its outcome is passed
 * back. No action runs inside another. exchange.c sends the requests of the protocol. */
#include "agent/node/node.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/runner.h"
#include "agent/node/journal.h"
#include "agent/node/node_parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

void node_wake(struct node *node, int64_t at_ms)
{
    if (!node->work.on || at_ms < node->work.at_ms) {
        loop_arm(node->context->loop, &node->work, at_ms);
    }
}

static void heard(void *closure, uint64_t attempt_id, enum reconciler_news news)
{
    struct node *node = closure;
    if (news == NEWS_EXITED) {
        streams_attempt_over(node->streams, attempt_id);
    }
    reconciler_heard(node->reconciler, attempt_id, news);
    node_wake(node, 0);
}

static struct attempt *find_attempt(void *closure, uint64_t attempt_id)
{
    const struct entry *entry = node_find(closure, attempt_id);
    return entry != NULL ? entry->attempt : NULL;
}

struct entry *node_find(struct node *node, uint64_t attempt_id)
{
    struct entry *entry;
    HASH_FIND(hh, node->entries, &attempt_id, sizeof attempt_id, entry);
    return entry;
}

static struct entry *add(struct node *node, uint64_t attempt_id)
{
    struct entry *entry = xzalloc(sizeof *entry);
    entry->attempt_id = attempt_id;
    entry->node = node;
    entry->attempt = attempt_create(node->context, attempt_id);
    HASH_ADD(hh, node->entries, attempt_id, sizeof entry->attempt_id, entry);
    return entry;
}

static void drop(struct node *node, struct entry *entry)
{
    HASH_DEL(node->entries, entry);
    free(entry);
}

/* --- actions -------------------------------------------------------------------------------------------- */

static void begin_attempt(struct node *node, const struct reconciler_action *action)
{
    struct attempt *attempt = add(node, action->attempt_id)->attempt;
    const char *job = action->order->job_id != NULL ? action->order->job_id : "";
    if (action->act == ACT_CLAIM) {
        journal_began(node->context->journal, action->attempt_id, job);
        attempt_claim(attempt, action);
    } else {
        attempt_tombstone(attempt, action);
    }
    if (attempt->declined == NULL) { /* now, because a start does not wait for the log */
        log_info("attempt claimed", "attempt_id=%llu job=%s order=%s", (unsigned long long)action->attempt_id,
                 job, order_phase_text(action->order->phase));
    }
}

static void forget(struct entry *entry)
{
    log_info("attempt forgotten", "attempt_id=%llu", (unsigned long long)entry->attempt_id);
    attempt_forget(entry->attempt);
    drop(entry->node, entry);
}

/* The controller has told the agent to end. */
static void end(struct node *node)
{
    static const char reason[] = "told by the controller";
    if (node->context->config.ephemeral) {
        leave_begin(node, reason);
    } else {
        node->ended(node->closure, reason);
    }
}

/* The entry is NULL in actions of the node itself, and in those that begin an attempt. */
static void act_on(struct node *node, const struct reconciler_action *action)
{
    struct entry *entry = node_find(node, action->attempt_id);
    struct attempt *attempt = entry != NULL ? entry->attempt : NULL;
    switch (action->act) {
    case ACT_REGISTER:
        exchange_register(node);
        return;
    case ACT_POLL:
        node->poll_due = true;
        return;
    case ACT_HEARTBEAT:
        exchange_heartbeat(node, action);
        cgroup_look_at_drivers(&node->context->cgroups);
        return;
    case ACT_CLAIM:
    case ACT_TOMBSTONE:
        begin_attempt(node, action);
        return;
    case ACT_PREPARE:
        shim_client_prepare(attempt);
        return;
    case ACT_RUN:
        shim_client_run(attempt);
        return;
    case ACT_START:
        shim_client_start(attempt);
        return;
    case ACT_WARN:
        attempt_warn(attempt, action->signal);
        return;
    case ACT_KEEP:
        attempt_keep(attempt);
        return;
    case ACT_STOP:
        attempt_stop(attempt, action->grace_ms, action->cause, action->signal);
        return;
    case ACT_LEASE:
        attempt_lease(attempt, action->term_ms, action->kill_ms);
        return;
    case ACT_KILL:
        attempt_kill(attempt);
        return;
    case ACT_CLEAR:
        journal_ended(node->context->journal, action->attempt_id, record_worst_code(&attempt->record));
        attempt_clear(attempt);
        return;
    case ACT_REPORT:
        exchange_report(entry, action->report);
        return;
    case ACT_FORGET:
        forget(entry);
        return;
    case ACT_END:
        end(node);
        return;
    }
}

void node_work(struct node *node)
{
    struct reconciler_action action;
    loop_disarm(node->context->loop, &node->work);
    if (node->labels_changed) { /* a registration that is under way may say what was before */
        node->labels_changed = !reconciler_stranger(node->reconciler);
    }
    reconciler_tick(node->reconciler, clock_boot_ms());
    while (reconciler_next(node->reconciler, &action)) {
        act_on(node, &action);
    }
    if (node->poll_due) { /* last: others wait for what the node reports, and nobody for its poll */
        exchange_poll(node);
    }
    leave_look(node);
    int64_t deadline_ms = reconciler_deadline(node->reconciler);
    if (deadline_ms != INT64_MAX) {
        node_wake(node, deadline_ms);
    }
}

static void work_due(void *closure)
{
    node_work(closure);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void adopt(struct node *node, uint64_t attempt_id)
{
    if (node_find(node, attempt_id) == NULL) {
        reconciler_adopt(node->reconciler, attempt_id);
        attempt_adopt(add(node, attempt_id)->attempt);
    }
}

/* An empty run folder of a killed agent only records that an attempt id was seen. */
static bool is_memory(const struct node *node, uint64_t attempt_id, const char *path)
{
    autonames struct file_names names;
    bool empty = file_list(path, &names, NULL) && names.count == 0;
    if (empty && seen_add(node->context->seen, attempt_id)) {
        rmdir(path);
    }
    return empty;
}

static bool adopt_folders(struct node *node, const char *path, bool even_empty, struct err *err)
{
    autonames struct file_names names;
    if (!file_list(path, &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count; i++) {
        int64_t attempt_id;
        autofree char *folder = xprintf("%s/%s", path, names.items[i]);
        if (text_to_int(names.items[i], 1, INT64_MAX, &attempt_id) &&
            (even_empty || !is_memory(node, (uint64_t)attempt_id, folder))) {
            adopt(node, (uint64_t)attempt_id);
        }
    }
    return true;
}

static bool has_cgroup(void *closure, const char *path)
{
    const struct node *node = closure;
    for (const struct entry *entry = node->entries; entry != NULL; entry = entry->hh.next) {
        if (entry->attempt->cgroup != NULL && strcmp(entry->attempt->cgroup, path) == 0) {
            return true;
        }
    }
    return false;
}

/* The controller has answered a staging report that it does not know this node. */
static void be_stranger(void *closure)
{
    struct node *node = closure;
    reconciler_stranger(node->reconciler);
    node_wake(node, 0);
}

static bool share_device(const struct attempt *attempt, const int64_t *devices, size_t count)
{
    bool shares = false;
    for (size_t i = 0; i < count; i++) {
        shares = shares || attempt_holds(attempt, devices[i]);
    }
    return shares;
}

static struct attempt *holder(void *closure, uint64_t attempt_id, const int64_t *devices, size_t count)
{
    struct node *node = closure;
    for (struct entry *entry = node->entries; entry != NULL; entry = entry->hh.next) {
        struct attempt *attempt = entry->attempt;
        bool lives = attempt->phase == PHASE_SHIM || attempt->phase == PHASE_ORPHANS;
        if (entry->attempt_id != attempt_id && lives && share_device(attempt, devices, count)) {
            return attempt;
        }
    }
    return NULL;
}

/* --- volumes -------------------------------------------------------------------------------------------- */

/* The controller hears of labels when the node registers. */
static void volumes_changed(void *closure)
{
    struct node *node = closure;
    volumes_label(node->context->volumes, node->context->config.labels);
    node->labels_changed = true;
    node_wake(node, 0);
}

static void open_volumes(struct node *node)
{
    struct agent_context *context = node->context;
    struct config *config = &context->config;
    context->volumes = volumes_create(&(struct volumes_config){
        .given = (const char *const *)config->volumes.items,
        .count = config->volumes.count,
        .mounts = shims_own_memory(context->shims),
        .loop = context->loop,
        .children = context->children,
        .changed = volumes_changed,
        .closure = node,
    });
    config->labels = config->labels != NULL ? config->labels : json_object();
    volumes_label(context->volumes, config->labels);
}

/* --- devices that no job can get ------------------------------------------------------------------------ */

static bool is_held(const struct node *node, int64_t device)
{
    for (const struct entry *entry = node->entries; entry != NULL; entry = entry->hh.next) {
        if (attempt_holds(entry->attempt, device)) {
            return true;
        }
    }
    return false;
}

/* An occupied device is no fault while a job of this agent holds it. */
static struct device_faults faults(void *closure)
{
    const struct node *node = closure;
    const struct devices *devices = &node->context->devices;
    struct device_faults faults = {.told = !devices->slots};
    if (devices->slots) {
        return faults;
    }
    faults.items = xzalloc(devices->count * sizeof *faults.items);
    for (size_t i = 0; i < devices->count; i++) {
        int64_t index = devices->items[i].index;
        const struct device_sight *sight = &devices->sights[i];
        if (sight->state == DEVICE_BROKEN || (sight->state == DEVICE_OCCUPIED && !is_held(node, index))) {
            faults.items[faults.count++] = (struct device_fault){.index = index, .reason = sight->reason};
        }
    }
    return faults;
}

static char *faults_text(struct node *node)
{
    struct device_faults now = faults(node);
    struct text text = {0};
    text_append(&text, "");
    for (size_t i = 0; i < now.count; i++) {
        text_printf(&text, "%sGPU %lld: %s", i > 0 ? "; " : "", (long long)now.items[i].index,
                    now.items[i].reason);
    }
    free(now.items);
    return text_take(&text);
}

/* Tells the controller at once about changed devices. */
static void looked(void *closure)
{
    struct node *node = closure;
    struct entry *entry, *next;
    HASH_ITER (hh, node->entries, entry, next) {
        attempt_looked(entry->attempt);
    }
    autofree char *now = faults_text(node);
    if (strcmp(now, node->faults) != 0) {
        log_warning("gpus unavailable", "which=\"%s\"", now);
        free(node->faults);
        node->faults = give(now);
        reconciler_hurry(node->reconciler);
        node_wake(node, 0);
    }
}

/* --- builds of environments ----------------------------------------------------------------------------- */

/* All builds together may take half of the node's memory, and each as many processes as a job with one
 * device. */
static bool build_begin(void *closure, size_t number, char **ret_path, struct err *err)
{
    struct node *node = closure;
    struct cgroup_root *root = &node->context->cgroups;
    if (!runner_restore(node->context->runner, err)) {
        return false;
    }
    autofree char *name = xprintf("build%zu", number);
    autofree char *left = root->path != NULL ? xprintf("%s.%s", root->path, name) : NULL;
    if (left != NULL) {
        cgroup_clear(left); /* by an earlier build, or by one of an earlier agent, whom it can tell nothing */
    }
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    const struct cgroup_limits limits = {.devices = 1, .memory_bytes = memory / 2 / LIMIT_BUILDS};
    if (!cgroup_make_named(root, name, &limits, ret_path, err)) {
        return false;
    }
    if (*ret_path != NULL) {
        cgroup_end_as_whole(*ret_path);
    }
    return true;
}

/* What is not gone at once is cleared away before another build gets the cgroup. */
static bool build_end(void *closure, const char *path)
{
    bool ran_out = cgroup_ran_out(path);
    cgroup_clear(path);
    return ran_out;
}

struct node *node_create(struct agent_context *context, void (*ended)(void *closure, const char *reason),
                         void *closure, struct err *err)
{
    struct node *node = xzalloc(sizeof *node);
    *node = (struct node){
        .context = context, .reconciler = reconciler_create(), .ended = ended, .closure = closure};
    node->work = (struct loop_timer){.due = work_due, .closure = node};
    exchange_init(node);
    leave_init(node);
    node->recall = recall_create(context);
    node->token_renewal = token_renewal_create(context);
    node->streams = streams_create(context, find_attempt, node);
    context->heard = heard;
    context->holder = holder;
    context->faults = faults;
    context->closure = node;
    open_volumes(node);
    autofree char *inputs = xprintf("%s/inputs", context->config.state);
    const struct stagings_config stagings = {
        .node = context->config.name,
        .boot_id = context->boot_id,
        .loop = context->loop,
        .controller = context->controller,
        .payloads = context->payloads,
        .environments = context->environments,
        .children = context->children,
        .script = context->builder,
        .image_folder = context->images,
        .image_limit_bytes = context->config.images_gib * GIB,
        .build_ids = context->users != NULL ? users_of_builds(context->users) : 0,
        .hold = {.program = shims_program(context->shims),
                 .option = shims_confine_option(),
                 .seccomp = context->config.seccomp,
                 .begin = build_begin,
                 .end = build_end,
                 .closure = node},
        .inputs = {.folder = inputs,
                   .limit_bytes = context->config.inputs_bytes,
                   .networks = context->config.input_networks,
                   .s3_endpoint = context->config.s3_endpoint,
                   .s3_region = context->config.s3_region,
                   .plain_http = context->config.input_plain_http,
                   .mounts = shims_own_memory(context->shims),
                   .seccomp = context->config.seccomp,
                   .confine = shims_program(context->shims),
                   .confine_option = shims_confine_option(),
                   .uid = context->users != NULL ? users_of_fetches(context->users) : 0,
                   .children = context->children,
                   .volumes = context->volumes},
        .stranger = be_stranger,
        .closure = node,
    };
    context->stagings = stagings_create(&stagings, err);
    if (context->stagings == NULL) {
        node_destroy(node);
        return NULL;
    }
    context->inputs = stagings_inputs(context->stagings);
    autofree char *attempts = xprintf("%s/attempts", context->config.state);
    if (!adopt_folders(node, context->config.run, false, err) || !adopt_folders(node, attempts, true, err)) {
        node_destroy(node);
        return NULL;
    }
    cgroup_remove_spares(&context->cgroups, has_cgroup, node);
    node->faults = faults_text(node);
    if (*node->faults != '\0') {
        log_warning("gpus unavailable", "which=\"%s\"", node->faults);
    }
    devices_watch(&context->devices, context->loop, looked, node);
    return node;
}

void node_start(struct node *node)
{
    reconciler_start(node->reconciler);
    node_wake(node, 0);
}

void node_destroy(struct node *node)
{
    if (node == NULL) {
        return;
    }
    struct entry *entry, *next;
    streams_destroy(node->streams);
    HASH_ITER (hh, node->entries, entry, next) {
        attempt_destroy(entry->attempt);
        drop(node, entry);
    }
    stagings_destroy(node->context->stagings);
    volumes_destroy(node->context->volumes);
    recall_destroy(node->recall);
    exchange_finish(node);
    leave_finish(node);
    token_renewal_destroy(node->token_renewal);
    loop_disarm(node->context->loop, &node->work);
    reconciler_destroy(node->reconciler);
    free(node->faults);
    free(node);
}
