/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the processes that do the agent's slow work: their pipes, their end, and the processes that they
 * leave. The loop never waits for a child, and the output of a child cannot fill the memory. When `done` is
 * called, no process of the child's session writes any more. The callers decide what children do. */
#include "agent/base/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/base/program.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define EXTRA_FD 3

struct child {
    struct children *children;
    struct child_call call; /* after a stop: line and done are NULL */
    pid_t pid;
    int input; /* write end of its stdin pipe; -1: none */
    int status;
    bool reaped;
    struct loop_watch end, output, errors;
    struct loop_timer kill;
    struct text line; /* an unfinished line of stdout */
    struct text said; /* the end of stderr */
    struct child *prev, *next;
};

struct children {
    struct loop *loop;
    int null;
    struct rlimit files; /* the limits before the agent raised them */
    struct child *items;
};

struct children *children_create(struct loop *loop)
{
    struct children *children = xzalloc(sizeof *children);
    children->loop = loop;
    children->files = program_limit();
    children->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return children;
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

/* --- ends ----------------------------------------------------------------------------------------------- */

/* The number stays the child's until it is reaped. */
static void tell_session(const struct child *child, int signal)
{
    if (!child->reaped) {
        kill(-child->pid, signal);
    }
}

static void close_watch(struct child *child, struct loop_watch *watch)
{
    loop_unwatch(child->children->loop, watch);
    cleanup_close(&watch->fd);
    watch->fd = -1;
}

static void destroy_child(struct child *child)
{
    close_watch(child, &child->end);
    close_watch(child, &child->output);
    close_watch(child, &child->errors);
    loop_disarm(child->children->loop, &child->kill);
    cleanup_close(&child->input);
    text_finish(&child->line);
    text_finish(&child->said);
    DL_DELETE(child->children->items, child);
    free(child);
}

void children_destroy(struct children *children)
{
    if (children == NULL) {
        return;
    }
    while (children->items != NULL) {
        tell_session(children->items, SIGKILL);
        if (!children->items->reaped) {
            waitpid(children->items->pid, NULL, 0);
        }
        destroy_child(children->items);
    }
    close(children->null);
    free(children);
}

static void kill_due(void *closure)
{
    tell_session(closure, SIGKILL);
}

void child_stop(struct child *child, int64_t grace_ms)
{
    if (child == NULL) {
        return;
    }
    child->call.line = NULL;
    child->call.done = NULL;
    tell_session(child, SIGTERM);
    loop_set(child->children->loop, &child->kill, kill_due, child);
    loop_arm(child->children->loop, &child->kill, clock_boot_ms() + grace_ms);
}

/* Kills the rest of its session, and reaps it. */
static void take_end(struct child *child)
{
    tell_session(child, SIGKILL);
    child->reaped = child->reaped || waitpid(child->pid, &child->status, WNOHANG) == child->pid;
}

/* A process that has ended and was not reaped; 0: there is none. */
static pid_t next_ended(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid : 0;
}

void children_reap(struct children *children)
{
    for (pid_t pid; (pid = next_ended()) > 0;) {
        struct child *child;
        DL_SEARCH_SCALAR(children->items, child, pid, pid);
        if (child != NULL) {
            take_end(child);
        } else {
            waitpid(pid, NULL, WNOHANG);
        }
    }
}

/* --- output --------------------------------------------------------------------------------------------- */

/* Cuts a line that is longer than LIMIT_CHILD_LINE_BYTES; the rest counts as another line. */
static void take_lines(struct child *child, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool ends = bytes[i] == '\n';
        if (!ends) {
            text_append_bytes(&child->line, &bytes[i], 1);
        }
        if (ends || child->line.length >= LIMIT_CHILD_LINE_BYTES) {
            if (child->call.line != NULL && child->line.length > 0) {
                child->call.line(child->call.closure, child->line.bytes);
            }
            text_clear(&child->line);
        }
    }
}

static void take_errors(struct child *child, const char *bytes, size_t length)
{
    text_append_bytes(&child->said, bytes, length);
    if (child->said.length > LIMIT_STAGING_TEXT) {
        struct text rest = {0};
        text_append_bytes(&rest, child->said.bytes + child->said.length - LIMIT_STAGING_TEXT / 2,
                          LIMIT_STAGING_TEXT / 2);
        text_finish(&child->said);
        child->said = rest;
    }
}

