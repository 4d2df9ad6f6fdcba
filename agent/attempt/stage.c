/* SPDX-License-Identifier: Apache-2.0 */
/* Brings an attempt from its order to a shim: checks, folders, environment, bundle, files, the launch file. A
 * person waits on this path for the first instruction: nothing here forks, syncs or waits, unless a payload
 * must be fetched or a bundle unpacked. An attempt that cannot be staged is declined, with the reason. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/attempt/attempt.h"
#include "agent/common/launch_file.h"
#include "agent/launch/contract.h"
#include "agent/base/stage_file.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"

/* Variables of the agent that ranks inherit, unless the spec sets them. */
static const char *const inherited_names[] = {"PATH", "HOME", "USER", "LANG", "LD_LIBRARY_PATH"};
#define INHERITED_COUNT (sizeof inherited_names / sizeof inherited_names[0])

#define FUNCTION_FILES 2 /* its payload and its modules */

/* --- checks --------------------------------------------------------------------------------------------- */

/* Uses the last look, at most about a second old, because the driver may take its time to answer. */
static bool check_devices(const struct attempt *attempt, struct err *err)
{
    int64_t index;
    const struct order *order = &attempt->order;
    const struct attempt *holder = attempt->context->holder(attempt->context->closure, attempt->attempt_id,
                                                            order->devices, order->device_count);
    if (holder != NULL) {
        return err_set(err, ERR_CONFLICT,
                       "its devices are still held by attempt %llu, which is being stopped",
                       (unsigned long long)holder->attempt_id);
    }
    const struct device_sight *obstacle =
        devices_obstacle(&attempt->context->devices, order->devices, order->device_count, &index);
    return obstacle == NULL ||
           err_set(err, ERR_CONFLICT, "GPU %lld is unavailable: %s", (long long)index, obstacle->reason);
}

/* The environment was built before the attempt was placed here. If it was removed meanwhile, it is built
 * again. */
static bool take_environment(struct attempt *attempt, struct err *err)
{
    const struct job_spec *spec = &attempt->spec;
    char requirements[HASH_HEX + 1];
    autofree char *name = NULL;
    autofree char *interpreter = NULL;
    if (!job_spec_has_environment(spec)) {
        return true;
    }
    staging_requirements_hash(spec, requirements);
    const struct environment_need need = {requirements, spec->environment.python, spec->python};
    attempt->environment_lock =
        environment_name(attempt->context->environments, &need, &name, &interpreter, err)
            ? environment_use(attempt->context->environments, name, false, &attempt->environment, err)
            : -1;
    return attempt->environment_lock >= 0;
}

/* --- files ---------------------------------------------------------------------------------------------- */

static void finish(struct attempt *attempt);

void stage_cancel(struct attempt *attempt)
{
    payload_cancel(give(attempt->bundle));
    child_stop(give(attempt->unpacker), 0);
    for (size_t i = 0; i < attempt->fill_count; i++) {
        payload_cancel(attempt->fills[i].order);
        cleanup_close(&attempt->fills[i].file);
    }
    free(attempt->fills);
    attempt->fills = NULL;
    attempt->fill_count = attempt->fills_waiting = 0;
}

static void filled(void *closure, const struct err *err)
{
    struct fill *fill = closure;
    struct attempt *attempt = fill->attempt;
    fill->order = NULL;
    close(give_fd(&fill->file));
    attempt->fills_waiting--;
    if (err != NULL) {
        stage_cancel(attempt);
        attempt_decline(attempt, err->text);
    } else if (attempt->fills_waiting == 0) {
        finish(attempt);
    }
}

static bool write_given(int file, const struct job_file *given, struct err *err)
{
    if (given->text != NULL) {
        return stage_file_write(file, given->text, strlen(given->text), given->path, err);
    }
    autofree uint8_t *bytes = NULL;
    size_t length;
    if (!text_from_base64(given->base64, strlen(given->base64), &bytes, &length)) {
        return err_set(err, ERR_FIELD, "the content of %s is not base64", given->path);
    }
    return stage_file_write(file, bytes, length, given->path, err);
}

