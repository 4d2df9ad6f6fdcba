/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that people run beside a rank while it runs (gpuctl exec). A command is started as its rank was:
 * in the attempt's cgroup and namespaces, as its user, with its limits, environment and folder, and without
 * the descriptors that only the rank has. It counts as no rank: its end changes nothing, and it never holds
 * up the end of the attempt. It also ends with the socket through which the agent has asked for it. */
#include "agent/shim/shim.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/common/fd_message.h"
#include "proto/base/cleanup.h"

struct command {
    int socket; /* of the agent; -1: it has let go */
    pid_t pid;  /* 0: none */
};

/* What the agent wants. */
struct asked {
    char bytes[LIMIT_STREAM_COMMAND_BYTES + LIMIT_SHIM_MESSAGE];
    char *arguments[LIMIT_STREAM_WORDS + 1];
    const char *term;
    int fds[3]; /* of a terminal: the first alone */
    size_t fd_count;
};

/* --- what is wanted ------------------------------------------------------------------------------------- */

/* KEY and VALUE, each with a NUL behind it. */
static bool asked_parse(struct asked *asked, size_t length)
{
    size_t count = 0;
    const char *end = asked->bytes + length;
    for (char *at = asked->bytes; at < end;) {
        char *value = at + strlen(at) + 1;
        if (value >= end) {
            return false;
        }
        if (strcmp(at, "arg") == 0 && count < LIMIT_STREAM_WORDS) {
            asked->arguments[count++] = value;
        } else if (strcmp(at, "term") == 0) {
            asked->term = value;
        } else {
            return false;
        }
        at = value + strlen(value) + 1;
    }
    return count > 0 && (asked->fd_count == 1 || asked->fd_count == 3);
}

static bool asked_receive(struct asked *asked, int socket)
{
    ssize_t length = fd_message_receive_several(socket, asked->bytes, sizeof asked->bytes, asked->fds, 3,
                                                &asked->fd_count);
    return length > 0 && asked->bytes[length - 1] == '\0' && asked_parse(asked, (size_t)length);
}

static void asked_finish(struct asked *asked)
{
    for (size_t i = 0; i < asked->fd_count; i++) {
        close(asked->fds[i]);
    }
    free(asked);
}

/* The environment of the rank, which the caller frees in one call. GPUCTL_STORE_FD names a descriptor that
 * only the rank has. *ret_term is freed after it. */
static char **environment_of(const struct shim *shim, size_t index, const char *term, char **ret_term)
{
    static const char store[] = "GPUCTL_STORE_FD=", terminal[] = "TERM=";
    char *const none[] = {NULL};
    char **env = launch_environment(&shim->launch, index, shim->added != NULL ? shim->added : none);
    size_t count = 0;
    *ret_term = term != NULL ? xprintf("%s%s", terminal, term) : NULL;
    for (size_t i = 0; env[i] != NULL; i++) {
        bool left_out = strncmp(env[i], store, sizeof store - 1) == 0 ||
                        (term != NULL && strncmp(env[i], terminal, sizeof terminal - 1) == 0);
        if (!left_out) {
            env[count++] = env[i];
        }
    }
    env[count] = *ret_term; /* there is room for one entry more */
    env[count + (term != NULL)] = NULL;
    return env;
}

/* --- begin and end -------------------------------------------------------------------------------------- */

