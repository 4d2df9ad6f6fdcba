/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the core, the store's writing side and the thread that alone uses them. It promises that nothing is
 * answered and no order leaves before the transaction that holds its changes is on disk, that inputs take
 * effect in the order in which they were asked, and that a failed commit ends all further work. What arrives
 * during a commit is the next batch; there is no timer in between. It leaves rules to the core, rows to the
 * store, and requests to the HTTP thread. */
#include "daemon/door.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/load.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/views.h"

/* Steps that were done but not yet committed. */
struct step_list {
    struct step *items;
    size_t count;
    size_t room;
};

struct door {
    struct store *store;
    struct core *core;
    pthread_t thread;
    bool threaded; /* the thread was started */
    int fd;
    atomic_size_t live;
    atomic_bool braked; /* most nodes are silent */

    _Atomic(struct door_request *)
        inbox; /* what was asked, the newest first: asking takes no lock while the thread is awake */
    atomic_size_t waiting;  /* requests that were asked and not yet taken up */
    atomic_bool refusing;   /* closing, or failed */
    pthread_mutex_t asleep; /* held while it decides to sleep, and by who wakes it */
    pthread_cond_t asked;

    pthread_mutex_t telling; /* guards the news */
    struct door_news news;
    size_t touched_room;

    /* Of the door's thread alone. */
    struct door_request *backlog; /* taken from the inbox, the oldest first */
    struct step_list lazy;        /* applied with the next transaction */
    int64_t lazy_since_ms;        /* when the first of them was done */
    struct step_list batch;       /* applied in the open transaction */
    bool in_transaction;
    int64_t now_ms; /* time of the last step: never goes back */
    int64_t now_us; /* of the turn, for records; 0: as now_ms says */
    struct err failure;
};

/* --- steps
 * -------------------------------------------------------------------------------------------------------------
 */

static void steps_add(struct step_list *list, const struct step *step)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->items = xrealloc(list->items, list->room * sizeof *list->items);
    }
    list->items[list->count++] = *step;
}

static void steps_clear(struct step_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        step_finish(&list->items[i]);
    }
    list->count = 0;
}

static bool transaction_open(struct door *door)
{
    if (door->in_transaction) {
        return true;
    }
    if (!store_begin(door->store, &door->failure)) {
        return false;
    }
    door->in_transaction = true;
    for (size_t i = 0; i < door->lazy.count; i++) {
        const struct step *step = &door->lazy.items[i];
        if (!store_apply(door->store, step->changes, step->change_count, &door->failure)) {
            return false;
        }
        steps_add(&door->batch, step);
    }
    door->lazy.count = 0;
    return true;
}

/* Applies a step's changes now, or keeps them for the next transaction. The step is the door's from here on.
 */
static bool step_keep(struct door *door, struct step *step)
{
    if (step->lazy && !door->in_transaction) {
        if (door->lazy.count == 0) {
            door->lazy_since_ms = door->now_ms;
        }
        steps_add(&door->lazy, step);
        return true;
    }
    if (step->change_count > 0) {
        if (!transaction_open(door) ||
            !store_apply(door->store, step->changes, step->change_count, &door->failure)) {
            step_finish(step);
            return false;
        }
    }
    steps_add(&door->batch, step);
    return true;
}

/* --- one request
 * ---------------------------------------------------------------------------------------------------------
 */

/* true: the request was answered from an earlier one, or refused because of it. */
static bool answer_again(struct door *door, struct door_request *request, bool *ret_ok)
{
    bool found = false;
    struct stored_reply reply = {0};
    *ret_ok = transaction_open(door) &&
              store_find_reply(door->store, request->scope, &found, &reply, &door->failure);
    if (!*ret_ok || !found) {
        return !*ret_ok;
    }
    if (memcmp(reply.body, request->body, sizeof reply.body) == 0) {
        request->status = (int)reply.status;
        text_append_bytes(&request->answer, reply.answer, reply.answer_length);
        request->replayed = true;
    } else {
        err_field(&request->error, ERR_IDEMPOTENCY, "Idempotency-Key", "use a new key for a new request",
                  "this key was used with another body");
    }
    free(reply.answer);
    return true;
}

