/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of gpushim: a few that wait for work, started ahead of need, and those found again after a
 * restart of the agent. */
#ifndef AGENT_SHIMS_H
#define AGENT_SHIMS_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/base/loop.h"
#include "proto/base/err.h"

/* One shim: the socket to it, and its identity. Both are the holder's to close. */
struct shim_process {
    int fd;    /* SOCK_SEQPACKET, not blocking; -1: none */
    int pidfd; /* readable when it has ended; -1: none */
};

struct shims;

/* shim_log is where the shims' stderr goes, kept by the caller; own_memory: ranks get shared memory that
 * goes with their attempt, where the host lets us. NULL when gpushim is not found. */
struct shims *shims_create(int shim_log, bool own_memory, struct loop *loop, struct err *err);
void shims_destroy(struct shims *shims);

/* Where gpushim is, and whether it gives its ranks shared memory of their own. */
const char *shims_program(const struct shims *shims);
bool shims_own_memory(const struct shims *shims);

/* One that waits, or a fresh one. */
bool shims_take(struct shims *shims, struct shim_process *ret_shim, struct err *err);

/* Starts one if too few wait; true when one more is to be started. */
bool shims_refill(struct shims *shims);

/* Finds the shim of a run folder; false when none of that process number and start time lives, and then none
 * will ever take the folder. One that lives and does not listen has a pidfd and no fd. */
bool shims_find(const char *run_folder, struct shim_process *ret_shim);

/* Another connection to the shim of a run folder, not blocking; -1 when none listens. */
int shims_connect(const char *run_folder);

/* Tells a shim to end and hears it out; takes over what it holds. A socket that is closed with words unread
 * would take the last words to the shim with it. */
void shims_dismiss(struct shims *shims, struct shim_process *shim);

void shim_process_close(struct shim_process *shim);
/* Its death is seen in the pidfd. */
void shim_process_kill(const struct shim_process *shim);

/* Whether somebody has stopped it, by a signal or as a debugger does. */
bool shim_process_is_stopped(const struct shim_process *shim);

/* Its process number; 0 when it is gone. */
pid_t shim_process_pid(const struct shim_process *shim);

/* Sends one message; false when it did not get there. */
bool shim_process_tell(const struct shim_process *shim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
