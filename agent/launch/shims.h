/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of gpushim: a few idle ones, started ahead of need or left by earlier attempts, and those
 * found again after a restart of the agent. */
#ifndef AGENT_SHIMS_H
#define AGENT_SHIMS_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/base/loop.h"
#include "proto/base/err.h"

/* One shim: the socket to it, and its identity. The holder closes both. */
struct shim_process {
    int fd;    /* SOCK_SEQPACKET, not blocking; -1: none */
    int pidfd; /* readable when the shim has ended; -1: none */
    bool own;  /* this agent has started it, so that it may serve another attempt */
};

struct shims;

/* The caller keeps shim_log, which receives the shims' stderr. With own_memory, ranks get shared memory that
 * goes with their attempt, where the host permits it. homes: a folder for shims without an attempt, which is
 * emptied, on the file system of the run folders. NULL when it cannot be made, or gpushim is not found. */
struct shims *shims_create(int shim_log, bool own_memory, const char *homes, struct loop *loop,
                           struct err *err);
void shims_destroy(struct shims *shims);

/* The path of gpushim, and whether it gives its ranks their own shared memory. */
const char *shims_program(const struct shims *shims);
/* With which it executes another program, as agent/shim/shimwire.h says. */
const char *shims_confine_option(void);
bool shims_own_memory(const struct shims *shims);

/* Takes an idle shim, or starts one. */
bool shims_take(struct shims *shims, struct shim_process *ret_shim, struct err *err);

/* Starts one shim if too few are idle; true when another one should be started. */
bool shims_refill(struct shims *shims);

/* Finds the shim of a run folder. False when no process with its number and start time lives; then no shim
 * will ever take the folder. A shim that lives and does not listen has a pidfd and no fd. */
bool shims_find(const char *run_folder, struct shim_process *ret_shim);

/* Opens another connection to the shim of a run folder, not blocking; -1 when no shim listens. */
int shims_connect(const char *run_folder);

/* Takes over a shim whose attempt is over: one of this agent's own becomes idle again where its attempt has
 * left nothing, any other is told to end. Its messages are read until then: closing the socket with unread
 * messages could discard the order. */
void shims_dismiss(struct shims *shims, struct shim_process *shim);

void shim_process_close(struct shim_process *shim);
/* The pidfd shows the death of the shim. */
void shim_process_kill(const struct shim_process *shim);

/* Whether the shim is stopped, by a signal or by a debugger. */
bool shim_process_is_stopped(const struct shim_process *shim);

/* Its process number; 0 when it is gone. */
pid_t shim_process_pid(const struct shim_process *shim);

/* Sends one message; false when it could not be sent. */
bool shim_process_tell(const struct shim_process *shim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
