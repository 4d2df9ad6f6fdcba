/* SPDX-License-Identifier: Apache-2.0 */
/* gpuagent: offers this machine's devices to a controller. This file runs the process: its folders, locks and
 * signals, and the order in which its parts start and end. Only one agent uses a state folder or a GPU at a
 * time. The end of an agent disturbs no job: shims and ranks go on, and the next agent finds them. An
 * ephemeral agent ends when it has no job any more, and leaves nothing behind. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/common/system_calls.h"
#include "agent/fetcher/fetcher.h"
#include "agent/node/identity.h"
#ifdef WITH_NVML
#include "agent/devices/devices_helper.h"
#endif
#include "agent/node/join.h"
#include "agent/node/journal.h"
#include "agent/node/leave.h"
#include "agent/node/node.h"
#include "agent/node/run_folder.h"
#include "agent/objects/object_client.h"
#include "agent/launch/runner.h"
#include "agent/launch/users.h"
#include "agent/slurm/slurm_job.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/base/notify.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/members.h"
#include "proto/spec/node_label.h"

#define HINT_SLOTS "on a machine without GPUs, offer CPU slots with --cpu-slots N"
#define HINT_SLURM                                                                                           \
    "ask Slurm for GPUs, such as with --gpus-per-node, name GPUs with --devices, or offer CPU slots with "   \
    "--cpu-slots N"
#define COMPLAINT_BYTES  (1 * MIB) /* a larger log of the shims is emptied at the start */
#define LOCK_PATIENCE_MS 1000      /* time from fork to exec on a busy machine */
#define LOCK_PAUSE_MS    10

struct agent {
    struct agent_context context;
    struct node *node;
    struct loop_watch signals;
    int lock;     /* of the state folder */
    int shim_log; /* stderr of the shims */
    char *warm_launch;
    bool made_state; /* the state folder goes with the agent */
};

/* --- what belongs to one agent only --------------------------------------------------------------------- */

/* Locks a file or, where an address is given, an abstract socket, which the kernel frees however its owner
 * ends. */
static bool lock_now(int fd, const struct sockaddr_un *address, socklen_t size)
{
    return address != NULL ? bind(fd, (const struct sockaddr *)address, size) == 0
                           : flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* A child of an agent that has ended holds its locks, too, until it has executed its program. */
static bool lock_soon(int fd, const struct sockaddr_un *address, socklen_t size)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    bool locked = lock_now(fd, address, size);
    for (int waited_ms = 0; !locked && waited_ms < LOCK_PATIENCE_MS; waited_ms += LOCK_PAUSE_MS) {
        nanosleep(&pause, NULL);
        locked = lock_now(fd, address, size);
    }
    return locked;
}

static bool lock_state(struct agent *agent, struct err *err)
{
    autofree char *path = xprintf("%s/lock", agent->context.config.state);
    agent->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (agent->lock < 0) {
        return err_errno(err, "cannot open %s", path);
    }
    if (!lock_soon(agent->lock, NULL, 0)) {
        err_set(err, ERR_CONFLICT, "another gpuagent uses the state folder %s", agent->context.config.state);
        return err_hint(err, "end it, or name another folder with --state and another node with --name");
    }
    return true;
}

/* The socket stays open until the agent ends. */
static bool lock_gpu(const char *uuid, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "gpuctl-gpu-%s", uuid);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (fd < 0 || !lock_soon(fd, &address, size)) {
        cleanup_close(&fd);
        err_set(err, ERR_CONFLICT, "another gpuagent serves the GPU %s", uuid);
        return err_hint(err, "divide the GPUs between the agents with --devices");
    }
    return true;
}

static bool lock_gpus(const struct devices *devices, struct err *err)
{
    for (size_t i = 0; i < devices->count && !devices->slots; i++) {
        if (!lock_gpu(devices->items[i].uuid, err)) {
            return false;
        }
    }
    return true;
}

/* --- folders -------------------------------------------------------------------------------------------- */

static bool open_runner(struct agent_context *context, const char *attempts, struct err *err)
{
    autofree char *folder = xprintf("%s/runner", context->config.state);
    autonames struct file_names names = {0};
    context->runner = runner_stage(folder, err);
    if (context->runner != NULL && file_list(attempts, &names, NULL) && names.count == 0) {
        runner_drop_others(folder, context->runner, context->trash);
    }
    return context->runner != NULL;
}

static int open_shim_log(const char *path)
{
    struct stat status;
    bool long_enough = stat(path, &status) == 0 && status.st_size > COMPLAINT_BYTES;
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (long_enough ? O_TRUNC : 0), 0600);
}

