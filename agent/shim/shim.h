/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of gpushim: one plain value that its files share, and what each file offers the others. The shim
 * has one thread and one attempt, so `struct shim` is the whole program; each part below says who writes it.
 * Functions that return false fill `why`. */
#ifndef AGENT_SHIM_H
#define AGENT_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "agent/shim/shimwire.h"
#include "proto/limits.h"

#define SHIM_NEVER INT64_MAX /* a time that does not come */

enum phase {
    PHASE_IDLE,      /* waits for an attempt */
    PHASE_ASSIGNED,  /* has its folder; holds nothing yet */
    PHASE_PREPARED,  /* port, files and cgroup are held */
    PHASE_DECLINED,  /* nothing was started and nothing will be */
    PHASE_RUNNING,   /* there are processes, or there were a moment ago */
    PHASE_RECORDING, /* all processes are gone; the exit record is not on disk yet */
    PHASE_EXITED,    /* the exit record is on disk */
};

enum ladder {
    LADDER_NONE,
    LADDER_SIGNAL,    /* the ranks got the signal that they asked for, and TERM follows */
    LADDER_TERM,      /* the ranks were asked to end */
    LADDER_LEFTOVERS, /* the ranks are gone; what they left behind was asked to end */
    LADDER_KILL,      /* whatever is there is killed, again and again until nothing is */
};

/* What the shim has to say, in the order in which a new connection hears it. */
enum fact { FACT_PREPARED, FACT_DECLINED, FACT_RUNNING, FACT_FAILED, FACT_OUTPUT, FACT_EXITED, FACT_COUNT };

enum notice { NOTICE_QUIET, NOTICE_DUE, NOTICE_TOLD, NOTICE_TOLD_AND_DUE };

enum stream_state {
    STREAM_STORES, /* bytes go to the file */
    STREAM_FAILS,  /* the file could not be written; bytes are dropped until a marker can be */
    STREAM_FULL,   /* the file is at its limit; the last bytes are kept aside */
    STREAM_ENDED,
};

enum rank_state { RANK_WAITS, RANK_LIVE, RANK_EXITED };

/* What a start is measured by. */
enum moment { MOMENT_PREPARED, MOMENT_BEGUN, MOMENT_RUNNING, MOMENT_OUTPUT, MOMENT_GONE, MOMENT_COUNT };

/* A moment that a rank has named. */
struct mark {
    int rank;
    int64_t at_us; /* boot */
    char name[LIMIT_MARK_NAME + 1];
};

#define SHIM_PATTERNS 2 /* CLUSTER_SPEC, TF_CONFIG */

/* What an event on a descriptor means; with an index in epoll's data. */
enum watch {
    WATCH_SIGNAL,
    WATCH_TIMER,
    WATCH_AGENT_SOCKET,
    WATCH_LISTENER,
    WATCH_METRICS,
    WATCH_STREAM,
    WATCH_WARM
};

struct why {
    char text[LIMIT_SHIM_TEXT];
};

struct launch_rank {
    int number;
    char **env;
    size_t env_count;
};

/* The launch file. All texts point into `bytes`. */
struct launch {
    char *bytes;
    const char *attempt_id, *logs, *cwd, *cgroup, *hold; /* cgroup, hold: NULL where there is none */
    int64_t log_limit;                                   /* bytes of one stream */
    int64_t cgroup_version, port_first, port_last, failed_grace_ms;
    int64_t store_rank;                  /* -1: none */
    int64_t torchrun;                    /* 1: the ranks are torchruns, or may start one */
    const char *patterns[SHIM_PATTERNS]; /* NAME=VALUE with "@N" for nodes; shim_addresses.c */
    size_t pattern_count;
    char **arguments; /* ends with NULL */
    size_t argument_count;
    char **env;
    size_t env_count;
    struct launch_rank *ranks;
    size_t rank_count;
};

/* One output stream of one rank, or the metrics of all. */
struct stream {
    enum stream_state state;
    int pipe, file;  /* the metrics have no pipe */
    int error;       /* why the file cannot be written, in STREAM_FAILS */
    int64_t stored;  /* size of the file */
    int64_t limit;   /* of stored, until the end; then the tail comes behind it */
    int64_t dropped; /* bytes since the last marker */
    int tail;        /* file of the last bytes; -1: none is kept; shim_tail.c, as the next two */
    int64_t tail_bytes;
    int64_t passed; /* bytes that went into it, and perhaps out again */
};

/* How far a rank came that did not start; what goes through its pipe `report`. Python writes it, too. */
enum stage { STAGE_CGROUP, STAGE_FOLDER, STAGE_NOT_FOUND, STAGE_INTERPRETER, STAGE_COMMAND };

struct report {
    int32_t stage, error;
};

