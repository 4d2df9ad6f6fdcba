/* SPDX-License-Identifier: Apache-2.0 */
/* Internal header of gpushim: the state that its files share, and the functions that each file offers the
 * others. The shim has one thread and one attempt at a time, so `struct shim` holds all of its state; each
 * part below names the file that writes it. Functions that return false fill `why`. */
#ifndef AGENT_SHIM_H
#define AGENT_SHIM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "agent/common/launch_file.h"
#include "agent/common/mask.h"
#include "agent/shim/shimwire.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

/* The signals that do not end the shim, and whose default it restores for its ranks. Some ask a program to
 * end, which only the agent may ask of the shim (a TERM of init ends the attempt, see shim.c). The others
 * would end the shim when it writes to a dead pipe or beyond a file size limit. */
static const int shim_ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ};
#define SHIM_IGNORED_COUNT (sizeof shim_ignored / sizeof shim_ignored[0])

#define SHIM_NEVER INT64_MAX /* a time that never comes */

enum phase {
    PHASE_IDLE,      /* waits for an attempt */
    PHASE_ASSIGNED,  /* has its folder; holds nothing yet */
    PHASE_PREPARED,  /* port, files and cgroup are held */
    PHASE_DECLINED,  /* nothing was started and nothing will be */
    PHASE_RUNNING,   /* there are processes, or there were a moment ago */
    PHASE_KEPT,      /* a rank of the gang failed, and the ranks are gone; all else stays until a stop */
    PHASE_RECORDING, /* all processes are gone; the exit record could not be written yet */
    PHASE_EXITED,    /* the exit record is written, and not synced yet */
    PHASE_SYNCED,    /* the exit record is on disk */
};

enum ladder {
    LADDER_NONE,
    LADDER_SIGNAL,    /* the ranks got the signal that they asked for; TERM follows */
    LADDER_TERM,      /* the ranks were asked to end */
    LADDER_LEFTOVERS, /* the ranks are gone; the processes that they left behind were asked to end */
    LADDER_KILL,      /* all processes are killed, repeatedly, until none is left */
};

/* What the shim reports, in the order in which it repeats it on a new connection. */
enum fact {
    FACT_PREPARED,
    FACT_DECLINED,
    FACT_RUNNING,
    FACT_PIDS,
    FACT_FAILED,
    FACT_OUTPUT,
    FACT_CHECKPOINT,
    FACT_EXITED,
    FACT_COUNT,
};

enum stream_state {
    STREAM_STORES, /* bytes go to the file */
    STREAM_FAILS,  /* a write to the file failed; bytes are dropped until a marker line can be written */
    STREAM_FULL,   /* the file is at its limit; the last bytes go to the tail */
    STREAM_ENDED,
};

enum rank_state { RANK_WAITS, RANK_LIVE, RANK_EXITED };

/* The moments of a start and an end that the exit record reports. */
enum moment { MOMENT_PREPARED, MOMENT_BEGUN, MOMENT_RUNNING, MOMENT_OUTPUT, MOMENT_GONE, MOMENT_COUNT };

/* A moment that a rank reported by name. */
struct mark {
    int rank;
    int64_t at_us; /* boot */
    char name[LIMIT_MARK_NAME + 1];
};

/* The kind of an event on a descriptor; epoll's data holds it together with an index. */
enum watch {
    WATCH_SIGNAL,
    WATCH_TIMER,
    WATCH_AGENT_SOCKET,
    WATCH_LISTENER,
    WATCH_METRICS,
    WATCH_STREAM,
    WATCH_WARM,
    WATCH_COMMAND
};

struct why {
    char text[LIMIT_SHIM_TEXT];
};

/* One output stream of one rank, or the metrics of all ranks. */
struct stream {
    enum stream_state state;
    int pipe, file;  /* the metrics have no pipe */
    int error;       /* errno of the failed write, in STREAM_FAILS */
    int64_t stored;  /* size of the file */
    int64_t limit;   /* of `stored` until the stream ends; the tail is appended behind it */
    int64_t dropped; /* bytes since the last marker */
    int tail;        /* file of the last bytes; -1: none; shim_tail.c writes this and the next two */
    int64_t tail_bytes;
    int64_t passed;             /* bytes written to the ring, including those overwritten since */
    struct mask_stream *masked; /* NULL: its bytes are stored as they come */
};

