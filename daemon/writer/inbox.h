/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's inbox: requests that wait for it, and the sleep of its thread while there are none. */
#ifndef DAEMON_WRITER_INBOX_H
#define DAEMON_WRITER_INBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer_request;

struct inbox {
    _Atomic(struct writer_request *) newest; /* adding one takes no lock while the thread is awake */
    atomic_size_t waiting;                   /* inputs that were added and not taken yet */
    atomic_bool closed;                      /* takes no more requests */
    pthread_mutex_t asleep; /* held while the thread decides to sleep, and by callers that wake it */
    pthread_cond_t asked;
    struct writer_request *backlog; /* taken from the others, the oldest first; the writer's thread's */
};

/* Of zeros. */
void inbox_init(struct inbox *inbox);
void inbox_finish(struct inbox *inbox);

/* Any thread: */

/* false: the inbox is closed, or LIMIT_WRITER_QUEUE inputs wait already. */
bool inbox_add(struct inbox *inbox, struct writer_request *request);
/* No request is added from now on. Those that wait are still taken. */
void inbox_close(struct inbox *inbox);
bool inbox_is_closed(const struct inbox *inbox);
/* Ends the sleep of the writer's thread. */
void inbox_wake(struct inbox *inbox);
/* Inputs that wait. */
size_t inbox_waiting(const struct inbox *inbox);

/* The writer's thread: */

/* Takes the next batch, at most LIMIT_WRITER_BATCH inputs in the order of asking; NULL: none wait. */
struct writer_request *inbox_take(struct inbox *inbox);
bool inbox_is_empty(const struct inbox *inbox);
/* Sleeps until a request waits, somebody wakes the thread, or due_ms (CLOCK_BOOTTIME) has come. due_ms is
 * asked when all that was added before a wake-up can be seen. */
void inbox_sleep(struct inbox *inbox, int64_t (*due_ms)(const void *closure), const void *closure);

#endif
