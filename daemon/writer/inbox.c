/* SPDX-License-Identifier: Apache-2.0 */
/* A list that any thread adds to and the writer's thread empties, without a lock while that thread is awake.
 * A request that came first into an empty list wakes it. */
#include "daemon/writer/inbox.h"

#include <time.h>

#include "daemon/writer/writer.h"
#include "proto/base/clock.h"
#include "proto/limits_controller.h"

void inbox_init(struct inbox *inbox)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&inbox->asleep, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&inbox->asked, &attributes);
    pthread_condattr_destroy(&attributes);
}

void inbox_finish(struct inbox *inbox)
{
    pthread_cond_destroy(&inbox->asked);
    pthread_mutex_destroy(&inbox->asleep);
}

/* --- adding --------------------------------------------------------------------------------------------- */

static size_t weight(const struct writer_request *request)
{
    return request->kind == WRITER_INPUTS ? request->input_count : 1;
}

bool inbox_add(struct inbox *inbox, struct writer_request *request)
{
    size_t added = weight(request);
    if (inbox_is_closed(inbox)) {
        return false;
    }
    if (atomic_fetch_add(&inbox->waiting, added) >= LIMIT_WRITER_QUEUE) {
        atomic_fetch_sub(&inbox->waiting, added);
        return false;
    }
    struct writer_request *newest = atomic_load(&inbox->newest);
    do {
        request->next = newest;
    } while (!atomic_compare_exchange_weak(&inbox->newest, &newest, request));
    if (newest == NULL) {
        inbox_wake(inbox); /* it may be asleep; the rest of the batch needs no wake-up */
    }
    return true;
}

void inbox_close(struct inbox *inbox)
{
    atomic_store(&inbox->closed, true);
}

bool inbox_is_closed(const struct inbox *inbox)
{
    return atomic_load(&inbox->closed);
}

/* The thread has either seen what was added before, or sleeps once the mutex is free. Signaled after that, it
 * need not wait for the mutex. */
void inbox_wake(struct inbox *inbox)
{
    pthread_mutex_lock(&inbox->asleep);
    pthread_mutex_unlock(&inbox->asleep);
    pthread_cond_signal(&inbox->asked);
}

size_t inbox_waiting(const struct inbox *inbox)
{
    return atomic_load(&inbox->waiting);
}

/* --- taking --------------------------------------------------------------------------------------------- */

/* All of the list, in the order of asking. */
static struct writer_request *take_all(struct inbox *inbox)
{
    struct writer_request *newest = atomic_exchange(&inbox->newest, NULL), *oldest = NULL;
    while (newest != NULL) {
        struct writer_request *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

struct writer_request *inbox_take(struct inbox *inbox)
{
    if (inbox->backlog == NULL) {
        inbox->backlog = take_all(inbox);
    }
    struct writer_request *first = inbox->backlog, **end = &inbox->backlog;
    size_t taken = 0;
    while (*end != NULL && (taken == 0 || taken + weight(*end) <= LIMIT_WRITER_BATCH)) {
        taken += weight(*end);
        end = &(*end)->next;
    }
    if (first == NULL) {
        return NULL;
    }
    inbox->backlog = *end;
    *end = NULL;
    atomic_fetch_sub(&inbox->waiting, taken);
    return first;
}

bool inbox_is_empty(const struct inbox *inbox)
{
    return inbox->backlog == NULL && atomic_load(&inbox->newest) == NULL;
}

/* --- sleeping ------------------------------------------------------------------------------------------- */

static void wait_until(struct inbox *inbox, int64_t due_ms)
{
    if (due_ms == INT64_MAX) {
        pthread_cond_wait(&inbox->asked, &inbox->asleep);
        return;
    }
    int64_t left_ms = due_ms - clock_boot_ms();
    if (left_ms <= 0) {
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += left_ms / 1000;
    until.tv_nsec += left_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&inbox->asked, &inbox->asleep, &until);
}

void inbox_sleep(struct inbox *inbox, int64_t (*due_ms)(const void *closure), const void *closure)
{
    if (inbox_is_empty(inbox)) {
        pthread_mutex_lock(&inbox->asleep);
        if (inbox_is_empty(inbox) && !inbox_is_closed(inbox)) {
            wait_until(inbox, due_ms(closure));
        }
        pthread_mutex_unlock(&inbox->asleep);
    }
}