/* The step at which the start of a rank failed, sent through its `report` pipe. gpuctl_warm.py writes it,
 * too. */
enum stage {
    STAGE_CGROUP,
    STAGE_FOLDER,
    STAGE_NOT_FOUND,
    STAGE_INTERPRETER,
    STAGE_COMMAND,
    STAGE_USER,
    STAGE_CONTAINER
};

struct report {
    int32_t stage, error;
};

struct rank {
    enum rank_state state;
    pid_t pid;
    int pidfd; /* readable when the rank has ended; -1: none */
    int code, signal;
    int ends[2];  /* write ends of its pipes, until the rank has them; -1: none */
    int report;   /* report pipe of the warm worker that is to become the rank; -1: none */
    size_t place; /* its position in the order of ends, from 1 */
    int64_t wall_ms;
    bool by_us;
    bool saved;               /* it has acknowledged a checkpoint since the last signal; shim_line.c */
    struct stream streams[2]; /* stdout, stderr */
};

struct agent_socket {
    int fd, listener;
    int given;              /* descriptor that came with the message that is being handled; -1: none */
    char *said[FACT_COUNT]; /* the last message about each fact; NULL: the fact does not hold */
    bool output_grown, output_told; /* files have grown; the agent was told and has not looked yet */
};

struct port {
    int number; /* 0: none is held */
    int lock, socket;
};

struct memory {
    int64_t host_before; /* OOM kills of the host when the ranks had started; INT64_MAX: not looked at */
};

struct shared {
    bool own;         /* the ranks have their own shared memory */
    bool used;        /* an attempt has left something: the next one needs new namespaces */
    unsigned entered; /* so many namespaces, one after the other */
    int host, mounts; /* the host's mount namespace, and its mountinfo */
    int own_mounts;   /* mountinfo of the shim's own namespace */
};

enum container_state { CONTAINER_NONE, CONTAINER_MAKING, CONTAINER_MADE };

/* The container of an attempt in an image: the namespaces that its ranks and commands enter. */
struct container {
    enum container_state state;
    pid_t maker;       /* becomes the OCI runtime; 0: none */
    int said;          /* what the maker writes to stderr; -1: none */
    int users, mounts; /* namespaces; -1: none, or the shim's own */
    /* The order that waits for it: prepare, or run with its arguments. */
    bool run;
    char *address, *interface;
};

/* A child that can become a rank, and the socket by which the shim tells it to. */
struct warm_worker {
    pid_t pid;
    int voice;
};

struct warm {
    int source;  /* socket on which new workers arrive; -1: no more come */
    int cgroup;  /* folder of the cgroup in which workers of another user wait; -1: none */
    bool bred;   /* they are of another user */
    int breeder; /* pidfd of what makes those; -1: none */
    struct warm_worker workers[LIMIT_NODE_DEVICES];
    size_t count;
    struct why said; /* how the ranks were started: "warm", or "cold" and why; "": not known */
};

struct command;

struct metrics {
    int socket;         /* -1: not open */
    struct stream file; /* opened when the first line arrives */
    bool oversize_told;
};

