/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that outlives us: started in a session of its own, known by pid and start time, watched and ended
 * through a pidfd. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/err.h"

/* Starts argv[0] (an absolute path) with output appended to the file log, and records it in the file record.
 * *ret_pidfd is the caller's. */
bool process_start(char *const *argv, const char *log, const char *record, int *ret_pidfd, struct err *err);

/* Starts a program of the person's, which is looked up in PATH, in a session of its own and without output.
 * false: it could not be started, or failed within patience_ms. */
bool process_launch(char *const *argv, int64_t patience_ms, struct err *err);

/* A pidfd of the process that the file records; -1 when it is not there any more. *ret_pid may be NULL. */
int process_open(const char *record, pid_t *ret_pid);

/* A process as /proc has it: the time of its start tells it from a later one with its id. */
struct process {
    pid_t pid, parent;
    long long started;
};
bool process_read(pid_t pid, struct process *ret_process);
/* false: it is not there any more. */
bool process_signal(const struct process *process, int signal);

/* Waits until the process has ended; false when the time is over. */
bool process_wait(int pidfd, int64_t timeout_ms);

/* TERM, then KILL after the grace. true when it has ended. */
bool process_end(int pidfd, int64_t grace_ms);

/* What a program prints on stdout, at most max bytes. The caller frees it; NULL when it cannot be run, fails,
 * or prints more. */
char *process_output(char *const *argv, size_t max);

#endif
