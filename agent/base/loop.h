/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of the agent's one thread: file descriptors and timers, each with a function to call. Each
 * turn handles one event, so a function may end any watch and any timer, its own included. */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;

/* Owned by the user, who fills it before loop_watch and keeps it until loop_unwatch. */
struct loop_watch {
    int fd;
    uint32_t events; /* EPOLLIN and so on */
    void (*ready)(void *closure, uint32_t events);
    void *closure;
};

/* Owned by the user as well. A due timer is switched off before its function is called. */
struct loop_timer {
    void (*due)(void *closure);
    void *closure;
    int64_t at_ms; /* CLOCK_BOOTTIME */
    bool on;
    struct loop_timer *prev, *next; /* for the loop */
};

struct loop *loop_create(void);
void loop_destroy(struct loop *loop);

void loop_watch(struct loop *loop, struct loop_watch *watch);
/* To be called after a change of events. */
void loop_rewatch(struct loop *loop, struct loop_watch *watch);
/* To be called before the fd is closed. Does nothing for fd -1. */
void loop_unwatch(struct loop *loop, struct loop_watch *watch);

/* Switches a timer off and gives it its function. A timer that is on must not be filled by hand. */
void loop_set(struct loop *loop, struct loop_timer *timer, void (*due)(void *closure), void *closure);

/* Sets the time of a timer, on or off. */
void loop_arm(struct loop *loop, struct loop_timer *timer, int64_t at_ms);
void loop_disarm(struct loop *loop, struct loop_timer *timer);

/* Called repeatedly while no event waits, until it returns false: for work that must not delay events. */
void loop_set_idle(struct loop *loop, bool (*idle)(void *closure), void *closure);

/* Runs until loop_end. */
void loop_run(struct loop *loop);
void loop_end(struct loop *loop);

#endif
