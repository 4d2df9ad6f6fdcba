/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, recognises and ends daemons. It promises never to confuse a recorded process with a later one of
 * the same pid, and that a daemon inherits none of our descriptors, no masked signals, and no terminal. */
#include "client/cli/transport/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

#define STAT_BYTES        4096
#define START_TIME_FIELD  22 /* of /proc/PID/stat, counted from 1 */
#define COMMAND_END_FIELD 2
#define PARENT_FIELD      4

/* --- identity --- */

/* A number of /proc/PID/stat; 0 when there is no such process. */
static int64_t stat_field(pid_t pid, int wanted)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    autofree char *stat = NULL;
    if (!file_read(path, STAT_BYTES, &stat, NULL, NULL)) {
        return 0;
    }
    const char *at = strrchr(stat, ')'); /* the command may hold spaces and brackets */
    for (int field = COMMAND_END_FIELD; at != NULL && field < wanted; field++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL ? strtoll(at + 1, NULL, 10) : 0;
}

/* In ticks since boot. */
static int64_t start_time(pid_t pid)
{
    return stat_field(pid, START_TIME_FIELD);
}

static int open_pid(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool write_record(const char *record, pid_t pid, struct err *err)
{
    autofree char *line = xprintf("%ld %lld\n", (long)pid, (long long)start_time(pid));
    return file_replace(record, line, strlen(line), 0600, err);
}

int process_open(const char *record, pid_t *ret_pid)
{
    autofree char *line = NULL;
    long pid;
    long long started;
    if (!file_read(record, 64, &line, NULL, NULL) || sscanf(line, "%ld %lld", &pid, &started) != 2 ||
        pid <= 0) {
        return -1;
    }
    autoclose int fd = open_pid((pid_t)pid);
    if (fd < 0 || start_time((pid_t)pid) != started || process_wait(fd, 0)) {
        return -1;
    }
    if (ret_pid != NULL) {
        *ret_pid = (pid_t)pid;
    }
    return give_fd(&fd);
}

/* --- start --- */

/* Attributes of every child: its own session when asked for, no signal blocked or ignored. */
static void prepare_attributes(posix_spawnattr_t *attributes, bool own_session)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setflags(attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                 (own_session ? POSIX_SPAWN_SETSID : 0)));
}

/* Returns an error number, as posix_spawn does. */
static int prepare_files(posix_spawn_file_actions_t *actions, int out, int err_out, bool own_session)
{
    int result = posix_spawn_file_actions_init(actions);
    result = result != 0 ? result
                         : posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    result = result != 0 ? result : posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
    result = result != 0 ? result : posix_spawn_file_actions_adddup2(actions, err_out, STDERR_FILENO);
    if (result == 0 && own_session) {
        result = posix_spawn_file_actions_addchdir_np(actions, "/"); /* keeps no file system busy */
    }
    return result;
}

/* err_out is the fd that becomes its stderr. */
static bool spawn(char *const *argv, int out, int err_out, bool own_session, pid_t *ret_pid, struct err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    prepare_attributes(&attributes, own_session);
    errno = prepare_files(&actions, out, err_out, own_session);
    if (errno == 0) {
        errno = posix_spawnp(ret_pid, argv[0], &actions, &attributes, argv, environ);
    }
    bool started = errno == 0;
    if (!started) {
        err_errno(err, "cannot start %s", argv[0]);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return started;
}

bool process_start(char *const *argv, const char *log, const char *record, int *ret_pidfd, struct err *err)
{
    autoclose int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (out < 0) {
        return err_errno(err, "cannot open %s", log);
    }
    pid_t pid;
    if (!spawn(argv, out, out, true, &pid, err)) {
        return false;
    }
    autoclose int pidfd = open_pid(pid);
    if (pidfd < 0) {
        err_errno(err, "cannot watch %s", argv[0]);
        kill(pid, SIGKILL); /* our own child, not reaped yet: the pid is still its */
        return false;
    }
    if (!write_record(record, pid, err)) {
        process_end(pidfd, 0);
        return false;
    }
    *ret_pidfd = give_fd(&pidfd);
    return true;
}

bool process_launch(char *const *argv, int64_t patience_ms, struct err *err)
{
    autoclose int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t pid;
    if (nowhere < 0) {
        return err_errno(err, "cannot open /dev/null");
    }
    if (!spawn(argv, nowhere, nowhere, true, &pid, err)) {
        return false;
    }
    autoclose int pidfd = open_pid(pid);
    int status = 0;
    if (pidfd < 0 || !process_wait(pidfd, patience_ms) || waitpid(pid, &status, WNOHANG) != pid) {
        return true;
    }
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) || err_set(err, ERR_IO, "%s has failed", argv[0]);
}

/* --- end --- */

bool process_wait(int pidfd, int64_t timeout_ms)
{
    struct pollfd waited = {.fd = pidfd, .events = POLLIN};
    int64_t deadline = clock_boot_ms() + timeout_ms;
    for (;;) {
        int64_t left = deadline - clock_boot_ms();
        int ready = poll(&waited, 1, left > 0 ? (int)left : 0);
        if (ready >= 0 || errno != EINTR) {
            return ready > 0;
        }
    }
}

static void send_signal(int pidfd, int signal)
{
    syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0); /* fails only when it has ended */
}

bool process_read(pid_t pid, struct process *ret_process)
{
    *ret_process = (struct process){pid, (pid_t)stat_field(pid, PARENT_FIELD), start_time(pid)};
    return ret_process->started != 0;
}

bool process_signal(const struct process *process, int signal)
{
    autoclose int pidfd = open_pid(process->pid);
    return pidfd >= 0 && start_time(process->pid) == process->started &&
           syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0;
}

bool process_end(int pidfd, int64_t grace_ms)
{
    send_signal(pidfd, SIGTERM);
    if (process_wait(pidfd, grace_ms)) {
        return true;
    }
    send_signal(pidfd, SIGKILL);
    return process_wait(pidfd, CLIENT_KILL_MS);
}

/* --- output --- */

/* true when the other end was closed within max bytes. */
static bool read_all(int fd, size_t max, struct text *out)
{
    char chunk[4096];
    for (;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got == 0;
        }
        text_append_bytes(out, chunk, (size_t)got);
        if (out->length > max) {
            return false;
        }
    }
}

char *process_output(char *const *argv, size_t max)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return NULL;
    }
    autoclose int from = ends[0];
    autoclose int to = ends[1];
    autoclose int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t pid;
    if (nowhere < 0 || !spawn(argv, to, nowhere, false, &pid, NULL)) {
        return NULL;
    }
    close(give_fd(&to));
    autotext struct text out = {0};
    bool whole = read_all(from, max, &out);
    close(give_fd(&from)); /* one that prints more dies of it */
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return whole && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text_take(&out) : NULL;
}
