/* SPDX-License-Identifier: Apache-2.0 */
/* All states, kinds and choices with their spelling: enum, JSON, SQL, CLI and docs are generated from these
 * lists. */
#ifndef PROTO_STATES_H
#define PROTO_STATES_H

#include <stdbool.h>

/* X(name, terminal, meaning) */
#define JOB_STATES(X)                                                                                        \
    X(QUEUED, false, "waits for GPUs")                                                                       \
    X(HELD, false, "kept back until a person releases it")                                                   \
    X(BLOCKED, false, "waits for other jobs to end, or for its time")                                        \
    X(STAGING, false, "nodes are preparing the job's environment, and hold no GPU for it")                   \
    X(PLACED, false, "GPUs are reserved; the gang is being started")                                         \
    X(RUNNING, false, "all ranks were started")                                                              \
    X(SUCCEEDED, true, "all ranks exited with 0")                                                            \
    X(FAILED, true, "a rank failed and no retry is left")                                                    \
    X(CANCELED, true, "canceled by a person")                                                                \
    X(TIMED_OUT, true, "ran longer than its time limit")

/* X(name, holds_gpus, meaning) */
#define ATTEMPT_STATES(X)                                                                                    \
    X(RESERVED, true, "GPUs are set aside; PREPARE is out to the nodes")                                     \
    X(PREPARING, true, "some nodes are prepared")                                                            \
    X(PREPARED, true, "all nodes are prepared; START is being committed")                                    \
    X(STARTED, true, "START is committed")                                                                   \
    X(KEPT, true, "a rank failed; the nodes stay as they are for a while, so that people can look")          \
    X(STOPPING, true, "the gang is being killed")                                                            \
    X(FLUSHING, true, "all ranks are gone; their last log bytes are on the way")                             \
    X(ENDED, false, "over; its GPUs are free")

/* One node's part of an attempt. X(name, meaning) */
#define MEMBER_STATES(X)                                                                                     \
    X(ORDERED, "the node has been sent the order, or will be")                                               \
    X(PREPARED, "shim up, GPUs and payload checked, port held")                                              \
    X(RUNNING, "its ranks run")                                                                              \
    X(EXITED, "its processes are gone; log bytes may be missing")                                            \
    X(FLUSHED, "its processes are gone and its logs are stored")                                             \
    X(LOST, "evidence says that it is gone: reboot, fence, lease")

/* X(name, meaning) */
#define NODE_STATES(X)                                                                                       \
    X(READY, "takes work")                                                                                   \
    X(SUSPECT, "missed beats; gets no new work")                                                             \
    X(DRAINING, "gets no new work; finishes what it has")                                                    \
    X(DRAINED, "gets no new work and has none")                                                              \
    X(LOST, "fenced by the operator or by its lease; must register anew")

/* What people are told of a GPU; an earlier row holds before a later one. X(name, spelling, meaning) */
#define GPU_STATES(X)                                                                                        \
    X(ALLOCATED, "allocated", "an attempt holds it")                                                         \
    X(UNAVAILABLE, "unavailable", "no job can get it, as its node says: broken, or held by a stranger")      \
    X(SILENT, "silent", "its node has missed heartbeats, or is LOST")                                        \
    X(DRAINED, "drained", "its node is DRAINING or DRAINED, or in a maintenance window")                     \
    X(FREE, "free", "a job can get it")

/* The causes of the end of an attempt. X(name, user_fault, spelling for people) */
#define CAUSES(X)                                                                                            \
    X(NONE, false, "none")                                                                                   \
    X(RANK_FAILED, true, "a rank failed")                                                                    \
    X(OUT_OF_MEMORY, true, "a rank ran out of memory")                                                       \
    X(EXEC_FAILED, true, "the command could not be executed")                                                \
    X(RESULT_MISSING, true, "a rank ended without a result")                                                 \
    X(CANCELED, false, "canceled")                                                                           \
    X(TIME_LIMIT, true, "time limit reached")                                                                \
    X(DECLINED, false, "a node declined")                                                                    \
    X(PORT_TAKEN, false, "MASTER_PORT was taken by another process")                                         \
    X(PREPARE_EXPIRED, false, "a node did not get prepared in time")                                         \
    X(NODE_LOST, false, "a node was lost")                                                                   \
    X(SHIM_LOST, false, "the supervisor of the ranks was killed")                                            \
    X(STAGE_FAILED, true, "what the job needs could not be made ready")                                      \
    X(PREEMPTED, false, "gave way to other work")                                                            \
    X(DEPENDENCY, true, "a job that it depends on did not succeed")                                          \
    X(TASK_FAILED, true, "tasks of the array failed")

