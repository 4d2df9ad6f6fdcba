/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program for the agent: default signals, a session of its own, the limit of open files that the
 * agent had before it raised its own. */
#ifndef AGENT_PROGRAM_H
#define AGENT_PROGRAM_H

#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct program_call {
    const char *const *arguments; /* the first is the program, searched on PATH unless it is a path */
    const char *const *variables; /* its whole environment; both are ended by NULL */
    const int (*fds)[2];          /* which of ours becomes which of its own; -1: none */
    size_t fd_count;
    const struct rlimit *files; /* of program_limit */
};

/* The limit of open files as it is now, for what is started later. */
struct rlimit program_limit(void);

/* 0, or the errno of the failure. */
int program_start(const struct program_call *call, pid_t *ret_pid);

#endif