/* Reads one piece; false when there is nothing to read now. */
static bool read_piece(struct child *child, struct loop_watch *watch)
{
    char bytes[16 * 1024];
    ssize_t got = watch->fd >= 0 ? read(watch->fd, bytes, sizeof bytes) : 0;
    if (got > 0 && watch == &child->output) {
        take_lines(child, bytes, (size_t)got);
    } else if (got > 0) {
        take_errors(child, bytes, (size_t)got);
    } else if (got == 0 || errno != EAGAIN) {
        close_watch(child, watch);
    }
    return got > 0;
}

static void output_ready(void *closure, uint32_t events)
{
    struct child *child = closure;
    read_piece(child, &child->output);
}

static void errors_ready(void *closure, uint32_t events)
{
    struct child *child = closure;
    read_piece(child, &child->errors);
}

/* No process of its session lives, so its pipes get no more bytes. */
static void end_ready(void *closure, uint32_t events)
{
    struct child *child = closure;
    take_end(child);
    while (read_piece(child, &child->output)) {
    }
    while (read_piece(child, &child->errors)) {
    }
    struct child_call call = child->call;
    autofree char *said = xstrdup(child->said.length > 0 ? child->said.bytes : "");
    int ended = child->status;
    destroy_child(child);
    if (call.done != NULL) {
        call.done(call.closure, ended, said);
    }
}

/* --- starting ------------------------------------------------------------------------------------------- */

/* False with errno. */
static bool make_pipe(int *ret_read, int *ret_write)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    *ret_read = ends[0];
    *ret_write = ends[1];
    return true;
}

static void watch(struct child *child, struct loop_watch *watch, int fd,
                  void (*ready)(void *closure, uint32_t events))
{
    *watch = (struct loop_watch){.fd = fd, .events = EPOLLIN, .ready = ready, .closure = child};
    loop_watch(child->children->loop, watch);
}

static void adopt(struct children *children, const struct child_call *call, pid_t pid, int fds[3],
                  struct child *child)
{
    *child = (struct child){.children = children, .call = *call, .pid = pid, .input = fds[0]};
    child->call.arguments = child->call.variables = NULL;
    DL_APPEND(children->items, child);
    for (int i = 1; i < 3; i++) {
        if (fds[i] >= 0) {
            fcntl(fds[i], F_SETFL, O_NONBLOCK);
        }
    }
    child->output.fd = -1;
    if (fds[1] >= 0) {
        watch(child, &child->output, fds[1], output_ready);
    }
    watch(child, &child->errors, fds[2], errors_ready);
    watch(child, &child->end, (int)syscall(SYS_pidfd_open, pid, 0), end_ready);
}

struct child *child_start(struct children *children, const struct child_call *call, struct err *err)
{
    autoclose int input = -1;
    autoclose int output = -1;
    autoclose int errors = -1;
    autoclose int their_input = -1;
    autoclose int their_output = -1;
    autoclose int their_errors = -1;
    pid_t pid;
    if ((call->input < 0 && !make_pipe(&their_input, &input)) ||
        (call->line != NULL && !make_pipe(&output, &their_output)) || !make_pipe(&errors, &their_errors)) {
        err_errno(err, "cannot make a pipe");
        return NULL;
    }
    const int theirs[4][2] = {{call->input < 0 ? their_input : call->input, STDIN_FILENO},
                              {call->line != NULL ? their_output : children->null, STDOUT_FILENO},
                              {their_errors, STDERR_FILENO},
                              {call->extra, EXTRA_FD}};
    const struct program_call spawn = {.arguments = call->arguments,
                                       .variables = call->variables,
                                       .fds = theirs,
                                       .fd_count = 4,
                                       .files = &children->files};
    errno = program_start(&spawn, &pid);
    if (errno != 0) {
        err_errno(err, "cannot start %s", call->arguments[0]);
        return NULL;
    }
    struct child *child = xzalloc(sizeof *child);
    adopt(children, call, pid, (int[3]){give_fd(&input), give_fd(&output), give_fd(&errors)}, child);
    return child;
}
