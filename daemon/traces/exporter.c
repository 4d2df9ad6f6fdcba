/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the thread that makes spans and sends them, and the ring of ends that it has not looked at. The ring
 * holds ids alone: rows are read when their turn comes, so a collector that is away costs 16 bytes for each
 * end, and no end waits for a lock longer than a copy of these. */
#include "daemon/traces/exporter.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/blob/worker.h"
#include "daemon/store/store.h"
#include "daemon/traces/collector.h"
#include "daemon/traces/otlp.h"
#include "daemon/traces/spans.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

/* Exactly one is set. */
struct end {
    uint64_t attempt_id;
    int64_t job_key;
};

struct exporter {
    pthread_t thread;
    struct reader *reader;
    struct collector *collector;

    pthread_mutex_t mutex; /* guards these */
    pthread_cond_t news;
    struct end *ring;
    size_t first, count;
    int64_t closed_ms; /* when it was closed, CLOCK_BOOTTIME; 0: it is open */
    struct exporter_figures figures;

    /* Of the thread alone. */
    struct text_list spans; /* that are not sent */
    int64_t due_ms;         /* when the first of them is to be sent */
    bool away;              /* the collector did not take the last request */
};

/* --- ends ----------------------------------------------------------------------------------------------- */

static void put(struct exporter *exporter, struct end end)
{
    pthread_mutex_lock(&exporter->mutex);
    if (exporter->count < LIMIT_TRACE_ENDS) {
        exporter->ring[(exporter->first + exporter->count++) % LIMIT_TRACE_ENDS] = end;
        pthread_cond_signal(&exporter->news);
    } else {
        exporter->figures.ends_missed++;
    }
    pthread_mutex_unlock(&exporter->mutex);
}

void exporter_attempt_ended(struct exporter *exporter, uint64_t attempt_id)
{
    put(exporter, (struct end){.attempt_id = attempt_id});
}

void exporter_job_ended(struct exporter *exporter, int64_t job_key)
{
    put(exporter, (struct end){.job_key = job_key});
}

struct exporter_figures exporter_figures(struct exporter *exporter)
{
    pthread_mutex_lock(&exporter->mutex);
    struct exporter_figures figures = exporter->figures;
    figures.waiting = (int64_t)exporter->count;
    pthread_mutex_unlock(&exporter->mutex);
    return figures;
}

static void count(struct exporter *exporter, int64_t sent, int64_t rejected, int64_t dropped, int64_t missed)
{
    pthread_mutex_lock(&exporter->mutex);
    exporter->figures.sent += sent;
    exporter->figures.rejected += rejected;
    exporter->figures.dropped += dropped;
    exporter->figures.ends_missed += missed;
    pthread_mutex_unlock(&exporter->mutex);
}

/* With the lock held: waits for news, at most until then. */
static void await(struct exporter *exporter, int64_t until_ms)
{
    int64_t left_ms = until_ms - clock_boot_ms();
    struct timespec end;
    if (until_ms == INT64_MAX) {
        pthread_cond_wait(&exporter->news, &exporter->mutex);
    } else if (left_ms > 0) {
        clock_gettime(CLOCK_MONOTONIC, &end);
        int64_t ns = end.tv_nsec + left_ms % 1000 * 1000000;
        end.tv_sec += left_ms / 1000 + ns / 1000000000;
        end.tv_nsec = ns % 1000000000;
        pthread_cond_timedwait(&exporter->news, &exporter->mutex, &end);
    }
}

/* Waits for the next end, for as long as no request is due. *ret_open false: it was closed. */
static bool take(struct exporter *exporter, struct end *ret_end, bool *ret_open)
{
    int64_t due_ms = exporter->spans.count > 0 ? exporter->due_ms : INT64_MAX;
    pthread_mutex_lock(&exporter->mutex);
    while (exporter->count == 0 && exporter->closed_ms == 0 && clock_boot_ms() < due_ms) {
        await(exporter, due_ms);
    }
    bool taken = exporter->count > 0;
    if (taken) {
        *ret_end = exporter->ring[exporter->first];
        exporter->first = (exporter->first + 1) % LIMIT_TRACE_ENDS;
        exporter->count--;
    }
    *ret_open = exporter->closed_ms == 0;
    pthread_mutex_unlock(&exporter->mutex);
    return taken;
}

/* Whether it was closed, and the time for what was left is over. */
static bool is_over(void *closure)
{
    struct exporter *exporter = closure;
    pthread_mutex_lock(&exporter->mutex);
    bool over = exporter->closed_ms > 0 && clock_boot_ms() >= exporter->closed_ms + TRACE_END_MS;
    pthread_mutex_unlock(&exporter->mutex);
    return over;
}

/* --- spans ---------------------------------------------------------------------------------------------- */

static void make_spans(struct exporter *exporter, const struct end *end)
{
    struct err err;
    size_t before = exporter->spans.count;
    bool read = end->attempt_id != 0
                    ? spans_of_attempt(exporter->reader, end->attempt_id, &exporter->spans, &err)
                    : spans_of_job(exporter->reader, end->job_key, &exporter->spans, &err);
    if (!read) {
        log_warning("spans unreadable", "text=\"%s\"", err.text);
        count(exporter, 0, 0, 0, 1);
    }
    if (before == 0) {
        exporter->due_ms = clock_boot_ms() + TRACE_BATCH_MS;
    }
}

