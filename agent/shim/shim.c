/* SPDX-License-Identifier: Apache-2.0 */
/* gpushim, the supervisor of an attempt on one node, and then of another: its process, its event loop and its
 * clock. The shim detaches itself from its agent, so that a restart of the agent does not disturb it: it has
 * its own session, ignores signals, and inherits nothing but stdio and the control socket. The loop hands
 * each event to the file that handles it. This file keeps no state of the attempt; the protocol is in
 * agent/shim/shimwire.h. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/common/checkpoint_folder.h"
#include "agent/common/process_table.h"
#include "agent/common/system_calls.h"
#include "proto/base/cleanup.h"

#define EVENTS_A_TURN 64

void shim_log_error(const char *format, ...)
{
    char text[2 * LIMIT_SHIM_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "warning shim pid=%d %s\n", (int)getpid(), text);
}

bool why_set(struct why *why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    for (char *at = why->text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            *at = '?'; /* the text becomes a line of the exit record */
        }
    }
    return false;
}

void shim_note(struct shim *shim, enum moment moment)
{
    if (shim->moments[moment] == 0) {
        shim->moments[moment] = clock_boot_us();
    }
}

bool shim_watch(struct shim *shim, int fd, enum watch watch, size_t index)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)watch << 32 | index};
    return epoll_ctl(shim->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Restores the default for signals that the agent ignored, so that ranks start with the defaults. Ignores the
 * signals that would end the shim, or gives them an effect only when init sends them. */
static bool signals_init(struct shim *shim)
{
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
            signal(number, SIG_DFL);
        }
    }
    for (size_t i = 0; i < SHIM_IGNORED_COUNT; i++) {
        signal(shim_ignored[i], SIG_IGN);
    }
    signal(SIGTERM, SIG_DFL); /* blocked, and read from the signalfd together with SIGCHLD */
    sigset_t heard;
    sigemptyset(&heard);
    sigaddset(&heard, SIGCHLD);
    sigaddset(&heard, SIGTERM);
    if (sigprocmask(SIG_SETMASK, &heard, NULL) != 0) {
        return false;
    }
    shim->signals = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    return shim->signals >= 0 && shim_watch(shim, shim->signals, WATCH_SIGNAL, 0);
}

