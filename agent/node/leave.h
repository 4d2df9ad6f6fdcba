/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the agent in agreement with its controller, so that no job is lost with it. */
#ifndef AGENT_LEAVE_H
#define AGENT_LEAVE_H

#include <stdbool.h>

#include "agent/base/loop.h"

struct controller_request;
struct node;

/* A part of struct node. */
struct leave {
    struct loop_timer idle;             /* runs while the agent has no work: --idle-exit */
    struct loop_timer expiry;           /* of an ephemeral node */
    struct loop_timer again;            /* for the next question */
    struct controller_request *request; /* NULL: none is under way */
    const char *reason;                 /* for people; NULL: the node stays */
    int64_t silent_since_ms;            /* since when there is no answer; 0: the last one has come */
    bool stops;                         /* work is stopped; else the node stays if there is any */
    bool gone;                          /* the agent ends */
    bool register_due;                  /* a registration waits for the answer */
};

void leave_init(struct node *node);
void leave_finish(struct node *node);

/* Work has come or gone. */
void leave_look(struct node *node);
/* Stops the node's work and ends the agent once it is gone. The reason is for people, and lasts. */
void leave_begin(struct node *node, const char *reason);
/* Whether the node must not register: it would come back while it goes. It registers if it is to stay. */
bool leave_holds_register(struct node *node);

#endif