static bool remember_answer(struct door *door, const struct door_request *request, int64_t job_key)
{
    struct change change = {.kind = CHANGE_REPLY_INSERT,
                            .reply = {.job_key = job_key,
                                      .status = request->status,
                                      .answer = request->answer.bytes,
                                      .answer_length = request->answer.length,
                                      .at_ms = request->input.wall_ms}};
    memcpy(change.reply.scope, request->scope, sizeof change.reply.scope);
    memcpy(change.reply.body, request->body, sizeof change.reply.body);
    return transaction_open(door) && store_apply(door->store, &change, 1, &door->failure);
}

/* Whether the same request, asked again when more is free or a job waits again, might be granted. Then a
 * second copy of it that is late would do what its sender was told is not done. */
static bool may_change_its_mind(enum err_code code)
{
    return !err_retryable(code) && code != ERR_NOT_FOUND && code != ERR_PRECONDITION;
}

static bool refuse(struct door *door, struct door_request *request)
{
    if (!request->keyed || !may_change_its_mind(request->error.code)) {
        return true;
    }
    request->status = err_http(request->error.code);
    problem_encode(&request->error, &request->answer);
    bool kept = remember_answer(door, request, 0);
    request->status = 0;
    text_clear(&request->answer);
    return kept;
}

static bool do_record(struct door *door, struct door_request *request)
{
    if (!transaction_open(door) ||
        !store_apply(door->store, request->records, request->record_count, &door->failure)) {
        return false;
    }
    const struct step nothing = {.ok = true};
    request->status = request->render(request, &nothing, &request->answer);
    return !request->keyed || remember_answer(door, request, 0);
}

static bool do_input(struct door *door, struct door_request *request)
{
    struct step step;
    request->input.at_us = door->now_us;
    request->input.arrived_us = request->arrived_us;
    core_step(door->core, &request->input, door->now_ms, &step);
    if (!step.ok) {
        request->error = step.err;
        step_finish(&step);
        return refuse(door, request);
    }
    request->status = request->render(request, &step, &request->answer);
    int64_t job_key = step.job.key;
    return step_keep(door, &step) && (!request->keyed || remember_answer(door, request, job_key));
}

/* false: the store failed. */
static bool do_request(struct door *door, struct door_request *request)
{
    if (request->arrived_ms > door->now_ms) {
        door->now_ms = request->arrived_ms;
    }
    bool ok = true;
    if (request->keyed && answer_again(door, request, &ok)) {
        return ok;
    }
    return request->kind == DOOR_RECORD ? do_record(door, request) : do_input(door, request);
}

static bool do_alone(struct door *door, enum input_kind kind, struct moment now)
{
    if (now.boot_ms > door->now_ms) {
        door->now_ms = now.boot_ms;
    }
    const struct input input = {.kind = kind, .wall_ms = now.wall_ms, .at_us = now.boot_us};
    struct step step;
    core_step(door->core, &input, door->now_ms, &step);
    return step_keep(door, &step);
}

/* --- after the commit
 * ------------------------------------------------------------------------------------------------------ */

static void news_append_orders(struct door_news *news, struct node_orders *orders)
{
    news->orders = xrealloc(news->orders, (news->order_count + 1) * sizeof(struct node_orders *));
    news->orders[news->order_count++] = orders;
}

/* The newest orders of a node replace those that were not collected yet. */
static void news_add_orders(struct door_news *news, struct node_orders *orders)
{
    for (size_t i = 0; i < news->order_count; i++) {
        if (strcmp(news->orders[i]->node, orders->node) == 0) {
            node_orders_destroy(news->orders[i]);
            news->orders[i] = orders;
            return;
        }
    }
    news_append_orders(news, orders);
}

static void news_add_touched(struct door *door, const struct step *step)
{
    struct door_news *news = &door->news;
    size_t needed = news->touched_count + step->touched_count;
    if (needed > door->touched_room) {
        door->touched_room = 2 * needed;
        news->touched = xrealloc(news->touched, door->touched_room * sizeof *news->touched);
    }
    if (step->touched_count > 0) {
        memcpy(news->touched + news->touched_count, step->touched,
               step->touched_count * sizeof *step->touched);
        news->touched_count = needed;
    }
}

