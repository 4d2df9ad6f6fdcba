/* SPDX-License-Identifier: Apache-2.0 */
/* Starts shims, keeps idle ones, and finds those of an earlier agent again. A shim inherits nothing from the
 * agent but a socket and a log file for its errors, and it has a session of its own. The agent recognises a
 * shim by process number, start time and boot (run folders do not outlive a boot). attempt.c decides what to
 * tell a shim. */
#include "agent/launch/shims.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/output/rank_file.h"
#include "agent/base/program.h"
#include "agent/common/process_table.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define INFO_BYTES 1024

/* A shim that was told to leave its attempt: it says that it is idle, or closes the connection. */
struct leaver {
    struct shims *shims;
    struct shim_process shim;
    struct loop_watch watch;
    struct leaver *prev, *next;
};

struct shims {
    struct loop *loop;
    char *program, *homes;
    uint64_t started; /* shims, whose homes have their numbers */
    int shim_log, null;
    struct rlimit files; /* the limits before the agent raised them */
    bool own_memory;
    struct shim_process idle[LIMIT_KEPT_SHIMS];
    size_t idle_count;
    struct leaver *leavers;
    bool failing; /* the last start failed; the next try comes when a shim is needed */
};

/* Whether a child process may enter the namespaces of agent/shim/shim_shared.c. */
static bool may_own_memory(void)
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

struct shims *shims_create(int shim_log, bool own_memory, const char *homes, struct loop *loop,
                           struct err *err)
{
    if (!file_remove_tree(homes, err) || !file_make_directories(homes, 0700, err)) {
        return NULL;
    }
    char *program = file_find_program("gpushim", err);
    if (program == NULL) {
        return NULL;
    }
    struct shims *shims = xzalloc(sizeof *shims);
    shims->program = program;
    shims->homes = xstrdup(homes);
    shims->shim_log = shim_log;
    shims->files = program_limit();
    shims->own_memory = own_memory && may_own_memory();
    shims->loop = loop;
    shims->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return shims;
}

static void end_leaver(struct leaver *leaver)
{
    loop_unwatch(leaver->shims->loop, &leaver->watch);
    shim_process_close(&leaver->shim);
    DL_DELETE(leaver->shims->leavers, leaver);
    free(leaver);
}

void shims_destroy(struct shims *shims)
{
    if (shims == NULL) {
        return;
    }
    while (shims->idle_count > 0) {
        shim_process_close(&shims->idle[--shims->idle_count]);
    }
    while (shims->leavers != NULL) {
        end_leaver(shims->leavers);
    }
    close(shims->null);
    free(shims->program);
    free(shims->homes);
    free(shims);
}

const char *shims_program(const struct shims *shims)
{
    return shims->program;
}

const char *shims_confine_option(void)
{
    return SHIM_CONFINE;
}

bool shims_own_memory(const struct shims *shims)
{
    return shims->own_memory;
}

void shim_process_close(struct shim_process *shim)
{
    cleanup_close(&shim->fd);
    cleanup_close(&shim->pidfd);
    *shim = (struct shim_process){.fd = -1, .pidfd = -1};
}

void shim_process_kill(const struct shim_process *shim)
{
    if (shim->pidfd >= 0) {
        syscall(SYS_pidfd_send_signal, shim->pidfd, SIGKILL, NULL, 0);
    }
}

bool shim_process_tell(const struct shim_process *shim, const char *format, ...)
{
    char message[LIMIT_SHIM_MESSAGE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return shim->fd >= 0 && length < (int)sizeof message &&
           send(shim->fd, message, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) == length;
}

/* --- starting ------------------------------------------------------------------------------------------- */

static int spawn(struct shims *shims, int control, pid_t *ret_pid)
{
    autofree char *home = xprintf("%s/%llu", shims->homes, (unsigned long long)++shims->started);
    mkdir(home, 0700); /* a shim without it takes longer for its attempt */
    const int fds[][2] = {{shims->null, STDIN_FILENO},
                          {shims->null, STDOUT_FILENO},
                          {shims->shim_log, STDERR_FILENO},
                          {control, SHIM_CONTROL_FD}};
    const char *arguments[] = {shims->program, SHIM_HOME, home, shims->own_memory ? SHIM_OWN_MEMORY : NULL,
                               NULL};
    const struct program_call call = {.arguments = arguments,
                                      .variables = (const char *const *)(uintptr_t)environ,
                                      .fds = fds,
                                      .fd_count = sizeof fds / sizeof fds[0],
                                      .files = &shims->files};
    return program_start(&call, ret_pid);
}

static bool start(struct shims *shims, struct shim_process *ret_shim, struct err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        return err_errno(err, "cannot make a socket for gpushim");
    }
    autoclose int own = pair[0];
    autoclose int theirs = pair[1];
    pid_t pid;
    errno = spawn(shims, theirs, &pid);
    if (errno != 0) {
        return err_errno(err, "cannot start %s", shims->program);
    }
    *ret_shim = (struct shim_process){
        .fd = give_fd(&own), .pidfd = (int)syscall(SYS_pidfd_open, pid, 0), .own = true};
    return true;
}

