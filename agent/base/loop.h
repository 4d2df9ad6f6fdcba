/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's one thread: file descriptors and timers, each with the function that is called. One event is
 * handled a turn, so a function may end any watch and any timer, its own included. */
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

/* Owned by the user, likewise. A timer that is due is off before its function is called. */
struct loop_timer {
    void (*due)(void *closure);
    void *closure;
    int64_t at_ms; /* CLOCK_BOOTTIME */
    bool on;
    struct loop_timer *prev, *next; /* the loop's */
};

struct loop *loop_create(void);
void loop_destroy(struct loop *loop);

void loop_watch(struct loop *loop, struct loop_watch *watch);
/* After a change of events. */
void loop_rewatch(struct loop *loop, struct loop_watch *watch);
/* Before the fd is closed. A watch with fd -1 is none. */
void loop_unwatch(struct loop *loop, struct loop_watch *watch);

/* Gives a timer its function. It is off then, and may have been on: one that is on must not be filled by
 * hand. */
void loop_set(struct loop *loop, struct loop_timer *timer, void (*due)(void *closure), void *closure);

/* Sets the time of a timer, on or off. */
void loop_arm(struct loop *loop, struct loop_timer *timer, int64_t at_ms);
void loop_disarm(struct loop *loop, struct loop_timer *timer);

/* Called whenever nothing else is to be done, until it returns false: work that must not hold up events. */
void loop_set_idle(struct loop *loop, bool (*idle)(void *closure), void *closure);

/* Runs until loop_end. */
void loop_run(struct loop *loop);
void loop_end(struct loop *loop);

#endif