/* Lets the users of jobs pass, who can list nothing. */
static bool make_passable(const char *folder, struct err *err)
{
    struct stat status;
    return (stat(folder, &status) == 0 && chmod(folder, (status.st_mode & 07777) | USER_PASSAGE_MODE) == 0) ||
           err_errno(err, "cannot open %s to the users of jobs", folder);
}

/* What runs for everybody lies there. An agent of another user may have made it, or a person by mistake. */
static bool check_owner(const char *state, const char *part, struct err *err)
{
    struct stat status;
    autofree char *folder = xprintf("%s/%s", state, part);
    if (stat(folder, &status) != 0) {
        return errno == ENOENT || err_errno(err, "cannot look at %s", folder);
    }
    if (status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
        return true;
    }
    err_set(err, ERR_CONFLICT,
            "%s can be written by others than root: it belongs to the user %u, with mode %04o", folder,
            (unsigned)status.st_uid, (unsigned)(status.st_mode & ALLPERMS));
    return err_hint(err, "move it away, or name another folder with --state");
}

/* The Python of a person's home, such as one of pyenv or conda of root, is hidden from the users of jobs. */
static void check_python(const struct agent_context *context)
{
    const char *python = context->config.python;
    const struct user stranger = {.uid = users_of_builds(context->users),
                                  .gid = users_of_builds(context->users)};
    if (python == NULL || strchr(python, '/') == NULL) {
        return;
    }
    user_begin(&stranger);
    bool usable = faccessat(AT_FDCWD, python, X_OK, AT_EACCESS) == 0;
    user_end(&stranger);
    if (!usable) {
        log_warning("python shut",
                    "path=%s reason=\"the users of jobs may not execute it: name one with --python "
                    "that all may, such as /usr/bin/python3\"",
                    python);
    }
}

static bool open_users(struct agent_context *context, const char *attempts, struct err *err)
{
    const struct config *config = &context->config;
    if (config->seccomp && !system_calls_can_limit()) {
        return err_field(err, ERR_USAGE, "--seccomp", "allow jobs all system calls with --seccomp off",
                         "this kernel cannot refuse system calls to jobs (CONFIG_SECCOMP_FILTER)");
    }
    if (!check_owner(config->state, "", err) || !check_owner(config->state, "payloads", err) ||
        !check_owner(config->state, "runner", err)) {
        return false;
    }
    context->users = users_open(config->state, (uid_t)config->user_first, (uid_t)config->user_last, err);
    if (context->users == NULL) {
        return false;
    }
    check_python(context);
    return file_make_directories(config->environments, USER_PASSAGE_MODE, err) &&
           make_passable(config->state, err) && make_passable(attempts, err) &&
           make_passable(config->run, err) && make_passable(config->environments, err);
}

static bool open_folders(struct agent *agent, struct err *err)
{
    struct agent_context *context = &agent->context;
    autofree char *attempts = xprintf("%s/attempts", context->config.state);
    autofree char *trash = xprintf("%s/trash", context->config.state);
    autofree char *spare = xprintf("%s/spare", context->config.state);
    autofree char *shim_log = xprintf("%s/shim.log", context->config.state);
    file_boot_id(context->boot_id);
    if (context->config.temporary_state && mkdir(context->config.state, 0700) != 0) {
        return err_errno(err, "cannot make the folder %s", context->config.state);
    }
    agent->made_state = context->config.temporary_state;
    if (!file_make_directories(attempts, 0700, err) || !lock_state(agent, err) ||
        !identity_open(context->config.state, context->agent_id, err) ||
        !run_folder_open(context->config.state, context->boot_id, &context->config.run, err)) {
        return false;
    }
    if (context->config.as_owner && !open_users(context, attempts, err)) {
        return false;
    }
    context->seen = seen_open(context->config.run, err);
    context->trash = context->seen != NULL ? trash_create(trash, err) : NULL;
    context->folder_pool = context->trash != NULL ? folder_pool_create(spare, context->trash, err) : NULL;
    agent->shim_log = open_shim_log(shim_log);
    return context->folder_pool != NULL && open_runner(context, attempts, err) &&
           (agent->shim_log >= 0 || err_errno(err, "cannot open %s", shim_log));
}

/* --- parts ---------------------------------------------------------------------------------------------- */

