/* SPDX-License-Identifier: Apache-2.0 */
/* What gpuagent and gpushim say to each other, and the files between them. Needs only libc: the shim links
 * nothing else.
 *
 * Two folders belong to an attempt on a node, both named by the attempt id in decimal:
 *   RUN/<attempt id>    tmpfs, emptied by a reboot; made by the agent with mkdir, which claims the attempt
 * id; removed when it is over, and the attempt id is in RUN/seen from then on launch       what to start,
 * written by the agent before the shim gets the folder shim.pid     "pid starttime-ticks\n", made by the shim
 * when it takes the folder, which it does only if the file is not there. An agent that finds none makes an
 * empty one before it calls the attempt lost, so that no slow shim takes it later shim.sock SOCK_SEQPACKET,
 * the shim listens, before shim.pid is there; one agent at a time, a newer connection replaces the older one
 *     rank.sock    SOCK_DGRAM, $GPUCTL_SOCKET, from prepared (or the start) to the end of the last process:
 *                  each datagram of a rank is one or more whole lines of JSON, of LIMIT_RANK_MESSAGE_BYTES at
 *                  most; the shim appends them to <first rank>.metrics. A send waits while the shim is
 *                  behind. Of the lines it reads only two kinds. {"mark": "NAME", "rank": RANK} names a
 *                  moment, of which the first of each name counts, and LIMIT_MARKS names. One that
 *                  acknowledges a checkpoint says that a
 *                  rank has saved its work: {"checkpoint": {...}, "rank": RANK}. Where the node has one rank,
 *                  "local_rank" and a "local_world_size" above 1 name one of the processes that it started
 *     mlflow       made by gpuctl_mlflow.py in the ranks, beside rank.sock: the runs that they share
 *   STATE/attempts/<attempt id>    disk
 *     <rank>.stdout <rank>.stderr   output of the ranks, only ever appended to (rank = global rank, node rank
 *                                   in node mode)
 *     exit         the exit record: written beside (exit.new), fsynced, renamed, before anybody is told
 *     work/        working folder of the ranks where the spec names none
 *     <first rank>.metrics          what came on rank.sock, a line each; there once something came
 *     errors/<rank>.json            TORCHELASTIC_ERROR_FILE
 *     function, modules.zip         of a function job: its payload, and modules for its ranks
 *     results/<rank>.pickle         $GPUCTL_RESULT_DIR: what the rank returned, renamed from .part when whole
 *     results/<rank>.json           the same as JSON, where it is
 *     results/<rank>.error.pickle   instead: what it raised
 *
 * The agent starts shims ahead of need: `gpushim`, with SHIM_OWN_MEMORY where the ranks are to have a
 * /dev/shm and System V objects of their own, with its end of a SOCK_SEQPACKET pair as fd 3 and nothing
 * else open but stdio. Those that a forkserver starts (below) have SHIM_WARM. Messages are text, one a
 * datagram, at most LIMIT_SHIM_MESSAGE bytes: a word, then arguments separated by single spaces; the last
 * argument runs to the end. Times are milliseconds; "boot" is CLOCK_BOOTTIME, "wall" is CLOCK_REALTIME.
 *
 * agent to shim:
 *
 *   assign RUN-FOLDER         take this attempt: chdir there, read launch, write shim.pid, listen on
 *                             shim.sock. Only on fd 3, once.
 *   prepare                   check and hold a port (where launch says so); answers prepared or declined
 *   start ADDRESS PORT IFACE  after prepared: start the ranks of a gang. "-" stands for an absent argument,
 *                             here and in run
 *   run ADDRESS IFACE         prepare and start at once (gang on one node); the port is the one that it holds
 *                             itself; answers running, or declined
 *   stop GRACE-MS CAUSE       TERM to all, KILL after the grace; CAUSE is a spelling of proto/states.h. A
 *                             second stop may only shorten. Before the start: no rank is started, the record
 *                             says the cause, exited is told. When all ranks that run have acknowledged a
 *                             checkpoint since TERM, KILL comes at once
 *   warn SIGNAL               SIGNAL to the main process of each rank, once in the life of the attempt;
 *                             SIGNAL is a spelling of proto/states.h
 *   soften SIGNAL             before a stop, which then begins with SIGNAL to the main process of each rank;
 *                             TERM comes after its grace, or once all ranks that run have acknowledged a
 *                             checkpoint, and KILL failed_grace_ms after TERM
 *   lease TERM-BOOT KILL-BOOT stop by itself at these times; a later lease replaces it. Never sent where
 *                             on_disconnect is keep
 *   seen                      the last `output` was worked in; the shim may send another
 *   forget                    after exited, when the controller has it, or after declined: remove shim.sock
 *                             and rank.sock, and end
 *
 * A word that does not fit the phase is an echo of an older one and does nothing; after declined and after
 * exited, all but `forget` do nothing.
 *
 * shim to agent:
 *
 *   prepared PORT             0 where no port is held
 *   declined TEXT             nothing was started and nothing will be; the shim ends after `forget`
 *   warm COUNT                before assign: that many workers wait. Not repeated
 *   running WALL PORT HOW     every rank was started (exec worked); PORT as in prepared. HOW is absent, or
 *                             "warm", or "cold" and why the workers that there were did not become ranks, or
 *                             "stale" and why no worker of their forkserver will
 *   failed RANK CODE SIGNAL WALL CAUSE TEXT
 *                             the first rank that failed here; CAUSE is RANK_FAILED, OUT_OF_MEMORY or
 *                             EXEC_FAILED; the ladder has begun. CODE is 128 + SIGNAL where a signal ended
 *                             the rank; 127 where the command was not found, 126 where it or its working
 *                             folder cannot be used
 *   output                    log files have grown, or metrics; not sent again before `seen`
 *   exited                    all processes are gone, both streams of all ranks at EOF, all metrics are in
 *                             their file, the exit record is on disk
 *
 * On a new connection to shim.sock the shim repeats, in this order, those of prepared, declined, running,
 * failed, output, exited that hold.
 *
 * A forkserver is `python -c ... FOLDER GPUSHIM OPTIONS NAMES ROOM` (agent/python/gpuctl_warm.py), started by
 * the agent with the variables of the ranks that it is for, and its end of a SOCK_SEQPACKET pair as fd 3.
 *
 * agent to forkserver:
 *
 *   shim COUNT                with two descriptors: fd 3 and fd 2 of a new shim that has COUNT workers
 *
 * forkserver to agent:
 *
 *   ready NAMES               once: what was imported
 *   unfit TEXT                instead, and then it ends: no worker of it would be as a fresh process
 *   shim PID                  with one descriptor: pidfd of the shim asked for
 *
 * The shim has the process that forks its workers as a child, at the other end of fd 4, SOCK_SEQPACKET: it
 * says `enter`, with descriptors of the namespaces to be in, none or two, and hears `worker PID` with one
 * descriptor for each, a stream socket; then that process ends. On it the shim gives an identity, once:
 * eight bytes of length, in the byte order of the host, with the descriptors of stdout, stderr, report, and
 * if it has them of cgroup.procs and of the store; then that many bytes, NUL-terminated KEY and VALUE: shim
 * (its pid), cgroup and store (1: it has), cwd, arg, env. The worker
 * answers `warm`, or `cold TEXT` or `stale TEXT` before it executes the command, and closes report; or writes
 * into that what failed.
 *
 * launch: a sequence of NUL-terminated strings, KEY then VALUE, keys in any order but that `rank` opens the
 * section of a rank:
 *
 *   received (when the order came, in microseconds of "boot") and granted (how many devices or slots the
 * attempt has here), both for an agent that adopts the attempt, attempt id, logs (folder on disk), cwd,
 * cgroup (folder, or absent), cgroup_version (1 or 2), port_first, port_last (a gang's port is to be held;
 * absent: none), store_rank (the held port listens, and this rank gets its socket as SHIM_STORE_FD; absent:
 * nobody does), failed_grace_ms, hold (the file that users of the ranks' environment lock, shared, with
 * flock: the shim does for as long as it lives; absent: none), log_limit (bytes of one stream; absent:
 * LIMIT_STREAM_BYTES), torchrun (1: the master is given to a torchrun, too; absent: it is not), arg (again
 * and again: argv), env (NAME=VALUE, for all ranks), rank (global rank: opens a section, its env follow).
 *
 * Variables that start and run add, unless env has them already: MASTER_ADDR, MASTER_PORT,
 * JAX_COORDINATOR_ADDRESS (both of these), GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME (as =IFACE), and with
 * torchrun PET_MASTER_ADDR, PET_MASTER_PORT.
 *
 * exit record: lines. `rank RANK CODE SIGNAL WALL OUT-BYTES ERR-BYTES BY-US`, one for each that was started,
 * in the order in which they ended;
 * `checkpoint WALL`, when a checkpoint was acknowledged last, absent where none was;
 * then `cause CAUSE TEXT` (NONE when all exited with 0; `cause CAUSE` where there is nothing more to say);
 * then `end`. A record without `end` is not one. Behind it stands what an agent may do without:
 * `moments PREPARED BEGUN RUNNING OUTPUT GONE`, in microseconds of "boot", 0 for what did not happen:
 * prepared, start or run came, all ranks were started, the first byte of output, the last process was gone;
 * `mark RANK BOOT-MICROSECONDS NAME`, moments that ranks named, in order. */
