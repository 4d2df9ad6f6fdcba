/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between gpuagent and gpushim, and the files that they share. Needs only libc: the shim links
 * nothing else.
 *
 * Two folders belong to an attempt on a node, both named by its id in decimal:
 *   RUN/<attempt id>    tmpfs, emptied by a reboot. The agent makes it with mkdir, which claims the id. It
 *                  removes the folder when the attempt is over, and lists the id in RUN/seen from then on
 *     launch       what to start; the agent writes it before the shim gets the folder
 *     shim.pid     "pid starttime-ticks\n"; the shim makes it when it takes the folder, and takes the folder
 *                  only if the file does not exist. An agent that finds no file makes an empty one before it
 *                  calls the attempt lost, so that no slow shim takes the folder later
 *     shim.sock    SOCK_SEQPACKET; the shim listens on it before shim.pid exists. It has one agent at a time:
 *                  a newer connection replaces the older one
 *     rank.sock    SOCK_DGRAM, $GPUCTL_SOCKET, from prepared (or the start) to the end of the last process.
 *                  Each datagram of a rank is one or more whole lines of JSON, at most
 *                  LIMIT_RANK_MESSAGE_BYTES. The shim appends them to <first rank>.metrics. A send waits
 *                  while the shim is behind. The shim reads only two kinds of lines. {"mark": "NAME", "rank":
 *                  RANK} names a moment: the first moment of each name counts, for at most LIMIT_MARKS names.
 *                  {"checkpoint": {...}, "rank": RANK} acknowledges a checkpoint: the rank has saved its
 *                  work. Where the node has one rank, "local_rank" and a "local_world_size" above 1 name one
 *                  of the processes that it started
 *     secrets/     secrets that ranks get as files; the shim makes it, and removes it at the end
 *     image/       of a job in a container image: the OCI bundle, and the runtime's state. image.pid beside
 *                  it has the process that the runtime has made
 *     mlflow       the runs that the ranks share; gpuctl_mlflow.py makes it in the ranks, beside rank.sock
 *   STATE/attempts/<attempt id>    disk
 *     <rank>.stdout <rank>.stderr   output of the ranks, only ever appended to (rank = global rank, node rank
 *                                   in node mode)
 *     exit         the exit record: written as exit.new and renamed before anybody is told; fsynced
 *                  SHIM_RECORD_SYNC_MS later, unless `forget` comes before
 *     work/        working folder of the ranks if the spec names none
 *     image/       of a job in a container image: what the ranks write outside of their folders
 *     tmp/         /tmp and /var/tmp of ranks that run as another user than the agent
 *     <first rank>.metrics          the lines from rank.sock; made when the first one arrives
 *     <rank>.files/                 $GPUCTL_OUTPUT_DIR: files that the rank wants kept
 *     errors/<rank>.json            TORCHELASTIC_ERROR_FILE
 *     function, modules.zip         of a function job: its payload, and modules for its ranks
 *     results/<rank>.pickle         $GPUCTL_RESULT_DIR: the rank's return value, renamed from .part when
 *                                   complete
 *     results/<rank>.json           the same as JSON, if it can be
 *     results/<rank>.error.pickle   instead of the two: the exception that the rank raised
 *
 * The agent starts shims ahead of need: `gpushim`, with its end of a SOCK_SEQPACKET pair as fd 3 and only
 * stdio besides. SHIM_OWN_MEMORY gives the ranks their own /dev/shm and System V objects. Shims that a
 * forkserver starts (below) have SHIM_WARM. With SHIM_HOME and an empty folder of the file system of the run
 * folders the shim has shim.pid and shim.sock ready there, and links them into the folder of its attempt; it
 * removes the folder when it ends. A message is text, one a datagram, at most LIMIT_SHIM_MESSAGE
 * bytes: a word, then arguments separated by single spaces; the last argument runs to the end. Times are
 * milliseconds; "boot" is CLOCK_BOOTTIME, "wall" is CLOCK_REALTIME.
 *
 * agent to shim, of which a message may have several, in lines: each message wakes the shim.
 *
 *   breed FOLDER              start the program of the launch file in FOLDER, in its cgroup and as its user,
 *                             with fd 3 as the socket on which workers arrive. Only before assign, and once
 *   assign RUN-FOLDER         take this attempt: chdir there, read launch, write shim.pid, listen on
 *                             shim.sock. Only on fd 3, and only while it has none. With one descriptor if
 *                             the job has secrets: a file without a name that stands before launch
 *   prepare                   check, and hold a port if launch says so; answers prepared or declined
 *   start ADDRESS PORT IFACE  after prepared: start the ranks of a gang. "-" stands for an absent argument,
 *                             here and in run
 *   run ADDRESS IFACE         prepare and start at once (gang on one node), with the port that the shim
 *                             itself holds; answers running or declined
 *   stop GRACE-MS CAUSE       TERM to all, KILL after the grace; CAUSE is a spelling of proto/states.h. A
 *                             second stop may only shorten the grace. Before the start: no rank is started,
 *                             the record states the cause, and exited is sent. KILL comes at once when all
 *                             running ranks have acknowledged a checkpoint since TERM
 *   warn SIGNAL               SIGNAL to the main process of each rank, once in the life of the attempt;
 *                             SIGNAL is a spelling of proto/states.h
 *   keep GRACE-MS             a rank of the gang failed on another node: as stop, but when the ranks are
 *                             gone, all else stays until a stop, and commands may be started
 *   soften SIGNAL             before a stop, which then begins with SIGNAL to the main process of each rank;
 *                             TERM comes after its grace, or once all running ranks have acknowledged a
 *                             checkpoint, and KILL failed_grace_ms after TERM
 *   lease TERM-BOOT KILL-BOOT send TERM and KILL unasked at these times; a later lease replaces it.
 *                             Never sent if on_disconnect is keep
 *   seen                      the agent has handled the last `output`; the shim may send another
 *   exec RANK                 while the rank runs, or the attempt is kept: start a command beside it, with
 * one descriptor, a SOCK_SEQPACKET socket. One message waits on it: NUL-terminated KEY and VALUE, arg
 * (repeated) and term ($TERM), with one descriptor, a terminal, or with three: stdin, stdout and stderr. The
 * shim answers on it, once: `exited CODE SIGNAL`, with ` ends` behind it where the attempt ends; or `failed
 * CODE TEXT`, CODE as in `failed` below or 0. It kills the command's process group when the agent closes the
 * socket. An older shim closes it without an answer reuse                     after exited, when the
 * controller has it: remove shim.pid, shim.sock and rank.sock, say `idle` and wait for the next attempt. A
 * shim whose attempt has left something that it cannot clear ends instead. Only to a shim that this agent
 * started: an older shim does not know the word forget                    instead of reuse, and after
 * declined: remove shim.sock and rank.sock, and end
 *
 * A message that does not fit the phase repeats an older one and has no effect. After declined and after
 * exited, only `reuse` and `forget` have an effect.
 *
 * shim to agent:
 *
 *   prepared PORT             PORT is 0 if no port is held
 *   declined TEXT             nothing was started and nothing will be; the shim ends after `forget`
 *   warm COUNT PID            before assign: the number of waiting workers, and one of them. Not repeated
 *   unfit TEXT                after breed: there are no workers, and why. Not repeated
 *   running WALL PORT HOW     every rank was started (exec worked); PORT as in prepared. HOW is absent, or
 *                             "warm", or "cold" and why the existing workers did not become ranks, or "stale"
 *                             and why no worker of their forkserver can
 *   pids PID...               after running, of a node with several ranks: the processes of the first
 *                             LIMIT_SAMPLE_RANKS of them, in order
 *   failed RANK CODE SIGNAL WALL CAUSE TEXT
 *                             the first rank that failed here; CAUSE is RANK_FAILED, OUT_OF_MEMORY or
 *                             EXEC_FAILED; the ladder has begun. CODE is 128 + SIGNAL if a signal ended the
 *                             rank, 127 if the command was not found, 126 if the command or its working
 *                             folder cannot be used
 *   output                    log files or metrics have grown; not sent again before `seen`
 *   idle                      after reuse: it has no attempt. Not repeated
 *   exited                    all processes are gone, both streams of all ranks at EOF, all metrics are in
 *                             their file, the exit record is written
 *
 * On a new connection to shim.sock the shim repeats the messages that hold, in this order: prepared,
 * declined, running, pids, failed, output, exited.
 *
 * The agent starts programs of its own through a shim that is none:
 * `gpushim SHIM_CONFINE CGROUP SECCOMP PROGRAM [ARGUMENT]...` enters the cgroup ("-": none), is refused
 * system calls where SECCOMP is 1, and executes PROGRAM.
 * `gpushim SHIM_CHECKPOINT VOLUME PARENT NAME` makes a folder (agent/common/checkpoint_folder.h), and says on
 * stderr why it cannot.
 *
 * A forkserver is `python -c ... FOLDER GPUSHIM OPTIONS NAMES ROOM` (agent/python/gpuctl_warm.py). The agent
 * starts it with the variables of the ranks that it serves, and its end of a SOCK_SEQPACKET pair as fd 3.
 *
 * agent to forkserver:
 *
 *   shim COUNT                with two descriptors: fd 3 and fd 2 of a new shim that has COUNT workers
 *
 * forkserver to agent:
 *
 *   ready NAMES               once: the modules that were imported
 *   unfit TEXT                instead of ready, and then it ends: no worker of it would behave like a fresh
 *                             process
 *   shim PID                  with one descriptor: pidfd of the new shim
 *
 * The process that forks a shim's workers is a child of the shim, at the other end of fd 4, SOCK_SEQPACKET.
 * Where ranks run as another user, there is no forkserver: no process that has run what a user chose may
 * become a shim. There the shim starts that process itself (`breed`), and each shim's own imports the
 * modules. The shim sends it `enter`, with the descriptors of the namespaces to enter, none or two. It
 * answers `worker PID` for each worker, with one descriptor, a stream socket, or `unfit TEXT`; then it ends.
 * On that socket the shim gives the worker an identity, once: a length of eight bytes in the byte order of
 * the host, with the descriptors of stdout, stderr and report, and of cgroup.procs and the store if the rank
 * has them. That many bytes follow, NUL-terminated KEY and VALUE: shim (its pid), cgroup and store (1:
 * present), cwd, arg, env. The worker answers `warm`, or `cold TEXT` or `stale TEXT` before it executes the
 * command, and closes report; or it writes the failed step into report.
 *
 * launch: a sequence of NUL-terminated strings, KEY then VALUE. Keys come in any order, except that `rank`
 * opens the section of a rank:
 *
 *   received        when the order came, in microseconds of "boot"; for an agent that adopts the attempt
 *   granted         how many devices or slots the attempt has here; for an agent that adopts it
 *   millicpus, memory_bytes  what it holds here; likewise
 *   epoch           the attempt id
 *   logs            folder on disk
 *   cwd
 *   cgroup          folder, or absent
 *   cgroup_version  2; only for shims of the version before
 *   port_first, port_last    the range in which to hold a gang's port; absent: none
 *   store_rank      the held port listens, and this rank gets its socket as SHIM_STORE_FD; absent: no rank
 *                   does
 *   failed_grace_ms
 *   keep            1: after a rank failed, and is reported as failed, the attempt is kept as by the message
 *                   keep; absent: it ends
 *   hold            repeated: a file that users of the ranks' environment or image, or of an input, lock,
 *                   shared, with flock; the shim holds the locks while it has the attempt
 *   uid, gid        of the user that the ranks run as; absent: the shim's own
 *   seccomp         with uid, 1: the ranks are refused what system_calls.c lists; absent: nothing
 *   group           repeated: that user's supplementary groups
 *   tmp             with uid: the folder that is /tmp and /var/tmp for the ranks, where the shim has its own
 *                   mounts
 *   image           folder with the files of a container image: the ranks run in a container of them, whose
 *                   bundle is image/ of the run folder; absent: they see the node's files
 *   secrets         so many secrets come with the order; absent: none
 *   secret          never in the file on disk, as the next: repeated, VARIABLE=VALUE, for all ranks. An env
 *                   of the file has precedence
 *   secret_file     repeated: VARIABLE=BASE64, a file of the ranks' user in SHIM_SECRETS_FOLDER of the run
 *                   folder, from the start to the end of the last process. env has its path
 *   log_limit       bytes of one stream; absent: LIMIT_STREAM_BYTES
 *   torchrun        1: the master is given to a torchrun, too; absent: it is not
 *   arg             repeated: argv
 *   env             NAME=VALUE, for all ranks
 *   rank            global rank: opens a section, in which its env follow
 *
 * Variables that start and run add, unless env has them already: MASTER_ADDR, MASTER_PORT,
 * JAX_COORDINATOR_ADDRESS (both of these), GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME (as =IFACE), and with
 * torchrun PET_MASTER_ADDR, PET_MASTER_PORT.
 *
 * exit record, in lines:
 *
 *   rank RANK CODE SIGNAL WALL OUT-BYTES ERR-BYTES BY-US    one for each started rank, in the order of ends
 *   checkpoint WALL         the last acknowledged checkpoint; absent: none
 *   cause CAUSE TEXT        NONE when all ranks exited with 0; without TEXT if there is nothing more to say
 *   end                     a record without this line is incomplete; the lines below it are optional
 *   epoch EPOCH             the attempt id; a record with another one is not this attempt's. Absent from
 *                           records of shims that synced before they told anybody
 *   moments PREPARED BEGUN RUNNING OUTPUT GONE    microseconds of "boot", 0: did not happen. Prepared; start
 *                           or run came; all ranks were started; the first byte of output; the last process
 *                           was gone
 *   mark RANK BOOT-MICROSECONDS NAME    moments that ranks named, in order */