/* Kinds of events in a job's history; those from SUCCEEDED on end it. X(name, spelling, meaning) */
#define EVENT_KINDS(X)                                                                                       \
    X(SUBMITTED, "submitted", "the job is stored")                                                           \
    X(HELD, "held", "a person kept the job back")                                                            \
    X(RELEASED, "released", "a person released the job")                                                     \
    X(BLOCKED, "blocked", "the job waits for the jobs that it depends on, or for its time")                  \
    X(READY, "ready", "all jobs that it depends on have ended as required")                                  \
    X(CHANGED, "changed", "a person changed its priority or its time limit")                                 \
    X(STAGING, "staging", "nodes are preparing the job's environment")                                       \
    X(STAGED, "staged", "nodes have prepared the job's environment")                                         \
    X(PLACED, "placed", "the job got its GPUs, for a new attempt")                                           \
    X(STARTED, "started", "the gang was told to start")                                                      \
    X(RUNNING, "running", "all ranks were started")                                                          \
    X(IDLE, "idle", "its GPUs have been nearly unused for a time")                                           \
    X(BUSY, "busy", "its GPUs are in use again")                                                             \
    X(WARNED, "warned", "the early signal was sent, before the time limit")                                  \
    X(KEPT, "kept", "a rank failed, and its nodes stay as they are for a while")                             \
    X(CANCEL_ASKED, "cancel_asked", "a person canceled the job")                                             \
    X(STOPPING, "stopping", "the gang is being ended")                                                       \
    X(REQUEUED, "requeued", "the attempt ended, its detail says why, and the job waits again")               \
    X(LOGS_CUT, "logs_cut", "the end was shown before all output had come")                                  \
    X(SUCCEEDED, "succeeded", "all ranks exited with 0")                                                     \
    X(FAILED, "failed", "the job failed, and no retry is left")                                              \
    X(CANCELED, "canceled", "the job was canceled")                                                          \
    X(TIMED_OUT, "timed_out", "the job reached its time limit")

/* What the controller orders a node to do for one attempt; later rows supersede earlier ones. X(name,
 * spelling) */
#define ORDER_PHASES(X)                                                                                      \
    X(PREPARE, "prepare") /* gang over several nodes: get ready, report prepared */                          \
    X(START, "start")     /* the gang is committed: start the ranks */                                       \
    X(RUN, "run")         /* gang on one node: prepare and start at once */                                  \
    X(STOP, "stop")       /* stop the ranks (signal, TERM, KILL), then report exited */

/* Reports of a node about one attempt. X(name, spelling) */
#define REPORT_KINDS(X)                                                                                      \
    X(PREPARED, "prepared")                                                                                  \
    X(DECLINED, "declined")                                                                                  \
    X(RUNNING, "running")                                                                                    \
    X(FAILED, "failed") /* a rank failed; others may still run */                                            \
    X(EXITED, "exited") /* all processes of the attempt on this node are gone */

/* Reports of a node about staging for coming jobs. X(name, spelling) */
#define STAGING_STATES(X)                                                                                    \
    X(BUILDING, "building") /* in progress; the report has the newest line of its output */                  \
    X(READY, "ready")                                                                                        \
    X(FAILED, "failed")

/* Of tokens, and of people in projects. Roles of people are the last ones, and each may do what the one
 * before it may. X(name, spelling) */
#define ROLES(X)                                                                                             \
    X(NONE, "none")                                                                                          \
    X(NODE, "node")                                                                                          \
    X(MONITOR, "monitor")                                                                                    \
    X(VIEWER, "viewer")                                                                                      \
    X(USER, "user")                                                                                          \
    X(OPERATOR, "operator")                                                                                  \
    X(ADMIN, "admin")

#define LAUNCH_MODES(X)                                                                                      \
    X(PROCESS, "process")                                                                                    \
    X(NODE, "node")

#define DISCONNECTS(X)                                                                                       \
    X(KEEP, "keep")                                                                                          \
    X(REQUEUE, "requeue")                                                                                    \
    X(FAIL, "fail")

