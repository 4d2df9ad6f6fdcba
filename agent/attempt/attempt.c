/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an attempt on this node: its claim, its desired state, its end and its clean-up. A claim is a
 * mkdir, so no attempt is claimed twice in one boot. An attempt is never called over while a process of it
 * lives. Its GPUs are given back only after they were seen empty, or after the longest wait for that.
 * reconciler.c decides what to do. */
#include "agent/attempt/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/attempt/orphans.h"
#include "agent/common/launch_file.h"
#include "agent/output/rank_file.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define ORPHANS_PACE_MS     20   /* between two kills of orphans, doubling ... */
#define ORPHANS_PACE_MAX_MS 1000 /* ... up to this */
#define CATCH_UP_MS         100  /* a shim that was found again speaks at once unless it is stopped */

static void hear(struct attempt *attempt, enum reconciler_news news)
{
    attempt->context->heard(attempt->context->closure, attempt->attempt_id, news);
}

/* --- beginning ------------------------------------------------------------------------------------------ */

struct attempt *attempt_create(struct agent_context *context, uint64_t attempt_id)
{
    struct attempt *attempt = xzalloc(sizeof *attempt);
    attempt->context = context;
    attempt->attempt_id = attempt_id;
    attempt->phase = PHASE_STAGING;
    attempt->run = xprintf("%s/%llu", context->config.run, (unsigned long long)attempt_id);
    attempt->logs = xprintf("%s/attempts/%llu", context->config.state, (unsigned long long)attempt_id);
    attempt->shim = (struct shim_process){.fd = -1, .pidfd = -1};
    attempt->talk.fd = attempt->death.fd = -1;
    attempt->environment_lock = -1;
    return attempt;
}

static void finish_order(struct attempt *attempt)
{
    free((void *)(uintptr_t)attempt->order.devices);
    json_decref(attempt->order.json);
    json_decref(attempt->order.spec);
    attempt->order = (struct order){0};
}

void attempt_destroy(struct attempt *attempt)
{
    if (attempt == NULL) {
        return;
    }
    stage_cancel(attempt);
    shim_client_end(attempt);
    sampler_end(attempt);
    controller_cancel(attempt->report);
    loop_disarm(attempt->context->loop, &attempt->timer);
    loop_disarm(attempt->context->loop, &attempt->tell_running);
    output_destroy(attempt->output);
    results_destroy(attempt->results);
    checkpoint_destroy(attempt->checkpoint);
    record_finish(&attempt->record);
    if (attempt->spec.json != NULL) {
        job_spec_finish(&attempt->spec);
    }
    finish_order(attempt);
    attempt_secrets_finish(&attempt->secrets);
    user_finish(&attempt->user);
    cleanup_close(&attempt->environment_lock);
    for (size_t i = 0; i < attempt->input_count; i++) {
        input_use_finish(&attempt->inputs[i]);
    }
    free(attempt->environment);
    free(attempt->image_root);
    free(attempt->image_lock);
    json_decref(attempt->image_config);
    json_decref(attempt->image_variables);
    free(attempt->cold_why);
    free(attempt->failed_text);
    free(attempt->declined);
    free(attempt->how);
    free(attempt->devices);
    free(attempt->cgroup);
    free(attempt->logs);
    free(attempt->run);
    free(attempt);
}