static bool open_devices(struct agent_context *context, struct err *err)
{
    const struct config *config = &context->config;
    if (config->cpu_slots > 0) {
        devices_open_slots(config->cpu_slots, config->gpu_type, &context->devices);
        return true;
    }
#ifdef WITH_NVML
    if (strcmp(config->devices, "none") != 0) {
        bool found =
            devices_open_nvml(DEVICES_NVML, config->devices, config->gpu_type, &context->devices, err);
        return found || (err->hint[0] != '\0' ? false : err_hint(err, HINT_SLOTS));
    }
#endif
    struct slurm_job job;
    slurm_job_read(&job);
    bool given = job.id == NULL || job.gpus != NULL;
    err_set(err, ERR_USAGE, "there is nothing to offer: %s",
            given ? "no GPUs are used" : "the job of Slurm has no GPUs");
    return err_hint(err, given ? HINT_SLOTS : HINT_SLURM);
}

/* Sets the label gpu_memory, unless the operator gives one: an A100 has 40 or 80 GB, and the label tells them
 * apart. */
static void label_memory(struct agent_context *context)
{
    struct config *config = &context->config;
    char size[DEVICES_SIZE_BYTES];
    if (!devices_common_size(&context->devices, size) ||
        json_object_get(config->labels, "gpu_memory") != NULL) {
        return;
    }
    config->labels = config->labels != NULL ? config->labels : json_object();
    if (json_object_size(config->labels) < LIMIT_LABELS) {
        json_object_set_new(config->labels, "gpu_memory", json_string(size));
    }
}

/* Says what keeps users apart here, for jobs that ask for it. */
static void label_isolation(struct config *config)
{
    if (config->as_owner) {
        config->labels = config->labels != NULL ? config->labels : json_object();
        json_object_set_new(config->labels, ISOLATION_LABEL, json_string(ISOLATION_BY_USERS));
        json_object_set_new(config->labels, "seccomp", json_string(config->seccomp ? "default" : "off"));
    }
}

/* Jobs in container images come to nodes with the label. */
static void label_images(struct agent_context *context)
{
    struct config *config = &context->config;
    const char *missing = images_missing_program();
    if (missing != NULL) {
        log_info("no images", "reason=\"%s is not installed: this node runs no jobs in container images\"",
                 missing);
        return;
    }
    context->images = xprintf("%s/images", config->state);
    config->labels = config->labels != NULL ? config->labels : json_object();
    json_object_set_new(config->labels, IMAGES_LABEL, json_string(IMAGES_VALUE));
}

/* Says whether jobs open their own GPUs alone. A job with a GPU that has no number would open none. */
static void label_gpus(struct agent_context *context)
{
    struct config *config = &context->config;
    if (context->devices.slots) {
        return;
    }
    if (!devices_have_minors(&context->devices)) {
        cgroup_open_gpus(&context->cgroups, "the driver does not number their files");
    }
    bool own = context->cgroups.rule != NULL;
    config->labels = config->labels != NULL ? config->labels : json_object();
    json_object_set_new(config->labels, "gpu_files", json_string(own ? "own" : "all"));
    if (!own) {
        log_warning("gpus open", "reason=\"jobs can use GPUs that they were not given: %s\"",
                    context->cgroups.open_why.text);
    }
}

/* Uses the address on the route to the controller, until a connection to the controller shows a better
 * one. */
static void find_address(struct agent_context *context)
{
    char controller[ADDRESS_BYTES];
    const char *given = context->config.address;
    if (given[0] != '\0') {
        memcpy(context->address, given, ADDRESS_BYTES);
    } else if (!address_resolve(context->config.controller_host, controller, NULL) ||
               !address_towards(controller, context->address)) {
        memcpy(context->address, "127.0.0.1", sizeof "127.0.0.1");
    }
}

static bool open_environments(struct agent_context *context, struct err *err)
{
    const struct config *config = &context->config;
    context->builder = xprintf("%s/" RUNNER_ENVIRONMENT_FILE, context->runner);
    context->environments =
        environments_create(config->environments, config->python, config->environments_gib * GIB, err);
    if (context->environments == NULL) {
        return false;
    }
    environments_make_room(context->environments);
    return true;
}

static void open_warm(struct agent *agent)
{
    struct agent_context *context = &agent->context;
    agent->warm_launch = xprintf("%s/warm", context->config.run);
    const struct warm_config warm = {.folder = context->runner,
                                     .imports = context->config.preload,
                                     .limit_bytes = context->config.warm_mib * MIB,
                                     .shim_log = agent->shim_log,
                                     .launch = agent->warm_launch,
                                     .cgroups = &context->cgroups,
                                     .seccomp = context->config.seccomp};
    context->warm = warm_create(&warm, context->shims, context->children, context->loop);
}