/* The streams that the ranks of an attempt write, read by offset. METRICS is one stream per node, stored
 * under its first rank: the lines that ranks sent to $GPUCTL_SOCKET. FILES is what a rank has left in
 * $GPUCTL_OUTPUT_DIR (proto/wire/files/kept_files.h). X(name, spelling) */
#define STREAMS(X)                                                                                           \
    X(STDOUT, "stdout")                                                                                      \
    X(STDERR, "stderr")                                                                                      \
    X(METRICS, "metrics")                                                                                    \
    X(FILES, "files")

/* The kinds of result of a rank of a function job. X(name, spelling) */
#define RESULT_KINDS(X)                                                                                      \
    X(VALUE, "value") /* the function's return value */                                                      \
    X(EXCEPTION, "exception")

#define POOL_KINDS(X)                                                                                        \
    X(ON_DEMAND, "on-demand")                                                                                \
    X(RESERVED, "reserved")

/* use_reserved_pool of a job spec; spelled null, true and false in JSON. */
#define RESERVED_CHOICES(X)                                                                                  \
    X(AUTO, "auto")                                                                                          \
    X(TRUE, "true")                                                                                          \
    X(FALSE, "false")

/* The order in which waiting jobs are considered, and what a job that does not fit means for the jobs behind
 * it. X(name, spelling, meaning) */
#define POLICIES(X)                                                                                          \
    X(FIFO, "fifo", "by submission; one that waits keeps what it could use")                                 \
    X(EASY, "easy", "by submission; shorter jobs fill the gap before the first one's reserved start")        \
    X(SJF, "sjf", "the shortest first; one that waits keeps what it could use")                              \
    X(SRTF, "srtf", "the least remaining time first; running jobs give way, and go on later")                \
    X(SRSF, "srsf", "the least remaining GPU time first; running jobs give way, and go on later")            \
    X(DEFAULT, "default", "by priority, fair share, age and run time; the gaps are filled")

/* By which right a job holds its GPUs. X(name, spelling) */
#define CLAIMS(X)                                                                                            \
    X(ENTITLED, "entitled") /* nobody may take them */                                                       \
    X(BORROWED, "borrowed") /* they go back when entitled work wants them */

/* The required outcome of a job that another depends on. X(name, spelling) */
#define DEPENDENCIES(X)                                                                                      \
    X(AFTER, "after")       /* started, or ended */                                                          \
    X(AFTEROK, "afterok")   /* succeeded */                                                                  \
    X(AFTERANY, "afterany") /* ended */

/* How a gang is distributed over nodes. X(name, spelling) */
#define PLACEMENTS(X)                                                                                        \
    X(PACK, "pack")     /* on as few nodes as possible */                                                    \
    X(SPREAD, "spread") /* on as many nodes as possible */

/* The reasons why a job has no GPUs yet. X(name, meaning) */
#define WAIT_REASONS(X)                                                                                      \
    X(HELD, "it is kept back until a person releases it")                                                    \
    X(BLOCKED, "it depends on jobs that have not ended, or its time has not come")                           \
    X(LIMIT, "a limit of its project or owner is reached")                                                   \
    X(STAGING, "nodes are preparing its environment")                                                        \
    X(NODES_BUSY, "it fits when running jobs end")                                                           \
    X(RESERVED, "free GPUs are reserved for another job, whose start it would outlast")                      \
    X(BEHIND, "another job comes before it in the queue")                                                    \
    X(CPU_MEMORY, "GPUs are free, but not the CPUs or the memory that it needs beside them")                 \
    X(FRAGMENTED, "enough GPUs are free, but not together where it may run")                                 \
    X(DRAINED, "nodes that it needs take no new work")                                                       \
    X(UNAVAILABLE, "GPUs that it needs are unavailable: held by other programs, or broken")                  \
    X(LEAVING, "nodes that it needs go away before it would end")                                            \
    X(HELD_OFF, "nodes that declined get no work for a moment")                                              \
    X(NO_NODES, "no registered nodes could hold it")                                                         \
    X(DUE, "it fits, and is placed by the next change")

