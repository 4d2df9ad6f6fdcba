/* SPDX-License-Identifier: Apache-2.0 */
/* The epoll set and the timers. No function is called for a watch or a timer that was ended. Time in suspend
 * counts. The functions must not block. */
#include "agent/base/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "proto/base/text/text.h"

struct loop {
    int epoll;
    int timer;
    int64_t armed_ms; /* the timerfd's setting; INT64_MAX: off */
    struct loop_timer *timers;
    bool (*idle)(void *closure);
    void *idle_closure;
    bool ended;
};

struct loop *loop_create(void)
{
    struct loop *loop = xzalloc(sizeof *loop);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    loop->armed_ms = INT64_MAX;
    struct epoll_event event = {.events = EPOLLIN};
    if (loop->epoll < 0 || loop->timer < 0 ||
        epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->timer, &event) != 0) {
        abort();
    }
    return loop;
}

void loop_destroy(struct loop *loop)
{
    if (loop != NULL) {
        close(loop->timer);
        close(loop->epoll);
        free(loop);
    }
}

static void control(struct loop *loop, int operation, struct loop_watch *watch)
{
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};
    if (epoll_ctl(loop->epoll, operation, watch->fd, &event) != 0) {
        abort();
    }
}

void loop_watch(struct loop *loop, struct loop_watch *watch)
{
    control(loop, EPOLL_CTL_ADD, watch);
}

void loop_rewatch(struct loop *loop, struct loop_watch *watch)
{
    control(loop, EPOLL_CTL_MOD, watch);
}

void loop_unwatch(struct loop *loop, struct loop_watch *watch)
{
    if (watch->fd >= 0) {
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL); /* the fd may be closed already */
    }
}

void loop_arm(struct loop *loop, struct loop_timer *timer, int64_t at_ms)
{
    if (!timer->on) {
        DL_APPEND(loop->timers, timer);
        timer->on = true;
    }
    timer->at_ms = at_ms;
}

void loop_disarm(struct loop *loop, struct loop_timer *timer)
{
    if (timer->on) {
        DL_DELETE(loop->timers, timer);
        timer->on = false;
    }
}

void loop_set(struct loop *loop, struct loop_timer *timer, void (*due)(void *closure), void *closure)
{
    loop_disarm(loop, timer);
    *timer = (struct loop_timer){.due = due, .closure = closure};
}

void loop_set_idle(struct loop *loop, bool (*idle)(void *closure), void *closure)
{
    loop->idle = idle;
    loop->idle_closure = closure;
}

void loop_end(struct loop *loop)
{
    loop->ended = true;
}

/* Calls the due timers, the earliest first. A timer that a due timer arms runs in the next turn, even if it
 * is due at once. Returns whether there was one. */
static bool run_timers(struct loop *loop)
{
    bool any = false;
    for (int64_t now = clock_boot_ms(); !loop->ended; any = true) {
        struct loop_timer *first = NULL, *timer;
        DL_FOREACH (loop->timers, timer) {
            first = first == NULL || timer->at_ms < first->at_ms ? timer : first;
        }
        if (first == NULL || first->at_ms > now) {
            return any;
        }
        loop_disarm(loop, first);
        first->due(first->closure);
    }
    return any;
}

static void set_alarm(struct loop *loop)
{
    int64_t at_ms = INT64_MAX;
    struct loop_timer *timer;
    DL_FOREACH (loop->timers, timer) {
        at_ms = timer->at_ms < at_ms ? timer->at_ms : at_ms;
    }
    if (at_ms == loop->armed_ms) {
        return;
    }
    struct itimerspec when = {0};
    if (at_ms != INT64_MAX) {
        at_ms = at_ms > 0 ? at_ms : 1; /* zero would switch the timerfd off */
        when.it_value = (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
    }
    timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &when, NULL);
    loop->armed_ms = at_ms;
}

static void clear_alarm(struct loop *loop)
{
    uint64_t expirations;
    if (read(loop->timer, &expirations, sizeof expirations) > 0) {
        loop->armed_ms = INT64_MAX;
    }
}

/* Handles one event, and waits for it if `wait` is set. */
static bool handle_event(struct loop *loop, bool wait)
{
    struct epoll_event event;
    int count = epoll_wait(loop->epoll, &event, 1, wait ? -1 : 0);
    if (count < 0 && errno != EINTR) {
        abort();
    }
    if (count <= 0) {
        return false;
    }
    struct loop_watch *watch = event.data.ptr;
    if (watch == NULL) {
        clear_alarm(loop);
    } else {
        watch->ready(watch->closure, event.events);
    }
    return true;
}

void loop_run(struct loop *loop)
{
    bool more = false;
    while (!loop->ended) {
        more = (run_timers(loop) && loop->idle != NULL) || more; /* one may be due without an event */
        if (loop->ended) {
            return;
        }
        set_alarm(loop);
        if (!handle_event(loop, !more)) {
            more = more && loop->idle(loop->idle_closure);
        } else {
            more = loop->idle != NULL;
        }
    }
}