static bool socket_take(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/* Descriptors 0 to 2 are stdio, 3 is the control socket, 4 is the socket of warm workers if there are any;
 * all others are closed. The limit is raised to the hard one, for the pipes and files of many ranks. */
static bool descriptors_init(struct shim *shim, bool warm)
{
    if (!socket_take(SHIM_CONTROL_FD) || (warm && !socket_take(SHIM_WARM_FD))) {
        return false;
    }
    close_range((warm ? SHIM_WARM_FD : SHIM_CONTROL_FD) + 1, UINT_MAX, 0);
    do {
        shim->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (shim->null >= 0 && shim->null <= STDERR_FILENO);
    if (shim->null < 0 || dup2(shim->null, STDIN_FILENO) < 0) {
        return false;
    }
    if (getrlimit(RLIMIT_NOFILE, &shim->files) != 0) {
        return false;
    }
    struct rlimit raised = {.rlim_cur = shim->files.rlim_max, .rlim_max = shim->files.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &raised) == 0;
}

static bool process_init(struct shim *shim, bool warm)
{
    if (!descriptors_init(shim, warm)) {
        shim_log_error("is started by gpuagent, with a socket as descriptor %d", SHIM_CONTROL_FD);
        return false;
    }
    setsid(); /* fails where the agent has done it already */
    oom_protect(shim);
    shim->epoll = epoll_create1(EPOLL_CLOEXEC);
    shim->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    shim->agent_socket.fd = SHIM_CONTROL_FD;
    struct process self;
    if (shim->epoll < 0 || shim->timer < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
        !process_read("/proc", "self", &self) || !signals_init(shim) ||
        !shim_watch(shim, shim->timer, WATCH_TIMER, 0) ||
        !shim_watch(shim, shim->agent_socket.fd, WATCH_AGENT_SOCKET, 0)) {
        shim_log_error("cannot set itself up: %s", strerror(errno));
        return false;
    }
    shim->started_ticks = self.started_ticks;
    return true;
}

/* A TERM from init means that the node shuts down. The shim ignores a TERM from anyone else: only the agent
 * may stop an attempt. */
static void signals_read(struct shim *shim)
{
    struct signalfd_siginfo info[8];
    ssize_t length;
    while ((length = read(shim->signals, info, sizeof info)) > 0) {
        for (size_t i = 0; i < (size_t)length / sizeof info[0]; i++) {
            if (info[i].ssi_signo == SIGTERM && info[i].ssi_pid == 1) {
                attempt_node_ends(shim);
            }
        }
    }
    attempt_children(shim);
}

static void timer_fired(struct shim *shim)
{
    uint64_t times;
    ssize_t got = read(shim->timer, &times, sizeof times);
    (void)got; /* nothing to read: the timer was set anew meanwhile */
    shim->timer_ms = SHIM_NEVER;
    attempt_clock(shim, clock_boot_ms());
}

static void event_work(struct shim *shim, uint64_t data)
{
    switch ((enum watch)(data >> 32)) {
    case WATCH_SIGNAL:
        signals_read(shim);
        break;
    case WATCH_TIMER:
        timer_fired(shim);
        break;
    case WATCH_AGENT_SOCKET:
        agent_socket_receive(shim);
        break;
    case WATCH_LISTENER:
        agent_socket_accept(shim);
        break;
    case WATCH_METRICS:
        attempt_heard(shim);
        break;
    case WATCH_WARM:
        warm_hear(shim);
        break;
    case WATCH_COMMAND:
        command_hear(shim, (size_t)(data & UINT32_MAX));
        break;
    case WATCH_STREAM:
        output_move(shim, (size_t)(data & UINT32_MAX));
        break;
    }
}

static void timer_arm(struct shim *shim)
{
    int64_t due_ms = attempt_due_ms(shim);
    if (due_ms == shim->timer_ms) {
        return;
    }
    struct itimerspec when = {0};
    if (due_ms != SHIM_NEVER) {
        int64_t at_ms = due_ms > 0 ? due_ms : 1; /* 0 would disarm */
        when.it_value.tv_sec = at_ms / 1000;
        when.it_value.tv_nsec = at_ms % 1000 * 1000000;
    }
    timerfd_settime(shim->timer, TFD_TIMER_ABSTIME, &when, NULL);
    shim->timer_ms = due_ms;
}

static void shim_loop(struct shim *shim)
{
    while (!shim->ended) {
        struct epoll_event events[EVENTS_A_TURN];
        int count = epoll_wait(shim->epoll, events, EVENTS_A_TURN, -1);
        for (int i = 0; i < count && !shim->ended; i++) {
            event_work(shim, events[i].data.u64);
        }
        agent_socket_tell_output(shim);
        timer_arm(shim);
    }
}

static const struct shim unassigned = {
    .epoll = -1,
    .signals = -1,
    .timer = -1,
    .null = -1,
    .timer_ms = SHIM_NEVER,
    .oom = {.file = -1},
    .home_folder = -1,
    .agent_socket = {.fd = -1, .listener = -1, .given = -1},
    .port = {.lock = -1, .socket = -1},
    .metrics = {.socket = -1, .file = {.pipe = -1, .file = -1, .tail = -1}},
    .warm = {.source = -1, .cgroup = -1, .breeder = -1},
    .shared = {.host = -1, .mounts = -1, .own_mounts = -1},
    .container = {.said = -1, .users = -1, .mounts = -1},
    .cgroup = -1,
    .deaths = -1,
    .record = -1,
    .lease_term_ms = SHIM_NEVER,
    .lease_kill_ms = SHIM_NEVER,
    .again_ms = SHIM_NEVER};

static void shim_finish(struct shim *shim)
{
    output_close(shim);
    warm_end(shim);
    port_release(&shim->port);
    agent_socket_finish(&shim->agent_socket);
    secrets_forget(shim);
    launch_finish(&shim->launch);
    free(shim->ranks);
    commands_finish(shim);
    container_close(shim);
    for (size_t i = 0; shim->added != NULL && shim->added[i] != NULL; i++) {
        free(shim->added[i]);
    }
    free(shim->added);
    cleanup_close(&shim->deaths);
    cleanup_close(&shim->record);
    cleanup_close(&shim->home_folder);
    for (size_t i = 0; i < shim->hold_count; i++) {
        cleanup_close(&shim->holds[i]);
    }
}

void shim_renew(struct shim *shim)
{
    struct shim next = unassigned;
    next.epoll = shim->epoll;
    next.signals = shim->signals;
    next.timer = shim->timer;
    next.null = shim->null;
    next.started_ticks = shim->started_ticks;
    next.timer_ms = shim->timer_ms;
    next.files = shim->files;
    next.oom = shim->oom;
    next.shared = shim->shared;
    next.home = shim->home;
    next.agent_socket.fd = give_fd(&shim->agent_socket.fd);
    next.deaths = give_fd(&shim->deaths);
    shim_finish(shim);
    *shim = next;
}

/* For programs of the agent. The words are CGROUP, SECCOMP, and those of the program. */
static int confine(char **words)
{
    if (strcmp(words[0], "-") != 0) {
        autoclose int folder = open(words[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        autoclose int file = openat(folder, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (file < 0 || write(file, "0", 1) != 1) {
            shim_log_error("cannot enter cgroup %s: %s", words[0], strerror(errno));
            return 2;
        }
    }
    if (strcmp(words[1], "1") == 0 && !system_calls_limit()) {
        shim_log_error("cannot refuse system calls: %s", strerror(errno));
        return 2;
    }
    execvp(words[2], words + 2);
    shim_log_error("cannot execute %s: %s", words[2], strerror(errno));
    return 2;
}

/* For a program of the agent's that makes a folder on a volume. The words are those of the function. */
static int make_checkpoint_folder(char **words)
{
    struct err err;
    alarm(CHECKPOINT_FOLDER_S); /* its end is that of a wait for a file server, too */
    if (!checkpoint_folder_make(words[0], words[1], words[2], &err)) {
        dprintf(STDERR_FILENO, "%s\n", err.text);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], SHIM_CHECKPOINT) == 0) {
        return make_checkpoint_folder(argv + 2);
    }
    if (argc > 4 && strcmp(argv[1], SHIM_CONFINE) == 0) {
        return confine(argv + 2);
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("gpushim " GPUCTL_VERSION);
        return 0;
    }
    struct shim shim = unassigned;
    bool own = false, warm = false;
    int known = 1;
    for (int i = 1; i < argc; i++) {
        own = own || strcmp(argv[i], SHIM_OWN_MEMORY) == 0;
        warm = warm || strcmp(argv[i], SHIM_WARM) == 0;
        if (strcmp(argv[i], SHIM_HOME) == 0 && i + 1 < argc) {
            shim.home = argv[++i];
            known += 2;
        }
    }
    if (argc != known + own + warm || !process_init(&shim, warm)) {
        return 2;
    }
    if (own) {
        shared_enter(&shim.shared);
    }
    if (warm) {
        warm_begin(&shim);
    }
    attempt_expect(&shim);
    shim_loop(&shim);
    attempt_expect_none(&shim);
    warm_abandon(&shim);
    shim_finish(&shim);
    return shim.exit_code;
}