/* The tests of a job that a node may fail. X(name, spelling, meaning) */
#define NODE_TESTS(X)                                                                                        \
    X(GPU_TYPE, "gpu_type", "has no GPU of the type")                                                        \
    X(POOL, "pool", "is in a pool that the job may not use")                                                 \
    X(HOST, "host", "is not the submitter's host")                                                           \
    X(LABELS, "labels", "does not fulfil the job's constraints, or is excluded")                             \
    X(DRAINING, "draining", "takes no new work")                                                             \
    X(SILENT, "silent", "missed its heartbeats")                                                             \
    X(ON_HOLD, "on_hold", "declined, and gets no work for a moment")                                         \
    X(LEAVING, "leaving", "goes away before the job would end")                                              \
    X(BUSY, "busy", "has not enough free GPUs to give what it could")                                        \
    X(CPU_MEMORY, "cpu_memory", "has too few CPUs or too little memory left")                                \
    X(NOT_READY, "not_ready", "has not prepared the job's environment")                                      \
    X(RESERVED, "reserved", "is reserved for jobs that come earlier in the queue")

/* How certain a forecast is. X(name, spelling) */
#define CONFIDENCES(X)                                                                                       \
    X(LOW, "low")                                                                                            \
    X(MEDIUM, "medium")                                                                                      \
    X(HIGH, "high")

/* The kinds of account that have limits. X(name, spelling) */
#define ACCOUNT_KINDS(X)                                                                                     \
    X(PROJECT, "project")                                                                                    \
    X(USER, "user")                                                                                          \
    X(POOL, "pool")

/* The signals that a job may ask for before it is ended: by name, because the numbers differ between
 * architectures. X(name, spelling) */
#define EARLY_SIGNALS(X)                                                                                     \
    X(NONE, "none")                                                                                          \
    X(USR1, "USR1")                                                                                          \
    X(USR2, "USR2")                                                                                          \
    X(TERM, "TERM")                                                                                          \
    X(INT, "INT")                                                                                            \
    X(HUP, "HUP")                                                                                            \
    X(CONT, "CONT")                                                                                          \
    X(URG, "URG")

/* What follows when the GPUs of a job are idle for a time. X(name, spelling, meaning) */
#define IDLE_ACTIONS(X)                                                                                      \
    X(TELL, "tell", "its owner is told")                                                                     \
    X(PREEMPT, "preempt", "its owner is told; later it gives back its GPUs, and is held")
/* Whose jobs a webhook tells of. X(name, spelling, meaning) */
#define WEBHOOK_SCOPES(X)                                                                                    \
    X(OWN, "own", "jobs of its owner")                                                                       \
    X(ALL, "all", "jobs of all people; an administrator's webhook")                                          \
    X(NAMED, "named", "jobs of its owner that name it")

/* X(name, meaning) */
#define DELIVERY_STATES(X)                                                                                   \
    X(PENDING, "waits for its first try, or for the next one")                                               \
    X(DELIVERED, "the receiver has answered with 2xx")                                                       \
    X(FAILED, "given up; it can be replayed")

/* What a schedule does when a run is due and the job of its last run has not ended. X(name, spelling,
 * meaning)
 */
#define SCHEDULE_OVERLAPS(X)                                                                                 \
    X(ALLOW, "allow", "the run is submitted all the same")                                                   \
    X(FORBID, "forbid", "the run is left out")                                                               \
    X(REPLACE, "replace", "the earlier job is canceled, and the run is submitted")

/* What a schedule does with runs that were due while the controller was down. X(name, spelling, meaning) */
#define SCHEDULE_MISSES(X)                                                                                   \
    X(SKIP, "skip", "they are left out")                                                                     \
    X(LAST, "last", "one run is submitted for all of them")

/* What became of a run. X(name, spelling, meaning) */
#define SCHEDULE_OUTCOMES(X)                                                                                 \
    X(NONE, "none", "no run was due yet")                                                                    \
    X(SUBMITTED, "submitted", "a job was made")                                                              \
    X(REFUSED, "refused", "its job was refused; the error says why")                                         \
    X(SKIPPED, "skipped", "the job of an earlier run had not ended, and overlap is forbid")                  \
    X(MISSED, "missed", "the controller was down, and missed is skip")

/* How a node keeps the processes of an attempt together. Only earlier agents say cgroup1. */
#define ISOLATIONS(X)                                                                                        \
    X(NONE, "none")                                                                                          \
    X(CGROUP1, "cgroup1")                                                                                    \
    X(CGROUP2, "cgroup2")

