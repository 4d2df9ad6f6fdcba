/* SPDX-License-Identifier: Apache-2.0 */
/* Brings an attempt from its order to a shim: checks, folders, environment, bundle, files, the launch file. A
 * person waits on this path for the first instruction: nothing here forks, syncs or waits, unless a payload
 * must be fetched or a bundle unpacked. An attempt that cannot be staged is declined, with the reason. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/attempt/attempt.h"
#include "agent/common/launch_file.h"
#include "agent/base/cache.h"
#include "agent/launch/contract.h"
#include "agent/launch/runner.h"
#include "agent/base/stage_file.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"

/* Variables of the agent that ranks inherit, unless the spec sets them. */
static const char *const inherited_names[] = {"PATH", "LANG", "LD_LIBRARY_PATH", "HOME", "USER"};
#define INHERITED_COUNT (sizeof inherited_names / sizeof inherited_names[0])
#define OF_USER         2 /* the last ones, and more: a rank that runs as another user gets that user's */
#define VARIABLES_MAX   (INHERITED_COUNT + STAGE_USER_VARIABLES)

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

/* Likewise. */
static bool take_inputs(struct attempt *attempt, struct err *err)
{
    const struct job_spec *spec = &attempt->spec;
    for (size_t i = 0; i < spec->input_count; i++) {
        const struct job_input *input = &spec->inputs[i];
        const struct input_need need = {.url = input->url,
                                        .sha256 = input->sha256,
                                        .secret = input->secret,
                                        .owner = attempt->order.owner,
                                        .project = job_spec_project(spec)};
        if (!input_use_begin(attempt->context->inputs, &need, &attempt->inputs[i])) {
            return err_set(err, ERR_NOT_FOUND, "the input %s is gone from this node, and is fetched again",
                           input->variable);
        }
        attempt->input_count++;
    }
    return true;
}

/* --- the user ------------------------------------------------------------------------------------------- */

/* NULL: the agent's. */
const struct user *stage_user(const struct attempt *attempt)
{
    return attempt->user.name != NULL ? &attempt->user : NULL;
}

static bool take_user(struct attempt *attempt, struct err *err)
{
    struct users *users = attempt->context->users;
    if (users == NULL) {
        return true;
    }
    return attempt->order.owner != NULL
               ? users_find(users, attempt->order.owner, &attempt->user, err)
               : err_set(err, ERR_CONFLICT,
                         "the controller does not say whose job it is: it is older than this agent");
}

/* Parts of the attempt's folder that its ranks write to. The folder itself stays root's, so that they cannot
 * replace them, and lets pass who knows its name; each part is the user's alone. */
static bool give_parts(const struct attempt *attempt, const struct user *user)
{
    static const char *const parts[] = {SHIM_WORK_FOLDER, SHIM_ERRORS_FOLDER, SHIM_RESULTS_FOLDER,
                                        SHIM_TMP_FOLDER, SHIM_CHECKPOINT_FOLDER};
    autoclose int folder = open(attempt->logs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool given = folder >= 0 && mkdirat(folder, SHIM_TMP_FOLDER, 0700) == 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && given; i++) {
        given = fchownat(folder, parts[i], user->uid, user->gid, AT_SYMLINK_NOFOLLOW) == 0;
    }
    for (int64_t i = 0; i < attempt_rank_count(attempt) && given; i++) {
        autofree char *kept = contract_kept_folder(attempt_first_rank(attempt) + i);
        given = fchownat(folder, kept, user->uid, user->gid, AT_SYMLINK_NOFOLLOW) == 0;
    }
    return given && fchmod(folder, USER_PASSAGE_MODE) == 0;
}

/* The first rank's folder for files that it keeps is there already. */
static bool make_kept_folders(const struct attempt *attempt, struct err *err)
{
    for (int64_t i = 1; i < attempt_rank_count(attempt); i++) {
        autofree char *name = contract_kept_folder(attempt_first_rank(attempt) + i);
        autofree char *path = xprintf("%s/%s", attempt->logs, name);
        if (mkdir(path, 0700) != 0) {
            return err_errno(err, "cannot make %s", path);
        }
    }
    return true;
}

/* Of the run folder: the file that gpuctl_mlflow.py shares. The shim gives rank.sock away itself. */
static bool give_run_files(const struct attempt *attempt, const struct user *user)
{
    autofree char *path = xprintf("%s/" SHIM_MLFLOW_FILE, attempt->run);
    autoclose int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return file >= 0 && fchown(file, user->uid, user->gid) == 0 &&
           chmod(attempt->run, USER_PASSAGE_MODE) == 0;
}