static void news_add_step(struct door *door, const struct step *step)
{
    news_add_touched(door, step);
    for (size_t i = 0; i < step->dirty_count; i++) {
        struct node_orders *orders = core_orders(door->core, step->dirty_nodes[i]);
        if (orders != NULL) {
            news_add_orders(&door->news, orders);
        }
    }
}

static void signal_news(const struct door *door)
{
    const uint64_t one = 1;
    ssize_t written = write(door->fd, &one, sizeof one);
    (void)written; /* a full counter is readable already */
}

static void note_brake(struct door *door)
{
    const struct silence silence = core_silence(door->core);
    if (silence.braked == atomic_load(&door->braked)) {
        return;
    }
    atomic_store(&door->braked, silence.braked);
    if (silence.braked) {
        log_error("leases held",
                  "silent=%zu nodes=%zu remedy=\"see whether the controller's own network works; "
                  "fence the nodes that are dead\"",
                  silence.silent_count, silence.known_count);
    } else {
        log_info("leases released", "silent=%zu nodes=%zu", silence.silent_count, silence.known_count);
    }
}

/* Hands out what is committed: the steps' news and the answers in list. */
static void publish(struct door *door, struct door_request *list)
{
    struct door_request **end = &list;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    pthread_mutex_lock(&door->telling);
    for (size_t i = 0; i < door->batch.count; i++) {
        news_add_step(door, &door->batch.items[i]);
    }
    *end = door->news.answered;
    door->news.answered = list;
    pthread_mutex_unlock(&door->telling);
    atomic_store(&door->live, core_live_jobs(door->core));
    note_brake(door);
    if (list != NULL || door->batch.count > 0) {
        signal_news(door);
    }
    steps_clear(&door->batch);
}

/* The outcome on disk is not known: all that was asked gets that answer, and nothing more is done. */
static void publish_failure(struct door *door, struct door_request *list)
{
    log_error("door failed", "text=\"%s\"", door->failure.text);
    for (struct door_request *request = list; request != NULL; request = request->next) {
        request->status = 0;
        err_set(&request->error, door->failure.code == ERR_DISK_FULL ? ERR_DISK_FULL : ERR_UNKNOWN_OUTCOME,
                "the change may or may not have been stored: %s", door->failure.text);
        err_hint(&request->error, "ask again with the same Idempotency-Key when the controller is back");
    }
    steps_clear(&door->batch);
    atomic_store(&door->refusing, true);
    pthread_mutex_lock(&door->telling);
    door->news.failed = true;
    door->news.error = door->failure;
    pthread_mutex_unlock(&door->telling);
    publish(door, list);
    signal_news(door);
}

/* --- turns
 * -----------------------------------------------------------------------------------------------------------------
 */

int64_t door_due_ms(const struct door *door)
{
    int64_t deadline = core_deadline(door->core);
    if (door->lazy.count > 0 && door->lazy_since_ms + LAZY_COMMIT_MS < deadline) {
        deadline = door->lazy_since_ms + LAZY_COMMIT_MS;
    }
    return deadline;
}

