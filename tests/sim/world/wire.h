/* SPDX-License-Identifier: Apache-2.0 */
/* The network between the controller and its callers: requests that are lost, late, duplicated or reordered,
 * links that are cut in one direction or both, and callers that try again. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "tests/sim/world/world.h"

/* One caller's path to the controller and back. */
struct link_state {
    const char *name;
    bool cut_there, cut_back;
};

enum wire_kind {
    WIRE_REGISTER,
    WIRE_HEARTBEAT,
    WIRE_POLL,
    WIRE_REPORT,
    WIRE_STAGING,
    WIRE_SUBMIT,
    WIRE_BATCH, /* a spec a line */
    WIRE_JOB
};

struct wire_answer {
    int status;       /* 0: no answer */
    const char *body; /* of the answer; borrowed for the call */
    int64_t sent_ms;  /* when the answered try was sent, on the world's clock */
};

struct wire_call {
    struct link_state *link;
    enum wire_kind kind;
    char *path;      /* owned; NULL: the kind's own */
    char *body;      /* owned */
    char *key;       /* owned: Idempotency-Key, or NULL */
    const char *who; /* owner of the token */
    int64_t timeout_ms;
    bool persistent; /* retried until there is an answer other than 5xx */
    void (*done)(void *closure, const struct wire_answer *answer);
    void *closure;
    const lifetime *owner; /* of the caller: after its death answers are dropped */
};

struct wire;
/* A request at the controller; reply with wire_reply, once or never. */
struct wire_request {
    enum wire_kind kind;
    const char *path, *body, *key, *who;
    uint64_t ticket;
};

struct wire *wire_create(struct world *world,
                         void (*serve)(void *closure, const struct wire_request *request), void *closure);
void wire_destroy(struct wire *wire);

/* Takes over the strings that the call owns. The returned number is for wire_cancel. */
uint64_t wire_send(struct wire *wire, const struct wire_call *call);
void wire_cancel(struct wire *wire, uint64_t number);

/* The controller's answer to the request with this ticket. */
void wire_reply(struct wire *wire, uint64_t ticket, int status, const char *body);
/* The controller is gone: every open connection is reset. */
void wire_reset(struct wire *wire);

#endif