#define AS_ENUM_JOB(name, ...)       JOB_##name,
#define AS_ENUM_ATTEMPT(name, ...)   ATTEMPT_##name,
#define AS_ENUM_MEMBER(name, ...)    MEMBER_##name,
#define AS_ENUM_NODE(name, ...)      NODE_##name,
#define AS_ENUM_GPU(name, ...)       GPU_##name,
#define AS_ENUM_CAUSE(name, ...)     CAUSE_##name,
#define AS_ENUM_EVENT(name, ...)     EVENT_##name,
#define AS_ENUM_ORDER(name, ...)     ORDER_##name,
#define AS_ENUM_REPORT(name, ...)    REPORT_##name,
#define AS_ENUM_STAGING(name, ...)   STAGING_##name,
#define AS_ENUM_ROLE(name, ...)      ROLE_##name,
#define AS_ENUM_LAUNCH(name, ...)    LAUNCH_##name,
#define AS_ENUM_ON(name, ...)        ON_DISCONNECT_##name,
#define AS_ENUM_STREAM(name, ...)    STREAM_##name,
#define AS_ENUM_RESULT(name, ...)    RESULT_##name,
#define AS_ENUM_POOL(name, ...)      POOL_##name,
#define AS_ENUM_RESERVED(name, ...)  USE_RESERVED_##name,
#define AS_ENUM_ISOLATION(name, ...) ISOLATION_##name,
#define AS_ENUM_POLICY(name, ...)    POLICY_##name,
#define AS_ENUM_CLAIM(name, ...)     CLAIM_##name,
#define AS_ENUM_DEPEND(name, ...)    DEPENDENCY_##name,
#define AS_ENUM_PLACEMENT(name, ...) PLACEMENT_##name,
#define AS_ENUM_FORECAST(name, ...)  CONFIDENCE_##name,
#define AS_ENUM_WAIT(name, ...)      WAIT_##name,
#define AS_ENUM_TEST(name, ...)      NODE_TEST_##name,
#define AS_ENUM_ACCOUNT(name, ...)   ACCOUNT_##name,
#define AS_ENUM_EARLY(name, ...)     EARLY_##name,
#define AS_ENUM_IDLE(name, ...)      IDLE_##name,
#define AS_ENUM_SCOPE(name, ...)     WEBHOOK_##name,
#define AS_ENUM_DELIVERY(name, ...)  DELIVERY_##name,
#define AS_ENUM_OVERLAP(name, ...)   OVERLAP_##name,
#define AS_ENUM_MISSED(name, ...)    MISSED_##name,
#define AS_ENUM_OUTCOME(name, ...)   OUTCOME_##name,