struct shim {
    enum phase phase;
    bool ended; /* the loop ends */
    int exit_code;
    int epoll, signals, timer, null;
    int64_t timer_ms;      /* the deadline that the timer is set to */
    int64_t started_ticks; /* when this process began; read before there is an attempt to start */
    struct rlimit files;   /* the limits before the shim raised them */
    struct oom {
        int file;                     /* with the score; -1: it is 0 */
        char score[16];               /* of the shim */
    } oom;                            /* shim_memory.c */
    struct launch launch;             /* shim_launch.c */
    const char *home;                 /* folder in which it waits for an attempt; NULL: it has none */
    int home_folder;                  /* once shim.pid and shim.sock are ready there; -1: they are not */
    struct agent_socket agent_socket; /* shim_agent_socket.c */
    struct port port;                 /* shim_port.c */
    struct mask *mask;                /* values of secrets; NULL: none; shim_launch.c */
    struct metrics metrics;           /* shim_metrics.c */
    struct memory memory;             /* shim_memory.c */
    struct warm warm;                 /* shim_warm.c */
    struct shared shared;             /* shim_shared.c */
    struct container container;       /* shim_shared.c */
    int cgroup;                       /* descriptor of its folder; shim_cgroup.c */
    int holds[LAUNCH_HOLDS];          /* locks of what the ranks use; shim_attempt.c */
    size_t hold_count;
    int record;               /* the exit record until it is synced; shim_exit.c */
    struct rank *ranks;       /* shim_rank.c; launch.rank_count of them */
    char **added;             /* variables of the start, ended by NULL; shim_attempt.c; NULL: none yet */
    struct command *commands; /* shim_command.c; NULL: there were none */
    int deaths;               /* epoll of the ranks' pidfds, which keeps the order of ends; shim_reap.c */
    size_t ended_count;       /* ranks that have ended */
    enum ladder ladder;       /* shim_kill.c, as are the next two lines */
    int64_t term_ms, kill_ms, tick_ms;              /* boot */
    int64_t tick_pause_ms;                          /* shim_kill.c */
    int64_t lease_term_ms, lease_kill_ms, again_ms; /* boot; shim_attempt.c, as are the following */
    size_t failed;  /* index of the rank whose failure ended the attempt; launch.rank_count: none */
    bool keeps;     /* a rank of the gang failed: KEPT follows when the ranks are gone */
    bool node_ends; /* init ends all processes; no agent will come */
    char cause[32]; /* "": not known yet */
    struct why cause_text;
    bool warned;                     /* the ranks got the early signal before their time limit */
    int pre_stop_signal;             /* the signal that the next stop sends first; 0: TERM comes first */
    int64_t checkpoint_ms;           /* wall time of the last acknowledged checkpoint; 0: none; shim_line.c */
    bool voices[LIMIT_NODE_DEVICES]; /* by local rank: acknowledged, where one rank has started several
                                        processes; shim_line.c */
    int64_t acknowledged[LIMIT_NODE_DEVICES]; /* by rank here, or by local rank like voices: one more than the
                                                 step of the last checkpoint; 0: none; shim_line.c */
    int64_t moments[MOMENT_COUNT]; /* boot time in microseconds, 0: not yet; written by the file that sees the
                                      moment */
    struct mark marks[LIMIT_MARKS]; /* shim_line.c, as is the next */
    size_t mark_count;
};

/* shim.c. shim_log_error writes a line to stderr. shim_watch adds a descriptor to the loop. shim_note sets a
 * moment to now, unless it is set already. shim_renew gives up all that belongs to an ended attempt: the shim
 * is then as it was before it had one. */
