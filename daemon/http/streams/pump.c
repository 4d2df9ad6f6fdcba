/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the bytes of streams on a thread of its own, so that a copy of many gigabytes takes no time from
 * requests. A pair that is idle has no buffer: bytes are read into a buffer of the thread, and only those
 * that the other side does not take are kept. While some are kept, nothing more is read from that side. */
#include "daemon/http/streams/pump.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utlist.h>

#include "daemon/http/streams/way.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

#define EVENTS_A_TURN 64

struct side {
    struct pump_pair *pair;
    int number;
    uint32_t events; /* that epoll was asked for; 0: it does not watch the side */
};

struct pump_pair {
    int fds[2];
    struct side sides[2];
    struct way ways[2]; /* from the side of that number */
    bool over;
    void *closure;
    struct pump_pair *prev, *next;
};

struct pump {
    pthread_t thread;
    void (*ended)(void *closure);
    int epoll, wake, done; /* the last two: eventfds, towards the thread and from it */
    pthread_mutex_t mutex; /* of the next three */
    struct pump_pair *added, *over;
    bool closing;
    struct pump_pair *pairs; /* of the thread alone */
    char piece[STREAM_PIECE_BYTES];
};

/* --- moving --------------------------------------------------------------------------------------------- */

/* Returns how many bytes the socket has taken; -1: it takes none any more. */
static ssize_t give_bytes(int fd, const char *bytes, size_t length)
{
    ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

static void flush(struct pump_pair *pair, int number)
{
    struct way *way = &pair->ways[number];
    ssize_t sent = give_bytes(pair->fds[!number], way->held + way->from, way->length);
    if (sent < 0) {
        pair->over = true;
        return;
    }
    way_taken(way, (size_t)sent);
}

/* One piece, so that a busy pair leaves time to others. */
static void move(struct pump *pump, struct pump_pair *pair, int number)
{
    struct way *way = &pair->ways[number];
    ssize_t got = recv(pair->fds[number], pump->piece, sizeof pump->piece, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        way->ended = true;
        return;
    }
    ssize_t sent = give_bytes(pair->fds[!number], pump->piece, (size_t)got);
    if (sent < 0) {
        pair->over = true;
    } else if (sent < got) {
        way_hold(way, pump->piece + sent, (size_t)(got - sent));
    }
}

/* A side that has failed is reported for ever; what it sent before may still be with us. */
static void serve(struct pump *pump, struct side *side, uint32_t events)
{
    struct pump_pair *pair = side->pair;
    struct way *way = &pair->ways[side->number];
    if ((events & EPOLLOUT) != 0 && pair->ways[!side->number].length > 0) {
        flush(pair, !side->number);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && way->length == 0 && !way->ended) {
        move(pump, pair, side->number);
    } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
        way->ended = true;
    }
}

static void watch(const struct pump *pump, struct side *side)
{
    const struct pump_pair *pair = side->pair;
    const struct way *own = &pair->ways[side->number], *other = &pair->ways[!side->number];
    uint32_t wanted = (own->length == 0 && !own->ended ? EPOLLIN : 0) | (other->length > 0 ? EPOLLOUT : 0);
    /* one that neither side waits for is watched for its failure, unless that is known */
    wanted |= own->ended ? 0 : EPOLLHUP;
    if (wanted == side->events) {
        return;
    }
    struct epoll_event event = {.events = wanted, .data.ptr = side};
    int operation = side->events == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (epoll_ctl(pump->epoll, operation, pair->fds[side->number], &event) != 0) {
        side->pair->over = true;
        return;
    }
    side->events = wanted;
}

static bool is_over(const struct pump_pair *pair)
{
    return pair->over || (pair->ways[0].ended && pair->ways[0].length == 0) ||
           (pair->ways[1].ended && pair->ways[1].length == 0);
}

static void settle(const struct pump *pump, struct pump_pair *pair)
{
    pair->over = is_over(pair);
    for (int i = 0; i < 2 && !pair->over; i++) {
        watch(pump, &pair->sides[i]);
    }
}

/* --- the thread ----------------------------------------------------------------------------------------- */

static void leave(struct pump *pump, struct pump_pair *pair)
{
    for (int i = 0; i < 2; i++) {
        if (pair->sides[i].events != 0) {
            epoll_ctl(pump->epoll, EPOLL_CTL_DEL, pair->fds[i], NULL);
        }
        free(pair->ways[i].held);
    }
    DL_DELETE(pump->pairs, pair);
    pthread_mutex_lock(&pump->mutex);
    DL_APPEND(pump->over, pair);
    pthread_mutex_unlock(&pump->mutex);
}