static bool give_folders(const struct attempt *attempt, struct err *err)
{
    const struct user *user = stage_user(attempt);
    return user == NULL || (give_parts(attempt, user) && give_run_files(attempt, user)) ||
           err_errno(err, "cannot give the attempt's folders to the user %u", (unsigned)user->uid);
}

/* --- files ---------------------------------------------------------------------------------------------- */

static void finish(struct attempt *attempt);

void stage_cancel(struct attempt *attempt)
{
    restore_cancel(give(attempt->restore));
    child_stop(give(attempt->checkpoint_maker), 0);
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

static void filled(void *closure, int blob, const struct err *err)
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

/* as: the user whose folder it is, who may change it meanwhile; NULL: the agent's user. */
static bool stage_file(struct attempt *attempt, int folder, const struct user *as,
                       const struct job_file *given, struct err *err)
{
    user_begin(as);
    autoclose int file = stage_file_open(folder, given->path, given->executable, err);
    user_end(as);
    if (file < 0 || given->blob == NULL) {
        return file >= 0 && write_given(file, given, err);
    }
    struct fill *fill = &attempt->fills[attempt->fill_count++];
    *fill = (struct fill){.attempt = attempt, .file = give_fd(&file)};
    fill->order = payload_fill(attempt->context->payloads, given->blob, fill->file, filled, fill);
    attempt->fills_waiting++;
    return true;
}

/* A file beside the parts of the ranks' user, who may only read it. */
static bool stage_for_user(struct attempt *attempt, int folder, const struct job_file *given, struct err *err)
{
    const struct user *user = stage_user(attempt);
    return stage_file(attempt, folder, NULL, given, err) &&
           (user == NULL ||
            (fchownat(folder, given->path, user->uid, user->gid, AT_SYMLINK_NOFOLLOW) == 0 &&
             fchmodat(folder, given->path, 0400, 0) == 0) ||
            err_errno(err, "cannot give %s to the user %u", given->path, (unsigned)user->uid));
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
    return stage_for_user(attempt, folder, &payload, err) &&
           (modules.blob == NULL || stage_for_user(attempt, folder, &modules, err));
}

static bool stage_work(struct attempt *attempt, struct err *err)
{
    const struct job_spec *spec = &attempt->spec;
    if (spec->file_count == 0) {
        return true;
    }
    autofree char *work = xprintf("%s/%s", attempt->logs, SHIM_WORK_FOLDER);
    autoclose int folder = open(work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool staged = folder >= 0 || err_errno(err, "cannot open %s", work);
    for (size_t i = 0; i < spec->file_count && staged; i++) {
        staged = stage_file(attempt, folder, stage_user(attempt), &spec->files[i], err);
    }
    return staged;
}

static bool stage_files(struct attempt *attempt, struct err *err)
{
    attempt->fills = xzalloc((attempt->spec.file_count + FUNCTION_FILES + 1) * sizeof *attempt->fills);
    return stage_work(attempt, err) && stage_function(attempt, err);
}

/* --- the bundle ----------------------------------------------------------------------------------------- */

/* Stages files over the bundle; then a shim may have the attempt. A file for which the bundle has no place is
 * the job's fault: it would fail on every node, and wait for ever. */
static void lay(struct attempt *attempt)
{
    struct err err;
    if (!stage_files(attempt, &err)) {
        stage_cancel(attempt);
        if (err.code == ERR_FIELD) {
            attempt_over(attempt, CAUSE_EXEC_FAILED, err.text);
        } else {
            attempt_decline(attempt, err.text);
        }
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

#define SETPRIV_WORDS 7 /* of the command line below, up to tar's */

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

/* As the user of the ranks, if they have one: what a bundle does to tar, it does with the user's rights. */
static bool unpack(struct attempt *attempt, int archive, struct err *err)
{
    const char *path = getenv("PATH");
    const struct user *user = stage_user(attempt);
    autofree char *work = xprintf("%s/%s", attempt->logs, SHIM_WORK_FOLDER);
    autofree char *variable = xprintf("PATH=%s", path != NULL ? path : "/usr/bin:/bin");
    autofree char *uid = xprintf("--reuid=%u", user != NULL ? (unsigned)user->uid : 0);
    autofree char *gid = xprintf("--regid=%u", user != NULL ? (unsigned)user->gid : 0);
    const char *const as_user[] = {"setpriv",
                                   uid,
                                   gid,
                                   "--clear-groups",
                                   "--no-new-privs",
                                   "--bounding-set=-all",
                                   "--",
                                   "tar",
                                   "-x",
                                   "-vv",
                                   "--no-same-owner",
                                   "--no-same-permissions",
                                   "-f",
                                   "-",
                                   "-C",
                                   work,
                                   NULL};
    const char *const *arguments = user != NULL ? as_user : as_user + SETPRIV_WORDS;
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

static void bundle_opened(void *closure, int archive, const struct err *problem)
{
    struct attempt *attempt = closure;
    struct err err = problem != NULL ? *problem : (struct err){0};
    attempt->bundle = NULL;
    if (problem != NULL || !unpack(attempt, archive, &err)) {
        attempt_decline(attempt, err.text);
    }
}

/* Usually the bundle is in the cache, because the node was told to fetch it before. */
static void stage_bundle(struct attempt *attempt)
{
    attempt->bundle =
        payload_open(attempt->context->payloads, attempt->spec.bundle.blob, bundle_opened, attempt);
}

/* --- the launch file ------------------------------------------------------------------------------------ */

static int64_t log_limit(const struct agent_context *context)
{
    int64_t own = context->config.log_limit_mib * MIB;
    return context->log_limit > 0 && context->log_limit < own ? context->log_limit : own;
}

size_t stage_put_user(const struct attempt *attempt, const struct user *user, char **variables)
{
    size_t count = 0;
    variables[count++] = xprintf("HOME=%s", user->home);
    variables[count++] = xprintf("USER=%s", user->name);
    variables[count++] = xprintf("LOGNAME=%s", user->name);
    variables[count++] = xprintf("SHELL=%s", user->shell);
    variables[count++] = shims_own_memory(attempt->context->shims)
                             ? xstrdup("TMPDIR=/tmp")
                             : xprintf("TMPDIR=%s/" SHIM_TMP_FOLDER, attempt->logs);
    return count;
}

/* Variables that the ranks have, unless the spec sets them. The caller frees them and the list. */
static char **inherited_variables(const struct attempt *attempt)
{
    if (attempt->image_root != NULL) {
        return stage_image_variables(attempt);
    }
    char **variables = xzalloc(VARIABLES_MAX * sizeof *variables);
    const struct user *user = stage_user(attempt);
    size_t count = user != NULL ? stage_put_user(attempt, user, variables) : 0;
    for (size_t i = 0; i < INHERITED_COUNT - (user != NULL ? OF_USER : 0); i++) {
        const char *value = getenv(inherited_names[i]);
        if (value != NULL) {
            variables[count++] = xprintf("%s=%s", inherited_names[i], value);
        }
    }
    return variables;
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

static void compose_user(const struct attempt *attempt, struct text *launch)
{
    const struct user *user = stage_user(attempt);
    if (user == NULL) {
        return;
    }
    autofree char *tmp = xprintf("%s/" SHIM_TMP_FOLDER, attempt->logs);
    launch_put_int(launch, "uid", user->uid);
    launch_put_int(launch, "gid", user->gid);
    launch_put_int(launch, "seccomp", attempt->context->config.seccomp);
    for (size_t i = 0; i < user->group_count; i++) {
        launch_put_int(launch, "group", user->groups[i]);
    }
    launch_put(launch, "tmp", tmp);
}

static void compose(struct attempt *attempt, struct text *launch)
{
    struct agent_context *context = attempt->context;
    autofree char **inherited = inherited_variables(attempt);
    autofree char *work = xprintf("%s/%s", attempt->logs, SHIM_WORK_FOLDER);
    autofree char *attempt_id = xprintf("%llu", (unsigned long long)attempt->attempt_id);
    autofree char *visible = visible_devices(&context->devices, &attempt->order);
    autofree char *checkpoint = volumes_checkpoint_folder(
        context->volumes, &attempt->spec, job_spec_checkpoint_key(attempt->spec.json, attempt->order.job_id));
    struct contract contract = {
        .order = &attempt->order,
        .spec = &attempt->spec,
        .node = context->config.name,
        .url = context->config.url,
        .cacert = context->config.cacert,
        .logs = attempt->logs,
        .run = attempt->run,
        .checkpoint = checkpoint,
        .python = context->config.python,
        .runner = context->runner,
        .environment = attempt->environment,
        .image = job_spec_image_at(&attempt->spec, attempt->order.first_rank),
        .slots = context->devices.slots || attempt->order.device_count == 0,
        .no_peer_access = context->devices.no_peer_access,
        .visible_devices = visible,
        .inherited = (const char *const *)inherited,
    };
    launch_put(launch, "epoch", attempt_id);
    launch_put(launch, "logs", attempt->logs);
    launch_put(launch, "cwd", attempt->spec.workdir != NULL ? attempt->spec.workdir : work);
    launch_put_int(launch, "received", attempt->received_us);
    launch_put_int(launch, "granted", order_units(&attempt->order));
    launch_put_int(launch, "millicpus", attempt->order.millicpus);
    launch_put_int(launch, "memory_bytes", attempt->order.memory_bytes);
    launch_put_int(launch, "failed_grace_ms", FAILED_GRACE_MS);
    if (attempt->spec.keep_ms > 0) {
        launch_put_int(launch, "keep", 1);
    }
    launch_put_int(launch, "log_limit", log_limit(context));
    if (attempt->spec.secret_count > 0) {
        launch_put_int(launch, "secrets", (int64_t)attempt->spec.secret_count);
    }
    compose_user(attempt, launch);
    volumes_write(context->volumes, &attempt->spec, launch);
    for (size_t i = 0; i < attempt->input_count; i++) {
        input_write(context->inputs, &attempt->spec.inputs[i], &attempt->inputs[i],
                    attempt->image_root != NULL, launch);
    }
    if (attempt->cgroup != NULL) {
        launch_put(launch, "cgroup", attempt->cgroup);
        launch_put_int(launch, "cgroup_version", 2); /* for a gpushim of the version before */
    }
    if (attempt->environment != NULL) {
        autofree char *lock = cache_lock_path(attempt->environment);
        launch_put(launch, "hold", lock);
    }
    if (attempt->image_root != NULL) {
        launch_put(launch, "image", attempt->image_root);
        launch_put(launch, "hold", attempt->image_lock);
    }
    attempt->holds_port = contract_holds_port(&contract);
    if (attempt->holds_port) {
        launch_put_int(launch, "port_first", context->config.port_first);
        launch_put_int(launch, "port_last", context->config.port_last);
    }
    contract_write(&contract, launch);
    attempt->python = contract_is_python(&contract) && attempt->image_root == NULL;
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
    if (attempt->image_root != NULL && !stage_bundle_of_image(attempt, err)) {
        return false;
    }
    compose(attempt, &text);
    return stage_file_put(path, text.bytes, text.length, err) &&
           (take_warm_shim(attempt, &text) || shims_take(attempt->context->shims, &attempt->shim, err)) &&
           shim_client_assign(attempt, err);
}

static void finish(struct attempt *attempt)
{
    struct err err;
    if (attempt->term_ms != 0 && attempt->term_ms <= clock_boot_ms()) {
        attempt->phase = PHASE_LEASE;
        return;
    }
    if (attempt->secrets.problem != NULL) {
        attempt_over(attempt, CAUSE_EXEC_FAILED, attempt->secrets.problem);
        return;
    }
    if (!hand_over(attempt, &err)) {
        shim_process_close(&attempt->shim);
        attempt_decline(attempt, err.text);
        return;
    }
    attempt->phase = PHASE_SHIM;
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

static bool make_cgroup(struct attempt *attempt, struct err *err)
{
    struct agent_context *context = attempt->context;
    const struct order *order = &attempt->order;
    struct cgroup_limits limits = {
        .devices = order_units(order), .millicpus = order->millicpus, .memory_bytes = order->memory_bytes};
    autofree int64_t *gpus =
        devices_minors(&context->devices, order->devices, order->device_count, &limits.gpu_count);
    limits.gpus = gpus;
    return cgroup_make(&context->cgroups, &limits, &attempt->cgroup, err);
}

static bool prepare(struct attempt *attempt, struct err *err)
{
    struct agent_context *context = attempt->context;
    return check_devices(attempt, err) && take_user(attempt, err) && runner_restore(context->runner, err) &&
           take_environment(attempt, err) && stage_take_image(attempt, err) && take_inputs(attempt, err) &&
           folder_pool_take(context->folder_pool, attempt->logs, attempt_first_rank(attempt), err) &&
           make_kept_folders(attempt, err) && give_folders(attempt, err) && make_cgroup(attempt, err);
}

void stage_go_on(struct attempt *attempt)
{
    attempt->phase = PHASE_STAGING;
    finish(attempt);
}

void stage_content(struct attempt *attempt)
{
    if (attempt->spec.bundle.blob != NULL) {
        stage_bundle(attempt);
    } else {
        lay(attempt);
    }
}

/* A place where nothing can be mounted is the job's fault: it would wait for ever. */
static void refuse_place(struct attempt *attempt, const struct err *err)
{
    if (err->code != ERR_FIELD) {
        attempt_decline(attempt, err->text);
        return;
    }
    autofree char *text = xprintf("%s; %s", err->text, err->hint);
    attempt_over(attempt, CAUSE_EXEC_FAILED, text);
}

void stage_begin(struct attempt *attempt)
{
    struct err err;
    if (!decode_spec(attempt, &err)) {
        attempt_decline(attempt, err.text);
    } else if (!volumes_check_job(attempt->context->volumes, &attempt->spec, &err) ||
               !inputs_check_job(attempt->context->inputs, &attempt->spec, &err)) {
        refuse_place(attempt, &err);
    } else if (!prepare(attempt, &err)) {
        stage_cancel(attempt);
        attempt_decline(attempt, err.text);
    } else {
        stage_checkpoint(attempt);
    }
}
