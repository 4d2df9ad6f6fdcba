/* SPDX-License-Identifier: Apache-2.0 */
/* gpuagent: offers this machine's devices to a controller. Owns the process: folders, locks, signals, the
 * order in which the parts come up and go down. It promises that one agent uses a state folder and a GPU at a
 * time, and that its end disturbs no job: shims and ranks go on and the next agent finds them. */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/identity.h"
#ifdef WITH_NVML
#include "agent/devices_helper.h"
#endif
#include "agent/join.h"
#include "agent/journal.h"
#include "agent/node.h"
#include "agent/run_folder.h"
#include "agent/runner.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files.h"
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "proto/base/notify.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define HINT_SLOTS       "on a machine without GPUs, offer CPU slots with --cpu-slots N"
#define COMPLAINT_BYTES  (1 * MIB) /* the log of the shims starts anew above this */
#define LOCK_PATIENCE_MS 1000      /* from fork to exec on a machine that is busy */
#define LOCK_PAUSE_MS    10

struct agent {
    struct site site;
    struct node *node;
    struct loop_watch signals;
    int lock;     /* of the state folder */
    int shim_log; /* stderr of the shims */
};

/* --- what belongs to one agent only --------------------------------------------------------------------- */

/* A child of an agent that was killed holds the lock, too, until it has executed its program. */
static bool lock_soon(int fd)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    for (int waited_ms = 0; !locked && waited_ms < LOCK_PATIENCE_MS; waited_ms += LOCK_PAUSE_MS) {
        nanosleep(&pause, NULL);
        locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    }
    return locked;
}

static bool lock_state(struct agent *agent, struct err *err)
{
    autofree char *path = xprintf("%s/lock", agent->site.config.state);
    agent->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (agent->lock < 0) {
        return err_errno(err, "cannot open %s", path);
    }
    if (!lock_soon(agent->lock)) {
        err_set(err, ERR_CONFLICT, "another gpuagent uses the state folder %s", agent->site.config.state);
        return err_hint(err, "end it, or name another folder with --state and another node with --name");
    }
    return true;
}

/* An abstract socket is a lock that the kernel frees, whatever ends its owner. It stays open until the agent
 * ends. */
static bool lock_gpu(const char *uuid, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "gpuctl-gpu-%s", uuid);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0) {
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

static bool open_runner(struct site *site, const char *attempts, struct err *err)
{
    autofree char *folder = xprintf("%s/runner", site->config.state);
    autonames struct file_names names = {0};
    site->runner = runner_stage(folder, err);
    if (site->runner != NULL && file_list(attempts, &names, NULL) && names.count == 0) {
        runner_drop_others(folder, site->runner, site->trash);
    }
    return site->runner != NULL;
}

static int open_shim_log(const char *path)
{
    struct stat status;
    bool long_enough = stat(path, &status) == 0 && status.st_size > COMPLAINT_BYTES;
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (long_enough ? O_TRUNC : 0), 0600);
}

static bool open_folders(struct agent *agent, struct err *err)
{
    struct site *site = &agent->site;
    autofree char *attempts = xprintf("%s/attempts", site->config.state);
    autofree char *trash = xprintf("%s/trash", site->config.state);
    autofree char *spare = xprintf("%s/spare", site->config.state);
    autofree char *shim_log = xprintf("%s/shim.log", site->config.state);
    file_boot_id(site->boot_id);
    if (!file_make_directories(attempts, 0700, err) || !lock_state(agent, err) ||
        !identity_open(site->config.state, site->agent_id, err) ||
        !run_folder_open(site->config.state, site->boot_id, &site->config.run, err)) {
        return false;
    }
    site->seen = seen_open(site->config.run, err);
    site->trash = site->seen != NULL ? trash_create(trash, err) : NULL;
    site->folder_pool = site->trash != NULL ? folder_pool_create(spare, site->trash, err) : NULL;
    agent->shim_log = open_shim_log(shim_log);
    return site->folder_pool != NULL && open_runner(site, attempts, err) &&
           (agent->shim_log >= 0 || err_errno(err, "cannot open %s", shim_log));
}

/* --- parts ---------------------------------------------------------------------------------------------- */

