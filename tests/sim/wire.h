/* SPDX-License-Identifier: Apache-2.0 */
/* The network between the controller and everyone who calls it: requests that are lost, late, doubled or
 * overtaken, links that are cut in one direction or both, and callers who ask again. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "tests/sim/world.h"

/* One caller's way to the controller and back. */
struct link_state {
    const char *name;
    bool cut_there, cut_back;
};

enum wire_kind { WIRE_REGISTER, WIRE_HEARTBEAT, WIRE_POLL, WIRE_REPORT, WIRE_STAGING, WIRE_SUBMIT, WIRE_JOB };

struct wire_answer {
    int status;       /* 0: nobody answered */
    const char *body; /* of the answer; borrowed for the call */
    int64_t sent_ms;  /* when the try that was answered left, on the world's clock */
};

struct wire_call {
    struct link_state *link;
    enum wire_kind kind;
    char *path;      /* owned; NULL: the kind's own */
    char *body;      /* owned */
    char *key;       /* owned: Idempotency-Key, or NULL */
    const char *who; /* owner of the token */
    int64_t timeout_ms;
    bool persistent; /* asked again until there is an answer that is no 5xx */
    void (*done)(void *closure, const struct wire_answer *answer);
    void *closure;
    const lifetime *owner; /* of the caller: its answers go nowhere after its death */
};

struct wire;
/* What the controller gets; reply with wire_reply, once, or never. */
struct wire_request {
    enum wire_kind kind;
    const char *path, *body, *key, *who;
    uint64_t ticket;
};

struct wire *wire_create(struct world *world,
                         void (*serve)(void *closure, const struct wire_request *request), void *closure);
void wire_destroy(struct wire *wire);

/* Takes over what the call owns. The number names it for wire_cancel. */
uint64_t wire_send(struct wire *wire, const struct wire_call *call);
void wire_cancel(struct wire *wire, uint64_t number);

/* The controller's answer to what it was asked with this ticket. */
void wire_reply(struct wire *wire, uint64_t ticket, int status, const char *body);
/* The controller has gone: every open connection is reset. */
void wire_reset(struct wire *wire);

#endif
