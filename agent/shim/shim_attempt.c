/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the attempt: how the agent's orders, the ends of processes and the clock change it in each
 * phase, and why it ended. The first cause stays: a rank that fails after a stop was killed by the stop, and
 * a stop that comes after a rank failed finds the attempt ending already. Nothing starts after the lease has
 * ended. The shim reports `exited` only after all processes are gone and the exit record is written. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define PID_FILE_NEW "shim.pid.new"
#define PID_ROOM     12 /* " -2147483648" */
#define ADDED_MAX    (8 + LAUNCH_PATTERNS + 1)

/* "PID STARTTIME" identifies this process uniquely within this boot. */
static bool pid_write(const struct shim *shim, struct why *why)
{
    autoclose int out = open(PID_FILE_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = out >= 0 && dprintf(out, "%d %lld\n", (int)getpid(), (long long)shim->started_ticks) > 0;
    bool taken = written && link(PID_FILE_NEW, SHIM_PID_FILE) == 0; /* fails if another shim has the folder */
    bool done = taken || why_set(why, "%s: %s", SHIM_PID_FILE, strerror(errno));
    unlink(PID_FILE_NEW);
    return done;
}

/* Releases the resources of the attempt. */
static void attempt_release(struct shim *shim)
{
    struct why ignored;
    warm_end(shim);
    container_close(shim);
    output_finish(shim);
    metrics_finish(shim);
    port_release(&shim->port);
    secrets_remove(shim);
    secrets_forget(shim);
    if (cgroup_open(shim, &ignored)) {
        cgroup_vacate(shim);
    }
}

static void attempt_decline(struct shim *shim, const char *text)
{
    attempt_release(shim);
    record_cancel(shim);
    shim->phase = PHASE_DECLINED;
    shim->again_ms = clock_boot_ms() + SHIM_RETIRE_MS;
    agent_socket_say(shim, FACT_DECLINED, "declined %s", text);
}

/* Locks the environment and the inputs that the ranks use, so that they stay in place. */
static bool hold(struct shim *shim, struct why *why)
{
    for (size_t i = 0; i < shim->launch.hold_count; i++) {
        const char *path = shim->launch.holds[i];
        int lock = shim->holds[shim->hold_count++] = open(path, O_RDONLY | O_CLOEXEC);
        if (lock < 0 || flock(lock, LOCK_SH | LOCK_NB) != 0) {
            return why_set(why, "an environment, an image or an input is gone: %s: %s", path,
                           strerror(errno));
        }
    }
    return true;
}

static bool launch_take(struct shim *shim, const char *folder, struct why *why)
{
    if (!launch_read(&shim->launch, shim->agent_socket.given, why)) {
        return false;
    }
    secrets_take(shim);
    shim->failed = shim->launch.rank_count;
    shim->ranks = xalloc(shim->launch.rank_count * sizeof *shim->ranks);
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        shim->ranks[i] =
            (struct rank){.pidfd = -1,
                          .ends = {-1, -1},
                          .report = -1,
                          .streams = {{.state = STREAM_ENDED, .pipe = -1, .file = -1, .tail = -1},
                                      {.state = STREAM_ENDED, .pipe = -1, .file = -1, .tail = -1}}};
    }
    const char *slash = strrchr(folder, '/');
    const char *name = slash != NULL ? slash + 1 : folder;
    return (strcmp(name, shim->launch.attempt_id) == 0 ||
            why_set(why, "launch file: epoch %.32s in the folder of %.32s", shim->launch.attempt_id, name)) &&
           hold(shim, why);
}

/* The launch file existed when the agent assigned the folder. If it is gone, the attempt is over and was
 * forgotten. */
static bool folder_enter(const char *folder, struct why *why)
{
    return (chdir(folder) == 0 || why_set(why, "%s: %s", folder, strerror(errno))) &&
           (access(SHIM_LAUNCH_FILE, F_OK) == 0 || why_set(why, "%s: %s", SHIM_LAUNCH_FILE, strerror(errno)));
}