static bool stage_file(struct attempt *attempt, int folder, const struct job_file *given, struct err *err)
{
    autoclose int file = stage_file_open(folder, given->path, given->executable, err);
    if (file < 0 || given->blob == NULL) {
        return file >= 0 && write_given(file, given, err);
    }
    struct fill *fill = &attempt->fills[attempt->fill_count++];
    *fill = (struct fill){.attempt = attempt, .file = give_fd(&file)};
    fill->order = payload_fill(attempt->context->payloads, given->blob, fill->file, filled, fill);
    attempt->fills_waiting++;
    return true;
}

static bool stage_function(struct attempt *attempt, struct err *err)
{
    const struct job_function *function = &attempt->spec.function;
    const struct job_file payload = {
        .path = SHIM_FUNCTION_FILE, .base64 = function->base64, .blob = function->blob};
    const struct job_file modules = {.path = SHIM_MODULES_FILE, .blob = function->modules};
    if (!job_spec_is_function(&attempt->spec)) {
        return true;
    }
    autoclose int folder = open(attempt->logs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return stage_file(attempt, folder, &payload, err) &&
           (modules.blob == NULL || stage_file(attempt, folder, &modules, err));
}

static bool stage_files(struct attempt *attempt, struct err *err)
{
    const struct job_spec *spec = &attempt->spec;
    autofree char *work = xprintf("%s/%s", attempt->logs, SHIM_WORK_FOLDER);
    autoclose int folder = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    attempt->fills = xzalloc((spec->file_count + FUNCTION_FILES + 1) * sizeof *attempt->fills);
    for (size_t i = 0; i < spec->file_count; i++) {
        if (!stage_file(attempt, folder, &spec->files[i], err)) {
            return false;
        }
    }
    return stage_function(attempt, err);
}

/* --- the bundle ----------------------------------------------------------------------------------------- */

/* Stages files over the bundle; then a shim may have the attempt. */
static void lay(struct attempt *attempt)
{
    struct err err;
    if (!stage_files(attempt, &err)) {
        stage_cancel(attempt);
        attempt_decline(attempt, err.text);
    } else if (attempt->fills_waiting == 0) {
        finish(attempt);
    }
}

/* An archive that tar cannot read is the job's fault: it would fail on every node. */
static bool is_jobs_fault(int status, const char *said)
{
    bool full = strstr(said, "No space left") != NULL || strstr(said, "quota") != NULL;
    return WIFEXITED(status) && WEXITSTATUS(status) == 2 && !full;
}

/* A line of tar's listing, which begins like one of ls. No job runs from a bundle with a device or a pipe. */
static void one_unpacked(void *closure, const char *line)
{
    struct attempt *attempt = closure;
    attempt->unpacked_special = attempt->unpacked_special || strchr("bcp", line[0]) != NULL;
}

/* Shows people the first line of tar's message. */
static void unpacked(void *closure, int status, const char *said)
{
    struct attempt *attempt = closure;
    attempt->unpacker = NULL;
    if (attempt->unpacked_special) {
        attempt_over(
            attempt, CAUSE_EXEC_FAILED,
            "the bundle cannot be unpacked: it holds a device or a pipe; files, folders and links may "
            "be in it");
        return;
    }
    if (status == 0) {
        lay(attempt);
        return;
    }
    autofree char *first = xstrndup(said, strcspn(said, "\n"));
    autofree char *text =
        xprintf("the bundle cannot be unpacked: %s", *first != '\0' ? first : "tar was killed");
    if (is_jobs_fault(status, said)) {
        attempt_over(attempt, CAUSE_EXEC_FAILED, text);
    } else {
        attempt_decline(attempt, text);
    }
}

static bool unpack(struct attempt *attempt, int archive, struct err *err)
{
    const char *path = getenv("PATH");
    autofree char *work = xprintf("%s/%s", attempt->logs, SHIM_WORK_FOLDER);
    autofree char *variable = xprintf("PATH=%s", path != NULL ? path : "/usr/bin:/bin");
    const char *const arguments[] = {
        "tar", "-x", "-vv", "--no-same-owner", "--no-same-permissions", "-f", "-", "-C", work, NULL};
    const char *const variables[] = {variable, "LANG=C", NULL};
    attempt->unpacker = child_start(attempt->context->children,
                                    &(struct child_call){.arguments = arguments,
                                                         .variables = variables,
                                                         .input = archive,
                                                         .extra = -1,
                                                         .line = one_unpacked,
                                                         .done = unpacked,
                                                         .closure = attempt},
                                    err);
    return attempt->unpacker != NULL;
}

static void bundle_fetched(void *closure, const struct err *problem)
{
    struct attempt *attempt = closure;
    struct err err = problem != NULL ? *problem : (struct err){0};
    attempt->bundle = NULL;
    autoclose int archive =
        problem == NULL ? payload_open(attempt->context->payloads, attempt->spec.bundle.blob) : -1;
    if (problem == NULL && archive < 0) {
        err_errno(&err, "cannot open the bundle");
    }
    if (archive < 0 || !unpack(attempt, archive, &err)) {
        attempt_decline(attempt, err.text);
    }
}

/* Usually the bundle is in the cache, because the node was told to fetch it before. */
static bool stage_bundle(struct attempt *attempt, struct err *err)
{
    struct payloads *payloads = attempt->context->payloads;
    autoclose int archive = payload_open(payloads, attempt->spec.bundle.blob);
    if (archive >= 0) {
        return unpack(attempt, archive, err);
    }
    attempt->bundle = payload_fetch(payloads, attempt->spec.bundle.blob, bundle_fetched, attempt);
    return true;
}

/* --- the launch file ------------------------------------------------------------------------------------ */

static int64_t log_limit(const struct agent_context *context)
{
    int64_t own = context->config.log_limit_mib * MIB;
    return context->log_limit > 0 && context->log_limit < own ? context->log_limit : own;
}

static void put_inherited(char *variables[INHERITED_COUNT + 1])
{
    size_t count = 0;
    for (size_t i = 0; i < INHERITED_COUNT; i++) {
        const char *value = getenv(inherited_names[i]);
        if (value != NULL) {
            variables[count++] = xprintf("%s=%s", inherited_names[i], value);
        }
    }
    variables[count] = NULL;
}

/* By UUID, because indices change when a GPU drops off. */
static char *visible_devices(const struct devices *devices, const struct order *order)
{
    struct text list = {0};
    text_append(&list, "");
    for (size_t i = 0; i < order->device_count && !devices->slots; i++) {
        size_t at =
            devices_position(devices, order->devices[i]); /* check_devices has made sure that it is there */
        text_printf(&list, "%s%s", i > 0 ? "," : "", devices->items[at].uuid);
    }
    return text_take(&list);
}

static void compose(struct attempt *attempt, struct text *launch)
{
    struct agent_context *context = attempt->context;
    char *inherited[INHERITED_COUNT + 1];
    put_inherited(inherited);
    autofree char *work = xprintf("%s/%s", attempt->logs, SHIM_WORK_FOLDER);
    autofree char *attempt_id = xprintf("%llu", (unsigned long long)attempt->attempt_id);
    autofree char *visible = visible_devices(&context->devices, &attempt->order);
    struct contract contract = {
        .order = &attempt->order,
        .spec = &attempt->spec,
        .node = context->config.name,
        .url = context->config.url,
        .cacert = context->config.cacert,
        .logs = attempt->logs,
        .run = attempt->run,
        .python = context->config.python,
        .runner = context->runner,
        .environment = attempt->environment,
        .slots = context->devices.slots,
        .no_peer_access = context->devices.no_peer_access,
        .visible_devices = visible,
        .inherited = (const char *const *)inherited,
    };
    launch_put(launch, "epoch", attempt_id);
    launch_put(launch, "logs", attempt->logs);
    launch_put(launch, "cwd", attempt->spec.workdir != NULL ? attempt->spec.workdir : work);
    launch_put_int(launch, "received", attempt->received_us);
    launch_put_int(launch, "granted", (int64_t)attempt->order.device_count);
    launch_put_int(launch, "failed_grace_ms", FAILED_GRACE_MS);
    launch_put_int(launch, "log_limit", log_limit(context));
    if (attempt->cgroup != NULL) {
        launch_put(launch, "cgroup", attempt->cgroup);
        launch_put_int(launch, "cgroup_version", 2); /* for a gpushim of the version before */
    }
    if (attempt->environment != NULL) {
        autofree char *lock = environment_lock_path(attempt->environment);
        launch_put(launch, "hold", lock);
    }
    attempt->holds_port = contract_holds_port(&contract);
    if (attempt->holds_port) {
        launch_put_int(launch, "port_first", context->config.port_first);
        launch_put_int(launch, "port_last", context->config.port_last);
    }
    contract_write(&contract, launch);
    attempt->python = contract_is_python(&contract);
    for (size_t i = 0; inherited[i] != NULL; i++) {
        free(inherited[i]);
    }
}

/* --- from order to shim --------------------------------------------------------------------------------- */

/* One with warm workers for this launch. */
static bool take_warm_shim(struct attempt *attempt, struct text *text)
{
    struct launch launch;
    const char *why = NULL;
    const size_t length = text->length;
    if (!attempt->python || !launch_parse(text_take(text), length, &launch, NULL)) {
        return false;
    }
    bool taken = warm_take(attempt->context->warm, &launch, &attempt->shim, attempt->warm_kind, &why);
    attempt->cold_why = why != NULL ? xstrdup(why) : NULL;
    launch_finish(&launch);
    return taken;
}

static bool hand_over(struct attempt *attempt, struct err *err)
{
    autotext struct text text = {0};
    autofree char *path = xprintf("%s/" SHIM_LAUNCH_FILE, attempt->run);
    compose(attempt, &text);
    return stage_file_put(path, text.bytes, text.length, err) &&
           (take_warm_shim(attempt, &text) || shims_take(attempt->context->shims, &attempt->shim, err)) &&
           (shim_process_tell(&attempt->shim, "assign %s", attempt->run) ||
            err_set(err, ERR_IO, "the shim does not listen"));
}

static void finish(struct attempt *attempt)
{
    struct err err;
    if (attempt->term_ms != 0 && attempt->term_ms <= clock_boot_ms()) {
        attempt->phase = PHASE_LEASE;
        return;
    }
    if (!hand_over(attempt, &err)) {
        shim_process_close(&attempt->shim);
        attempt_decline(attempt, err.text);
        return;
    }
    attempt->phase = PHASE_SHIM;
    attempt_lease(attempt, attempt->term_ms, attempt->kill_ms);
    if (attempt->order.phase == ORDER_RUN) {
        shim_client_run(attempt);
    } else {
        shim_client_prepare(attempt);
    }
    attempt_make_output(attempt, false);
    shim_client_begin(attempt);
    shim_client_catch_up(attempt, 0); /* often it has prepared the attempt by now */
}

/* The spec of an array's task gets the words of its task here. */
static bool decode_spec(struct attempt *attempt, struct err *err)
{
    if (!job_spec_decode(json_incref(attempt->order.spec), 0, &attempt->spec, err)) {
        return false;
    }
    if (attempt->order.array_id != NULL && attempt->spec.tasks > 0) {
        task_fill_spec(&attempt->spec, attempt->order.task);
    }
    return true;
}

static bool prepare(struct attempt *attempt, struct err *err)
{
    struct agent_context *context = attempt->context;
    return decode_spec(attempt, err) && check_devices(attempt, err) && take_environment(attempt, err) &&
           folder_pool_take(context->folder_pool, attempt->logs, attempt_first_rank(attempt), err) &&
           cgroup_make(&context->cgroups, attempt->attempt_id, (int64_t)attempt->order.device_count,
                       &attempt->cgroup, err) &&
           (attempt->spec.bundle.blob == NULL || stage_bundle(attempt, err));
}

void stage_go_on(struct attempt *attempt)
{
    attempt->phase = PHASE_STAGING;
    finish(attempt);
}

void stage_begin(struct attempt *attempt)
{
    struct err err;
    if (!prepare(attempt, &err)) {
        stage_cancel(attempt);
        attempt_decline(attempt, err.text);
    } else if (attempt->spec.bundle.blob == NULL) {
        lay(attempt);
    }
}
