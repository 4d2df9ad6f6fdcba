/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent ought to do: all its decisions, without its means. Pure: inputs and the time go in, actions
 * come out, in order; no I/O and no clock. The caller carries the actions out and tells what came of them. */
#ifndef AGENT_DUTY_H
#define AGENT_DUTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

/* What the node knows of one attempt. X(name, member state that is told to the controller) */
#define DUTY_PHASES(X)                                                                                       \
    X(ADOPTED, ORDERED)   /* found at start; its shim has not spoken yet */                                  \
    X(CLAIMED, ORDERED)   /* being prepared */                                                               \
    X(PREPARED, PREPARED) /* waits for the start */                                                          \
    X(STARTED, PREPARED)  /* its shim was told to start the ranks */                                         \
    X(RUNNING, RUNNING)                                                                                      \
    X(CLEARING, RUNNING) /* its processes are gone, its GPUs are not yet seen empty */                       \
    X(DECLINED, ORDERED) /* nothing was started and nothing will be */                                       \
    X(EXITED, EXITED)                                                                                        \
    X(FLUSHED, FLUSHED) /* the controller has its exit and all its logs */

/* What is heard of one attempt on the node. */
#define DUTY_NEWS(X)                                                                                         \
    X(PREPARED)                                                                                              \
    X(DECLINED)                                                                                              \
    X(RUNNING)                                                                                               \
    X(FAILED)  /* a rank failed */                                                                           \
    X(EXITED)  /* no process of it is left, or none ever was */                                              \
    X(CLEARED) /* the answer to CLEAR */                                                                     \
    X(DRAINED) /* every log byte was sent, after an exit report that said otherwise */

/* What is to be done. X(name, spelling) */
#define DUTY_ACTS(X)                                                                                         \
    X(REGISTER, "register")                                                                                  \
    X(POLL, "poll")                                                                                          \
    X(HEARTBEAT, "beat")  /* number, timeout_ms */                                                           \
    X(CLAIM, "claim")     /* order: claim the epoch and prepare it; for a RUN, start it too */               \
    X(BURY, "bury")       /* order: a STOP of an epoch never seen; claim it, so that it never starts */      \
    X(PREPARE, "prepare") /* tell the shim of an adopted attempt */                                          \
    X(RUN, "run")         /* the same */                                                                     \
    X(START, "start")     /* tell the shim */                                                                \
    X(WARN, "warn")       /* signal: tell the shim, once */                                                  \
    X(STOP, "stop")       /* grace_ms, cause, signal */                                                      \
    X(LEASE, "lease")     /* term_ms, kill_ms */                                                             \
    X(KILL, "kill")       /* its lease is long over, and its shim has not ended it: without the shim */      \
    X(CLEAR, "clear")     /* wait until its GPUs are empty */                                                \
    X(REPORT, "report")   /* report */                                                                       \
    X(FORGET, "forget")   /* nobody needs it any more: clean up */                                           \
    X(END, "end")         /* the agent was told to end, and has nothing left */

#define AS_ENUM_PHASE(name, ...) DUTY_##name,
#define AS_ENUM_NEWS(name, ...)  NEWS_##name,
#define AS_ENUM_ACT(name, ...)   ACT_##name,
enum duty_phase { DUTY_PHASES(AS_ENUM_PHASE) };
enum duty_news { DUTY_NEWS(AS_ENUM_NEWS) };
enum duty_act { DUTY_ACTS(AS_ENUM_ACT) };

struct duty_action {
    enum duty_act act;
    uint64_t epoch;            /* of all that concern one attempt */
    const struct order *order; /* CLAIM, BURY, PREPARE, RUN: borrowed from the reply that is worked in */
    enum report_kind report;
    int64_t grace_ms;
    enum cause cause;
    enum early_signal signal; /* EARLY_NONE: a STOP begins with TERM */
    int64_t term_ms, kill_ms; /* CLOCK_BOOTTIME */
    int64_t number;           /* of the heartbeat */
    int64_t timeout_ms;       /* how long its answer is worth waiting for */
};

/* How a report was answered. */
enum duty_answer {
    ANSWER_TAKEN,
    ANSWER_FLUSHED, /* of EXITED: taken, and it carried the last log bytes */
    ANSWER_FENCED,  /* the attempt is not the current one */
    ANSWER_STRANGER /* the controller does not know this node */
};

struct duty;
struct duty *duty_create(void);
void duty_destroy(struct duty *duty);

/* An attempt found on the node; before duty_start. */
void duty_adopt(struct duty *duty, uint64_t epoch);

/* The inputs. now_ms and sent_ms are CLOCK_BOOTTIME; sent_ms is when the request that was answered left. */
void duty_start(struct duty *duty);
void duty_registered(struct duty *duty, const struct register_reply *reply, int64_t sent_ms);
/* The controller answered a heartbeat or a poll with: I do not know this node. */
void duty_stranger(struct duty *duty);
/* Changes nothing if the poll was given up meanwhile. */
void duty_polled(struct duty *duty, const struct poll_reply *reply);
/* reply NULL: the heartbeat was not taken, or not answered. */
void duty_heartbeat_done(struct duty *duty, int64_t number, const struct heartbeat_reply *reply,
                         int64_t sent_ms);
void duty_heard(struct duty *duty, uint64_t epoch, enum duty_news news);
void duty_answered(struct duty *duty, uint64_t epoch, enum duty_answer answer);
void duty_tick(struct duty *duty, int64_t now_ms);
/* The next heartbeat is due at once: it has news. */
void duty_hurry(struct duty *duty);

/* Takes the next action; false when there is none. */
bool duty_next(struct duty *duty, struct duty_action *ret_action);

/* When a tick has something to do; INT64_MAX for never. */
int64_t duty_deadline(const struct duty *duty);

/* The version that the next poll names, and the attempts that registrations and heartbeats list; the array is
 * the caller's. */
uint64_t duty_version(const struct duty *duty);
struct node_attempt *duty_list(const struct duty *duty, size_t *ret_count);

const char *duty_act_text(enum duty_act act);

#endif
