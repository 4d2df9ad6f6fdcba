/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program for the agent: default signals, its own session, and the limit of open files from before
 * the agent raised its own. */
#ifndef AGENT_PROGRAM_H
#define AGENT_PROGRAM_H

#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct program_call {
    const char *program; /* searched on PATH unless it is a path; NULL: the first argument */
    const char *const *arguments;
    const char *const *variables; /* its whole environment; both are ended by NULL */
    const int (*fds)[2];          /* pairs of a descriptor here and its number in the child; -1: none */
    size_t fd_count;
    const struct rlimit *files; /* from program_limit */
};

/* The current limit of open files, to be passed to later calls. */
struct rlimit program_limit(void);

/* 0, or the errno of the failure. */
int program_start(const struct program_call *call, pid_t *ret_pid);

#endif
