/* SPDX-License-Identifier: Apache-2.0 */
/* A gpushim under test, with the folders of one attempt and this process as its agent. Whatever goes wrong
 * fails the test. */
#ifndef TESTS_SHIM_RIG_H
#define TESTS_SHIM_RIG_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RIG_SCORE      "100" /* of whom the OOM killer chooses, before the shim makes its own */
#define RIG_ATTEMPT_ID "4294967297"

struct rig {
    char root[64], run[96], logs[96], cgroup[128];
    char home[80];            /* of the shim while it has no attempt */
    int agent_socket, errors; /* socket to the shim; its stderr */
    pid_t shim;
    char launch[8192];
    size_t launch_size;
    char heard[4096]; /* the last message */
    int pids[2];      /* of the first ranks, as the shim named them last */
    int step;         /* of the last checkpoint that the agent was told of */
};

/* rig_begin makes folders and a shim with an empty launch file, rig_end wants the shim to have ended well,
 * with nothing left. A second shim of a test gets a rig of its own. */
void rig_begin(struct rig *rig);
void rig_begin_without_home(struct rig *rig);
void rig_forget(struct rig *rig); /* tells the shim to end, waits until it has */
void rig_end(struct rig *rig);    /* removes the folders */

/* After the end of its attempt: the shim leaves the folder, and gets new ones with an empty launch file. */
void rig_reuse(struct rig *rig, const char *attempt_id);

/* A field of the launch file; rig_shell: the words of `sh -c SCRIPT`, with the PATH of this process. */
void rig_field(struct rig *rig, const char *key, const char *value);
void rig_shell(struct rig *rig, const char *script);
void rig_range(struct rig *rig, int first, int last);

/* Lets the ranks find tests/unit/shim/shim_fake_rank.c as $FAKE_RANK, and the shim as $GPUCTL_SOCKET. */
void rig_fake_rank(struct rig *rig);

/* Gives the attempt a cgroup; false where this host does not let us make one. */
bool rig_cgroup(struct rig *rig);

/* Writes the launch file and assigns the folder; the fields logs, cwd (the root) and attempt id are there
 * already.
 */
void rig_assign(struct rig *rig);
void rig_assign_and(struct rig *rig, const char *orders); /* orders in the same message, in lines */

void rig_send(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *rig_expect(struct rig *rig, const char *start); /* the next message but `output` begins so */
void rig_expect_exactly(struct rig *rig, const char *text); /* and the very next is this */
void rig_connect(struct rig *rig);                          /* as a new agent, at shim.sock */

/* A socket that sends to rank.sock, as a rank's; -1 where nobody is there. */
int rig_rank_socket(struct rig *rig);

/* What a file of the shim may grow to from now on. */
void rig_limit_file_size(struct rig *rig, uint64_t bytes);

/* Whole files of the log folder; the caller frees. rig_await: returns when the file holds the text. */
bool rig_has(struct rig *rig, const char *name);
char *rig_read(struct rig *rig, const char *name);
char *rig_await(struct rig *rig, const char *name, const char *text);
void rig_logs_error(struct rig *rig, const char *text); /* returns when stderr has said so */

/* rig_start: assign, run, running. rig_finish: exited, and the whole record; the caller frees. */
void rig_start(struct rig *rig);
char *rig_finish(struct rig *rig);

/* What the record says of a rank, and its cause line. */
struct rig_exit {
    int code, signal, by_us;
    long long wall_ms, out_bytes, err_bytes;
};
struct rig_exit rig_exit_of(const char *record, int rank);
void rig_cause_is(const char *record, const char *cause);

/* A gate is a fifo in the root: both sides wait for each other; a rank reads the line `go` from it. */
void rig_gate(struct rig *rig, const char *name);
void rig_gate_pass(struct rig *rig, const char *name);

void rig_gone(pid_t pid); /* there is no such process */

/* The first of `count` ports in a row that are free now; a listening socket of loopback, or -1. */
int rig_free_ports(int count);
int rig_bind_port(int port, bool reuse);

void rig_suite_life(Suite *suite);
void rig_suite_ready(Suite *suite);
void rig_suite_kill(Suite *suite);
void rig_suite_kept(Suite *suite);
void rig_suite_checkpoint(Suite *suite);
void rig_suite_timing(Suite *suite);
void rig_suite_output(Suite *suite);
void rig_suite_pipes(Suite *suite);
void rig_suite_metrics(Suite *suite);
void rig_suite_store(Suite *suite);
void rig_suite_sabotage(Suite *suite);
void rig_suite_reuse(Suite *suite);
void rig_suite_warm(Suite *suite);

#endif