static bool identify(struct shim *shim, struct why *why)
{
    if (!agent_socket_listen(shim, why)) {
        return false;
    }
    bool done = pid_write(shim, why);
    if (!done) {
        unlink(SHIM_SOCKET_FILE);
    }
    return done;
}

static void empty_home(const struct shim *shim)
{
    unlinkat(shim->home_folder, SHIM_PID_FILE, 0);
    unlinkat(shim->home_folder, SHIM_SOCKET_FILE, 0);
}

/* What a start would wait for otherwise. Without it the shim does the same when it has the attempt. */
void attempt_expect(struct shim *shim)
{
    struct why why;
    if (shim->home == NULL) {
        return;
    }
    cleanup_close(&shim->home_folder);
    cleanup_close(&shim->agent_socket.listener);
    shim->home_folder = open(shim->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    empty_home(shim); /* of its last attempt */
    if (fchdir(shim->home_folder) != 0 || !identify(shim, &why)) {
        cleanup_close(&shim->home_folder);
        cleanup_close(&shim->agent_socket.listener);
    }
}

void attempt_expect_none(struct shim *shim)
{
    if (shim->home_folder >= 0) {
        empty_home(shim);
        rmdir(shim->home);
    }
}

/* Fails, like the other way, if another shim has the folder. */
static bool link_here(const struct shim *shim, const char *name, struct why *why)
{
    return linkat(shim->home_folder, name, AT_FDCWD, name, 0) == 0 ||
           why_set(why, "%s: %s", name, strerror(errno));
}

static bool identify_here(struct shim *shim, struct why *why)
{
    if (shim->home_folder < 0) {
        return identify(shim, why);
    }
    if (!link_here(shim, SHIM_SOCKET_FILE, why)) {
        return false;
    }
    bool done = link_here(shim, SHIM_PID_FILE, why);
    if (!done) {
        unlink(SHIM_SOCKET_FILE);
    }
    return done;
}

/* Workers stay in the namespaces in which they were forked. Those of another user must not see more of the
 * host than its ranks. */
static void mounts_renew(struct shim *shim)
{
    unsigned before = shim->shared.entered;
    shared_renew(&shim->shared);
    if (shim->shared.entered == before) {
        return;
    }
    attempt_expect(shim); /* no link leads from the mounts of before to the folder of the attempt */
    if (shim->warm.bred) {
        warm_end(shim);
        why_set(&shim->warm.said, "cold the node has mounted something since");
    }
}

void attempt_assign(struct shim *shim, const char *folder)
{
    struct why why;
    mounts_renew(shim);
    if (!folder_enter(folder, &why) || !identify_here(shim, &why)) {
        shim_log_error("cannot take an attempt: %s", why.text);
        shim->exit_code = 1;
        shim->ended = true;
        return;
    }
    shim->phase = PHASE_ASSIGNED;
    if (!launch_take(shim, folder, &why)) {
        attempt_decline(shim, why.text);
    }
}

static bool attempt_port(struct shim *shim, struct why *why)
{
    const struct launch *launch = &shim->launch;
    bool listens = launch->store_rank >= 0;
    return launch->port_first == 0 ||
           port_hold(&shim->port, (int)launch->port_first, (int)launch->port_last, listens, why);
}

/* false: the attempt was declined, or waits for its container. */
static bool attempt_ready(struct shim *shim)
{
    struct why why;
    if (shim->lease_term_ms <= clock_boot_ms()) {
        attempt_decline(shim, "the lease ended before the start");
        return false;
    }
    if (shim->phase == PHASE_PREPARED || shim->container.state != CONTAINER_NONE) {
        return shim->phase == PHASE_PREPARED;
    }
    if (!attempt_port(shim, &why) || !cgroup_open(shim, &why) || !metrics_open(shim, &why) ||
        !record_reserve(shim, &why) || !output_open(shim, &why) || !secrets_store(shim, &why) ||
        !shared_shut(&shim->shared, shim->launch.tmp, &why) ||
        !shared_mount(&shim->shared, &shim->launch, &why)) {
        attempt_decline(shim, why.text);
        return false;
    }
    if (shim->launch.image != NULL) {
        if (!container_make(shim, &why)) {
            attempt_decline(shim, why.text);
        }
        return false;
    }
    shim->phase = PHASE_PREPARED;
    return true;
}

void attempt_prepare(struct shim *shim)
{
    if (attempt_ready(shim)) {
        shim_note(shim, MOMENT_PREPARED);
        agent_socket_say(shim, FACT_PREPARED, "prepared %d", shim->port.number);
    }
}

static void cause_set(struct shim *shim, const char *cause, const char *text)
{
    if (shim->cause[0] == '\0') {
        snprintf(shim->cause, sizeof shim->cause, "%s", cause);
        snprintf(shim->cause_text.text, sizeof shim->cause_text.text, "%s", text);
    }
}

/* A rank failed by itself: ends all other ranks of the gang. */
static void attempt_fail(struct shim *shim, size_t index, int code, int signal, const char *cause,
                         const char *text)
{
    cause_set(shim, cause, text);
    shim->failed = index;
    output_drain(shim, index); /* its last lines often say why */
    agent_socket_say(shim, FACT_FAILED, "failed %d %d %d %lld %s %s", shim->launch.ranks[index].number, code,
                     signal, (long long)clock_wall_ms(), cause, text);
    kill_begin(shim, shim->launch.failed_grace_ms);
}

/* Starts the ranks. Returns the first one that could not be started, or rank_count; after a failure it starts
 * only the ranks that warm workers have already. */
static size_t ranks_try(struct shim *shim, char *const *added, int *ret_code, struct why *ret_why)
{
    size_t failed = shim->launch.rank_count;
    ranks_offer(shim, added);
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        struct why why;
        int code;
        if (failed < i && !rank_is_offered(shim, i)) {
            continue;
        }
        if (rank_start(shim, i, added, &code, &why)) {
            shim->phase = PHASE_RUNNING;
        } else if (failed > i) {
            failed = i;
            *ret_code = code;
            *ret_why = why;
        }
    }
    warm_end(shim);
    return failed;
}