static void say(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct command *command, const char *format, ...)
{
    char text[LIMIT_SHIM_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    send(command->socket, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void let_go(struct command *command)
{
    if (command->socket >= 0) {
        close(command->socket); /* the epoll forgets it, too */
        command->socket = -1;
    }
}

static struct command *command_make(struct shim *shim, size_t *ret_place)
{
    if (shim->commands == NULL) {
        shim->commands = xzalloc(LIMIT_ATTEMPT_STREAMS * sizeof *shim->commands);
    }
    for (size_t i = 0; i < LIMIT_ATTEMPT_STREAMS; i++) {
        if (shim->commands[i].pid == 0) {
            *ret_place = i;
            return &shim->commands[i];
        }
    }
    return NULL;
}

/* A rank that runs, or that has ended in an attempt that is kept; rank_count: there is none. */
static size_t find_rank(const struct shim *shim, int64_t number)
{
    size_t index = 0;
    while (index < shim->launch.rank_count && shim->launch.ranks[index].number != number) {
        index++;
    }
    bool there = index < shim->launch.rank_count &&
                 (shim->phase == PHASE_KEPT || shim->ranks[index].state == RANK_LIVE);
    return there ? index : shim->launch.rank_count;
}

static void start(struct shim *shim, struct command *command, size_t place, size_t index,
                  const struct asked *asked)
{
    struct why why;
    int code = 0;
    char *term;
    autofree char **env = environment_of(shim, index, asked->term, &term);
    struct command_start start = {
        .arguments = (char **)(uintptr_t)asked->arguments, .env = env, .terminal = asked->fd_count == 1};
    for (size_t i = 0; i < 3; i++) {
        start.fds[i] = asked->fds[asked->fd_count == 1 ? 0 : i];
    }
    pid_t pid = 0;
    bool started = command_spawn(shim, &start, &pid, &code, &why);
    free(term);
    command->pid = pid; /* also of one that could not execute its program: it is to be reaped */
    if (!started) {
        say(command, "failed %d %s", code, why.text);
        let_go(command);
    } else if (!shim_watch(shim, command->socket, WATCH_COMMAND, place)) {
        kill(-pid, SIGKILL);
    }
}

void command_begin(struct shim *shim, int64_t rank)
{
    size_t place = 0, index = find_rank(shim, rank);
    struct command *command = command_make(shim, &place);
    int socket = give_fd(&shim->agent_socket.given);
    struct asked *asked = xzalloc(sizeof *asked);
    struct command refused = {.socket = socket};
    if (socket < 0) {
        shim_log_error("ignores a command without a socket");
    } else if (command == NULL) {
        say(&refused, "failed 0 rank %d has %d commands beside it, the most that it may have", (int)rank,
            LIMIT_ATTEMPT_STREAMS);
        let_go(&refused);
    } else if (!asked_receive(asked, socket) || index == shim->launch.rank_count ||
               shim->ladder != LADDER_NONE) {
        say(&refused, "failed 0 rank %d is about to end, or has ended", (int)rank);
        let_go(&refused);
    } else {
        *command = (struct command){.socket = socket};
        start(shim, command, place, index, asked);
    }
    asked_finish(asked);
}

/* The agent says nothing more: its side was closed. The process is not reaped, so its number is its own. */
void command_hear(struct shim *shim, size_t place)
{
    struct command *command = &shim->commands[place];
    char ignored[16];
    if (command->socket >= 0 && recv(command->socket, ignored, sizeof ignored, MSG_DONTWAIT) == 0) {
        let_go(command);
        kill(-command->pid, SIGKILL);
    }
}

/* ENDS: the attempt ends, and the command with it. */
void command_ended(struct shim *shim, pid_t pid, int status)
{
    for (size_t i = 0; shim->commands != NULL && i < LIMIT_ATTEMPT_STREAMS; i++) {
        struct command *command = &shim->commands[i];
        if (command->pid != pid) {
            continue;
        }
        int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        bool ends = shim->ladder != LADDER_NONE || (shim->phase != PHASE_KEPT && !rank_any_live(shim));
        if (command->socket >= 0) {
            say(command, "exited %d %d%s", signal != 0 ? 128 + signal : WEXITSTATUS(status), signal,
                ends ? " ends" : "");
        }
        let_go(command);
        command->pid = 0;
        return;
    }
}

void commands_kill(struct shim *shim)
{
    for (size_t i = 0; shim->commands != NULL && i < LIMIT_ATTEMPT_STREAMS; i++) {
        if (shim->commands[i].pid != 0) {
            kill(-shim->commands[i].pid, SIGKILL);
        }
    }
}

void commands_finish(struct shim *shim)
{
    for (size_t i = 0; shim->commands != NULL && i < LIMIT_ATTEMPT_STREAMS; i++) {
        if (shim->commands[i].pid != 0) {
            let_go(&shim->commands[i]);
        }
    }
    free(shim->commands);
    shim->commands = NULL;
}
