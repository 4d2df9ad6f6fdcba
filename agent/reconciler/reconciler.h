/* SPDX-License-Identifier: Apache-2.0 */
/* The reconciler: all decisions of an agent about the attempts on its node. Pure: inputs and the time go in,
 * ordered actions come out; no I/O and no clock. The caller carries the actions out and reports their
 * outcome. */
#ifndef AGENT_RECONCILER_H
#define AGENT_RECONCILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire/messages.h"

/* The node's state of one attempt. X(name, member state for the controller) */
#define RECONCILER_PHASES(X)                                                                                 \
    X(ADOPTED, ORDERED)   /* found at start; its shim has not reported yet */                                \
    X(CLAIMED, ORDERED)   /* being prepared */                                                               \
    X(PREPARED, PREPARED) /* waits for the start */                                                          \
    X(STARTED, PREPARED)  /* its shim was told to start the ranks */                                         \
    X(RUNNING, RUNNING)                                                                                      \
    X(CLEARING, RUNNING) /* its processes are gone; its GPUs are not seen empty yet */                       \
    X(DECLINED, ORDERED) /* nothing was started and nothing will be */                                       \
    X(EXITED, EXITED)                                                                                        \
    X(FLUSHED, FLUSHED) /* the controller has its exit and all its logs */

/* Events of one attempt on the node. */
#define RECONCILER_NEWS(X)                                                                                   \
    X(PREPARED)                                                                                              \
    X(DECLINED)                                                                                              \
    X(RUNNING)                                                                                               \
    X(FAILED)  /* a rank failed */                                                                           \
    X(EXITED)  /* no process of it is left, or none ever was */                                              \
    X(CLEARED) /* the answer to CLEAR */                                                                     \
    X(DRAINED) /* all log bytes were sent, after an exit report without them */

/* The actions. X(name, spelling) */
#define RECONCILER_ACTS(X)                                                                                   \
    X(REGISTER, "register")                                                                                  \
    X(POLL, "poll")                                                                                          \
    X(HEARTBEAT, "beat") /* number, timeout_ms */                                                            \
    X(CLAIM, "claim")    /* order: claim the attempt id and prepare it; for a RUN, start it too */           \
    X(TOMBSTONE,                                                                                             \
      "tombstone")        /* order: a STOP of an unknown attempt id; claim it, so that it never starts */    \
    X(PREPARE, "prepare") /* tell the shim of an adopted attempt */                                          \
    X(RUN, "run")         /* the same */                                                                     \
    X(START, "start")     /* tell the shim */                                                                \
    X(WARN, "warn")       /* signal: tell the shim, once */                                                  \
    X(KEEP, "keep")       /* end the ranks, and keep all else until STOP: tell the shim, once */             \
    X(STOP, "stop")       /* grace_ms, cause, signal */                                                      \
    X(LEASE, "lease")     /* term_ms, kill_ms */                                                             \
    X(KILL, "kill")       /* the lease is over, and the shim has not ended it: kill the shim */              \
    X(CLEAR, "clear")     /* wait until its GPUs are seen empty */                                           \
    X(REPORT, "report")   /* report */                                                                       \
    X(FORGET, "forget")   /* it is no longer needed: clean up */                                             \
    X(END, "end")         /* the agent was told to end, and has nothing left */

#define AS_ENUM_PHASE(name, ...) RECONCILER_##name,
#define AS_ENUM_NEWS(name, ...)  NEWS_##name,
#define AS_ENUM_ACT(name, ...)   ACT_##name,
enum reconciler_phase { RECONCILER_PHASES(AS_ENUM_PHASE) };
enum reconciler_news { RECONCILER_NEWS(AS_ENUM_NEWS) };
enum reconciler_act { RECONCILER_ACTS(AS_ENUM_ACT) };

struct reconciler_action {
    enum reconciler_act act;
    uint64_t attempt_id;       /* of the actions on one attempt */
    const struct order *order; /* CLAIM, TOMBSTONE, PREPARE, RUN: borrowed from the current reply */
    enum report_kind report;
    int64_t grace_ms;
    enum cause cause;
    enum early_signal signal; /* EARLY_NONE: a STOP begins with TERM */
    int64_t term_ms, kill_ms; /* CLOCK_BOOTTIME */
    int64_t number;           /* of the heartbeat */
    int64_t timeout_ms;       /* how long to wait for its answer */
};

/* The controller's answer to a report. */
enum reconciler_answer {
    ANSWER_TAKEN,
    ANSWER_FLUSHED, /* to EXITED: taken, and it carried the last log bytes */
    ANSWER_FENCED,  /* the attempt is not the current one */
    ANSWER_STRANGER /* the controller does not know this node */
};

struct reconciler;
struct reconciler *reconciler_create(void);
void reconciler_destroy(struct reconciler *reconciler);

/* Adds an attempt found on the node; to be called before reconciler_start. */
void reconciler_adopt(struct reconciler *reconciler, uint64_t attempt_id);

/* The inputs. now_ms and sent_ms are CLOCK_BOOTTIME; sent_ms is when the answered request was sent. */
void reconciler_start(struct reconciler *reconciler);
void reconciler_registered(struct reconciler *reconciler, const struct register_reply *reply,
                           int64_t sent_ms);
/* The controller has answered a heartbeat or a poll that it does not know this node, or what it knows of it
 * has changed: the node registers again. false: it registers already. */
bool reconciler_stranger(struct reconciler *reconciler);
/* Has no effect if the poll was given up meanwhile. */
void reconciler_polled(struct reconciler *reconciler, const struct poll_reply *reply);
/* reply NULL: the heartbeat was refused or not answered. */
void reconciler_heartbeat_done(struct reconciler *reconciler, int64_t number,
                               const struct heartbeat_reply *reply, int64_t sent_ms);
void reconciler_heard(struct reconciler *reconciler, uint64_t attempt_id, enum reconciler_news news);
void reconciler_answered(struct reconciler *reconciler, uint64_t attempt_id, enum reconciler_answer answer);
void reconciler_tick(struct reconciler *reconciler, int64_t now_ms);
/* Makes the next heartbeat due at once, because there is news. */
void reconciler_hurry(struct reconciler *reconciler);

/* Takes the next action; false when there is none. */
bool reconciler_next(struct reconciler *reconciler, struct reconciler_action *ret_action);

/* When the next tick is due; INT64_MAX: never. */
int64_t reconciler_deadline(const struct reconciler *reconciler);

/* The version for the next poll, and the attempts that registrations and heartbeats list; the caller frees
 * the array. */
uint64_t reconciler_version(const struct reconciler *reconciler);
struct node_attempt *reconciler_list(const struct reconciler *reconciler, size_t *ret_count);

const char *reconciler_act_text(enum reconciler_act act);

#endif