/* The agent measures ranks one by one where there are several. */
static void say_pids(struct shim *shim)
{
    char text[LIMIT_SAMPLE_RANKS * PID_ROOM + 1];
    size_t count =
        shim->launch.rank_count < LIMIT_SAMPLE_RANKS ? shim->launch.rank_count : LIMIT_SAMPLE_RANKS;
    int length = 0;
    for (size_t i = 0; i < count; i++) {
        length += snprintf(&text[length], sizeof text - (size_t)length, " %d", (int)shim->ranks[i].pid);
    }
    if (count > 1) {
        agent_socket_say(shim, FACT_PIDS, "pids%s", text);
    }
}

static void ranks_start(struct shim *shim, char *const *added)
{
    struct why why;
    int code = 0;
    size_t failed = ranks_try(shim, added, &code, &why);
    memory_begin(shim);
    if (failed == shim->launch.rank_count) {
        const char *said = shim->warm.said.text;
        shim_note(shim, MOMENT_RUNNING);
        agent_socket_say(shim, FACT_RUNNING, "running %lld %d%s%s", (long long)clock_wall_ms(),
                         shim->port.number, said[0] != '\0' ? " " : "", said);
        say_pids(shim);
    } else if (shim->phase != PHASE_RUNNING && code == 0) {
        attempt_decline(shim, why.text);
    } else {
        shim->phase = PHASE_RUNNING;
        attempt_fail(shim, failed, code != 0 ? code : 126, 0, code != 0 ? "EXEC_FAILED" : "DECLINED",
                     why.text);
    }
}

static void added_put(char **added, size_t *count, const char *start, const char *value)
{
    if (strcmp(value, "-") != 0) {
        added[(*count)++] = xprintf("%s%s", start, value);
    }
}

