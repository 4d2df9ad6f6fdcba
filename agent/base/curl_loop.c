/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the sockets and the timer of a libcurl multi handle, and tells of the transfers that have ended. */
#include "agent/base/curl_loop.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/text.h"

struct curl_loop {
    struct loop *loop;
    CURLM *multi;
    struct loop_timer timer; /* curl's */
    void (*done)(void *closure, CURL *easy, CURLcode result);
    void *closure;
};

/* A socket of curl's that the loop watches. */
struct socket_watch {
    struct loop_watch watch;
    struct curl_loop *curl;
};

static void collect(const struct curl_loop *curl)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(curl->multi, &left)) != NULL;) {
        if (message->msg == CURLMSG_DONE) {
            curl->done(curl->closure, message->easy_handle, message->data.result);
        }
    }
}

/* curl ignores a socket that it has just closed, so only lack of memory is an error. */
static void act_on(const struct curl_loop *curl, curl_socket_t socket, int mask)
{
    int running;
    if (curl_multi_socket_action(curl->multi, socket, mask, &running) == CURLM_OUT_OF_MEMORY) {
        out_of_memory();
    }
}

static void socket_ready(void *closure, uint32_t events)
{
    struct socket_watch *socket = closure;
    const struct curl_loop *curl = socket->curl;
    int mask = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    act_on(curl, socket->watch.fd, mask);
    collect(curl);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *closure, void *socket_closure)
{
    struct curl_loop *curl = closure;
    struct socket_watch *socket = socket_closure;
    if (what == CURL_POLL_REMOVE) {
        if (socket != NULL) {
            loop_unwatch(curl->loop, &socket->watch);
            free(socket);
        }
        return 0;
    }
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (socket != NULL) {
        socket->watch.events = events;
        loop_rewatch(curl->loop, &socket->watch);
        return 0;
    }
    socket = xzalloc(sizeof *socket);
    socket->curl = curl;
    socket->watch = (struct loop_watch){.fd = fd, .events = events, .ready = socket_ready, .closure = socket};
    loop_watch(curl->loop, &socket->watch);
    curl_use_must_multi(curl_multi_assign(curl->multi, fd, socket));
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *closure)
{
    struct curl_loop *curl = closure;
    if (timeout_ms < 0) {
        loop_disarm(curl->loop, &curl->timer);
    } else {
        loop_arm(curl->loop, &curl->timer, clock_boot_ms() + timeout_ms);
    }
    return 0;
}

static void timer_due(void *closure)
{
    const struct curl_loop *curl = closure;
    act_on(curl, CURL_SOCKET_TIMEOUT, 0);
    collect(curl);
}

struct curl_loop *curl_loop_create(struct loop *loop,
                                   void (*done)(void *closure, CURL *easy, CURLcode result), void *closure)
{
    struct curl_loop *curl = xzalloc(sizeof *curl);
    curl->loop = loop;
    curl->done = done;
    curl->closure = closure;
    curl->timer = (struct loop_timer){.due = timer_due, .closure = curl};
    curl->multi = curl_use_multi();
    curl_use_must_multi(curl_multi_setopt(curl->multi, CURLMOPT_SOCKETFUNCTION, on_socket));
    curl_use_must_multi(curl_multi_setopt(curl->multi, CURLMOPT_SOCKETDATA, curl));
    curl_use_must_multi(curl_multi_setopt(curl->multi, CURLMOPT_TIMERFUNCTION, on_timer));
    curl_use_must_multi(curl_multi_setopt(curl->multi, CURLMOPT_TIMERDATA, curl));
    return curl;
}

void curl_loop_destroy(struct curl_loop *curl)
{
    if (curl == NULL) {
        return;
    }
    curl_multi_cleanup(curl->multi);
    loop_disarm(curl->loop, &curl->timer);
    free(curl);
}

CURLM *curl_loop_multi(const struct curl_loop *curl)
{
    return curl->multi;
}