static char *copy_of(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

void attempt_order(struct attempt *attempt, const struct order *order)
{
    json_t *spec = json_incref(order->spec != NULL ? order->spec : attempt->order.spec);
    int64_t *devices = xalloc(order->device_count * sizeof *devices + 1);
    for (size_t i = 0; i < order->device_count; i++) {
        devices[i] = order->devices[i];
    }
    finish_order(attempt);
    attempt->order = *order;
    json_incref(order->json); /* its strings */
    attempt->order.spec = spec;
    attempt->order.devices = devices;
    attempt_secrets_take(&attempt->secrets, &attempt->order, attempt->run);
    if (attempt->checkpoint != NULL && order->nodes > 1) {
        checkpoint_of_gang(attempt->checkpoint);
    }
}

void attempt_claim(struct attempt *attempt, const struct reconciler_action *action)
{
    struct err err;
    attempt->received_us = attempt->context->heard_us;
    attempt_order(attempt, action->order);
    attempt->term_ms = action->term_ms;
    attempt->kill_ms = action->kill_ms;
    bool seen = seen_has(attempt->context->seen, attempt->attempt_id);
    if (!seen && mkdir(attempt->run, 0700) == 0) {
        stage_begin(attempt);
    } else if (seen || errno == EEXIST) {
        attempt_over(attempt, CAUSE_SHIM_LOST, "the node has seen this attempt before, and it is gone");
    } else {
        err_errno(&err, "cannot make %s", attempt->run);
        attempt_decline(attempt, err.text);
    }
}

void attempt_tombstone(struct attempt *attempt, const struct reconciler_action *action)
{
    mkdir(attempt->run,
          0700); /* if the folder exists, the attempt id was seen, and a tombstone needs no more */
    attempt_over(attempt, action->cause, NULL);
}

/* --- ends ----------------------------------------------------------------------------------------------- */

static void drop_cgroup(struct attempt *attempt)
{
    if (attempt->cgroup != NULL) {
        rmdir(attempt->cgroup); /* usually the shim has removed it already */
        free(give(attempt->cgroup));
    }
}

void attempt_decline(struct attempt *attempt, const char *text)
{
    log_warning("attempt declined", "attempt_id=%llu job=%s reason=\"%s\"",
                (unsigned long long)attempt->attempt_id,
                attempt->order.job_id != NULL ? attempt->order.job_id : "", text);
    attempt->phase = PHASE_OVER;
    attempt->cleared = true; /* nothing was started on its GPUs */
    drop_cgroup(attempt);
    free(attempt->declined);
    attempt->declined = xstrdup(text);
    hear(attempt, NEWS_DECLINED);
}

void attempt_over(struct attempt *attempt, enum cause cause, const char *text)
{
    attempt->phase = PHASE_OVER;
    sampler_end(attempt);
    loop_disarm(attempt->context->loop, &attempt->timer); /* armed by a stop */
    record_finish(&attempt->record);
    attempt->record.cause = cause;
    attempt->record.text = text != NULL ? xstrdup(text) : NULL;
    drop_cgroup(attempt);
    if (attempt->output != NULL) {
        output_close(attempt->output);
    }
    hear(attempt, NEWS_EXITED);
}

/* Nobody waits for the results of an attempt that was stopped. */
static bool has_results(const struct record *record)
{
    return record->cause == CAUSE_NONE || record->cause == CAUSE_RANK_FAILED ||
           record->cause == CAUSE_OUT_OF_MEMORY;
}

/* The exit is reported with the results, and after the last checkpoint: the next attempt begins with it. */
static void exit_if_ready(struct attempt *attempt)
{
    if (attempt->saved && (attempt->results == NULL || results_ready(attempt->results))) {
        hear(attempt, NEWS_EXITED);
    }
}

static void results_are_ready(void *closure)
{
    exit_if_ready(closure);
}

static void checkpoint_ended(void *closure)
{
    struct attempt *attempt = closure;
    attempt->saved = true;
    exit_if_ready(attempt);
}

/* An attempt that has succeeded needs no checkpoint, and who cancels a job does not wait for one. On a volume
 * there is nothing to send. */
static void end_checkpoint(struct attempt *attempt)
{
    enum cause cause = attempt->record.cause;
    if (attempt->checkpoint == NULL || cause == CAUSE_NONE || cause == CAUSE_CANCELED ||
        attempt->spec.checkpoint_volume != NULL) {
        checkpoint_ended(attempt);
    } else {
        checkpoint_end(attempt->checkpoint, &attempt->record);
    }
}

void attempt_exited(struct attempt *attempt)
{
    attempt->phase = PHASE_OVER;
    sampler_end(attempt);
    warm_resume(attempt->context->warm);
    loop_disarm(attempt->context->loop, &attempt->timer);
    loop_disarm(attempt->context->loop, &attempt->tell_running);
    if (attempt->output != NULL) {
        output_close(attempt->output);
    }
    if (has_results(&attempt->record)) {
        attempt->results = results_collect(attempt->context->uploads, attempt->logs, &attempt->record,
                                           attempt->secrets.mask, results_are_ready, attempt);
    }
    end_checkpoint(attempt);
}

/* Without a cgroup each look reads all of /proc, and a process that sleeps in a driver may stay long. */
static int64_t slower(int64_t pace_ms)
{
    return 2 * pace_ms < ORPHANS_PACE_MAX_MS ? 2 * pace_ms : ORPHANS_PACE_MAX_MS;
}

static void orphans_due(void *closure)
{
    struct attempt *attempt = closure;
    if (!orphans_kill(attempt->cgroup, attempt->attempt_id, attempt->run)) {
        loop_arm(attempt->context->loop, &attempt->timer, clock_boot_ms() + attempt->orphans_pace_ms);
        attempt->orphans_pace_ms = slower(attempt->orphans_pace_ms);
        return;
    }
    attempt_over(attempt, CAUSE_SHIM_LOST, "gpushim was killed");
}

void attempt_salvage(struct attempt *attempt)
{
    if (record_read(attempt->logs, attempt->attempt_id, &attempt->record, NULL)) {
        record_secure(attempt->logs);
        attempt_exited(attempt);
        return;
    }
    log_warning("shim lost", "attempt_id=%llu", (unsigned long long)attempt->attempt_id);
    attempt->phase = PHASE_ORPHANS;
    sampler_end(attempt);
    attempt->orphans_pace_ms = ORPHANS_PACE_MS;
    loop_set(attempt->context->loop, &attempt->timer, orphans_due, attempt);
    orphans_due(attempt);
}

/* A stopped shim neither kills nor reports. */
static void deaf_due(void *closure)
{
    struct attempt *attempt = closure;
    if (shim_process_is_stopped(&attempt->shim)) {
        log_error("shim stopped", "attempt_id=%llu action=kill", (unsigned long long)attempt->attempt_id);
        shim_process_kill(&attempt->shim);
    } else {
        loop_arm(attempt->context->loop, &attempt->timer, clock_boot_ms() + SHIM_DEAF_MS);
    }
}

static void watch_deaf(struct attempt *attempt, int64_t grace_ms)
{
    int64_t due_ms = clock_boot_ms() + grace_ms + SHIM_DEAF_MS;
    if (!attempt->timer.on || due_ms < attempt->timer.at_ms) {
        loop_set(attempt->context->loop, &attempt->timer, deaf_due, attempt);
        loop_arm(attempt->context->loop, &attempt->timer, due_ms);
    }
}

void attempt_warn(struct attempt *attempt, enum early_signal signal)
{
    if (attempt->phase == PHASE_SHIM) {
        log_info("attempt warned", "attempt_id=%llu signal=%s", (unsigned long long)attempt->attempt_id,
                 early_signal_text(signal));
        shim_process_tell(&attempt->shim, "warn %s", early_signal_text(signal));
    }
}

void attempt_keep(struct attempt *attempt)
{
    if (attempt->phase == PHASE_SHIM) {
        log_info("attempt kept", "attempt_id=%llu", (unsigned long long)attempt->attempt_id);
        shim_process_tell(&attempt->shim, "keep %lld", (long long)FAILED_GRACE_MS);
    }
}

void attempt_stop(struct attempt *attempt, int64_t grace_ms, enum cause cause, enum early_signal signal)
{
    switch (attempt->phase) {
    case PHASE_STAGING:
    case PHASE_LEASE:
        stage_cancel(attempt);
        attempt_over(attempt, cause, NULL);
        return;
    case PHASE_SHIM:
        if (signal !=
            EARLY_NONE) { /* a separate message: an older shim ignores it and still obeys the stop */
            shim_process_tell(&attempt->shim, "soften %s", early_signal_text(signal));
        }
        shim_process_tell(&attempt->shim, "stop %lld %s", (long long)grace_ms, cause_text(cause));
        watch_deaf(attempt, signal != EARLY_NONE ? grace_ms + FAILED_GRACE_MS : grace_ms);
        return;
    case PHASE_OVER:
        if (attempt->results != NULL && !results_ready(attempt->results)) {
            results_cut(attempt->results);
            exit_if_ready(attempt);
        }
        if (cause == CAUSE_CANCELED && !attempt->saved) {
            checkpoint_cut(attempt->checkpoint);
        }
        return;
    case PHASE_ORPHANS:
        return;
    }
}

void attempt_lease(struct attempt *attempt, int64_t term_ms, int64_t kill_ms)
{
    attempt->term_ms = term_ms;
    attempt->kill_ms = kill_ms;
    if (attempt->phase == PHASE_LEASE) {
        stage_go_on(attempt);
    } else if (attempt->phase == PHASE_SHIM && term_ms > 0) {
        shim_process_tell(&attempt->shim, "lease %lld %lld", (long long)term_ms, (long long)kill_ms);
    }
}

/* orphans_due kills the processes that the shim leaves. */
void attempt_kill(struct attempt *attempt)
{
    if (attempt->phase == PHASE_SHIM) {
        log_warning("shim killed",
                    "attempt_id=%llu reason=\"it has not ended the attempt, whose lease is over\"",
                    (unsigned long long)attempt->attempt_id);
        shim_process_kill(&attempt->shim);
    }
}

/* --- empty GPUs ----------------------------------------------------------------------------------------- */

static void clear(struct attempt *attempt, const char *why)
{
    if (why != NULL) {
        log_error("gpus not empty", "attempt_id=%llu reason=\"%s\"", (unsigned long long)attempt->attempt_id,
                  why);
    }
    attempt->cleared = true;
    loop_disarm(attempt->context->loop, &attempt->timer);
    hear(attempt, NEWS_CLEARED);
}

/* Frees the GPUs after the longest wait. The devices module keeps a GPU that is still in use from other
 * jobs. */
static void clear_due(void *closure)
{
    struct attempt *attempt = closure;
    int64_t index = 0;
    const struct device_sight *obstacle =
        devices_obstacle(&attempt->context->devices, attempt->devices, attempt->device_count, &index);
    clear(attempt, obstacle != NULL ? obstacle->reason : "they were not looked at in time");
}

void attempt_looked(struct attempt *attempt)
{
    struct devices *devices = &attempt->context->devices;
    if (attempt->clear_since_us != 0 && !attempt->cleared &&
        devices_settled(devices, attempt->devices, attempt->device_count, attempt->clear_since_us)) {
        clear(attempt, NULL);
    }
}

void attempt_clear(struct attempt *attempt)
{
    attempt->clear_since_us = clock_boot_us();
    loop_set(attempt->context->loop, &attempt->timer, clear_due, attempt);
    loop_arm(attempt->context->loop, &attempt->timer, clock_boot_ms() + GPU_CLEAR_MS);
    attempt_looked(attempt);
}

bool attempt_holds(const struct attempt *attempt, int64_t device)
{
    for (size_t i = 0; i < attempt->device_count && !attempt->cleared; i++) {
        if (attempt->devices[i] == device) {
            return true;
        }
    }
    return false;
}

/* --- logs ----------------------------------------------------------------------------------------------- */

int64_t attempt_first_rank(const struct attempt *attempt)
{
    const struct order *order = &attempt->order;
    return attempt->spec.launch_mode == LAUNCH_NODE ? order->node_rank : order->first_rank;
}

int64_t attempt_rank_count(const struct attempt *attempt)
{
    return attempt->spec.launch_mode == LAUNCH_NODE ? 1 : attempt->order.local_ranks;
}

static void make_checkpoint(struct attempt *attempt)
{
    autofree char *folder = xprintf("%s/" SHIM_CHECKPOINT_FOLDER, attempt->logs);
    attempt->checkpoint = checkpoint_create(attempt->context->checkpoints, attempt->attempt_id, folder,
                                            checkpoint_ended, attempt);
    if (attempt->order.nodes > 1) {
        checkpoint_of_gang(attempt->checkpoint);
    }
}

static void output_idle(void *closure)
{
    report_idle(closure);
}

void attempt_make_output(struct attempt *attempt, bool resume)
{
    const struct order *order = &attempt->order;
    attempt->output = output_create(attempt->context->outputs, attempt->attempt_id, attempt->logs, resume,
                                    output_idle, attempt);
    make_checkpoint(attempt);
    if (resume) {
        return;
    }
    attempt->device_count = order->device_count;
    attempt->devices = xalloc(order->device_count * sizeof *attempt->devices + 1);
    for (size_t i = 0; i < order->device_count; i++) {
        attempt->devices[i] = order->devices[i];
    }
    for (int64_t i = 0; i < attempt_rank_count(attempt); i++) {
        output_add_rank(attempt->output, attempt_first_rank(attempt) + i);
    }
    output_add_metrics(attempt->output, attempt_first_rank(attempt));
}

/* --- adoption ------------------------------------------------------------------------------------------- */

static void add_found(struct attempt *attempt, char *name)
{
    int64_t rank;
    enum stream stream;
    char *dot = strrchr(name, '.');
    if (dot == NULL || !stream_from_text(dot + 1, &stream)) {
        return;
    }
    *dot = '\0';
    if (!text_to_int(name, 0, LIMIT_GPUS, &rank)) {
        return;
    }
    if (stream == STREAM_STDOUT) {
        output_add_rank(attempt->output, rank);
    } else if (stream == STREAM_METRICS) {
        output_add_metrics(attempt->output, rank);
    }
}

/* With no other record, the files show which ranks wrote output. */
static void add_found_ranks(struct attempt *attempt)
{
    autonames struct file_names names;
    file_list(attempt->logs, &names, NULL); /* a folder that cannot be listed yields no names */
    for (size_t i = 0; i < names.count; i++) {
        add_found(attempt, names.items[i]);
    }
}

static void take_facts(struct attempt *attempt, const struct launch *launch)
{
    struct cgroup_root *cgroups = &attempt->context->cgroups;
    const char *devices = launch_variable(launch, "CUDA_VISIBLE_DEVICES");
    attempt->cgroup = copy_of(launch->cgroup);
    if (devices != NULL) {
        attempt->devices = devices_from_list(&attempt->context->devices, devices, &attempt->device_count);
    }
    attempt->holds_port = launch->port_first != 0;
    attempt->received_us = launch->received_us;
    attempt_secrets_adopt(&attempt->secrets, (size_t)launch->secrets_wanted);
    if (attempt->cgroup != NULL && launch->granted > 0) { /* the last agent turned the controllers off */
        const struct cgroup_limits limits = {
            .devices = launch->granted, .millicpus = launch->millicpus, .memory_bytes = launch->memory_bytes};
        cgroup_limit_set(cgroups, attempt->cgroup, &limits, NULL);
    }
}

/* An agent that was killed before it had written the file has told no shim of the attempt. */
static void read_launch(const struct attempt *attempt, struct launch *ret_launch)
{
    size_t length;
    char *bytes = rank_file_read(attempt->run, NULL, SHIM_LAUNCH_FILE, LIMIT_LAUNCH_BYTES, &length);
    if (bytes != NULL) {
        launch_parse(bytes, length, ret_launch, NULL);
    }
}

void attempt_adopt(struct attempt *attempt)
{
    struct launch launch = {0};
    read_launch(attempt, &launch);
    attempt->adopted = true;
    take_facts(attempt, &launch);
    attempt_make_output(attempt, true);
    bool found = shims_find(attempt->run, &attempt->shim);
    for (size_t i = 0; i < launch.rank_count && found; i++) {
        output_add_rank(attempt->output, launch.ranks[i].number);
    }
    if (found && launch.rank_count > 0) {
        output_add_metrics(attempt->output, launch.ranks[0].number);
    }
    launch_finish(&launch);
    log_info("attempt adopted", "attempt_id=%llu shim=%s", (unsigned long long)attempt->attempt_id,
             found ? "alive" : "gone");
    if (found) {
        attempt->phase = PHASE_SHIM;
        shim_client_begin(attempt);
        shim_client_catch_up(attempt, CATCH_UP_MS);
        return;
    }
    add_found_ranks(attempt);
    mkdir(attempt->run,
          0700); /* a reboot has emptied the run folder; the new one keeps the attempt id claimed */
    attempt_salvage(attempt);
}

/* --- forgetting ----------------------------------------------------------------------------------------- */

/* Of ranks, and half-written files of an agent that was killed. */
static void empty_run_folder(const struct attempt *attempt)
{
    autonames struct file_names names = {0};
    file_list(attempt->run, &names, NULL);
    for (size_t i = 0; i < names.count; i++) {
        autofree char *path = xprintf("%s/%s", attempt->run, names.items[i]);
        file_remove_tree(path, NULL);
    }
}

/* Keeps the folder itself if nothing else records that the attempt id was seen. */
static void remove_run_folder(const struct attempt *attempt)
{
    static const char *const usual[] = {SHIM_LAUNCH_FILE, SHIM_PID_FILE, SHIM_SOCKET_FILE, SHIM_RANK_SOCKET};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        autofree char *path = xprintf("%s/%s", attempt->run, usual[i]);
        unlink(path);
    }
    if (!seen_add(attempt->context->seen, attempt->attempt_id)) {
        empty_run_folder(attempt);
    } else if (rmdir(attempt->run) != 0 && errno == ENOTEMPTY) {
        empty_run_folder(attempt);
        rmdir(attempt->run);
    }
}

void attempt_forget(struct attempt *attempt)
{
    shim_client_dismiss(attempt);
    controller_abandon(give(attempt->report));
    remove_run_folder(attempt);
    if (attempt->output != NULL) {
        output_retire(give(attempt->output));
    } else {
        folder_pool_return(attempt->context->folder_pool, attempt->logs);
    }
    attempt_destroy(attempt);
}