/* JAX takes both in one variable, an IPv6 address in brackets. Rank 0 binds the port as torch would. */
static void added_put_coordinator(char **added, size_t *count, const char *address, const char *port)
{
    if (strcmp(address, "-") != 0 && strcmp(port, "-") != 0) {
        autofree char *both = xprintf(strchr(address, ':') != NULL ? "[%s]:%s" : "%s:%s", address, port);
        added_put(added, count, "JAX_COORDINATOR_ADDRESS=", both);
    }
}

static void attempt_begin(struct shim *shim, const char *address, const char *port, const char *interface)
{
    char **added = shim->added = xzalloc((ADDED_MAX + 1) * sizeof *added);
    size_t count = 0;
    autofree char *master = strcmp(address, "-") != 0 ? xprintf("%s:%s", address, port) : xstrdup("-");
    added_put(added, &count, "GPUCTL_MASTER=", master); /* for gpuctl_watch.py */
    added_put(added, &count, "MASTER_ADDR=", address);
    added_put(added, &count, "MASTER_PORT=", port);
    added_put_coordinator(added, &count, address, port);
    if (shim->launch.torchrun != 0) {
        added_put(added, &count, "PET_MASTER_ADDR=", address);
        added_put(added, &count, "PET_MASTER_PORT=", port);
    }
    added_put(added, &count, "GLOO_SOCKET_IFNAME=", interface);
    added_put(added, &count, "NCCL_SOCKET_IFNAME==",
              interface); /* the second "=" is part of the value: NCCL matches the exact name */
    addresses_put(&shim->launch, address, port, added, &count);
    ranks_start(shim, added);
}

void attempt_start(struct shim *shim, const char *address, const char *port, const char *interface)
{
    shim_note(shim, MOMENT_BEGUN);
    if (attempt_ready(shim)) {
        attempt_begin(shim, address, port, interface);
    }
}

/* Also after a prepare that waits already. */
static void wait_to_run(struct shim *shim, const char *address, const char *interface)
{
    struct container *container = &shim->container;
    if (container->state == CONTAINER_MAKING && !container->run) {
        container->run = true;
        container->address = xstrdup(address);
        container->interface = xstrdup(interface);
    }
}

void attempt_run(struct shim *shim, const char *address, const char *interface)
{
    char port[16] = "-";
    shim_note(shim, MOMENT_BEGUN);
    if (!attempt_ready(shim)) {
        wait_to_run(shim, address, interface);
        return;
    }
    if (shim->port.number != 0) {
        snprintf(port, sizeof port, "%d", shim->port.number);
    }
    attempt_begin(shim, address, port, interface);
}

void attempt_container(struct shim *shim, pid_t pid, int status)
{
    struct container *container = &shim->container;
    struct why why;
    bool made;
    if (!container_ended(shim, pid, status, &made, &why) || shim->phase != PHASE_ASSIGNED) {
        return;
    }
    if (!made) {
        attempt_decline(shim, why.text);
        return;
    }
    shim->phase = PHASE_PREPARED;
    if (container->run) {
        attempt_run(shim, container->address, container->interface);
    } else {
        attempt_prepare(shim);
    }
}

static void attempt_record(struct shim *shim)
{
    struct why why;
    if (!record_write(shim, &why)) {
        shim_log_error("%s", why.text);
        shim->again_ms = clock_boot_ms() + SHIM_RECORD_RETRY_MS;
        return;
    }
    shim->phase = PHASE_EXITED;
    shim->again_ms = clock_boot_ms() + (shim->node_ends ? 0 : SHIM_RECORD_SYNC_MS);
    agent_socket_tell_output(shim);
    agent_socket_say(shim, FACT_EXITED, "exited");
    shared_release(&shim->shared);
}

