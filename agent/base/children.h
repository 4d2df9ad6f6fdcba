/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that the agent starts for its own work: builders of environments, unpackers of bundles. Each has
 * a session of its own, and none outlives the agent's interest in it. */
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
    const char *const *arguments; /* the first is searched on PATH; ended by NULL, as all lists */
    const char *const *variables; /* its whole environment */
    int input; /* its stdin, borrowed; -1: a pipe without a word in it, which ends with the agent */
    int extra; /* its fd 3, borrowed; -1: none */
    /* Each line of its stdout, without its end; NULL: nobody wants to know. */
    void (*line)(void *closure, const char *line);
    /* Once: no process of its session is left. status is of waitpid, said what its stderr held last: both are
     * borrowed. The child is gone before. */
    void (*done)(void *closure, int status, const char *said);
    void *closure;
};

struct children *children_create(struct loop *loop);
/* Kills those that are left, without a word to anybody. */
void children_destroy(struct children *children);

struct child *child_start(struct children *children, const struct child_call *call, struct err *err);

/* Ends a child without a word: SIGTERM to its group, SIGKILL after grace_ms. NULL is allowed. */
void child_stop(struct child *child, int64_t grace_ms);

pid_t child_pid(const struct child *child);

/* Collects every process of the agent that has ended: for its SIGCHLD. Where nobody does, children find their
 * own ends by themselves. */
void children_reap(struct children *children);

#endif