struct rank {
    enum rank_state state;
    pid_t pid;
    int pidfd; /* readable when it has ended; -1: none */
    int code, signal;
    int ends[2];  /* of its pipes, until it has them; -1 */
    int report;   /* of the worker that is to become it; -1: none */
    size_t place; /* among all that have ended, by time, from 1 */
    int64_t wall_ms;
    bool by_us;
    bool saved;               /* it has acknowledged a checkpoint since the last signal; shim_checkpoint.c */
    struct stream streams[2]; /* stdout, stderr */
};

struct agent_socket {
    int fd, listener;
    char *said[FACT_COUNT]; /* the last words on each fact; NULL: does not hold */
    enum notice notice;
};

struct port {
    int number; /* 0: none held */
    int lock, socket;
};

struct memory {
    int counter;    /* file that counts what the kernel ended for want of memory; -1: none */
    bool own;       /* it counts processes of this attempt alone */
    int64_t before; /* the start */
};

struct shared {
    bool own;         /* the ranks have shared memory of their own */
    int host, mounts; /* the host's namespace, and what is mounted in it */
};

/* A child that can become a rank, and the socket on which it hears so. */
struct warm_worker {
    pid_t pid;
    int voice;
};

struct warm {
    int source; /* where they come from; -1: no more come */
    struct warm_worker workers[LIMIT_NODE_DEVICES];
    size_t count;
    struct why said; /* how the ranks were started: "warm", or "cold" and why; "": nothing to say */
};

struct metrics {
    int socket;         /* -1: not open */
    struct stream file; /* opened when something comes */
    bool oversize_told;
};

struct shim {
    enum phase phase;
    bool ended; /* the loop ends */
    int exit_code;
    int epoll, signals, timer, null;
    int64_t timer_ms;                               /* what the timer is set to */
    struct rlimit files;                            /* as it was before the shim raised it */
    struct launch launch;                           /* shim_launch.c */
    struct agent_socket agent_socket;               /* shim_agent_socket.c */
    struct port port;                               /* shim_port.c */
    struct metrics metrics;                         /* shim_metrics.c */
    struct memory memory;                           /* shim_memory.c */
    struct warm warm;                               /* shim_warm.c */
    struct shared shared;                           /* shim_shared.c */
    int cgroup;                                     /* folder; shim_cgroup.c */
    int record;                                     /* shim_exit.c */
    struct rank *ranks;                             /* shim_rank.c, as many as launch.ranks; the next, too */
    int deaths;                                     /* epoll of their pidfds: it keeps the order of ends */
    size_t ended_count;                             /* of the ranks */
    enum ladder ladder;                             /* shim_kill.c, as the next two */
    int64_t term_ms, kill_ms, tick_ms;              /* boot */
    int64_t tick_pause_ms;                          /* shim_kill.c */
    int64_t lease_term_ms, lease_kill_ms, again_ms; /* boot; shim_attempt.c, as what follows */
    size_t failed;  /* index of the rank that ended the attempt; launch.rank_count: none did */
    bool node_ends; /* init ends all processes: no agent will come */
    char cause[32]; /* "": not known yet */
    struct why cause_text;
    bool warned;                     /* the ranks got the signal before their limit */
    int pre_stop_signal;             /* the signal that the next stop begins with; 0: TERM */
    int64_t checkpoint_ms;           /* wall; the last acknowledged one; 0: none; shim_checkpoint.c */
    bool voices[LIMIT_NODE_DEVICES]; /* by local rank, where one rank has started several; the same */
    int64_t moments[MOMENT_COUNT];   /* microseconds of boot; 0: not yet; whoever sees it happen */
    struct mark marks[LIMIT_MARKS];  /* shim_mark.c, as the next */
    size_t mark_count;
};

/* shim.c: a line on stderr; memory that is there or the program ends; the clocks; a whole number between the
 * two bounds; watching a descriptor; a moment is now, unless it was before. */