/* The controller has not acknowledged the exit yet, or it is away. */
static void attempt_sync(struct shim *shim)
{
    struct why why;
    if ((shim->record < 0 && !record_write(shim, &why)) || !record_sync(shim, &why)) {
        shim_log_error("%s", why.text);
        shim->again_ms = clock_boot_ms() + SHIM_RECORD_RETRY_MS;
        return;
    }
    shim->phase = PHASE_SYNCED;
    shim->again_ms = clock_boot_ms() + (shim->node_ends ? 0 : SHIM_RETIRE_MS);
}

static void attempt_gone(struct shim *shim)
{
    shim_note(shim, MOMENT_GONE);
    attempt_release(shim);
    shim->phase = PHASE_RECORDING;
    attempt_record(shim);
}

void attempt_warn(struct shim *shim, int signal)
{
    if (!shim->warned && shim->ladder == LADDER_NONE) {
        shim->warned = true;
        kill_warn(shim, signal);
    }
}

/* What people have started beside the ranks is all that is left. */
static void look_end(struct shim *shim)
{
    shim->phase = PHASE_RUNNING;
    kill_now(shim);
    attempt_children(shim);
}

/* A rank of the gang failed on another node. Also after this node's own failure, which has begun the same. */
void attempt_keep(struct shim *shim, int64_t grace_ms)
{
    if (shim->ladder == LADDER_NONE) {
        cause_set(shim, "RANK_FAILED", "");
        shim->keeps = true;
        kill_begin(shim, grace_ms);
    }
}

void attempt_stop(struct shim *shim, int64_t grace_ms, const char *cause)
{
    int signal = shim->pre_stop_signal;
    shim->pre_stop_signal = 0;
    shim->keeps = false;
    cause_set(shim, cause, "");
    if (shim->phase == PHASE_KEPT) {
        look_end(shim);
    } else if (shim->phase != PHASE_RUNNING) {
        attempt_gone(shim);
    } else if (signal != 0) {
        kill_softly(shim, grace_ms, signal);
    } else {
        kill_begin(shim, grace_ms);
    }
}

/* Init sends the ranks a TERM of its own at the same time, so their exits say nothing about the program. Once
 * the record is on disk the shim ends, too: a shutdown waits for every process. */
void attempt_node_ends(struct shim *shim)
{
    shim->node_ends = true;
    if (shim->phase == PHASE_EXITED || shim->phase == PHASE_SYNCED) {
        shim->again_ms = clock_boot_ms();
    } else if (shim->phase == PHASE_KEPT) {
        shim->keeps = false;
        look_end(shim);
    } else if (shim->phase == PHASE_RUNNING && shim->ladder == LADDER_NONE) {
        cause_set(shim, "NODE_LOST", "the node was shut down");
        kill_begin(shim, shim->launch.failed_grace_ms);
    }
}

/* The pid file goes before the shim says that it is idle: an agent that finds the folder must not take the
 * shim of the next attempt for that of this one. */
static bool folder_leave(void)
{
    return (unlink(SHIM_PID_FILE) == 0 || errno == ENOENT) && chdir("/") == 0;
}

/* No process of the attempt is left, and the controller has its end. */
void attempt_reuse(struct shim *shim)
{
    bool serves = shim->phase != PHASE_DECLINED && !shim->node_ends;
    agent_socket_forget(shim);
    if (serves && folder_leave() && shared_renew(&shim->shared)) {
        shim_renew(shim);
        attempt_expect(shim);
        agent_socket_mention(shim, "idle");
    }
}

/* Ranks that have saved their work need no more time. */
static void unsaved_wait(struct shim *shim)
{
    if (shim->phase == PHASE_RUNNING && checkpoint_by_all(shim)) {
        kill_hurry(shim);
    }
}

void attempt_heard(struct shim *shim)
{
    metrics_receive(shim);
    unsaved_wait(shim);
}

