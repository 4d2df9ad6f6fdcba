/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a rank, from vfork to exec or in a warm worker; shim_reap.c handles its end. A rank gets exactly
 * what the launch file names: its environment and its folder, /dev/null and two pipes as its descriptors (one
 * rank also gets the socket of the gang's store), default signals and a session of its own. It dies with the
 * shim. A rank is in its cgroup before the user's program starts. A failure before that point is reported
 * with its reason. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/common/system_calls.h"
#include "agent/shim/shim_clone.h"
#include "proto/base/cleanup.h"

#define DEFAULT_PATH    "/usr/local/bin:/usr/bin:/bin"
#define CODE_NOT_FOUND  127 /* the codes of shells */
#define CODE_NOT_USABLE 126

/* Everything that the child needs. The parent prepares it, because the child of a vfork must not allocate. */
struct spawn {
    const struct shim *shim;
    char **env;
    char *const *arguments;
    const char *path; /* the job's PATH */
    pid_t parent;
    int input, output[2];
    int store;     /* socket that becomes SHIM_STORE_FD; -1: none */
    int report;    /* closed by exec */
    int cgroup;    /* -1: none */
    bool enter;    /* the child enters the cgroup itself */
    bool pipes;    /* output is pipes, which become the user's */
    bool command;  /* it is no rank: input becomes the user's, too, */
    bool terminal; /* and may be the terminal that controls it */
    const struct launch *launch;
    const struct container *container; /* NULL: none */
};

static _Noreturn void child_fail(const struct spawn *spawn, enum stage stage)
{
    struct report report = {.stage = (int32_t)stage, .error = errno};
    ssize_t written = write(spawn->report, &report, sizeof report);
    (void)written;
    _exit(stage == STAGE_NOT_FOUND ? CODE_NOT_FOUND : CODE_NOT_USABLE);
}

static bool child_enter(int cgroup)
{
    int file = openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    return file >= 0 && write(file, "0", 1) > 0;
}

static void child_signals(void)
{
    sigset_t none;
    for (size_t i = 0; i < SHIM_IGNORED_COUNT; i++) {
        signal(shim_ignored[i], SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A core dump would hold the secrets of the rank. Its program may allow them again. */
static struct rlimit no_core(void)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = 0;
    return limit;
}

static void child_descriptors(const struct spawn *spawn)
{
    setrlimit(RLIMIT_NOFILE, &spawn->shim->files);
    if (spawn->launch->secret_count > 0) {
        const struct rlimit core = no_core();
        setrlimit(RLIMIT_CORE, &core);
    }
    dup2(spawn->input, STDIN_FILENO);
    dup2(spawn->output[0], STDOUT_FILENO);
    dup2(spawn->output[1], STDERR_FILENO);
    close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    if (spawn->store >= 0) {
        /* the report pipe cannot have this number: its other end has a lower one */
        dup2(spawn->store, SHIM_STORE_FD);
        fcntl(SHIM_STORE_FD, F_SETFD, 0); /* if it had this number already, dup2 did nothing */
    }
}

/* For good: no rank gets rights back, or system calls that it was refused, whatever it executes. Raw system
 * calls, because those of libc are for a process with a memory of its own. The pipes become the user's, for
 * programs that open /dev/stdout. */
static void child_user(const struct spawn *spawn)
{
    const struct launch *launch = spawn->launch;
    long uid = launch->uid, gid = launch->gid;
    if (uid < 0) {
        return;
    }
    for (size_t i = 0; i < 2 && spawn->pipes; i++) {
        if (fchown(spawn->output[i], (uid_t)uid, (gid_t)gid) != 0) {
            child_fail(spawn, STAGE_USER);
        }
    }
    if (spawn->command && fchown(spawn->input, (uid_t)uid, (gid_t)gid) != 0) {
        child_fail(spawn, STAGE_USER);
    }
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++) {
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    }
    if (syscall(SYS_setgroups, launch->group_count, launch->groups) != 0 ||
        syscall(SYS_setresgid, gid, gid, gid) != 0 || syscall(SYS_setresuid, uid, uid, uid) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || (launch->seccomp != 0 && !system_calls_limit())) {
        child_fail(spawn, STAGE_USER);
    }
}

/* Returns only if the file does not exist. A file whose interpreter is missing fails with the same error. */
static void child_try(const struct spawn *spawn, const char *file, bool *denied)
{
    execve(file, spawn->arguments, spawn->env);
    if (errno == ENOENT && access(file, F_OK) == 0) {
        child_fail(spawn, STAGE_INTERPRETER);
    }
    if (errno == EACCES) {
        *denied = true; /* another folder of PATH may have the file */
    } else if (errno != ENOENT && errno != ENOTDIR) {
        child_fail(spawn, STAGE_COMMAND);
    }
}

static _Noreturn void child_exec(const struct spawn *spawn)
{
    const char *name = spawn->arguments[0];
    bool denied = false;
    if (strchr(name, '/') != NULL) {
        child_try(spawn, name, &denied);
    } else {
        for (const char *at = spawn->path; *name != '\0' && at != NULL;) {
            char file[PATH_MAX];
            const char *end = strchrnul(at, ':');
            int folder = (int)(end - at);
            if (snprintf(file, sizeof file, "%.*s/%s", folder > 0 ? folder : 1, folder > 0 ? at : ".", name) <
                PATH_MAX) {
                child_try(spawn, file, &denied);
            }
            at = *end == ':' ? end + 1 : NULL;
        }
    }
    errno = denied ? EACCES : ENOENT;
    child_fail(spawn, denied ? STAGE_COMMAND : STAGE_NOT_FOUND);
}

static _Noreturn void child_run(const struct spawn *spawn)
{
    child_signals();
    setsid();
    if (spawn->terminal && ioctl(spawn->input, TIOCSCTTY, 0) != 0) {
        child_fail(spawn, STAGE_USER);
    }
    if (spawn->enter && !child_enter(spawn->cgroup)) {
        child_fail(spawn, STAGE_CGROUP);
    }
    if (spawn->container != NULL && !container_enter(spawn->container)) {
        child_fail(spawn, STAGE_CONTAINER);
    }
    child_user(spawn);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a change of the user resets it */
    if (getppid() != spawn->parent) {
        _exit(CODE_NOT_USABLE); /* the shim died before the prctl call */
    }
    child_descriptors(spawn);
    if (chdir(spawn->launch->cwd) != 0) {
        child_fail(spawn, STAGE_FOLDER);
    }
    child_exec(spawn);
}

/* child_vfork and child_clone return when the child has become the program, or has ended. Until then it has
 * the memory and the stack of the shim, which a copy would cost more time than the rest of the start. */
static __attribute__((noinline)) pid_t child_vfork(const struct spawn *spawn)
{
    pid_t pid = vfork();
    if (pid == 0) {
        child_run(spawn);
    }
    return pid;
}

/* Starts the child in its cgroup: moving it there after the fork waits for all CPUs, up to 13 ms. */
static __attribute__((noinline)) pid_t child_clone(const struct spawn *spawn)
{
    const struct clone_args arguments = {.flags = CLONE_VFORK | CLONE_INTO_CGROUP | CLONE_SHARES,
                                         .exit_signal = SIGCHLD,
                                         .cgroup = (uint64_t)spawn->cgroup};
    long pid = clone_now(&arguments);
    if (pid == 0) {
        child_run(spawn);
    }
    errno = pid < 0 ? (int)-pid : errno;
    return pid < 0 ? -1 : (pid_t)pid;
}

static pid_t child_start(struct spawn *spawn)
{
    if (spawn->cgroup < 0) {
        return child_vfork(spawn);
    }
    pid_t pid = child_clone(spawn);
    if (pid > 0) {
        return pid;
    }
    spawn->enter = true;
    return child_vfork(spawn);
}

static void report_explain(const struct launch *launch, const char *name, const struct report *report,
                           struct why *why)
{
    const char *error = strerror(report->error);
    switch ((enum stage)report->stage) {
    case STAGE_CGROUP:
        why_set(why, "cannot enter cgroup %s: %s", launch->cgroup, error);
        break;
    case STAGE_FOLDER:
        why_set(why, "working folder %s: %s", launch->cwd, error);
        break;
    case STAGE_NOT_FOUND:
        why_set(why, "command not found: %s", name);
        break;
    case STAGE_INTERPRETER:
        why_set(why, "cannot execute %s: the interpreter that it names does not exist", name);
        break;
    case STAGE_COMMAND:
        why_set(why, "cannot execute %s: %s", name, error);
        break;
    case STAGE_CONTAINER:
        why_set(why, "cannot enter the container of the image: %s", error);
        break;
    case STAGE_USER:
        why_set(why, "cannot become the user %lld: %s", (long long)launch->uid, error);
        break;
    }
}

static const char *path_of(char *const *env)
{
    for (; *env != NULL; env++) {
        if (strncmp(*env, "PATH=", 5) == 0) {
            return *env + 5;
        }
    }
    return DEFAULT_PATH;
}

/* 0: not the job's fault. */
static int code_of(int32_t stage)
{
    bool ours = stage == STAGE_CGROUP || stage == STAGE_USER || stage == STAGE_CONTAINER;
    return ours ? 0 : stage == STAGE_NOT_FOUND ? CODE_NOT_FOUND : CODE_NOT_USABLE;
}

static bool report_take(const struct launch *launch, const char *name, const struct report *report,
                        int *ret_code, struct why *why)
{
    *ret_code = code_of(report->stage);
    report_explain(launch, name, report, why);
    return false;
}

/* Forks and reads the child's report. The exec closes the write end, so an empty pipe means success. */
static bool spawn_now(struct spawn *spawn, pid_t *ret_pid, int *ret_code, struct why *why)
{
    int ends[2];
    struct report report;
    *ret_code = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return why_set(why, "cannot make a pipe: %s", strerror(errno));
    }
    autoclose int listening = ends[0];
    spawn->report = ends[1];
    oom_share(spawn->shim);
    pid_t pid = child_start(spawn);
    int error = errno;
    oom_share_no_more(spawn->shim);
    close(ends[1]);
    ssize_t got = read(listening, &report, sizeof report);
    if (pid < 0) {
        return why_set(why, "cannot start a process: %s", strerror(error));
    }
    *ret_pid = pid;
    return got != sizeof report || report_take(spawn->launch, spawn->arguments[0], &report, ret_code, why);
}

bool rank_breed(struct shim *shim, struct launch *launch, int workers, struct why *why)
{
    pid_t pid;
    int code;
    autofree char **env = launch_environment(launch, 0, (char *const[]){NULL});
    struct spawn spawn = {.shim = shim,
                          .launch = launch,
                          .arguments = launch->arguments,
                          .env = env,
                          .input = shim->null,
                          .path = path_of(env),
                          .parent = getpid(),
                          .output = {shim->null, shim->null},
                          .store = workers,
                          .cgroup = shim->warm.cgroup};
    bool started = spawn_now(&spawn, &pid, &code, why);
    shim->warm.breeder = started ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    return started;
}

static const struct container *container_of(const struct shim *shim)
{
    return shim->container.state == CONTAINER_MADE ? &shim->container : NULL;
}

bool command_spawn(const struct shim *shim, const struct command_start *start, pid_t *ret_pid, int *ret_code,
                   struct why *why)
{
    struct spawn spawn = {.shim = shim,
                          .launch = &shim->launch,
                          .arguments = start->arguments,
                          .env = start->env,
                          .path = path_of(start->env),
                          .parent = getpid(),
                          .input = start->fds[0],
                          .output = {start->fds[1], start->fds[2]},
                          .store = -1,
                          .cgroup = shim->cgroup,
                          .container = container_of(shim),
                          .pipes = true,
                          .command = true,
                          .terminal = start->terminal};
    return spawn_now(&spawn, ret_pid, ret_code, why);
}

/* --- from warm workers ---------------------------------------------------------------------------------- */

static int store_of(const struct shim *shim, size_t index)
{
    return shim->launch.ranks[index].number == shim->launch.store_rank ? shim->port.socket : -1;
}

/* A failure here has no effect: rank_start tries again and reports it. */
static void rank_offer(struct shim *shim, size_t index, char *const *added)
{
    struct rank *rank = &shim->ranks[index];
    struct why ignored;
    int ends[2];
    if (!output_pipes(shim, index, rank->ends, &ignored) || pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    autoclose int outcome = ends[0];
    autoclose int report = ends[1];
    autoclose int cgroup =
        shim->cgroup >= 0 ? openat(shim->cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC) : -1;
    autofree char **env = launch_environment(&shim->launch, index, added);
    if (shim->launch.secret_count > 0) {
        const struct rlimit core = no_core();
        prlimit(shim->warm.workers[index].pid, RLIMIT_CORE, &core, NULL);
    }
    const struct warm_start start = {.env = env,
                                     .output = {rank->ends[0], rank->ends[1]},
                                     .report = report,
                                     .cgroup = cgroup,
                                     .store = store_of(shim, index)};
    if ((shim->cgroup < 0 || cgroup >= 0) && warm_give(shim, &shim->warm.workers[index], &start)) {
        rank->report = give_fd(&outcome);
    }
}

void ranks_offer(struct shim *shim, char *const *added)
{
    struct warm *warm = &shim->warm;
    if (warm->count > 0 && warm->count < shim->launch.rank_count) {
        why_set(&warm->said, "cold there are %zu warm workers", warm->count);
        return;
    }
    for (size_t i = 0; i < shim->launch.rank_count && warm->count > 0; i++) {
        rank_offer(shim, i, added);
    }
}

bool rank_is_offered(const struct shim *shim, size_t index)
{
    return shim->ranks[index].report >= 0;
}

static void say_started(struct warm *warm, const char *said)
{
    if (warm->said.text[0] == '\0' || strcmp(said, "warm") != 0) {
        why_set(&warm->said, "%s", said);
    }
}

static enum warm_end rank_become(struct shim *shim, size_t index, int *ret_code, struct why *why)
{
    struct rank *rank = &shim->ranks[index];
    struct report report;
    char said[LIMIT_SHIM_TEXT];
    enum warm_end end = warm_await(&shim->warm.workers[index], rank->report, &report, said, sizeof said);
    close(rank->report);
    rank->report = -1;
    if (end == WARM_NOTHING) {
        say_started(&shim->warm, "cold a worker has ended");
        return end;
    }
    rank->pid = shim->warm.workers[index].pid;
    rank->state = RANK_LIVE;
    if (end == WARM_FAILED) {
        report_take(&shim->launch, shim->launch.arguments[0], &report, ret_code, why);
    } else {
        say_started(&shim->warm, said);
    }
    return end;
}

/* A new Python loads gpuctl_watch.py through the first folder of its PYTHONPATH; a warm worker loads it
 * itself. */
static char *watch_begin(char **env)
{
    static const char watch[] = "GPUCTL_WATCH=", path[] = "PYTHONPATH=";
    const char *folder = NULL, *rest = NULL;
    size_t at = 0;
    for (size_t i = 0; env[i] != NULL; i++) {
        if (strncmp(env[i], watch, strlen(watch)) == 0) {
            folder = env[i] + strlen(watch);
        } else if (strncmp(env[i], path, strlen(path)) == 0) {
            rest = env[i] + strlen(path);
        }
        at += rest == NULL;
    }
    if (folder == NULL) {
        return NULL;
    }
    env[at] = xprintf("%s%s/" SHIM_WATCH_FOLDER "%s%s", path, folder, rest != NULL ? ":" : "",
                      rest != NULL ? rest : "");
    return env[at];
}

static bool rank_fork(struct shim *shim, size_t index, char *const *added, int *ret_code, struct why *why)
{
    struct rank *rank = &shim->ranks[index];
    struct spawn spawn = {.shim = shim,
                          .launch = &shim->launch,
                          .arguments = shim->launch.arguments,
                          .input = shim->null,
                          .parent = getpid(),
                          .store = store_of(shim, index),
                          .cgroup = shim->cgroup,
                          .container = container_of(shim),
                          .pipes = true};
    memcpy(spawn.output, rank->ends, sizeof spawn.output);
    autofree char **env = launch_environment(&shim->launch, index, added);
    char *path = watch_begin(env);
    spawn.env = env;
    spawn.path = path_of(env);
    rank->pid = 0;
    bool started = spawn_now(&spawn, &rank->pid, ret_code, why);
    rank->state = rank->pid > 0 ? RANK_LIVE : rank->state;
    free(path);
    return started;
}

bool rank_start(struct shim *shim, size_t index, char *const *added, int *ret_code, struct why *why)
{
    struct rank *rank = &shim->ranks[index];
    *ret_code = 0;
    if (rank->ends[0] < 0 && !output_pipes(shim, index, rank->ends, why)) {
        return false;
    }
    enum warm_end end = rank_is_offered(shim, index) ? rank_become(shim, index, ret_code, why) : WARM_NOTHING;
    bool started = end == WARM_RANK || (end == WARM_NOTHING && rank_fork(shim, index, added, ret_code, why));
    reap_follow(shim, index);
    for (size_t i = 0; i < 2; i++) {
        close(rank->ends[i]);
        rank->ends[i] = -1;
    }
    return started;
}

bool rank_any_live(const struct shim *shim)
{
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        if (shim->ranks[i].state == RANK_LIVE) {
            return true;
        }
    }
    return false;
}
