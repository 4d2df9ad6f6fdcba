/* SPDX-License-Identifier: Apache-2.0 */
/* Starts programs for the agent. It uses posix_spawn, which does not copy the agent's memory as fork would.
 * The child gets the limit of open files from before the agent raised its own, because people's programs use
 * select, or close all descriptors up to the limit. */
#include "agent/base/program.h"

#include <signal.h>
#include <spawn.h>
#include <stdint.h>

struct rlimit program_limit(void)
{
    struct rlimit files = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_NOFILE, &files);
    return files;
}

/* A child inherits the current limits of its parent. */
static int start_limited(const struct program_call *call, const posix_spawn_file_actions_t *files,
                         const posix_spawnattr_t *attributes, pid_t *ret_pid)
{
    const struct rlimit own = program_limit();
    setrlimit(RLIMIT_NOFILE, call->files);
    const char *program = call->program != NULL ? call->program : call->arguments[0];
    int result = posix_spawnp(ret_pid, program, files, attributes, (char *const *)(uintptr_t)call->arguments,
                              (char *const *)(uintptr_t)call->variables);
    setrlimit(RLIMIT_NOFILE, &own);
    return result;
}

int program_start(const struct program_call *call, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, reset;
    sigemptyset(&none);
    sigfillset(&reset);
    int result = 0;
    posix_spawn_file_actions_init(&files);
    for (size_t i = 0; i < call->fd_count && result == 0; i++) {
        const int *fd = call->fds[i];
        result = fd[0] >= 0 ? posix_spawn_file_actions_adddup2(&files, fd[0], fd[1]) : 0;
    }
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &reset);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (result == 0) {
        result = start_limited(call, &files, &attributes, ret_pid);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return result;
}
