/* SPDX-License-Identifier: Apache-2.0 */
/* The calls under way. A caller gets at most one answer. A persistent call is retried until it has one. The
 * faults are those of networks: loss, delay, duplicates, reordering, cuts. controller.c serves the
 * requests. */
#include "tests/sim/world/wire.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

struct call {
    uint64_t number;
    struct wire *wire;
    struct wire_call what;
    lifetime lived; /* lifetime of the owner at the call */
    uint64_t tries; /* so far; a ticket names the call and its try */
    int64_t sent_ms;
    int64_t backoff_ms;
    UT_hash_handle hh;
};

/* A copy of a request or of an answer, under way. */
struct flight {
    struct wire *wire;
    uint64_t number, try;
    int64_t sent_ms;
    int status;
    char *body;
    struct flight *next, **back; /* list of all */
};

struct wire {
    struct world *world;
    void (*serve)(void *closure, const struct wire_request *request);
    void *closure;
    struct call *calls; /* by number */
    struct flight *flights;
    uint64_t last;
};

#define TRIES_BITS 20

struct wire *wire_create(struct world *world,
                         void (*serve)(void *closure, const struct wire_request *request), void *closure)
{
    struct wire *wire = xzalloc(sizeof *wire);
    *wire = (struct wire){.world = world, .serve = serve, .closure = closure};
    return wire;
}

static void call_free(struct wire *wire, struct call *call)
{
    HASH_DEL(wire->calls, call);
    free(call->what.path);
    free(call->what.body);
    free(call->what.key);
    free(call);
}

static void flight_free(struct flight *flight)
{
    *flight->back = flight->next;
    if (flight->next != NULL) {
        flight->next->back = flight->back;
    }
    free(flight->body);
    free(flight);
}

void wire_destroy(struct wire *wire)
{
    struct call *call, *next;
    HASH_ITER (hh, wire->calls, call, next) {
        call_free(wire, call);
    }
    while (wire->flights != NULL) {
        flight_free(wire->flights);
    }
    free(wire);
}

static struct call *find(const struct wire *wire, uint64_t number)
{
    struct call *call;
    HASH_FIND(hh, wire->calls, &number, sizeof number, call);
    if (call != NULL && call->what.owner != NULL && *call->what.owner != call->lived) {
        return NULL;
    }
    return call;
}

static struct flight *flight_of(const struct call *call, struct wire *wire)
{
    struct flight *flight = xzalloc(sizeof *flight);
    *flight = (struct flight){.wire = wire,
                              .number = call->number,
                              .try = call->tries,
                              .sent_ms = call->sent_ms,
                              .next = wire->flights,
                              .back = &wire->flights};
    if (flight->next != NULL) {
        flight->next->back = &flight->next;
    }
    wire->flights = flight;
    return flight;
}

/* --- answers -------------------------------------------------------------------------------------------- */

static void send_try(void *closure);

/* Ends the call with this answer. */
static void finish(struct call *call, const struct wire_answer *answer)
{
    struct wire *wire = call->wire;
    void (*done)(void *, const struct wire_answer *) = call->what.done;
    void *closure = call->what.closure;
    call_free(wire, call);
    done(closure, answer);
}

static void fail_or_try_again(struct call *call, int status, const char *body)
{
    struct world *world = call->wire->world;
    if (!call->what.persistent) {
        finish(call, &(struct wire_answer){.status = status, .body = body, .sent_ms = call->sent_ms});
        return;
    }
    call->tries++; /* answers to the old try come too late */
    call->backoff_ms = call->backoff_ms == 0 ? BACKOFF_FIRST_MS : 2 * call->backoff_ms;
    call->backoff_ms = call->backoff_ms < BACKOFF_MAX_MS ? call->backoff_ms : BACKOFF_MAX_MS;
    struct flight *flight = flight_of(call, call->wire);
    world_in(world, world_between(world, 1, call->backoff_ms), send_try, flight, NULL);
}

static void answer_arrives(void *closure)
{
    struct flight *flight = closure;
    struct call *call = find(flight->wire, flight->number);
    if (call != NULL && call->tries == flight->try) {
        if (flight->status == 0 || flight->status >= 500) {
            fail_or_try_again(call, flight->status, flight->body);
        } else {
            finish(call, &(struct wire_answer){flight->status, flight->body, flight->sent_ms});
        }
    }
    flight_free(flight);
}