static void rank_blame(struct shim *shim, size_t index)
{
    const struct rank *rank = &shim->ranks[index];
    struct why how;
    int number = shim->launch.ranks[index].number;
    bool memory = memory_ran_out(shim, rank);
    bool heard = number == 0 && !memory && port_is_heard(&shim->port);
    char most[96];
    const char *end = memory                    ? memory_say(shim, most, sizeof most)
                      : processes_ran_out(shim) ? SHIM_PROCESSES_OUT
                      : heard                   ? SHIM_PORT_HEARD
                                                : "";
    if (rank->signal != 0) {
        why_set(&how, "rank %d was killed by signal %d (%s)%s", number, rank->signal, strsignal(rank->signal),
                end);
    } else {
        why_set(&how, "rank %d exited with code %d%s", number, rank->code, end);
    }
    shim->keeps = shim->launch.keep != 0 && !shim->node_ends;
    attempt_fail(shim, index, rank->code, rank->signal, memory ? "OUT_OF_MEMORY" : "RANK_FAILED", how.text);
}

/* Commands may be started again. */
static void look_begin(struct shim *shim)
{
    shim->phase = PHASE_KEPT;
    shim->ladder = LADDER_NONE;
    if (shim->lease_term_ms <= clock_boot_ms()) {
        shim->keeps = false;
        look_end(shim);
    }
}

/* The first rank that failed by itself, in the order of ends. */
static void failure_find(struct shim *shim)
{
    const struct rank *rank;
    for (size_t place = 1; shim->cause[0] == '\0' && (rank = reap_at(shim, place)) != NULL; place++) {
        if (!rank->by_us && rank->code != 0) {
            rank_blame(shim, (size_t)(rank - shim->ranks));
        }
    }
}

void attempt_children(struct shim *shim)
{
    bool children = reap_ended(shim);
    if (shim->phase != PHASE_RUNNING) {
        return;
    }
    failure_find(shim);
    if (rank_any_live(shim)) {
        unsaved_wait(shim);
        return;
    }
    cause_set(shim, "NONE", "");
    commands_kill(shim);
    if (children || (shim->keeps ? !cgroup_is_empty(shim) : !cgroup_vacate(shim))) {
        kill_leftovers(shim);
    } else if (shim->keeps) {
        look_begin(shim);
    } else {
        attempt_gone(shim);
    }
}

int64_t attempt_due_ms(const struct shim *shim)
{
    int64_t kill_ms = kill_due_ms(shim);
    switch (shim->phase) {
    case PHASE_IDLE:
        return SHIM_NEVER;
    case PHASE_ASSIGNED:
    case PHASE_PREPARED:
    case PHASE_KEPT:
        return shim->lease_term_ms;
    case PHASE_RUNNING:
        return shim->ladder == LADDER_NONE && shim->lease_term_ms < kill_ms ? shim->lease_term_ms : kill_ms;
    case PHASE_DECLINED:
    case PHASE_RECORDING:
    case PHASE_EXITED:
    case PHASE_SYNCED:
        return shim->again_ms;
    }
    return SHIM_NEVER;
}

static void running_clock(struct shim *shim, int64_t now_ms)
{
    if (shim->ladder == LADDER_NONE && shim->lease_term_ms <= now_ms) {
        cause_set(shim, "NODE_LOST", "the lease ended");
        kill_begin(shim, shim->lease_kill_ms > now_ms ? shim->lease_kill_ms - now_ms : 0);
    }
    kill_clock(shim, now_ms);
}

void attempt_clock(struct shim *shim, int64_t now_ms)
{
    if (now_ms < attempt_due_ms(shim)) {
        return;
    }
    switch (shim->phase) {
    case PHASE_IDLE:
        break;
    case PHASE_ASSIGNED:
    case PHASE_PREPARED:
        attempt_decline(shim, "the lease ended before the start");
        break;
    case PHASE_RUNNING:
        running_clock(shim, now_ms);
        break;
    case PHASE_KEPT:
        shim->keeps = false;
        look_end(shim);
        break;
    case PHASE_RECORDING:
        attempt_record(shim);
        break;
    case PHASE_EXITED:
        attempt_sync(shim);
        break;
    case PHASE_DECLINED:
    case PHASE_SYNCED:
        agent_socket_forget(shim);
        break;
    }
}