static bool open_devices(struct site *site, struct err *err)
{
    const struct config *config = &site->config;
    if (config->cpu_slots > 0) {
        devices_open_slots(config->cpu_slots, config->gpu_type, &site->devices);
        return true;
    }
#ifdef WITH_NVML
    if (strcmp(config->devices, "none") != 0) {
        bool found = devices_open_nvml(DEVICES_NVML, config->devices, config->gpu_type, &site->devices, err);
        return found || (err->hint[0] != '\0' ? false : err_hint(err, HINT_SLOTS));
    }
#endif
    err_set(err, ERR_USAGE, "there is nothing to offer: no GPUs are used");
    return err_hint(err, HINT_SLOTS);
}

/* An A100 may have 40 or 80 GB: the label gpu_memory tells them apart, unless the operator gives one. */
static void label_memory(struct site *site)
{
    struct config *config = &site->config;
    char size[DEVICES_SIZE_BYTES];
    if (!devices_common_size(&site->devices, size) || json_object_get(config->labels, "gpu_memory") != NULL) {
        return;
    }
    config->labels = config->labels != NULL ? config->labels : json_object();
    if (json_object_size(config->labels) < LIMIT_LABELS) {
        json_object_set_new(config->labels, "gpu_memory", json_string(size));
    }
}

/* The address on the way to the controller; the link itself may know better later. */
static void find_address(struct site *site)
{
    char controller[ADDRESS_BYTES];
    const char *given = site->config.address;
    if (given[0] != '\0') {
        memcpy(site->address, given, ADDRESS_BYTES);
    } else if (!address_resolve(site->config.controller_host, controller, NULL) ||
               !address_towards(controller, site->address)) {
        memcpy(site->address, "127.0.0.1", sizeof "127.0.0.1");
    }
}

static bool open_environments(struct site *site, struct err *err)
{
    const struct config *config = &site->config;
    autofree char *script = runner_stage_builder(config->state, err);
    if (script != NULL) {
        site->environments =
            environments_create(config->environments, config->python, config->environments_gib * GIB, err);
    }
    if (site->environments == NULL) {
        return false;
    }
    environments_make_room(site->environments);
    site->builder = builder_create(script, site->children, site->environments);
    return true;
}

static bool open_parts(struct agent *agent, struct err *err)
{
    struct site *site = &agent->site;
    const struct config *config = &site->config;
    const struct link_config link = {site->config.url, site->config.token_file, site->config.cacert};
    autofree char *payloads = xprintf("%s/payloads", site->config.state);
    autofree char *warm_folder = xprintf("%s/warm", site->config.state);
    if (!open_folders(agent, err) || !open_devices(site, err) || !lock_gpus(&site->devices, err)) {
        return false;
    }
    label_memory(site);
    cgroup_find(site->config.unique, &site->cgroups);
    cgroup_limit(&site->cgroups, site->config.unique, config->max_processes, (int64_t)site->devices.count);
    find_address(site);
    site->loop = loop_create();
    site->link = link_create(&link, site->loop, err);
    site->shims =
        site->link != NULL ? shims_create(agent->shim_log, !config->host_memory, site->loop, err) : NULL;
    site->payloads = site->shims != NULL ? payloads_create(payloads, site->link, err) : NULL;
    if (site->payloads == NULL) {
        return false;
    }
    site->children = children_create(site->loop);
    if (!open_environments(site, err)) {
        return false;
    }
    const struct warm_config warm = {.folder = warm_folder,
                                     .imports = config->preload,
                                     .limit_bytes = config->warm_mib * MIB,
                                     .shim_log = agent->shim_log};
    site->warm = warm_create(&warm, site->shims, site->children, site->loop, err);
    if (site->warm == NULL) {
        return false;
    }
    site->uploads = uploads_create(site->link);
    site->outputs = outputs_create(site->config.name, site->link, site->loop, site->folder_pool);
    return (site->journal = journal_open(site->config.state, err)) != NULL;
}

static void close_parts(struct agent *agent)
{
    struct site *site = &agent->site;
    node_destroy(agent->node);
    devices_close(&site->devices); /* it watches, with the loop */
    journal_close(site->journal);
    outputs_destroy(site->outputs);
    uploads_destroy(site->uploads);
    builder_destroy(site->builder);
    environments_destroy(site->environments);
    warm_destroy(site->warm);
    children_destroy(site->children);
    payloads_destroy(site->payloads);
    shims_destroy(site->shims);
    link_destroy(site->link);
    loop_destroy(site->loop);
    folder_pool_destroy(site->folder_pool);
    free(site->runner);
    trash_destroy(site->trash);
    seen_close(site->seen);
    cgroup_finish(&site->cgroups);
    cleanup_close(&agent->shim_log);
    cleanup_close(&agent->lock);
}

/* --- the process ---------------------------------------------------------------------------------------- */

