/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by reconciler.c and reconciler_attempt.c alone. */
#ifndef AGENT_RECONCILER_PARTS_H
#define AGENT_RECONCILER_PARTS_H

#include "agent/reconciler/reconciler.h"

enum standing {
    STANDING_STRANGER, /* a register is under way, or will be */
    STANDING_MEMBER,
};

/* The controller's desired state of an attempt. It only ever grows: later orders supersede earlier ones. */
enum desired {
    DESIRED_UNKNOWN, /* adopted; no order has come yet */
    DESIRED_READY,
    DESIRED_RUN,
    DESIRED_STOP,
    DESIRED_NOTHING, /* it is no longer listed, or was fenced */
};

#define REPORTS_DUE 8 /* prepared, running, failed, exited, exited again, and room for repetitions */

struct entry {
    uint64_t attempt_id;
    enum reconciler_phase phase;
    enum desired desired;
    int64_t lease_ms;
    int64_t first_heartbeat;  /* number of the first heartbeat that lists it */
    bool killed;              /* its lease was over, and ACT_KILL was issued */
    enum early_signal signal; /* the warning for the ranks once they run; EARLY_NONE: none */
    bool kept, told_kept;     /* a rank of the gang failed: its ranks here are ended, and all else is kept;
                                 this agent has told the shim */
    bool warned;              /* this agent has sent the warning; the shim makes sure that it happens once */
    enum report_kind due[REPORTS_DUE]; /* not yet answered, in order */
    size_t due_count;
    bool asking; /* the first of them is under way */
};

struct reconciler {
    enum standing standing;
    bool polling;  /* a poll is under way */
    bool outdated; /* its answer will be ignored: a new poll replaces it once the actions are carried out */
    int beating;   /* heartbeats under way */
    bool ending;
    uint64_t version;
    int64_t heartbeat_ms;
    int64_t heartbeats;        /* heartbeats sent so far */
    int64_t heartbeat_sent_ms; /* when the last heartbeat was sent */
    int64_t renewed_ms;        /* when the last answered heartbeat or register was sent */
    struct entry *items;
    size_t count, room;
    struct reconciler_action *actions;
    size_t action_first, action_count, action_room;
};

/* Adds an action; the caller fills in its other members. */
struct reconciler_action *reconciler_act(struct reconciler *reconciler, enum reconciler_act what,
                                         uint64_t attempt_id);

/* The attempt with this id, NULL when it is not known; valid until one is added or forgotten. */
struct entry *reconciler_find(const struct reconciler *reconciler, uint64_t attempt_id);
struct entry *reconciler_add(struct reconciler *reconciler, uint64_t attempt_id, enum reconciler_phase phase,
                             enum desired desired);

/* Whether processes of the attempt live, or may still start. */
bool reconciler_is_alive(const struct entry *entry);

/* Adds a report behind those that wait. reconciler_push_report sends the first one, if none is under way and
 * the node is a member. */
void reconciler_report(struct reconciler *reconciler, struct entry *entry, enum report_kind kind);
void reconciler_push_report(struct reconciler *reconciler, struct entry *entry);

/* Moves the actual state towards the desired one, after one of them changed. */
void reconciler_settle(struct reconciler *reconciler, struct entry *entry);

/* For an attempt that the controller does not want: stops it if it is live, forgets it if it is over. True
 * when it was forgotten, and the entry is gone. */
bool reconciler_drop(struct reconciler *reconciler, struct entry *entry);

/* Ends an agent that was told to end, once it has no attempts left. */
void reconciler_end_if_done(struct reconciler *reconciler);

#endif
