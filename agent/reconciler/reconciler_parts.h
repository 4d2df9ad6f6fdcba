/* SPDX-License-Identifier: Apache-2.0 */
/* What reconciler.c and reconciler_attempt.c share, and nobody else. */
#ifndef AGENT_RECONCILER_PARTS_H
#define AGENT_RECONCILER_PARTS_H

#include "agent/reconciler/reconciler.h"

enum standing {
    STANDING_STRANGER, /* a register is out, or will be */
    STANDING_MEMBER,
};

/* What the controller wants of an attempt. It only ever grows: later orders supersede earlier ones. */
enum desired {
    DESIRED_UNKNOWN, /* adopted, and not told yet */
    DESIRED_READY,
    DESIRED_RUN,
    DESIRED_STOP,
    DESIRED_NOTHING, /* it is not listed any more, or was fenced */
};

#define REPORTS_DUE 8 /* prepared, running, failed, exited, exited again, and room for repetitions */

struct entry {
    uint64_t attempt_id;
    enum reconciler_phase phase;
    enum desired desired;
    int64_t lease_ms;
    int64_t first_heartbeat;  /* number of the first heartbeat that lists it */
    bool killed;              /* its lease was over, and its shim did not end it */
    enum early_signal signal; /* the ranks are to be warned with it, as soon as they run; EARLY_NONE: no */
    bool warned;              /* that was done, as far as this agent knows; the shim knows for sure */
    enum report_kind due[REPORTS_DUE]; /* not yet answered, in order */
    size_t due_count;
    bool asking; /* the first of them is out */
};

struct reconciler {
    enum standing standing;
    bool polling;  /* one is out */
    bool outdated; /* its answer is worth nothing: another will be in its place as soon as the actions are
                      done */
    int beating;   /* how many are out */
    bool ending;
    uint64_t version;
    int64_t heartbeat_ms;
    int64_t heartbeats;        /* how many were sent */
    int64_t heartbeat_sent_ms; /* when the last heartbeat left */
    int64_t renewed_ms;        /* when the last heartbeat or register that was answered left */
    struct entry *items;
    size_t count, room;
    struct reconciler_action *actions;
    size_t action_first, action_count, action_room;
};

/* Adds an action; what goes with it is filled in by the caller. */
struct reconciler_action *reconciler_act(struct reconciler *reconciler, enum reconciler_act what,
                                         uint64_t attempt_id);

/* The attempt with this id, NULL when it is not known; valid until one is added or forgotten. */
struct entry *reconciler_find(const struct reconciler *reconciler, uint64_t attempt_id);
struct entry *reconciler_add(struct reconciler *reconciler, uint64_t attempt_id, enum reconciler_phase phase,
                             enum desired desired);

/* Whether processes of it may live, or come to live. */
bool reconciler_is_alive(const struct entry *entry);

/* Adds a report behind those that wait; sends the first of them, if none is out and the node is a member. */
void reconciler_report(struct reconciler *reconciler, struct entry *entry, enum report_kind kind);
void reconciler_push_report(struct reconciler *reconciler, struct entry *entry);

/* Brings together the actual and the desired state, after one of them changed. */
void reconciler_settle(struct reconciler *reconciler, struct entry *entry);

/* Nobody wants it: what lives is stopped, what is over is forgotten. True when it was forgotten, and the
 * entry is gone. */
bool reconciler_drop(struct reconciler *reconciler, struct entry *entry);

/* The end of an agent that was told to end. */
void reconciler_end_if_done(struct reconciler *reconciler);

#endif