#ifndef AGENT_SHIMWIRE_H
#define AGENT_SHIMWIRE_H

#define SHIM_CONTROL_FD        3
#define SHIM_OWN_MEMORY        "--own-shared-memory"
#define SHIM_WARM              "--warm"
#define SHIM_HOME              "--home"
#define SHIM_CONFINE           "--confine"
#define SHIM_CHECKPOINT        "--checkpoint-folder"
#define SHIM_WARM_FD           4
#define SHIM_LAUNCH_FILE       "launch"
#define SHIM_PID_FILE          "shim.pid"
#define SHIM_SOCKET_FILE       "shim.sock"
#define SHIM_ADDRESSES_FILE    "addresses" /* of the nodes of a gang, written before the start */
#define SHIM_EXIT_FILE         "exit"
#define SHIM_EXIT_NEW_FILE     "exit.new" /* the record until it is renamed; before that, reserved space */
#define SHIM_RECORD_SECTOR     512        /* a disk has so many bytes of a record as a whole or not at all */
#define SHIM_WORK_FOLDER       "work"
#define SHIM_ERRORS_FOLDER     "errors"
#define SHIM_CHECKPOINT_FOLDER "checkpoint"
#define SHIM_TMP_FOLDER        "tmp"   /* of an attempt whose ranks run as another user */
#define SHIM_NOTE_ENDING       ".note" /* ending of a rank's file there, which gpuctl_watch.py writes */
#define SHIM_WATCH_FOLDER      "watch" /* in the runner's folder, for the PYTHONPATH of ranks */
#define SHIM_RESULTS_FOLDER    "results"
#define SHIM_FUNCTION_FILE     "function"
#define SHIM_MODULES_FILE      "modules.zip"
#define SHIM_RANK_SOCKET       "rank.sock"
#define SHIM_MLFLOW_FILE       "mlflow"
#define SHIM_SECRETS_FOLDER    "secrets" /* of the run folder; a file has the name of its variable */
#define SHIM_PORT_HEARD        "; another process listens on MASTER_PORT"       /* added to rank 0's reason */
#define SHIM_PROCESSES_OUT     "; the job had as many processes as it may have" /* added to a rank's reason */
#define SHIM_STORE_FD          3 /* of the rank that hosts the rendezvous, in $GPUCTL_STORE_FD */

/* The exit record of so many ranks: for each a line of two words and seven numbers of at most 20 digits;
 * cause, end, moments and marks. */
#define SHIM_RECORD_LINE         160
#define SHIM_RECORD_BYTES(ranks) ((off_t)(LIMIT_SHIM_TEXT + (3 + LIMIT_MARKS + (ranks)) * SHIM_RECORD_LINE))

#endif