/* Once for each time that the collector is away. */
static void note(struct exporter *exporter, bool away, const struct err *why)
{
    if (away && !exporter->away) {
        log_warning("traces unsent", "reason=\"%s\"", why->text);
    } else if (!away && exporter->away) {
        log_info("traces sent", "reason=\"the collector takes them again\"");
    }
    exporter->away = away;
}

/* Waits before the next try; false: there is none, because the spans are too old or the exporter was closed.
 */
static bool pause_for(struct exporter *exporter, int64_t pause_ms, int64_t until_ms)
{
    int64_t again_ms = clock_boot_ms() + pause_ms;
    if (again_ms > until_ms) {
        return false;
    }
    pthread_mutex_lock(&exporter->mutex);
    while (clock_boot_ms() < again_ms && exporter->closed_ms == 0) {
        await(exporter, again_ms);
    }
    bool open = exporter->closed_ms == 0;
    pthread_mutex_unlock(&exporter->mutex);
    return open;
}

static void send_body(struct exporter *exporter, const struct text *body, int64_t spans)
{
    struct err err = {0};
    int64_t until_ms = clock_boot_ms() + TRACE_GIVE_UP_MS, pause_ms = TRACE_AGAIN_MS;
    int64_t rejected, asked_ms;
    for (;;) {
        enum collector_answer answer =
            collector_send(exporter->collector, body->bytes, body->length, &rejected, &asked_ms, &err);
        note(exporter, answer != COLLECTOR_TOOK, &err);
        if (answer == COLLECTOR_TOOK) {
            rejected = rejected > spans ? spans : rejected;
            count(exporter, spans - rejected, rejected, 0, 0);
            return;
        }
        if (answer == COLLECTOR_REFUSED) {
            count(exporter, 0, spans, 0, 0);
            return;
        }
        if (!pause_for(exporter, asked_ms > pause_ms ? asked_ms : pause_ms, until_ms)) {
            count(exporter, 0, 0, spans, 0);
            return;
        }
        pause_ms = 2 * pause_ms < TRACE_AGAIN_MAX_MS ? 2 * pause_ms : TRACE_AGAIN_MAX_MS;
    }
}

/* The first spans, as many as a request has. */
static void send_spans(struct exporter *exporter)
{
    struct text_list *spans = &exporter->spans;
    size_t taken = spans->count < TRACE_BATCH_SPANS ? spans->count : TRACE_BATCH_SPANS;
    autotext struct text body = {0};
    otlp_request(spans->items, taken, &body);
    for (size_t i = 0; i < spans->count; i++) {
        if (i < taken) {
            free(spans->items[i]);
        } else {
            spans->items[i - taken] = spans->items[i];
        }
    }
    spans->count -= taken;
    send_body(exporter, &body, (int64_t)taken);
}

static void drop_rest(struct exporter *exporter)
{
    count(exporter, 0, 0, (int64_t)exporter->spans.count, 0);
    text_list_finish(&exporter->spans);
}

static void *exporter_main(void *closure)
{
    struct exporter *exporter = closure;
    bool open = true, taken = true;
    worker_give_way();
    while ((open || taken || exporter->spans.count > 0) && !is_over(exporter)) {
        struct end end;
        taken = take(exporter, &end, &open);
        if (taken) {
            make_spans(exporter, &end);
        }
        while (exporter->spans.count >= TRACE_BATCH_SPANS && !is_over(exporter)) {
            send_spans(exporter);
        }
        bool due = clock_boot_ms() >= exporter->due_ms || (!open && !taken);
        if (exporter->spans.count > 0 && due) {
            send_spans(exporter);
        }
    }
    drop_rest(exporter);
    return NULL;
}

/* --- opening and closing -------------------------------------------------------------------------------- */

static void release(struct exporter *exporter)
{
    collector_destroy(exporter->collector);
    reader_close(exporter->reader);
    pthread_cond_destroy(&exporter->news);
    pthread_mutex_destroy(&exporter->mutex);
    free(exporter->ring);
    free(exporter);
}

struct exporter *exporter_open(const char *endpoint, const char *headers, const char *store_path,
                               struct err *err)
{
    struct exporter *exporter = xzalloc(sizeof *exporter);
    pthread_condattr_t steady;
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    pthread_mutex_init(&exporter->mutex, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&exporter->news, &steady);
    pthread_condattr_destroy(&steady);
    exporter->ring = xalloc(LIMIT_TRACE_ENDS * sizeof *exporter->ring);
    exporter->collector = collector_create(endpoint, headers, is_over, exporter);
    exporter->reader = reader_open(store_path, err);
    if (exporter->reader == NULL) {
        release(exporter);
        return NULL;
    }
    errno = pthread_create(&exporter->thread, NULL, exporter_main, exporter);
    if (errno != 0) {
        err_errno(err, "cannot start the thread of traces");
        release(exporter);
        return NULL;
    }
    return exporter;
}

void exporter_close(struct exporter *exporter)
{
    if (exporter == NULL) {
        return;
    }
    pthread_mutex_lock(&exporter->mutex);
    exporter->closed_ms = clock_boot_ms();
    pthread_cond_signal(&exporter->news);
    pthread_mutex_unlock(&exporter->mutex);
    pthread_join(exporter->thread, NULL);
    release(exporter);
}