enum job_state { JOB_STATES(AS_ENUM_JOB) JOB_STATE_COUNT };
enum attempt_state { ATTEMPT_STATES(AS_ENUM_ATTEMPT) ATTEMPT_STATE_COUNT };
enum member_state { MEMBER_STATES(AS_ENUM_MEMBER) MEMBER_STATE_COUNT };
enum node_state { NODE_STATES(AS_ENUM_NODE) NODE_STATE_COUNT };
enum gpu_state { GPU_STATES(AS_ENUM_GPU) GPU_STATE_COUNT };
enum cause { CAUSES(AS_ENUM_CAUSE) CAUSE_COUNT };
enum event_kind { EVENT_KINDS(AS_ENUM_EVENT) EVENT_KIND_COUNT };
enum order_phase { ORDER_PHASES(AS_ENUM_ORDER) ORDER_PHASE_COUNT };
enum report_kind { REPORT_KINDS(AS_ENUM_REPORT) REPORT_KIND_COUNT };
enum staging_state { STAGING_STATES(AS_ENUM_STAGING) STAGING_STATE_COUNT };
enum role { ROLES(AS_ENUM_ROLE) ROLE_COUNT };
enum launch_mode { LAUNCH_MODES(AS_ENUM_LAUNCH) LAUNCH_MODE_COUNT };
enum on_disconnect { DISCONNECTS(AS_ENUM_ON) ON_DISCONNECT_COUNT };
enum stream { STREAMS(AS_ENUM_STREAM) STREAM_COUNT };
enum result_kind { RESULT_KINDS(AS_ENUM_RESULT) RESULT_KIND_COUNT };
enum pool_kind { POOL_KINDS(AS_ENUM_POOL) POOL_KIND_COUNT };
enum use_reserved { RESERVED_CHOICES(AS_ENUM_RESERVED) USE_RESERVED_COUNT };
enum isolation { ISOLATIONS(AS_ENUM_ISOLATION) ISOLATION_COUNT };
enum policy { POLICIES(AS_ENUM_POLICY) POLICY_COUNT };
enum claim { CLAIMS(AS_ENUM_CLAIM) CLAIM_COUNT };
enum dependency { DEPENDENCIES(AS_ENUM_DEPEND) DEPENDENCY_COUNT };
enum placement { PLACEMENTS(AS_ENUM_PLACEMENT) PLACEMENT_COUNT };
enum confidence { CONFIDENCES(AS_ENUM_FORECAST) CONFIDENCE_COUNT };
enum wait_reason { WAIT_REASONS(AS_ENUM_WAIT) WAIT_REASON_COUNT };
enum node_test { NODE_TESTS(AS_ENUM_TEST) NODE_TEST_COUNT };
enum account_kind { ACCOUNT_KINDS(AS_ENUM_ACCOUNT) ACCOUNT_KIND_COUNT };
enum early_signal { EARLY_SIGNALS(AS_ENUM_EARLY) EARLY_SIGNAL_COUNT };
enum idle_action { IDLE_ACTIONS(AS_ENUM_IDLE) IDLE_ACTION_COUNT };
enum webhook_scope { WEBHOOK_SCOPES(AS_ENUM_SCOPE) WEBHOOK_SCOPE_COUNT };
enum delivery_state { DELIVERY_STATES(AS_ENUM_DELIVERY) DELIVERY_STATE_COUNT };
enum schedule_overlap { SCHEDULE_OVERLAPS(AS_ENUM_OVERLAP) SCHEDULE_OVERLAP_COUNT };
enum schedule_missed { SCHEDULE_MISSES(AS_ENUM_MISSED) SCHEDULE_MISSED_COUNT };
enum schedule_outcome { SCHEDULE_OUTCOMES(AS_ENUM_OUTCOME) SCHEDULE_OUTCOME_COUNT };

/* The spelling of a value (static text; states in capitals, the rest as in the lists), and the value of a
 * spelling; false when there is no such spelling. */
#define STATES_DECLARE(type, prefix)                                                                         \
    const char *prefix##_text(enum type value);                                                              \
    bool prefix##_from_text(const char *text, enum type *ret_value);
STATES_DECLARE(job_state, job_state)
STATES_DECLARE(attempt_state, attempt_state)
STATES_DECLARE(member_state, member_state)
STATES_DECLARE(node_state, node_state)
STATES_DECLARE(gpu_state, gpu_state)
STATES_DECLARE(cause, cause)
STATES_DECLARE(event_kind, event_kind)
STATES_DECLARE(order_phase, order_phase)
STATES_DECLARE(report_kind, report_kind)
STATES_DECLARE(staging_state, staging_state)
STATES_DECLARE(role, role)
STATES_DECLARE(launch_mode, launch_mode)
STATES_DECLARE(on_disconnect, on_disconnect)
STATES_DECLARE(stream, stream)
STATES_DECLARE(result_kind, result_kind)
STATES_DECLARE(pool_kind, pool_kind)
STATES_DECLARE(use_reserved, use_reserved)
STATES_DECLARE(isolation, isolation)
STATES_DECLARE(policy, policy)
STATES_DECLARE(claim, claim)
STATES_DECLARE(dependency, dependency)
STATES_DECLARE(placement, placement)
STATES_DECLARE(confidence, confidence)
STATES_DECLARE(wait_reason, wait_reason)
STATES_DECLARE(node_test, node_test)
STATES_DECLARE(account_kind, account_kind)
STATES_DECLARE(early_signal, early_signal)
STATES_DECLARE(idle_action, idle_action)
STATES_DECLARE(webhook_scope, webhook_scope)
STATES_DECLARE(delivery_state, delivery_state)
STATES_DECLARE(schedule_overlap, schedule_overlap)
STATES_DECLARE(schedule_missed, schedule_missed)
STATES_DECLARE(schedule_outcome, schedule_outcome)

bool job_state_terminal(enum job_state state);
bool attempt_state_holds_gpus(enum attempt_state state);
bool stream_is_output(enum stream stream);    /* stdout or stderr */
bool cause_user_fault(enum cause cause);      /* costs a retry of the user, not one of the infrastructure */
const char *cause_sentence(enum cause cause); /* for people */

#endif