/* CUDA has the driver's modules and device files made by a setuid program, which helps no rank that may gain
 * no rights. So they are made here. A host without the program has another way. */
static void make_gpu_files(const struct agent_context *context)
{
    static const char *const arguments[] = {"nvidia-modprobe", "-c", "0", "-u", NULL};
    if (context->config.as_owner && !context->devices.slots) {
        child_start(context->children,
                    &(struct child_call){.arguments = arguments,
                                         .variables = (const char *const *)(uintptr_t)environ,
                                         .input = -1,
                                         .extra = -1},
                    &(struct err){0});
    }
}

/* Parts that need no files of the agent, and no others but those before them. */
static void open_surroundings(struct agent_context *context)
{
    label_memory(context);
    label_isolation(&context->config);
    label_images(context);
    node_size_find(context->config.cpus, context->config.memory_bytes, &context->size);
    cgroup_find(context->config.unique, &context->cgroups);
    cgroup_limit(&context->cgroups, context->config.max_processes);
    label_gpus(context);
    find_address(context);
    context->loop = loop_create();
    context->children = children_create(context->loop);
    make_gpu_files(context);
}

static bool open_parts(struct agent *agent, struct err *err)
{
    struct agent_context *context = &agent->context;
    const struct config *config = &context->config;
    const struct controller_client_config controller = {config->url, config->token_file, config->cacert};
    autofree char *payloads = xprintf("%s/payloads", config->state);
    if (!open_folders(agent, err) || !open_devices(context, err) || !lock_gpus(&context->devices, err)) {
        return false;
    }
    open_surroundings(context);
    autofree char *homes = xprintf("%s/shims", config->run);
    if ((context->controller = controller_client_create(&controller, context->loop, err)) == NULL) {
        return false;
    }
    context->objects =
        object_client_create(controller_client_url(context->controller), OBJECT_STORE_AWAY_MS, context->loop);
    if ((context->shims = shims_create(agent->shim_log, !config->host_memory, homes, context->loop, err)) ==
            NULL ||
        (context->payloads = payloads_create(payloads, context->controller, context->objects, err)) == NULL ||
        !open_environments(context, err)) {
        return false;
    }
    open_warm(agent);
    context->uploads = uploads_create(context->controller);
    context->outputs = outputs_create(config->name, config->kept_gib * GIB, context->controller,
                                      context->loop, context->folder_pool);
    context->checkpoints = checkpoints_create(config->name, config->checkpoint_still_s * 1000,
                                              context->controller, context->loop);
    return (context->journal = journal_open(config->state, err)) != NULL;
}

static void close_parts(struct agent *agent)
{
    struct agent_context *context = &agent->context;
    node_destroy(agent->node);
    devices_close(&context->devices); /* before the loop, because devices are watched by it */
    journal_close(context->journal);
    outputs_destroy(context->outputs);
    checkpoints_destroy(context->checkpoints);
    uploads_destroy(context->uploads);
    free(context->builder);
    free(context->images);
    environments_destroy(context->environments);
    warm_destroy(context->warm);
    children_destroy(context->children);
    payloads_destroy(context->payloads);
    shims_destroy(context->shims);
    object_client_destroy(context->objects);
    controller_client_destroy(context->controller);
    loop_destroy(context->loop);
    folder_pool_destroy(context->folder_pool);
    free(context->runner);
    trash_destroy(context->trash);
    seen_close(context->seen);
    users_close(context->users);
    cgroup_finish(&context->cgroups);
    cleanup_close(&agent->shim_log);
    free(agent->warm_launch);
    cleanup_close(&agent->lock);
}

/* --- the process ---------------------------------------------------------------------------------------- */

static void ended(void *closure, const char *reason)
{
    struct agent *agent = closure;
    log_info("agent ends", "reason=\"%s\"", reason);
    loop_end(agent->context.loop);
}

static void told_to_end(struct agent *agent, const char *signal)
{
    if (agent->context.config.ephemeral) {
        leave_begin(agent->node, signal);
    } else {
        ended(agent, signal);
    }
}

static void signal_ready(void *closure, uint32_t events)
{
    struct agent *agent = closure;
    struct signalfd_siginfo info;
    while (read(agent->signals.fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            told_to_end(agent, info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
        }
    }
    children_reap(agent->context.children); /* children_reap also reaps shims; their pidfds show their end */
}

static void watch_signals(struct agent *agent)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    agent->signals = (struct loop_watch){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                                         .events = EPOLLIN,
                                         .ready = signal_ready,
                                         .closure = agent};
    loop_watch(agent->context.loop, &agent->signals);
}

