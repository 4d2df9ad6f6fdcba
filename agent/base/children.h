/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that the agent starts for its own work: builders of environments, unpackers of bundles. Each has
 * its own session, and ends when the agent no longer needs it. */
#ifndef AGENT_CHILDREN_H
#define AGENT_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "agent/base/loop.h"
#include "proto/base/err.h"

struct children;
struct child;

struct child_call {
    const char *const *arguments; /* ended by NULL, as all lists; the first is searched on PATH */
    const char *const *variables; /* its whole environment */
    int input;                    /* its stdin, borrowed; -1: an empty pipe that closes when the agent ends */
    int extra;                    /* its fd 3, borrowed; -1: none */
    /* Called for each line of its stdout, without the line end; NULL: its stdout goes to /dev/null. */
    void (*line)(void *closure, const char *line);
    /* Called once, after the child was freed and no process of its session is left. status is that of
     * waitpid, said the end of its stderr; said is borrowed. */
    void (*done)(void *closure, int status, const char *said);
    void *closure;
};

struct children *children_create(struct loop *loop);
/* Kills the remaining children, without calls of done. */
void children_destroy(struct children *children);

struct child *child_start(struct children *children, const struct child_call *call, struct err *err);

/* Ends a child without a call of done: SIGTERM to its group, SIGKILL after grace_ms. NULL is allowed. */
void child_stop(struct child *child, int64_t grace_ms);

pid_t child_pid(const struct child *child);

/* Reaps every process of the agent that has ended; call it on SIGCHLD. Without that call, children notice
 * their own ends. */
void children_reap(struct children *children);

#endif
