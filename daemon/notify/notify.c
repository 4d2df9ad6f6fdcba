/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the thread that sends deliveries. The rows of the database are its only queue: it reads what is due,
 * sends it, and asks the writer to note the outcome, so that a crash at any moment repeats a try and loses
 * none. It has one request under way for each webhook, and LIMIT_WEBHOOK_REQUESTS in all. The core decides
 * what an outcome means. */
#include "daemon/notify/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/notify/message.h"
#include "daemon/notify/try.h"
#include "daemon/writer/writer.h"
#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"

/* Without anything due it looks after so long: the wall clock may have been set. */
#define LOOK_MS 60000
/* After a failure to read, or when the writer has no room. */
#define AGAIN_MS 1000

enum sending_phase {
    SENDING_REQUEST, /* the request is under way */
    SENDING_OUTCOME, /* the writer has no room for the outcome yet */
    SENDING_ASKED,   /* the outcome is with the writer */
};

struct sending {
    struct notify *notify;
    enum sending_phase phase;
    atomic_bool answered; /* the writer has it no more */
    struct try *try;
    struct delivery_outcome outcome;
    struct writer_request request;
    struct sending *prev, *next;
};

struct notify {
    struct notify_config config;
    struct reader *reader;
    CURLM *multi;
    pthread_t thread;
    bool threaded;
    atomic_bool stopping;
    atomic_bool woken;
    struct sending *sendings; /* of the thread alone, as the next two */
    size_t request_count;
    int64_t look_ms; /* when deliveries are looked for next, CLOCK_BOOTTIME */
    atomic_uint_least64_t delivered, refused, failed;
};

/* --- outcomes ------------------------------------------------------------------------------------------- */

static int render_nothing(const struct writer_request *request, const struct step *step, struct text *out)
{
    return 200;
}

/* On the writer's thread. */
static void outcome_noted(struct writer_request *request)
{
    struct sending *sending = request->asker;
    struct notify *notify = sending->notify;
    atomic_store(&sending->answered, true);
    curl_use_must_multi(curl_multi_wakeup(notify->multi));
}

static void ask(struct sending *sending)
{
    struct writer_request *request = &sending->request;
    *request = (struct writer_request){.kind = WRITER_INPUT,
                                       .input = {.kind = INPUT_WEBHOOK,
                                                 .wall_ms = clock_wall_ms(),
                                                 .webhook = {.action = WEBHOOK_ACTION_OUTCOME,
                                                             .id = sending->try->webhook,
                                                             .outcome = &sending->outcome}},
                                       .arrived_ms = clock_boot_ms(),
                                       .render = render_nothing,
                                       .done = outcome_noted,
                                       .asker = sending};
    sending->phase = writer_ask(sending->notify->config.writer, request) ? SENDING_ASKED : SENDING_OUTCOME;
}

static void finish_request(struct sending *sending, CURLcode code)
{
    struct notify *notify = sending->notify;
    struct try *try = sending->try;
    uint16_t random;
    random_fill(&random, sizeof random);
    const char *error = NULL;
    const int64_t status = try_result(try, code, &error);
    const bool delivered = status >= 200 && status < 300;
    sending->outcome = (struct delivery_outcome){.key = try->key,
                                                 .tries = try->tries,
                                                 .delivered = delivered,
                                                 .code = status,
                                                 .error = error,
                                                 .jitter = random % 1024};
    atomic_fetch_add(delivered ? &notify->delivered : status != 0 ? &notify->refused : &notify->failed, 1);
    log_debug("delivery tried", "webhook=%s key=%" PRId64 " status=%" PRId64, try->webhook, try->key, status);
    notify->request_count--;
    ask(sending);
}

static void drop(struct sending *sending)
{
    DL_DELETE(sending->notify->sendings, sending);
    try_destroy(sending->try);
    text_finish(&sending->request.answer);
    free(sending);
}

/* Asks again where the writer had no room, and forgets what is noted. */
static bool collect(struct notify *notify)
{
    struct sending *sending, *next;
    bool any = false;
    DL_FOREACH_SAFE (notify->sendings, sending, next) {
        if (sending->phase == SENDING_OUTCOME) {
            ask(sending);
        } else if (sending->phase == SENDING_ASKED && atomic_load(&sending->answered)) {
            drop(sending);
            any = true;
        }
    }
    return any;
}

/* --- what is due ---------------------------------------------------------------------------------------- */

static bool is_busy(const struct notify *notify, const char *webhook)
{
    const struct sending *sending;
    DL_FOREACH (notify->sendings, sending) {
        if (strcmp(sending->try->webhook, webhook) == 0) {
            return true;
        }
    }
    return false;
}

static struct sending *begin(struct notify *notify, struct try *try)
{
    struct sending *sending = xzalloc(sizeof *sending);
    sending->notify = notify;
    sending->try = try;
    DL_APPEND(notify->sendings, sending);
    return sending;
}