static void signal_ready(void *closure, uint32_t events)
{
    struct agent *agent = closure;
    struct signalfd_siginfo info;
    while (read(agent->signals.fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            log_info("agent ends", "signal=%s", strsignal((int)info.ssi_signo));
            loop_end(agent->site.loop);
        }
    }
    children_reap(agent->site.children); /* and shims, whose end is seen elsewhere */
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
    loop_watch(agent->site.loop, &agent->signals);
}

static bool idle(void *closure)
{
    struct site *site = closure;
    if (clock_boot_ms() < site->hurry_ms) {
        return false; /* the next event brings it here again */
    }
    return payloads_step(site->payloads) || uploads_step(site->uploads) || shims_refill(site->shims) ||
           folder_pool_refill(site->folder_pool) || trash_step(site->trash) ||
           environments_step(site->environments) || warm_step(site->warm);
}

static void told_to_end(void *closure)
{
    struct agent *agent = closure;
    log_info("agent ends", "told_by=controller");
    loop_end(agent->site.loop);
}

/* For the agent alone: what it starts gets the limit that was there before; program.c. */
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
    const struct site *site = &agent->site;
    log_info("agent starts", "name=%s devices=%zu type=%s isolation=%s address=%s state=%s",
             site->config.name, site->devices.count, site->devices.items[0].type,
             isolation_text(site->cgroups.isolation), site->address, site->config.state);
    node_start(agent->node);
    notify_ready();
    loop_run(site->loop);
}

static bool run(struct agent *agent, struct err *err)
{
    struct site *site = &agent->site;
    raise_limits();
    watch_signals(agent);
    loop_set_idle(site->loop, idle, site);
    agent->node = node_create(site, told_to_end, agent, err);
    if (agent->node != NULL) {
        work(agent);
    }
    loop_unwatch(site->loop, &agent->signals);
    close(agent->signals.fd);
    return agent->node != NULL;
}

/* A JSON array, one device a line. */
static bool list_devices(struct site *site, struct err *err)
{
    if (!open_devices(site, err)) {
        return false;
    }
    autotext struct text list = {0};
    for (size_t i = 0; i < site->devices.count; i++) {
        const struct device *device = &site->devices.items[i];
        text_printf(&list, "%s{\"index\": %lld, \"uuid\": ", i == 0 ? "[" : ",\n ", (long long)device->index);
        text_json_string(&list, device->uuid, strlen(device->uuid));
        text_append(&list, ", \"type\": ");
        text_json_string(&list, device->type, strlen(device->type));
        text_printf(&list, ", \"memory_bytes\": %lld", (long long)device->memory_bytes);
        if (device->group >= 0) {
            text_printf(&list, ", \"group\": %lld", (long long)device->group);
        }
        if (!site->devices.slots && site->devices.sights[i].state != DEVICE_EMPTY) {
            const char *reason = site->devices.sights[i].reason;
            text_append(&list, ", \"unavailable\": ");
            text_json_string(&list, reason, strlen(reason));
        }
        text_append(&list, "}");
    }
    printf("%s]\n", list.bytes);
    devices_close(&site->devices);
    return true;
}

static int fail(const struct err *err)
{
    log_failure("gpuagent", err);
    return err_exit(err->code);
}

/* For those who join: is there anything to offer? */
static bool look(struct config *config, struct err *err)
{
    struct site site = {.config = *config};
    bool found = open_devices(&site, err);
    if (found) {
        devices_close(&site.devices);
    }
    return found;
}

int main(int argc, char **argv)
{
#ifdef WITH_NVML
    if (devices_helper_is_meant(argc, argv)) {
        return devices_helper_run(argv);
    }
#endif
    struct agent agent = {.lock = -1, .shim_log = -1};
    struct err err = {0};
    bool done;
    json_begin();
    if (argc > 1 && strcmp(argv[1], "join") == 0) {
        return join_run(argc - 1, argv + 1, look, &err) ? 0 : fail(&err);
    }
    if (!config_read(argc, argv, &agent.site.config, &done, &err)) {
        return fail(&err);
    }
    if (done) {
        return 0;
    }
    if (agent.site.config.list_devices) {
        bool listed = list_devices(&agent.site, &err);
        config_finish(&agent.site.config);
        return listed ? 0 : fail(&err);
    }
    bool ran = open_parts(&agent, &err) && run(&agent, &err);
    close_parts(&agent);
    config_finish(&agent.site.config);
    return ran ? 0 : fail(&err);
}