static void ring(int fd)
{
    const uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);
    (void)written; /* a full counter rings, too */
}

static void hush(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got;
}

/* Events of one turn may name a pair twice, so it leaves after the last of them. */
static void sweep(struct pump *pump)
{
    struct pump_pair *pair, *next;
    bool any = false;
    DL_FOREACH_SAFE (pump->pairs, pair, next) {
        if (pair->over) {
            leave(pump, pair);
            any = true;
        }
    }
    if (any) {
        ring(pump->done);
    }
}

/* False: the thread is to end. */
static bool take_added(struct pump *pump)
{
    hush(pump->wake);
    pthread_mutex_lock(&pump->mutex);
    struct pump_pair *added = pump->added, *pair, *next;
    pump->added = NULL;
    bool closing = pump->closing;
    pthread_mutex_unlock(&pump->mutex);
    DL_FOREACH_SAFE (added, pair, next) {
        DL_DELETE(added, pair);
        DL_APPEND(pump->pairs, pair);
        settle(pump, pair);
    }
    return !closing;
}

static void *pump_main(void *closure)
{
    struct pump *pump = closure;
    bool open = true;
    while (open) {
        struct epoll_event events[EVENTS_A_TURN];
        bool over = false;
        int count = epoll_wait(pump->epoll, events, EVENTS_A_TURN, -1);
        for (int i = 0; i < count; i++) {
            struct side *side = events[i].data.ptr;
            if (side == NULL) {
                open = take_added(pump);
                over = true;
            } else if (!side->pair->over) {
                serve(pump, side, events[i].events);
                settle(pump, side->pair);
                over = over || side->pair->over;
            }
        }
        if (over) {
            sweep(pump);
        }
    }
    return NULL;
}

/* --- from outside --------------------------------------------------------------------------------------- */

static void pump_free(struct pump *pump)
{
    int fds[] = {pump->epoll, pump->wake, pump->done};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    pthread_mutex_destroy(&pump->mutex);
    free(pump);
}

struct pump *pump_open(void (*ended)(void *closure), struct err *err)
{
    struct pump *pump = xzalloc(sizeof *pump);
    struct epoll_event event = {.events = EPOLLIN};
    pump->ended = ended;
    pthread_mutex_init(&pump->mutex, NULL);
    pump->epoll = epoll_create1(EPOLL_CLOEXEC);
    pump->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pump->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool good = pump->epoll >= 0 && pump->wake >= 0 && pump->done >= 0 &&
                epoll_ctl(pump->epoll, EPOLL_CTL_ADD, pump->wake, &event) == 0;
    if (good) {
        errno = pthread_create(&pump->thread, NULL, pump_main, pump);
    }
    if (!good || errno != 0) {
        err_errno(err, "cannot start the thread of streams");
        pump_free(pump);
        return NULL;
    }
    return pump;
}

static void end_all(struct pump *pump, struct pump_pair *list)
{
    struct pump_pair *pair, *next;
    DL_FOREACH_SAFE (list, pair, next) {
        DL_DELETE(list, pair);
        pump->ended(pair->closure);
        free(pair);
    }
}

void pump_close(struct pump *pump)
{
    if (pump == NULL) {
        return;
    }
    pthread_mutex_lock(&pump->mutex);
    pump->closing = true;
    pthread_mutex_unlock(&pump->mutex);
    ring(pump->wake);
    pthread_join(pump->thread, NULL);
    struct pump_pair *pair;
    DL_FOREACH (pump->pairs, pair) {
        pair->over = true;
    }
    sweep(pump);
    end_all(pump, pump->over);
    end_all(pump, pump->added);
    pump_free(pump);
}

void pump_join(struct pump *pump, const int fds[2], void *closure)
{
    struct pump_pair *pair = xzalloc(sizeof *pair);
    pair->closure = closure;
    for (int i = 0; i < 2; i++) {
        pair->fds[i] = fds[i];
        pair->sides[i] = (struct side){.pair = pair, .number = i};
    }
    pthread_mutex_lock(&pump->mutex);
    DL_APPEND(pump->added, pair);
    pthread_mutex_unlock(&pump->mutex);
    ring(pump->wake);
}

int pump_fd(const struct pump *pump)
{
    return pump->done;
}

void pump_collect(struct pump *pump)
{
    hush(pump->done);
    pthread_mutex_lock(&pump->mutex);
    struct pump_pair *over = pump->over;
    pump->over = NULL;
    pthread_mutex_unlock(&pump->mutex);
    end_all(pump, over);
}
