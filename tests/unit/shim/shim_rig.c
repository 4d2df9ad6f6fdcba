/* SPDX-License-Identifier: Apache-2.0 */
/* The rig of the shim's tests: it starts the real gpushim ($GPUSHIM) and speaks agent/shim/shimwire.h with
 * it. Nothing here waits by the clock: messages, fifos and descriptors say when something has happened, and a
 * limit on each wait fails the test. */
#include "tests/unit/shim/shim_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"

#define WAIT_MS 30000 /* far beyond what anything here takes, sanitizers and a busy machine included */

/* Without a home where its folder is not there. */
static _Noreturn void shim_become(int control, int errors, const char *home)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(errors, STDERR_FILENO);
    dup2(control, SHIM_CONTROL_FD);
    autoclose int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (write(score, RIG_SCORE, strlen(RIG_SCORE)) < 0) {
        _exit(127);
    }
    const char *program = getenv("GPUSHIM");
    execl(program, program, SHIM_HOME, home, (char *)NULL);
    _exit(127);
}

static void shim_start(struct rig *rig)
{
    int ends[2], errors[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(pipe2(errors, O_CLOEXEC), 0);
    if (ends[1] == SHIM_CONTROL_FD) { /* dup2 onto itself would leave CLOEXEC set */
        ends[1] = fcntl(ends[1], F_DUPFD_CLOEXEC, SHIM_CONTROL_FD + 1);
    }
    rig->shim = fork();
    ck_assert_int_ge(rig->shim, 0);
    if (rig->shim == 0) {
        shim_become(ends[1], errors[1], rig->home);
    }
    close(ends[1]);
    close(errors[1]);
    rig->agent_socket = ends[0];
    rig->errors = errors[0];
}

/* Folders and the first fields of a launch file. */
static void attempt_begin(struct rig *rig, const char *attempt_id)
{
    snprintf(rig->run, sizeof rig->run, "%s/%s", rig->root, attempt_id);
    snprintf(rig->logs, sizeof rig->logs, "%s/logs%s", rig->root, rig->launch_size > 0 ? attempt_id : "");
    ck_assert_int_eq(mkdir(rig->run, 0700), 0);
    ck_assert_int_eq(mkdir(rig->logs, 0700), 0);
    rig->launch_size = 0;
    rig_field(rig, "epoch", attempt_id);
    rig_field(rig, "logs", rig->logs);
    rig_field(rig, "cwd", rig->root);
    rig_field(rig, "failed_grace_ms", "100");
}

static void begin(struct rig *rig, bool has_home)
{
    *rig = (struct rig){.agent_socket = -1};
    snprintf(rig->root, sizeof rig->root, "/tmp/gpuctl-shim-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(rig->root));
    snprintf(rig->home, sizeof rig->home, "%s/home", rig->root);
    ck_assert(!has_home || mkdir(rig->home, 0700) == 0);
    attempt_begin(rig, RIG_ATTEMPT_ID);
    shim_start(rig);
}

void rig_begin(struct rig *rig)
{
    begin(rig, true);
}

void rig_begin_without_home(struct rig *rig)
{
    begin(rig, false);
}

static void run_folder_lacks(const struct rig *rig, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", rig->run, name);
    ck_assert_int_ne(access(path, F_OK), 0);
}

/* Nothing of the shim is left that others could find. */
static void attempt_is_left(const struct rig *rig)
{
    run_folder_lacks(rig, SHIM_SOCKET_FILE);
    run_folder_lacks(rig, SHIM_RANK_SOCKET);
    if (rig->cgroup[0] != '\0') {
        ck_assert_int_ne(access(rig->cgroup, F_OK), 0);
    }
}

void rig_forget(struct rig *rig)
{
    int status;
    rig_send(rig, "forget");
    ck_assert_int_eq(waitpid(rig->shim, &status, 0), rig->shim);
    ck_assert_int_eq(status, 0);
    attempt_is_left(rig);
    ck_assert_int_ne(access(rig->home, F_OK), 0);
}

void rig_end(struct rig *rig)
{
    struct err err;
    close(rig->agent_socket);
    close(rig->errors);
    ck_assert(file_remove_tree(rig->root, &err));
}

void rig_field(struct rig *rig, const char *key, const char *value)
{
    size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1;
    ck_assert_uint_le(rig->launch_size + key_size + value_size, sizeof rig->launch);
    memcpy(rig->launch + rig->launch_size, key, key_size);
    memcpy(rig->launch + rig->launch_size + key_size, value, value_size);
    rig->launch_size += key_size + value_size;
}

void rig_shell(struct rig *rig, const char *script)
{
    rig_field(rig, "arg", "sh");
    rig_field(rig, "arg", "-c");
    rig_field(rig, "arg", script);
}

void rig_range(struct rig *rig, int first, int last)
{
    char text[16];
    snprintf(text, sizeof text, "%d", first);
    rig_field(rig, "port_first", text);
    snprintf(text, sizeof text, "%d", last);
    rig_field(rig, "port_last", text);
}

void rig_fake_rank(struct rig *rig)
{
    char text[512];
    snprintf(text, sizeof text, "FAKE_RANK=%s", getenv("SHIM_FAKE_RANK"));
    rig_field(rig, "env", text);
    snprintf(text, sizeof text, "GPUCTL_SOCKET=%s/" SHIM_RANK_SOCKET, rig->run);
    rig_field(rig, "env", text);
}

bool rig_cgroup(struct rig *rig)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (size_t i = 0; i < 2; i++) {
        char sign[64], path[128];
        snprintf(sign, sizeof sign, "%s/cgroup.controllers", roots[i]);
        snprintf(path, sizeof path, "%s/gpuctl-test-%d", roots[i], (int)getpid());
        if (access(sign, F_OK) == 0 && mkdir(path, 0700) == 0) {
            snprintf(rig->cgroup, sizeof rig->cgroup, "%s", path);
            rig_field(rig, "cgroup", path);
            return true;
        }
    }
    return false;
}

static void write_launch(const struct rig *rig)
{
    char path[256];
    struct err err;
    snprintf(path, sizeof path, "%s/" SHIM_LAUNCH_FILE, rig->run);
    ck_assert(file_replace(path, rig->launch, rig->launch_size, 0600, &err));
}

void rig_assign(struct rig *rig)
{
    write_launch(rig);
    rig_send(rig, "assign %s", rig->run);
}

void rig_assign_and(struct rig *rig, const char *orders)
{
    write_launch(rig);
    rig_send(rig, "assign %s\n%s", rig->run, orders);
}

void rig_send(struct rig *rig, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ck_assert_int_eq(send(rig->agent_socket, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void await_readable(int fd, const char *what)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ck_assert_msg(poll(&poll_fd, 1, WAIT_MS) == 1, "waited too long for %s", what);
}

/* The processes of ranks and acknowledged checkpoints are noted, and not what a test waits for. */
static const char *hear(struct rig *rig, const char *what)
{
    do {
        await_readable(rig->agent_socket, what);
        ssize_t length = recv(rig->agent_socket, rig->heard, sizeof rig->heard - 1, 0);
        ck_assert_msg(length > 0, "the shim hung up before %s", what);
        rig->heard[length] = '\0';
    } while (sscanf(rig->heard, "pids %d %d", &rig->pids[0], &rig->pids[1]) > 0 ||
             sscanf(rig->heard, "checkpoint %d", &rig->step) > 0);
    return rig->heard;
}

void rig_expect_exactly(struct rig *rig, const char *text)
{
    ck_assert_str_eq(hear(rig, text), text);
}

const char *rig_expect(struct rig *rig, const char *start)
{
    while (strcmp(hear(rig, start), "output") == 0) {
        rig_send(rig, "seen");
    }
    ck_assert_msg(strncmp(rig->heard, start, strlen(start)) == 0, "%s, not %s", rig->heard, start);
    return rig->heard;
}

void rig_reuse(struct rig *rig, const char *attempt_id)
{
    rig_send(rig, "reuse");
    while (strcmp(hear(rig, "idle"), "output") == 0) { /* from before; the agent passes over it, too */
    }
    ck_assert_str_eq(rig->heard, "idle");
    attempt_is_left(rig);
    run_folder_lacks(rig, SHIM_PID_FILE);
    attempt_begin(rig, attempt_id);
}

void rig_connect(struct rig *rig)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/" SHIM_SOCKET_FILE, rig->run);
    close(rig->agent_socket);
    rig->agent_socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(rig->agent_socket, (struct sockaddr *)&address, sizeof address), 0);
}

int rig_rank_socket(struct rig *rig)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/" SHIM_RANK_SOCKET, rig->run);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void rig_limit_file_size(struct rig *rig, uint64_t bytes)
{
    struct rlimit limit;
    ck_assert_int_eq(prlimit(rig->shim, RLIMIT_FSIZE, NULL, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(prlimit(rig->shim, RLIMIT_FSIZE, &limit, NULL), 0);
}

bool rig_has(struct rig *rig, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", rig->logs, name);
    return access(path, F_OK) == 0;
}

char *rig_read(struct rig *rig, const char *name)
{
    char path[256];
    struct err err;
    char *text = NULL;
    snprintf(path, sizeof path, "%s/%s", rig->logs, name);
    ck_assert_msg(file_read(path, 64 << 20, &text, NULL, &err), "%s: %s", path, err.text);
    return text;
}

char *rig_await(struct rig *rig, const char *name, const char *text)
{
    for (;;) {
        char *bytes = rig_has(rig, name) ? rig_read(rig, name) : NULL;
        if (bytes != NULL && strstr(bytes, text) != NULL) {
            return bytes;
        }
        free(bytes);
        rig_expect_exactly(rig, "output");
        rig_send(rig, "seen");
    }
}

void rig_logs_error(struct rig *rig, const char *text)
{
    char said[4096] = "";
    size_t length = 0;
    while (strstr(said, text) == NULL) {
        await_readable(rig->errors, text);
        ssize_t got = read(rig->errors, said + length, sizeof said - 1 - length);
        ck_assert_int_gt(got, 0);
        length += (size_t)got;
        said[length] = '\0';
    }
}

void rig_start(struct rig *rig)
{
    rig_assign(rig);
    rig_send(rig, "run - -");
    rig_expect(rig, "running ");
}

char *rig_finish(struct rig *rig)
{
    rig_expect(rig, "exited");
    return rig_read(rig, SHIM_EXIT_FILE);
}

struct rig_exit rig_exit_of(const char *record, int rank)
{
    struct rig_exit result = {.code = -1};
    char start[32];
    snprintf(start, sizeof start, "rank %d ", rank);
    const char *line = strstr(record, start);
    ck_assert_msg(line != NULL && (line == record || line[-1] == '\n'), "no rank %d in:\n%s", rank, record);
    ck_assert_int_eq(sscanf(line + strlen(start), "%d %d %lld %lld %lld %d\n", &result.code, &result.signal,
                            &result.wall_ms, &result.out_bytes, &result.err_bytes, &result.by_us),
                     6);
    return result;
}

void rig_cause_is(const char *record, const char *cause)
{
    char end[512];
    snprintf(end, sizeof end, "cause %s\nend\n", cause);
    const char *line = strstr(record, end);
    ck_assert_msg(line != NULL && (line == record || line[-1] == '\n'), "cause %s is not that of:\n%s", cause,
                  record);
}

void rig_gate(struct rig *rig, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", rig->root, name);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
}

void rig_gate_pass(struct rig *rig, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", rig->root, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC); /* waits for the other side */
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "go\n", 3), 3);
    close(fd);
}

void rig_gone(pid_t pid)
{
    ck_assert_int_gt(pid, 1);
    ck_assert_msg(kill(pid, 0) != 0 && errno == ESRCH, "process %d is still there", (int)pid);
}

int rig_bind_port(int port, bool reuse)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, reuse ? sizeof on : 0), reuse ? 0 : -1);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* From a place of this process. */
int rig_free_ports(int count)
{
    for (int first = 10000 + getpid() % 9000;; first++) {
        int free_count = 0;
        while (free_count < count) {
            int fd = rig_bind_port(first + free_count, true);
            if (fd < 0) {
                break;
            }
            close(fd);
            free_count++;
        }
        if (free_count == count) {
            return first;
        }
    }
}