void shim_renew(struct shim *shim);
void shim_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool shim_watch(struct shim *shim, int fd, enum watch watch, size_t index);
void shim_note(struct shim *shim, enum moment moment);
bool why_set(struct why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* always false */

/* shim_order.c: handles one message of the agent, and cuts up its text. */
void order_work(struct shim *shim, char *text);

/* shim_attempt.c: the life of the attempt, driven by the agent's orders, SIGCHLD, lines from ranks and the
 * clock. attempt_due_ms returns the time at which attempt_clock must be called next. */
void attempt_expect(struct shim *shim); /* there will be one */
void attempt_expect_none(struct shim *shim);
void attempt_assign(struct shim *shim, const char *folder);
void attempt_prepare(struct shim *shim);
void attempt_start(struct shim *shim, const char *address, const char *port, const char *interface);
void attempt_run(struct shim *shim, const char *address, const char *interface);
void attempt_warn(struct shim *shim, int signal);
void attempt_keep(struct shim *shim, int64_t grace_ms);
void attempt_stop(struct shim *shim, int64_t grace_ms, const char *cause);
void attempt_heard(struct shim *shim);
void attempt_children(struct shim *shim);
void attempt_container(struct shim *shim, pid_t pid, int status);
void attempt_node_ends(struct shim *shim);
void attempt_reuse(struct shim *shim);
int64_t attempt_due_ms(const struct shim *shim);
void attempt_clock(struct shim *shim, int64_t now_ms);

/* shim_launch.c. launch_read reads the launch file of the current folder, behind the secrets in a file
 * without a name (-1: none); on failure *launch is unchanged. secrets_take prepares the masking of output,
 * and keeps the values out of core dumps; secrets_store writes those that ranks get as files; secrets_remove
 * removes the files, secrets_forget all else.
 * launch_environment builds the
 * environment of one rank, which the caller frees in one call. `added` holds NAME=VALUE entries, ended by
 * NULL; the launch file takes precedence over them. The result has room for one more entry at its end. */
bool launch_read(struct launch *launch, int secrets, struct why *why);
void secrets_take(struct shim *shim);
bool secrets_store(const struct shim *shim, struct why *why);
void secrets_remove(const struct shim *shim);
void secrets_forget(struct shim *shim);
char **launch_environment(const struct launch *launch, size_t rank, char *const *added);

/* shim_rank.c. ranks_offer gives the ranks to warm workers, if there are enough workers; rank_is_offered says
 * whether a worker has this one. rank_start starts one rank with its pipes, in its worker or by a fork. On
 * failure it returns false and the exit code to report, or 0 when the failure is not the job's fault. */
void ranks_offer(struct shim *shim, char *const *added);
bool rank_is_offered(const struct shim *shim, size_t index);
bool rank_start(struct shim *shim, size_t index, char *const *added, int *ret_code, struct why *why);
/* Starts the program that makes warm workers, as the launch says. `workers` becomes its fd 3. */
bool rank_breed(struct shim *shim, struct launch *launch, int workers, struct why *why);

/* Starts a command beside the ranks, with stdin, stdout and stderr, or a terminal three times. On failure it
 * returns false and the exit code to report, 0: not the command's fault; *ret_pid may be a process even then.
 */
struct command_start {
    char **arguments, **env;
    int fds[3];
    bool terminal;
};
bool command_spawn(const struct shim *shim, const struct command_start *start, pid_t *ret_pid, int *ret_code,
                   struct why *why);

/* shim_command.c. command_begin starts the command that the socket given with the message asks for, beside
 * the rank. command_hear notices that the agent has let go of one. command_ended is told of a process that
 * was reaped and is no rank. commands_kill kills all: the ranks have ended. */
void command_begin(struct shim *shim, int64_t rank);
void command_hear(struct shim *shim, size_t place);
void command_ended(struct shim *shim, pid_t pid, int status);
void commands_kill(struct shim *shim);
void commands_finish(struct shim *shim);

/* shim_warm.c. warm_breed starts the process that forks them; warm_abandon kills what it has left, at the end
 * of a shim without an attempt. warm_begin asks for workers in the shim's
 * namespaces, warm_hear takes one in, warm_end lets them go. warm_give sends a worker the rank that it is to
 * become. warm_await waits for the outcome: WARM_RANK with `said` ("warm", or "cold" and why), WARM_FAILED
 * with a report, or WARM_NOTHING after the worker was killed. */
struct warm_start {
    char **env;
    int output[2], report, cgroup, store; /* the last two: -1 if absent */
};
enum warm_end { WARM_RANK, WARM_FAILED, WARM_NOTHING };
void warm_breed(struct shim *shim, const char *folder);
void warm_abandon(struct shim *shim);
void warm_begin(struct shim *shim);
void warm_hear(struct shim *shim);
void warm_end(struct shim *shim);
bool warm_give(const struct shim *shim, const struct warm_worker *worker, const struct warm_start *start);
enum warm_end warm_await(const struct warm_worker *worker, int report, struct report *ret_report, char *said,
                         size_t room);

/* shim_reap.c. reap_follow watches a rank that was started. reap_ended collects ended processes, the ranks in
 * the order of their ends, and strangers; false: no child is left. reap_at returns the rank that ended at a
 * place in that order, or NULL. */
void reap_follow(struct shim *shim, size_t index);
bool reap_ended(struct shim *shim);
const struct rank *reap_at(const struct shim *shim, size_t place);
bool rank_any_live(const struct shim *shim);

/* shim_stream.c. stream_open opens a file at its end, to grow up to `limit` bytes; on failure errno says why.
 * stream_append writes bytes and counts those that it drops. stream_ready is false while bytes must be
 * dropped or go to the tail. stream_fail notes a failed write. stream_end writes the tail and a last line
 * about dropped bytes, and closes the file. */
bool stream_open(struct stream *stream, const char *logs, int rank, const char *kind, int64_t limit,
                 struct why *why);
bool stream_ready(struct stream *stream);
void stream_fail(struct stream *stream, int error);
void stream_append(struct stream *stream, const char *bytes, size_t length);
void stream_end(struct stream *stream, int rank, const char *kind);

/* shim_tail.c. tail_reserve sets space aside for a tail in a stream that was just opened. tail_open makes the
 * file of the last bytes. tail_take takes a chunk from the pipe, and returns as read does; tail_put takes
 * bytes, and returns how many. tail_lost returns the bytes lost so far. tail_append writes the kept bytes to
 * the stream's file and closes the tail. */
void tail_reserve(struct stream *stream);
bool tail_open(struct stream *stream, const char *logs, int rank, const char *kind);
void tail_close(struct stream *stream);
ssize_t tail_take(struct stream *stream);
size_t tail_put(struct stream *stream, const char *bytes, size_t length);
int64_t tail_lost(const struct stream *stream);
void tail_append(struct stream *stream);

/* shim_output.c. output_open opens the files. output_pipes makes the pipes of a rank; the caller owns the
 * write ends. output_move moves bytes when a pipe has some. output_drain takes the bytes that a failed rank
 * has in its pipes now, output_finish those that are left in any pipe at the end. */
bool output_open(struct shim *shim, struct why *why);
bool output_pipes(struct shim *shim, size_t rank, int ret_write[2], struct why *why);
void output_move(struct shim *shim, size_t stream);
void output_drain(struct shim *shim, size_t rank);
void output_finish(struct shim *shim);
void output_close(struct shim *shim);

/* shim_metrics.c. metrics_open opens rank.sock in the current folder. metrics_receive stores the waiting
 * datagrams, up to a batch. metrics_finish stores all that are left and closes the socket. */
bool metrics_open(struct shim *shim, struct why *why);
void metrics_receive(struct shim *shim);
void metrics_finish(struct shim *shim);

/* shim_line.c. lines_receive handles whole lines of ranks. checkpoint_forget resets all acknowledgements,
 * before a signal is sent. checkpoint_by_all says whether every running rank has acknowledged a checkpoint.
 */
void lines_receive(struct shim *shim, const char *bytes, size_t length);
void checkpoint_forget(struct shim *shim);
bool checkpoint_by_all(const struct shim *shim);

/* shim_kill.c. kill_warn sends a signal to the ranks' main processes, outside the ladder. kill_softly starts
 * the ladder with a signal that the ranks asked for, kill_begin with TERM; kill_hurry goes to the next rung.
 * No call delays the end. kill_due_ms returns the time at which kill_clock must be called next. */
void kill_warn(const struct shim *shim, int signal);
void kill_softly(struct shim *shim, int64_t grace_ms, int signal);
void kill_begin(struct shim *shim, int64_t grace_ms);
void kill_hurry(struct shim *shim);
void kill_leftovers(struct shim *shim);
void kill_now(struct shim *shim);
int64_t kill_due_ms(const struct shim *shim);
void kill_clock(struct shim *shim, int64_t now_ms);

/* shim_sweep.c: a list of processes. sweep_collect adds every descendant of the shim. sweep_signal signals
 * each listed process, unless its number belongs to a newer process. */
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

/* shim_cgroup.c: the attempt's cgroup. All functions do nothing if there is none. cgroup_vacate removes the
 * cgroup; it returns false while there are processes in it. cgroup_is_empty says whether there are none. */
bool cgroup_open(struct shim *shim, struct why *why);
void cgroup_collect(const struct shim *shim, struct pid_list *list);
void cgroup_kill(const struct shim *shim);
bool cgroup_is_empty(const struct shim *shim);
bool cgroup_vacate(struct shim *shim);

/* shim_memory.c. oom_protect keeps the shim from the OOM killer, except while children are made, between
 * oom_share and oom_share_no_more: these get no protection. memory_begin notes a counter of OOM kills once
 * the ranks have started. memory_ran_out says whether the counter has grown and so explains why this rank
 * ended; processes_ran_out says whether the attempt reached its limit of processes. */
void oom_protect(struct shim *shim);
void oom_share(const struct shim *shim);
void oom_share_no_more(const struct shim *shim);
void memory_begin(struct shim *shim);
bool memory_ran_out(const struct shim *shim, const struct rank *rank);
const char *memory_say(const struct shim *shim, char *out, size_t size);
bool processes_ran_out(const struct shim *shim);

/* shim_shared.c. shared_enter gives the ranks their own shared memory. shared_renew does so again if the
 * host's mounts have changed since, or an attempt has left something; false: the ranks share the host's.
 * shared_shut gives the ranks a /tmp of their own, a /proc with no processes of other users, and hides
 * services of the host; where the ranks share the host's mounts it does nothing. shared_hide does so for what
 * waits for an attempt, with folders that are empty. shared_mount mounts the volumes of the attempt.
 * shared_release frees all of it after the ranks are gone. */
void shared_enter(struct shared *shared);
bool shared_renew(struct shared *shared);
bool shared_shut(struct shared *shared, const char *tmp, struct why *why);
bool shared_hide(const struct shared *shared, struct why *why);
bool shared_mount(const struct shared *shared, const struct launch *launch, struct why *why);
void shared_release(struct shared *shared);

/* Also shim_shared.c. container_make starts to make the container of a job in an image. container_ended is
 * told of a process that was reaped: true if it was the maker, *ret_made says whether there is a container
 * now. container_enter is for a child before it becomes the user's program: raw system calls alone.
 * container_close gives up what there is of it. */
bool container_make(struct shim *shim, struct why *why);
bool container_ended(struct shim *shim, pid_t pid, int status, bool *ret_made, struct why *why);
bool container_enter(const struct container *container);
void container_close(struct shim *shim);

/* shim_addresses.c: appends the variables that tell ranks the addresses of nodes: at most LAUNCH_PATTERNS + 1
 * entries, which the caller frees. */
struct addresses {
    const char *list, *master, *port;
};
void addresses_put(const struct launch *launch, const char *master, const char *port, char **added,
                   size_t *count);

/* shim_port.c. port_hold finds and holds a port of the range; with `listens` its socket accepts connections
 * into the backlog. port_release gives it back. */
bool port_hold(struct port *port, int first, int last, bool listens, struct why *why);
void port_release(struct port *port);
/* Whether another process listens on the held port. */
bool port_is_heard(const struct port *port);

/* shim_exit.c. record_reserve allocates disk space for the exit record, record_cancel gives it back,
 * record_write writes the record, record_sync brings a written one to the disk. */
bool record_reserve(struct shim *shim, struct why *why);
void record_cancel(struct shim *shim);
bool record_write(struct shim *shim, struct why *why);
bool record_sync(struct shim *shim, struct why *why);

/* shim_agent_socket.c. agent_socket_listen listens in the current folder; agent_socket_accept takes a
 * connection, agent_socket_receive one message. agent_socket_say reports a fact, now and on each new
 * connection; agent_socket_mention sends a message only once. agent_socket_output_grown and
 * agent_socket_output_seen note that log files have grown and that the agent has looked;
 * agent_socket_tell_output sends `output` at the end of a turn of the loop where it is due.
 * agent_socket_forget removes the sockets of the folder and ends the shim. */
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