static int64_t delay(struct world *world)
{
    if (world_mishap(world, 20)) {
        world_fault(world, "a message is late");
        return world_between(world, 100, 20000);
    }
    return world_between(world, 1, 15);
}

static void send_answer(struct call *call, int status, const char *body)
{
    struct wire *wire = call->wire;
    struct world *world = wire->world;
    if (call->what.link->cut_back || world_mishap(world, 15)) {
        world_fault(world, "the answer to %s is lost", call->what.link->name);
        return;
    }
    struct flight *flight = flight_of(call, wire);
    flight->status = status;
    flight->body = body != NULL ? xstrdup(body) : NULL;
    world_in(world, delay(world), answer_arrives, flight, NULL);
}

void wire_reply(struct wire *wire, uint64_t ticket, int status, const char *body)
{
    struct call *call = find(wire, ticket >> TRIES_BITS);
    if (call != NULL && call->tries == (ticket & ((1U << TRIES_BITS) - 1))) {
        send_answer(call, status, body);
    }
}

/* In the order of calls, so that every run is alike. */
void wire_reset(struct wire *wire)
{
    struct call *call, *next;
    HASH_ITER (hh, wire->calls, call, next) {
        if (find(wire, call->number) != NULL && call->tries > 0) {
            send_answer(call, 0, NULL);
        }
    }
}

/* --- requests ------------------------------------------------------------------------------------------- */

static void request_arrives(void *closure)
{
    struct flight *flight = closure;
    struct wire *wire = flight->wire;
    struct call *call;
    HASH_FIND(hh, wire->calls, &flight->number, sizeof flight->number, call);
    if (call != NULL) { /* the network does not know whether the caller lives */
        wire->serve(wire->closure,
                    &(struct wire_request){.kind = call->what.kind,
                                           .path = call->what.path,
                                           .body = call->what.body,
                                           .key = call->what.key,
                                           .who = call->what.who,
                                           .ticket = flight->number << TRIES_BITS | flight->try});
    }
    flight_free(flight);
}

static void time_is_over(void *closure)
{
    struct flight *flight = closure;
    struct call *call = find(flight->wire, flight->number);
    if (call == NULL) {
        wire_cancel(flight->wire, flight->number); /* its caller is dead */
    } else if (call->tries == flight->try) {
        fail_or_try_again(call, 0, NULL);
    }
    flight_free(flight);
}

static void put_on_wire(struct call *call)
{
    struct wire *wire = call->wire;
    struct world *world = wire->world;
    if (call->what.link->cut_there || world_mishap(world, 15)) {
        world_fault(world, "a request of %s is lost", call->what.link->name);
        return;
    }
    world_in(world, delay(world), request_arrives, flight_of(call, wire), NULL);
    if (world_mishap(world, 15)) {
        world_fault(world, "a request of %s comes twice", call->what.link->name);
        world_in(world, world_between(world, 1, 60000), request_arrives, flight_of(call, wire), NULL);
    }
}

static void try_now(struct call *call)
{
    struct world *world = call->wire->world;
    call->sent_ms = world->now_ms;
    put_on_wire(call);
    world_in(world, call->what.timeout_ms, time_is_over, flight_of(call, call->wire), NULL);
}

static void send_try(void *closure)
{
    struct flight *flight = closure;
    struct call *call = find(flight->wire, flight->number);
    if (call != NULL && call->tries == flight->try) {
        try_now(call);
    }
    flight_free(flight);
}

uint64_t wire_send(struct wire *wire, const struct wire_call *what)
{
    struct call *call = xzalloc(sizeof *call);
    *call = (struct call){.number = ++wire->last, .wire = wire, .what = *what, .tries = 1};
    call->lived = what->owner != NULL ? *what->owner : 0;
    HASH_ADD(hh, wire->calls, number, sizeof call->number, call);
    try_now(call);
    return call->number;
}

void wire_cancel(struct wire *wire, uint64_t number)
{
    struct call *call;
    HASH_FIND(hh, wire->calls, &number, sizeof number, call);
    if (call != NULL) {
        call_free(wire, call);
    }
}