/* A waiting shim sends nothing, so a readable socket means that it has ended. */
static bool is_well(const struct shim_process *shim)
{
    struct pollfd poll_fd = {.fd = shim->fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 0;
}

/* In turns: one that waits for long holds the mounts of its time. */
static struct shim_process take_first(struct shims *shims)
{
    struct shim_process first = shims->idle[0];
    shims->idle_count--;
    memmove(shims->idle, shims->idle + 1, shims->idle_count * sizeof *shims->idle);
    return first;
}

bool shims_take(struct shims *shims, struct shim_process *ret_shim, struct err *err)
{
    while (shims->idle_count > 0) {
        struct shim_process shim = take_first(shims);
        if (is_well(&shim)) {
            *ret_shim = shim;
            return true;
        }
        shim_process_close(&shim);
    }
    shims->failing = false;
    return start(shims, ret_shim, err);
}

bool shims_refill(struct shims *shims)
{
    struct err err;
    if (shims->idle_count >= LIMIT_IDLE_SHIMS || shims->failing) {
        return false;
    }
    if (!start(shims, &shims->idle[shims->idle_count], &err)) {
        log_warning("shim unstarted", "problem=\"%s\"", err.text);
        shims->failing = true;
        return false;
    }
    return ++shims->idle_count < LIMIT_IDLE_SHIMS;
}

/* --- leaving -------------------------------------------------------------------------------------------- */

static void become_idle(struct leaver *leaver)
{
    struct shims *shims = leaver->shims;
    loop_unwatch(shims->loop, &leaver->watch);
    if (shims->idle_count < LIMIT_KEPT_SHIMS) {
        shims->idle[shims->idle_count++] = leaver->shim;
        leaver->shim = (struct shim_process){.fd = -1, .pidfd = -1};
        leaver->watch.fd = -1;
    }
    end_leaver(leaver); /* an idle shim whose socket closes ends */
}

static void leaver_ready(void *closure, uint32_t events)
{
    struct leaver *leaver = closure;
    char message[LIMIT_SHIM_MESSAGE + 1];
    ssize_t length = recv(leaver->shim.fd, message, LIMIT_SHIM_MESSAGE, MSG_DONTWAIT);
    message[length > 0 ? length : 0] = '\0';
    if (strcmp(message, "idle") == 0) {
        become_idle(leaver);
    } else if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) {
        end_leaver(leaver);
    }
}

void shims_dismiss(struct shims *shims, struct shim_process *shim)
{
    if (shim_process_tell(shim, shim->own ? "reuse" : "forget")) {
        struct leaver *leaver = xzalloc(sizeof *leaver);
        leaver->shims = shims;
        leaver->shim = *shim;
        leaver->watch = (struct loop_watch){shim->fd, EPOLLIN, leaver_ready, leaver};
        DL_APPEND(shims->leavers, leaver);
        loop_watch(shims->loop, &leaver->watch);
        *shim = (struct shim_process){.fd = -1, .pidfd = -1};
    }
    shim_process_close(shim);
}

/* --- finding -------------------------------------------------------------------------------------------- */

static bool read_process(pid_t pid, struct process *ret_process)
{
    autofree char *number = xprintf("%d", (int)pid);
    return process_read("/proc", number, ret_process);
}

pid_t shim_process_pid(const struct shim_process *shim)
{
    autofree char *path = xprintf("/proc/self/fdinfo/%d", shim->pidfd);
    autofree char *info = NULL;
    if (shim->pidfd < 0 || !file_read(path, INFO_BYTES, &info, NULL, NULL)) {
        return 0;
    }
    const char *line = strstr(info, "\nPid:");
    long pid = line != NULL ? strtol(line + strlen("\nPid:"), NULL, 10) : 0;
    return pid > 0 ? (pid_t)pid : 0;
}

bool shim_process_is_stopped(const struct shim_process *shim)
{
    struct process process;
    pid_t pid = shim_process_pid(shim);
    return pid > 0 && read_process(pid, &process) && (process.state == 'T' || process.state == 't');
}

/* A pidfd of the process that shim.pid names, or -1 if another process has its number now. */
static int find_process(const char *run_folder)
{
    autofree char *text = rank_file_read(run_folder, NULL, SHIM_PID_FILE, INFO_BYTES, NULL);
    struct process process;
    int pid;
    long long ticks;
    if (text == NULL || sscanf(text, "%d %lld", &pid, &ticks) != 2 || pid <= 0) {
        return -1;
    }
    autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool same = pidfd >= 0 && read_process(pid, &process) && process.started_ticks == ticks;
    return same ? give_fd(&pidfd) : -1;
}

/* Connects through the folder's descriptor, because the path itself may be too long for an address. */
int shims_connect(const char *run_folder)
{
    autoclose int folder = open(run_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, SHIM_SOCKET_FILE);
    if (folder < 0 || fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        return -1;
    }
    return give_fd(&fd);
}

/* Creates shim.pid. A slow shim that was given the folder then finds the file and ends. */
static bool keep_shims_out(const char *run_folder)
{
    autofree char *path = xprintf("%s/%s", run_folder, SHIM_PID_FILE);
    autoclose int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return file >= 0;
}

bool shims_find(const char *run_folder, struct shim_process *ret_shim)
{
    int pidfd = find_process(run_folder);
    if (pidfd < 0 && !keep_shims_out(run_folder)) {
        pidfd = find_process(run_folder); /* the shim may have created it just now */
    }
    if (pidfd < 0) {
        return false;
    }
    *ret_shim = (struct shim_process){.fd = shims_connect(run_folder), .pidfd = pidfd};
    return true;
}