/* A delivery of a job that is gone has nothing to tell. */
static bool begin_try(struct notify *notify, const struct delivery_row *row,
                      const struct webhook_row *webhook, struct err *err)
{
    autotext struct text body = {0};
    bool found;
    if (!message_body(notify->reader, row, notify->config.page, &body, &found, err)) {
        return false;
    }
    struct sending *sending =
        begin(notify, try_create(row, webhook, &body, notify->config.allowed, clock_wall_ms()));
    if (found) {
        notify->request_count++;
        curl_use_must_multi(curl_multi_add_handle(notify->multi, sending->try->easy));
        return true;
    }
    sending->outcome = (struct delivery_outcome){
        .key = row->key, .tries = row->tries, .hopeless = true, .error = "given up: the job was removed"};
    ask(sending);
    return true;
}

static void look_within(struct notify *notify, int64_t ms)
{
    const int64_t at_ms = clock_boot_ms() + (ms > 0 ? ms : 0);
    notify->look_ms = at_ms < notify->look_ms ? at_ms : notify->look_ms;
}

static bool begin_due(struct notify *notify, struct err *err)
{
    const int64_t wall_ms = clock_wall_ms();
    autorows struct rows rows = reader_next_deliveries(notify->reader, err);
    struct delivery_row row;
    struct webhook_row webhook;
    while (notify->request_count < LIMIT_WEBHOOK_REQUESTS && rows_next_delivery(&rows, &row, &webhook)) {
        if (is_busy(notify, webhook.id)) {
            continue; /* its outcome has this looked for again */
        }
        if (row.next_ms > wall_ms) {
            look_within(notify, row.next_ms - wall_ms);
            break;
        }
        if (!begin_try(notify, &row, &webhook, err)) {
            return false;
        }
    }
    return !rows.failed;
}

static void look(struct notify *notify)
{
    struct err err;
    notify->look_ms = clock_boot_ms() + LOOK_MS;
    if (!begin_due(notify, &err)) {
        log_error("deliveries unreadable", "text=\"%s\"", err.text);
        look_within(notify, AGAIN_MS);
    }
}

/* --- the thread ----------------------------------------------------------------------------------------- */

static bool finish_requests(struct notify *notify)
{
    int running, left;
    bool any = false;
    curl_use_must_multi(curl_multi_perform(notify->multi, &running));
    for (CURLMsg *message; (message = curl_multi_info_read(notify->multi, &left)) != NULL;) {
        const CURLcode code = message->data.result;
        struct try *try = NULL;
        curl_use_must(curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&try));
        curl_use_must_multi(curl_multi_remove_handle(notify->multi, message->easy_handle));
        struct sending *sending;
        DL_SEARCH_SCALAR(notify->sendings, sending, try, try);
        finish_request(sending, code);
        any = true;
    }
    return any;
}

static int pause_ms(const struct notify *notify)
{
    const struct sending *sending;
    int64_t ms = notify->look_ms - clock_boot_ms();
    DL_FOREACH (notify->sendings, sending) {
        if (sending->phase == SENDING_OUTCOME && ms > AGAIN_MS) {
            ms = AGAIN_MS;
        }
    }
    return ms > 0 ? (int)ms : 0;
}

static void *notify_main(void *closure)
{
    struct notify *notify = closure;
    while (!atomic_load(&notify->stopping)) {
        const bool sent = finish_requests(notify);
        const bool noted = collect(notify);
        if (atomic_exchange(&notify->woken, false) || sent || noted || clock_boot_ms() >= notify->look_ms) {
            look(notify);
            continue; /* what was begun moves on */
        }
        curl_use_must_multi(curl_multi_poll(notify->multi, NULL, 0, pause_ms(notify), NULL));
    }
    return NULL;
}

void notify_wake(struct notify *notify)
{
    if (!atomic_exchange(&notify->woken, true)) {
        curl_use_must_multi(curl_multi_wakeup(notify->multi));
    }
}

struct notify_figures notify_figures(const struct notify *notify)
{
    return (struct notify_figures){.delivered = atomic_load(&notify->delivered),
                                   .refused = atomic_load(&notify->refused),
                                   .failed = atomic_load(&notify->failed)};
}

/* --- opening and closing -------------------------------------------------------------------------------- */

static bool start(struct notify *notify, struct err *err)
{
    errno = pthread_create(&notify->thread, NULL, notify_main, notify);
    notify->threaded = errno == 0;
    return notify->threaded || err_errno(err, "cannot start the thread of webhooks");
}

struct notify *notify_open(const struct notify_config *config, struct err *err)
{
    struct notify *notify = xzalloc(sizeof *notify);
    notify->config = *config;
    notify->multi = curl_use_multi();
    notify->reader = reader_open(config->store_path, err);
    if (notify->reader == NULL || !start(notify, err)) {
        notify_destroy(notify);
        return NULL;
    }
    return notify;
}

void notify_stop(struct notify *notify)
{
    if (notify != NULL && notify->threaded) {
        atomic_store(&notify->stopping, true);
        curl_use_must_multi(curl_multi_wakeup(notify->multi));
        pthread_join(notify->thread, NULL);
        notify->threaded = false;
    }
}

void notify_destroy(struct notify *notify)
{
    if (notify == NULL) {
        return;
    }
    notify_stop(notify);
    while (notify->sendings != NULL) {
        struct sending *sending = notify->sendings;
        if (sending->phase == SENDING_REQUEST) {
            curl_multi_remove_handle(notify->multi, sending->try->easy);
        }
        drop(sending);
    }
    curl_multi_cleanup(notify->multi);
    reader_close(notify->reader);
    free(notify);
}