/* The inbox in the order of asking. */
static struct door_request *take_inbox(struct door *door)
{
    struct door_request *newest = atomic_exchange(&door->inbox, NULL), *oldest = NULL;
    while (newest != NULL) {
        struct door_request *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static struct door_request *take_batch(struct door *door)
{
    if (door->backlog == NULL) {
        door->backlog = take_inbox(door);
    }
    struct door_request *first = door->backlog, **end = &door->backlog;
    size_t taken = 0;
    while (*end != NULL && taken < LIMIT_DOOR_BATCH) {
        end = &(*end)->next;
        taken++;
    }
    if (taken == 0) {
        return NULL;
    }
    door->backlog = *end;
    *end = NULL;
    atomic_fetch_sub(&door->waiting, taken);
    return first;
}

static bool nothing_asked(const struct door *door)
{
    return door->backlog == NULL && atomic_load(&door->inbox) == NULL;
}

/* Orders are made from the state, and that is ahead of the disk by what is lazy. */
static bool orders_leave(const struct door *door)
{
    for (size_t i = 0; i < door->batch.count; i++) {
        if (door->batch.items[i].dirty_count > 0) {
            return true;
        }
    }
    return false;
}

static bool lazy_due(const struct door *door, bool closing, int64_t now_ms)
{
    return door->lazy.count > 0 &&
           (closing || now_ms >= door->lazy_since_ms + LAZY_COMMIT_MS || orders_leave(door));
}

static void news_add_end(void *closure, uint64_t epoch, int64_t visible_us)
{
    struct door_news *news = &((struct door *)closure)->news;
    if (news->end_count < LIMIT_ENDS_KEPT) {
        news->ends = xrealloc(news->ends, (news->end_count + 1) * sizeof *news->ends);
        news->ends[news->end_count++] = (struct door_end){epoch, visible_us};
    }
}

/* A door without a thread has no time but that of the turn. */
static bool commit(struct door *door, struct moment now)
{
    if (!store_commit(door->store, &door->failure)) {
        return false;
    }
    door->in_transaction = false;
    int64_t turn_us = now.boot_us != 0 ? now.boot_us : now.boot_ms * 1000;
    pthread_mutex_lock(&door->telling);
    core_committed(door->core, door->threaded ? clock_boot_us() : turn_us, news_add_end, door);
    pthread_mutex_unlock(&door->telling);
    return true;
}

/* One batch, one transaction. */
static bool do_batch(struct door *door, struct door_request *list, bool closing, struct moment now)
{
    for (struct door_request *request = list; request != NULL; request = request->next) {
        if (!do_request(door, request)) {
            return false;
        }
    }
    if (now.boot_ms >= core_deadline(door->core) && !do_alone(door, INPUT_TICK, now)) {
        return false;
    }
    if (lazy_due(door, closing, now.boot_ms) && !transaction_open(door)) {
        return false;
    }
    return !door->in_transaction || commit(door, now);
}

/* As door_turn; *ret_closed: the door is closing, and this was the last turn. */
static bool turn(struct door *door, struct moment now, bool *ret_closed)
{
    bool refusing = atomic_load(&door->refusing); /* first: what was asked before it is still taken */
    struct door_request *list = take_batch(door);
    *ret_closed = refusing && nothing_asked(door);
    door->now_us = now.boot_us;
    if (!do_batch(door, list, *ret_closed, now)) {
        publish_failure(door, list);
        return false;
    }
    publish(door, list);
    if (!store_checkpoint(door->store, nothing_asked(door), &door->failure)) {
        publish_failure(door, NULL);
        return false;
    }
    return true;
}

bool door_turn(struct door *door, struct moment now)
{
    bool closed;
    assert(!door->threaded);
    return turn(door, now, &closed);
}

/* --- the thread
 * ------------------------------------------------------------------------------------------------------------
 */

static void wait_until(struct door *door, int64_t deadline_ms)
{
    if (deadline_ms == INT64_MAX) {
        pthread_cond_wait(&door->asked, &door->asleep);
        return;
    }
    int64_t left_ms = deadline_ms - clock_boot_ms();
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
    pthread_cond_timedwait(&door->asked, &door->asleep, &until);
}

static void wait_for_work(struct door *door)
{
    if (nothing_asked(door)) {
        pthread_mutex_lock(&door->asleep);
        if (nothing_asked(door) && !atomic_load(&door->refusing)) {
            wait_until(door, door_due_ms(door));
        }
        pthread_mutex_unlock(&door->asleep);
    }
}

static struct moment this_moment(void)
{
    int64_t boot_us = clock_boot_us();
    return (struct moment){.boot_ms = boot_us / 1000, .wall_ms = clock_wall_ms(), .boot_us = boot_us};
}

static void *door_main(void *closure)
{
    struct door *door = closure;
    bool closed = false;
    do {
        wait_for_work(door);
    } while (turn(door, this_moment(), &closed) && !closed);
    return NULL;
}

/* --- opening and closing ------------------------------------------------------------------------------- */

static void publish_node(const char *name, void *closure)
{
    struct door *door = closure;
    struct node_orders *orders = core_orders(door->core, name);
    if (orders != NULL) {
        news_append_orders(&door->news, orders);
    }
}

static bool boot(struct door *door, struct moment now, struct err *err)
{
    if (!load_live(door->store, door->core, err)) {
        return false;
    }
    bool ok = do_alone(door, INPUT_BOOT, now) && (!door->in_transaction || commit(door, now));
    if (!ok) {
        *err = door->failure;
        return false;
    }
    steps_clear(&door->batch);
    core_each_node(door->core, publish_node, door);
    atomic_store(&door->live, core_live_jobs(door->core));
    return true;
}

static void door_destroy(struct door *door)
{
    steps_clear(&door->batch);
    steps_clear(&door->lazy);
    free(door->batch.items);
    free(door->lazy.items);
    for (size_t i = 0; i < door->news.order_count; i++) {
        node_orders_destroy(door->news.orders[i]);
    }
    door_news_finish(&door->news);
    core_destroy(door->core);
    pthread_cond_destroy(&door->asked);
    pthread_mutex_destroy(&door->asleep);
    pthread_mutex_destroy(&door->telling);
    close(door->fd);
    free(door);
}

struct door *door_open(struct store *store, const struct door_config *config, struct moment now,
                       struct err *err)
{
    const struct core_config core = {.incarnation = store_incarnation(store),
                                     .next_job_key = store_next_job_key(store),
                                     .beat_ms = config->beat_ms,
                                     .share_half_life_ms = config->share_half_life_ms,
                                     .policy = config->policy};
    struct door *door = xzalloc(sizeof *door);
    door->store = store;
    door->core = core_create(&core);
    door->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&door->asleep, NULL);
    pthread_mutex_init(&door->telling, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&door->asked, &attributes);
    pthread_condattr_destroy(&attributes);
    if (door->fd < 0) {
        err_errno(err, "cannot make an eventfd");
        door_destroy(door);
        return NULL;
    }
    if (!boot(door, now, err)) {
        door_destroy(door);
        return NULL;
    }
    signal_news(door);
    return door;
}

bool door_start(struct door *door, struct err *err)
{
    errno = pthread_create(&door->thread, NULL, door_main, door);
    door->threaded = errno == 0;
    return door->threaded || err_errno(err, "cannot start the door's thread");
}

static void wake(struct door *door)
{
    pthread_mutex_lock(&door->asleep);
    pthread_cond_signal(&door->asked);
    pthread_mutex_unlock(&door->asleep);
}

void door_close(struct door *door)
{
    if (door == NULL) {
        return;
    }
    if (door->threaded) {
        atomic_store(&door->refusing, true);
        wake(door);
        pthread_join(door->thread, NULL);
    }
    door_destroy(door);
}

bool door_ask(struct door *door, struct door_request *request)
{
    if (atomic_load(&door->refusing)) {
        return false;
    }
    if (atomic_fetch_add(&door->waiting, 1) >= LIMIT_DOOR_QUEUE) {
        atomic_fetch_sub(&door->waiting, 1);
        return false;
    }
    struct door_request *newest = atomic_load(&door->inbox);
    do {
        request->next = newest;
    } while (!atomic_compare_exchange_weak(&door->inbox, &newest, request));
    if (newest == NULL) {
        wake(door); /* it may sleep; the others of this batch need not look */
    }
    return true;
}

int door_fd(const struct door *door)
{
    return door->fd;
}

void door_collect(struct door *door, struct door_news *ret_news)
{
    uint64_t count;
    ssize_t got = read(door->fd, &count, sizeof count);
    (void)got; /* nothing to read is no news */
    pthread_mutex_lock(&door->telling);
    *ret_news = door->news;
    door->news = (struct door_news){.failed = door->news.failed, .error = door->news.error};
    door->touched_room = 0;
    pthread_mutex_unlock(&door->telling);
}

void door_news_finish(struct door_news *news)
{
    free(news->orders);
    free(news->touched);
    free(news->ends);
    *news = (struct door_news){0};
}

size_t door_live_jobs(const struct door *door)
{
    return atomic_load(&door->live);
}

bool door_holds_leases(const struct door *door)
{
    return atomic_load(&door->braked);
}

const struct core *door_core(const struct door *door)
{
    return door->core;
}

void door_trace(struct door *door, struct text *trace)
{
    core_trace(door->core, trace);
}