void shim_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *shim_resize(void *pointer, size_t count, size_t size);
int64_t shim_boot_ms(void);
int64_t shim_wall_ms(void);
int64_t shim_boot_us(void);
bool shim_number(const char *text, int64_t min, int64_t max, int64_t *ret_number);
bool shim_watch(struct shim *shim, int fd, enum watch watch, size_t index);
void shim_note(struct shim *shim, enum moment moment);
bool why_set(struct why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* always false */

/* shim_order.c: works in one message of the agent; the text is cut up. */
void order_work(struct shim *shim, char *text);

/* shim_attempt.c: the life of the attempt, from the agent's orders, from SIGCHLD, from what ranks say and
 * from the clock. attempt_due_ms is when attempt_clock has something to do. */
void attempt_assign(struct shim *shim, const char *folder);
void attempt_prepare(struct shim *shim);
void attempt_start(struct shim *shim, const char *address, const char *port, const char *interface);
void attempt_run(struct shim *shim, const char *address, const char *interface);
void attempt_warn(struct shim *shim, int signal);
void attempt_stop(struct shim *shim, int64_t grace_ms, const char *cause);
void attempt_heard(struct shim *shim);
void attempt_children(struct shim *shim);
void attempt_node_ends(struct shim *shim);
int64_t attempt_due_ms(const struct shim *shim);
void attempt_clock(struct shim *shim, int64_t now_ms);

/* shim_launch.c: reads the launch file of the current folder; the environment of one rank, to be freed as one
 * piece. `added` are NAME=VALUE, ended by NULL, and yield to what the launch file says. Behind the
 * environment there is room for one more entry. */
bool launch_read(struct launch *launch, struct why *why);
void launch_finish(struct launch *launch);
char **launch_environment(const struct launch *launch, size_t rank, char *const *added);

/* shim_rank.c: gives warm workers, if there are enough, the identities of all ranks; whether a rank has one.
 * Starts one rank with its pipes, by its worker or by a fork. false: it failed, with the exit code that tells
 * so, 0 when there is no process at all. */
void ranks_offer(struct shim *shim, char *const *added);
bool rank_is_offered(const struct shim *shim, size_t index);
bool rank_start(struct shim *shim, size_t index, char *const *added, int *ret_code, struct why *why);

/* shim_warm.c: has workers forked in the shim's namespaces; takes one in; lets them go. What a worker is
 * asked for, to become the rank of the launch's command; gives it that; waits for what came of it: the rank,
 * which says "warm", or "cold" and why, or a report, or nothing, and then the worker is dead. */
struct warm_start {
    char **env;
    int output[2], report, cgroup, store; /* the last two: -1, none */
};
enum warm_end { WARM_RANK, WARM_FAILED, WARM_NOTHING };
void warm_begin(struct shim *shim);
void warm_hear(struct shim *shim);
void warm_end(struct shim *shim);
bool warm_give(const struct shim *shim, const struct warm_worker *worker, const struct warm_start *start);
enum warm_end warm_await(const struct warm_worker *worker, int report, struct report *ret_report, char *said,
                         size_t room);

/* shim_reap.c: follows a rank that was started; takes in whoever has ended, ranks in the order of their ends,
 * and strangers (false: no child is left); the ended rank of a place, NULL for one that is not taken. */
void reap_follow(struct shim *shim, size_t index);
bool reap_ended(struct shim *shim);
const struct rank *reap_at(const struct shim *shim, size_t place);
bool rank_any_live(const struct shim *shim);

/* shim_stream.c: opens a file at its end, which may grow to limit, errno tells why not; appends; counts what
 * is not taken as dropped. stream_ready is false while bytes are to be dropped, or kept in the tail;
 * stream_fail says that the file did not take some; stream_end closes it, with the tail and a last word on
 * what was dropped. */
bool stream_open(struct stream *stream, const char *logs, int rank, const char *kind, int64_t limit,
                 struct why *why);
bool stream_ready(struct stream *stream);
void stream_fail(struct stream *stream, int error);
void stream_append(struct stream *stream, const char *bytes, size_t length);
void stream_end(struct stream *stream, int rank, const char *kind);

/* shim_tail.c: leaves room for a tail behind a stream that was just opened; makes the file of its last bytes;
 * takes a chunk from the pipe, as read
 * does; how much was lost by now; puts what is left behind the stream's file and closes. */
void tail_reserve(struct stream *stream);
bool tail_open(struct stream *stream, const char *logs, int rank, const char *kind);
void tail_close(struct stream *stream);
ssize_t tail_take(struct stream *stream);
int64_t tail_lost(const struct stream *stream);
void tail_append(struct stream *stream);

/* shim_output.c: opens the files, makes the pipes of a rank (the write ends are the caller's), moves bytes
 * when a pipe has some, takes what a rank that failed has in its pipes now, and at the end what is still in
 * any. */
bool output_open(struct shim *shim, struct why *why);
bool output_pipes(struct shim *shim, size_t rank, int ret_write[2], struct why *why);
void output_move(struct shim *shim, size_t stream);
void output_drain(struct shim *shim, size_t rank);
void output_finish(struct shim *shim);
void output_close(struct shim *shim);

/* shim_metrics.c: opens rank.sock in the current folder; stores what is there, up to a batch; at the end what
 * is still in the socket, and closes it. */
bool metrics_open(struct shim *shim, struct why *why);
void metrics_receive(struct shim *shim);
void metrics_finish(struct shim *shim);

/* shim_line.c: what a line of a rank says, as far as it is asked for; which is true for each line that has
 * the word in it, with quotes. */
struct line {
    bool checkpoint;
    const char *mark; /* its name, not ended; NULL: none */
    size_t mark_length;
    int64_t rank, local_rank, local_world; /* -1: not said */
};
struct line line_read(const char *at, const char *end);
void line_each(struct shim *shim, const char *bytes, size_t length, const char *word,
               void (*take)(struct shim *shim, const struct line *line));
/* The rank of this node that has sent the line; NULL: it is of none here. */
struct rank *line_rank(const struct shim *shim, const struct line *line);

/* shim_mark.c: takes in whole lines of ranks. */
void mark_receive(struct shim *shim, const char *bytes, size_t length);

/* shim_checkpoint.c: takes in whole lines of ranks; forgets who has acknowledged a checkpoint, as a signal is
 * about to be sent; whether all that run have. */
void checkpoint_receive(struct shim *shim, const char *bytes, size_t length);
void checkpoint_forget(struct shim *shim);
bool checkpoint_by_all(const struct shim *shim);

/* shim_kill.c: a signal to the ranks themselves, which is no rung; the ladder, from a signal that the ranks
 * asked for or from TERM; its next rung. Each call may only make things end sooner. kill_due_ms is when
 * kill_clock has something to do. */
void kill_warn(const struct shim *shim, int signal);
void kill_softly(struct shim *shim, int64_t grace_ms, int signal);
void kill_begin(struct shim *shim, int64_t grace_ms);
void kill_hurry(struct shim *shim);
void kill_leftovers(struct shim *shim);
void kill_now(struct shim *shim);
int64_t kill_due_ms(const struct shim *shim);
void kill_clock(struct shim *shim, int64_t now_ms);

/* shim_sweep.c: a list of processes; every descendant of the shim, which being a subreaper sees them all; a
 * signal to each that is still the process that was listed. */
struct pid_list {
    pid_t *pids;
    size_t count, room;
    int64_t listed_ticks;
};
void pid_list_begin(struct pid_list *list);
void pid_list_add(struct pid_list *list, pid_t pid);
void pid_list_finish(struct pid_list *list);
void sweep_collect(struct pid_list *list);
void sweep_signal(const struct pid_list *list, int signal);

/* shim_cgroup.c: the attempt's cgroup; all do nothing where there is none. cgroup_vacate removes it and is
 * false while there are processes in it. */
bool cgroup_open(struct shim *shim, struct why *why);
void cgroup_collect(const struct shim *shim, struct pid_list *list);
void cgroup_kill(const struct shim *shim);
bool cgroup_vacate(struct shim *shim);

/* shim_memory.c: finds a counter of what dies for want of memory; notes how it stands before the ranks start;
 * whether it has grown, and that is why this rank ended. */
void memory_find(struct memory *memory);
void memory_begin(struct shim *shim);
bool memory_ran_out(const struct shim *shim, const struct rank *rank);
bool processes_ran_out(const struct shim *shim);

/* shim_shared.c: gives the ranks shared memory of their own; anew where the host's mounts have changed since;
 * frees it when they are gone. */
void shared_enter(struct shared *shared);
void shared_renew(struct shared *shared);
void shared_release(struct shared *shared);

/* shim_addresses.c: appends what ranks are told of the nodes, at most SHIM_PATTERNS + 1 entries that the
 * caller frees. */
struct addresses {
    const char *list, *master, *port;
};
void addresses_put(const struct launch *launch, const char *master, const char *port, char **added,
                   size_t *count);

/* shim_port.c: finds and holds a port of the range, with `listens` as one that connections wait on; gives it
 * back. */
bool port_hold(struct port *port, int first, int last, bool listens, struct why *why);
void port_release(struct port *port);
/* Whether another process listens on the port that is held. */
bool port_is_heard(const struct port *port);

/* shim_exit.c: makes room on disk for the exit record; gives that back; writes the record. */
bool record_reserve(struct shim *shim, struct why *why);
void record_cancel(struct shim *shim);
bool record_write(struct shim *shim, struct why *why);

/* shim_agent_socket.c: listens in the current folder; takes a connection, or one message; says a fact, now
 * and on each new connection, or a thing of this moment; log files have grown, were looked at; and at the end
 * of a turn, `output` where it is due. agent_socket_forget removes the sockets of the folder and ends the
 * shim. */
bool agent_socket_listen(struct shim *shim, struct why *why);
void agent_socket_accept(struct shim *shim);
void agent_socket_receive(struct shim *shim);
void agent_socket_say(struct shim *shim, enum fact fact, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void agent_socket_mention(struct shim *shim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void agent_socket_output_grown(struct shim *shim);
void agent_socket_output_seen(struct shim *shim);
void agent_socket_tell_output(struct shim *shim);
void agent_socket_forget(struct shim *shim);
void agent_socket_finish(struct agent_socket *agent_socket);

#endif
