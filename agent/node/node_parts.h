/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by node.c and exchange.c alone. */
#ifndef AGENT_NODE_PARTS_H
#define AGENT_NODE_PARTS_H

#include "agent/node/leave.h"
#include "agent/node/machine_sampler.h"
#include "agent/node/node.h"
#include "agent/node/recall.h"
#include "agent/node/token_renewal.h"
#include "agent/stream/streams.h"
#include "proto/base/text/table.h"
#include "proto/limits.h"

/* An attempt by its id, and its report that is under way. */
struct entry {
    uint64_t attempt_id;
    struct attempt *attempt;
    struct node *node;
    enum report_kind report;
    UT_hash_handle hh;
};

/* A heartbeat that is under way. */
struct heartbeat {
    struct node *node;
    int64_t number;
    struct controller_request *request; /* NULL: none */
};

struct node {
    struct agent_context *context;
    struct reconciler *reconciler;
    struct entry *entries;
    struct recall *recall;
    struct token_renewal *token_renewal;
    struct streams *streams;
    struct controller_request *registering, *polling;
    struct heartbeat heartbeats[HEARTBEATS_OUT];
    int64_t park_ms;
    bool labels_changed; /* the controller is to hear of it */
    bool poll_due;       /* the reconciler wants a poll */
    uint64_t nonce;      /* proves the identity of the next register; 0: none was given */
    int64_t heartbeat_seq;
    struct machine_sampler machine;
    char *faults;            /* the devices that no job can get, with their reasons, as text */
    struct loop_timer work;  /* for the next actions of the reconciler */
    struct loop_timer again; /* for the next register after a refusal */
    int64_t refusals;        /* in a row */
    char *refusal;           /* text of the last refusal, as it was logged; NULL: none */
    struct leave leave;
    void (*ended)(void *closure, const char *reason);
    void *closure;
};

/* The attempt with this id; NULL when it is not here. */
struct entry *node_find(struct node *node, uint64_t attempt_id);

/* Schedules the actions of the reconciler for a time, 0: at once. They run from the loop, never inside the
 * caller. */
void node_wake(struct node *node, int64_t at_ms);

/* Carries out the actions that are due now. */
void node_work(struct node *node);

/* exchange.c: the requests of the protocol. Their answers go to the reconciler. */
void exchange_init(struct node *node);
void exchange_finish(struct node *node);
void exchange_register(struct node *node);
/* Whether there was one to cancel, under way or to come. */
bool exchange_cancel_register(struct node *node);
void exchange_heartbeat(struct node *node, const struct reconciler_action *action);
void exchange_poll(struct node *node);
void exchange_report(struct entry *entry, enum report_kind kind);

#endif