static bool idle(void *closure)
{
    struct agent_context *context = closure;
    if (clock_boot_ms() < context->hurry_ms) {
        return false; /* the next event calls this again */
    }
    return payloads_step(context->payloads) || uploads_step(context->uploads) ||
           shims_refill(context->shims) || folder_pool_refill(context->folder_pool) ||
           cgroup_refill(&context->cgroups) || trash_step(context->trash) ||
           environments_step(context->environments) || stagings_step(context->stagings) ||
           warm_step(context->warm) || checkpoints_step(context->checkpoints); /* which may take hours */
}

/* For the agent itself: programs that it starts get the original limit (program.c). */
static void raise_limits(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void work(struct agent *agent)
{
    const struct agent_context *context = &agent->context;
    log_info("agent starts", "name=%s devices=%zu type=%s isolation=%s address=%s state=%s",
             context->config.name, context->devices.count, context->devices.items[0].type,
             isolation_text(context->cgroups.isolation), context->address, context->config.state);
    if (geteuid() == 0 && !context->config.as_owner) {
        log_warning("jobs run as root",
                    "remedy=\"leave --run-as agent out, where not all who submit are trusted with root\"");
    }
    node_start(agent->node);
    notify_ready();
    loop_run(context->loop);
}

static bool run(struct agent *agent, struct err *err)
{
    struct agent_context *context = &agent->context;
    raise_limits();
    watch_signals(agent);
    loop_set_idle(context->loop, idle, context);
    agent->node = node_create(context, ended, agent, err);
    if (agent->node != NULL) {
        work(agent);
    }
    loop_unwatch(context->loop, &agent->signals);
    close(agent->signals.fd);
    return agent->node != NULL;
}

static json_t *describe(const struct devices *devices, size_t at)
{
    json_t *json = device_encode(&devices->items[at]);
    if (!devices->slots && devices->sights[at].state != DEVICE_EMPTY) {
        member_put_text(json, "unavailable", devices->sights[at].reason);
    }
    return json;
}

/* Prints a JSON array, one device a line. */
static bool list_devices(struct agent_context *context, struct err *err)
{
    if (!open_devices(context, err)) {
        return false;
    }
    for (size_t i = 0; i < context->devices.count; i++) {
        autojson json_t *json = describe(&context->devices, i);
        printf("%s", i == 0 ? "[" : ",\n ");
        json_dumpf(json, stdout, 0);
    }
    printf("]\n");
    devices_close(&context->devices);
    return true;
}

static int fail(const struct err *err)
{
    log_failure("gpuagent", err);
    return err_exit(err->code);
}

/* For `gpuagent join`: whether there is anything to offer. */
static bool look(struct config *config, struct err *err)
{
    struct agent_context context = {.config = *config};
    bool found = open_devices(&context, err);
    if (found) {
        devices_close(&context.devices);
    }
    return found;
}

/* A file that cannot be removed is left to those who clean $TMPDIR. */
static void remove_state(const struct agent *agent)
{
    struct err err;
    if (agent->made_state && !file_remove_tree(agent->context.config.state, &err)) {
        log_warning("state left", "problem=\"%s\"", err.text);
    }
}

int main(int argc, char **argv)
{
    if (fetcher_is_meant(argc, argv)) {
        return fetcher_run();
    }
#ifdef WITH_NVML
    if (devices_helper_is_meant(argc, argv)) {
        return devices_helper_run(argv);
    }
#endif
    struct agent agent = {.lock = -1, .shim_log = -1};
    struct err err = {0};
    bool done;
    json_begin();
    if (geteuid() == 0) {
        prctl(PR_SET_DUMPABLE, 0); /* it holds secrets; without root it could not read its own fdinfo then */
    }
    if (argc > 1 && strcmp(argv[1], "join") == 0) {
        return join_run(argc - 1, argv + 1, look, &err) ? 0 : fail(&err);
    }
    if (!config_read(argc, argv, &agent.context.config, &done, &err)) {
        return fail(&err);
    }
    if (done) {
        return 0;
    }
    if (agent.context.config.list_devices) {
        bool listed = list_devices(&agent.context, &err);
        config_finish(&agent.context.config);
        return listed ? 0 : fail(&err);
    }
    bool ran = open_parts(&agent, &err) && run(&agent, &err);
    close_parts(&agent);
    remove_state(&agent);
    config_finish(&agent.context.config);
    return ran ? 0 : fail(&err);
}