#ifndef AGENT_SHIMWIRE_H
#define AGENT_SHIMWIRE_H

#define SHIM_CONTROL_FD     3
#define SHIM_OWN_MEMORY     "--own-shared-memory"
#define SHIM_WARM           "--warm"
#define SHIM_WARM_FD        4
#define SHIM_LAUNCH_FILE    "launch"
#define SHIM_PID_FILE       "shim.pid"
#define SHIM_SOCKET_FILE    "shim.sock"
#define SHIM_ADDRESSES_FILE "addresses" /* of the nodes of a gang, written before the start */
#define SHIM_EXIT_FILE      "exit"
#define SHIM_EXIT_NEW_FILE  "exit.new" /* the record until it is renamed; an empty one may be there before */
#define SHIM_WORK_FOLDER    "work"
#define SHIM_ERRORS_FOLDER  "errors"
#define SHIM_NOTE_ENDING    ".note" /* of the file of a rank there, which gpuctl_watch.py writes */
#define SHIM_WATCH_FOLDER   "watch" /* in that of the runner: for the PYTHONPATH of ranks */
#define SHIM_RESULTS_FOLDER "results"
#define SHIM_FUNCTION_FILE  "function"
#define SHIM_MODULES_FILE   "modules.zip"
#define SHIM_RANK_SOCKET    "rank.sock"
#define SHIM_MLFLOW_FILE    "mlflow"
#define SHIM_PORT_HEARD     "; another process listens on MASTER_PORT"       /* behind why rank 0 failed */
#define SHIM_PROCESSES_OUT  "; the job had as many processes as it may have" /* behind why a rank failed */
#define SHIM_STORE_FD       3 /* of the rank that hosts the rendezvous, in $GPUCTL_STORE_FD */

#endif
