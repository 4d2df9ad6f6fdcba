/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the writer: the one thread that uses the core and the store's writing side. It sends no answer and no
 * orders before the transaction with their changes is on disk. Requests take effect in the order in which
 * they were asked. After a failed commit nothing more is done. Requests that arrive during a commit are the
 * next batch; no timer delays them. The core has the rules, the store the rows, and the HTTP thread the
 * requests. */
#include "daemon/writer/writer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/writer/inbox.h"
#include "daemon/writer/load.h"
#include "daemon/writer/questions.h"
#include "daemon/writer/transaction.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/wire/views.h"

struct writer {
    struct store *store;
    struct core *core;
    pthread_t thread;
    bool threaded; /* the thread was started */
    atomic_size_t live;
    atomic_bool braked; /* most nodes are silent */

    struct inbox inbox;          /* what was asked */
    struct news_box box;         /* what was committed */
    struct questions *questions; /* NULL: without a thread, questions are requests like others */
    struct writer_measures measures;

    /* Used only by the writer's thread. */
    struct transaction transaction;
    bool queue_stale;     /* there were steps since the last snapshot of the queue */
    int64_t queue_due_ms; /* no snapshot of the queue before this */
    int64_t now_ms;       /* time of the last step: never decreases */
    int64_t now_us;       /* of the batch, for records; 0: now_ms has the time */
};

/* --- one request ---------------------------------------------------------------------------------------- */

/* true: the request was answered from an earlier one with the same key, or refused because of it. */
static bool answer_again(struct writer *writer, struct writer_request *request, bool *ret_ok)
{
    bool found = false;
    struct stored_reply reply = {0};
    struct transaction *transaction = &writer->transaction;
    *ret_ok = transaction_open(transaction) &&
              store_find_reply(writer->store, request->scope, &found, &reply, &transaction->failure);
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

static bool remember_answer(struct writer *writer, const struct writer_request *request, int64_t job_key)
{
    struct change change = {.kind = CHANGE_REPLY_INSERT,
                            .reply = {.job_key = job_key,
                                      .status = request->status,
                                      .answer = request->answer.bytes,
                                      .answer_length = request->answer.length,
                                      .at_ms = request->input.wall_ms}};
    memcpy(change.reply.scope, request->scope, sizeof change.reply.scope);
    memcpy(change.reply.body, request->body, sizeof change.reply.body);
    return transaction_apply(&writer->transaction, &change, 1);
}

/* Whether the same request may be granted later, once more is free or a job waits again. The refusal is then
 * stored under the request's key. Otherwise a late duplicate of the request could still take effect after its
 * sender was told that it failed. */
static bool may_change_its_mind(enum err_code code)
{
    return !err_retryable(code) && code != ERR_NOT_FOUND && code != ERR_PRECONDITION;
}

static bool refuse(struct writer *writer, struct writer_request *request)
{
    if (!request->keyed || !may_change_its_mind(request->error.code)) {
        return true;
    }
    request->status = err_http(request->error.code);
    problem_encode(&request->error, &request->answer);
    bool kept = remember_answer(writer, request, 0);
    request->status = 0;
    text_clear(&request->answer);
    return kept;
}

static bool do_record(struct writer *writer, struct writer_request *request)
{
    if (!transaction_apply(&writer->transaction, request->records, request->record_count)) {
        return false;
    }
    const struct step nothing = {.ok = true};
    request->status = request->render(request, &nothing, &request->answer);
    return !request->keyed || remember_answer(writer, request, 0);
}

static void take_step(struct writer *writer, const struct writer_request *request, struct input input,
                      struct step *ret_step)
{
    input.wall_ms = request->input.wall_ms;
    input.at_us = writer->now_us;
    input.arrived_us = request->arrived_us;
    core_step(writer->core, &input, writer->now_ms, ret_step);
}

static bool do_input(struct writer *writer, struct writer_request *request)
{
    struct step step;
    take_step(writer, request, request->input, &step);
    if (!step.ok) {
        request->error = step.err;
        step_finish(&step);
        return refuse(writer, request);
    }
    request->status = request->render(request, &step, &request->answer);
    int64_t job_key = step.job.key;
    return transaction_keep(&writer->transaction, &step, writer->now_ms) &&
           (!request->keyed || remember_answer(writer, request, job_key));
}

/* All or nothing reaches the disk, so the one answer to them is kept under one key. */
static bool do_inputs(struct writer *writer, struct writer_request *request)
{
    const struct step nothing = {.ok = true};
    for (size_t i = 0; i < request->input_count; i++) {
        struct step step;
        take_step(writer, request, request->inputs[i], &step);
        request->render_each(request, i, &step, &request->answer);
        if (!step.ok) {
            step_finish(&step);
        } else if (!transaction_keep(&writer->transaction, &step, writer->now_ms)) {
            return false;
        }
    }
    request->status = request->render(request, &nothing, &request->answer);
    return transaction_apply(&writer->transaction, request->records, request->record_count) &&
           (!request->keyed || remember_answer(writer, request, 0));
}

static bool note(struct writer *writer, const struct writer_request *request)
{
    if (request->audit == NULL || request->status == 0) {
        return true;
    }
    struct change change = {.kind = CHANGE_AUDIT_INSERT, .audit = *request->audit};
    if (change.audit.status == 0) {
        change.audit.status = request->status;
    }
    return transaction_apply(&writer->transaction, &change, 1);
}

static bool do_kind(struct writer *writer, struct writer_request *request)
{
    switch (request->kind) {
    case WRITER_INPUT:
        return do_input(writer, request);
    case WRITER_INPUTS:
        return do_inputs(writer, request);
    case WRITER_RECORD:
        return do_record(writer, request);
    }
    abort();
}

/* false: the store failed. */
static bool do_request(struct writer *writer, struct writer_request *request)
{
    if (request->arrived_ms > writer->now_ms) {
        writer->now_ms = request->arrived_ms;
    }
    bool ok = true;
    if (request->keyed && answer_again(writer, request, &ok)) {
        return ok;
    }
    return do_kind(writer, request) && note(writer, request);
}

static bool do_alone(struct writer *writer, enum input_kind kind, struct moment now)
{
    if (now.boot_ms > writer->now_ms) {
        writer->now_ms = now.boot_ms;
    }
    const struct input input = {.kind = kind, .wall_ms = now.wall_ms, .at_us = now.boot_us};
    struct step step;
    core_step(writer->core, &input, writer->now_ms, &step);
    return transaction_keep(&writer->transaction, &step, writer->now_ms);
}

/* --- after the commit ----------------------------------------------------------------------------------- */

/* The more a snapshot of the queue costs, the longer the next one waits: snapshots take at most some 0.1 % of
 * the writer's time. */
static bool publish_queue(struct writer *writer, int64_t now_ms)
{
    if (!writer->queue_stale || now_ms < writer->queue_due_ms) {
        return false;
    }
    struct queue_snapshot *queue = queue_snapshot_create(writer->core);
    writer->queue_stale = false;
    writer->queue_due_ms = now_ms + (int64_t)queue->cost / QUEUE_SNAPSHOT_PACE;
    news_box_lock(&writer->box);
    news_box_set_queue(&writer->box, queue);
    news_box_unlock(&writer->box);
    return true;
}

static void note_brake(struct writer *writer)
{
    const struct silence silence = core_silence(writer->core);
    if (silence.braked == atomic_load(&writer->braked)) {
        return;
    }
    atomic_store(&writer->braked, silence.braked);
    if (silence.braked) {
        log_error("leases held",
                  "silent=%zu nodes=%zu remedy=\"see whether the controller's own network works; "
                  "fence the nodes that are dead\"",
                  silence.silent_count, silence.known_count);
    } else {
        log_info("leases released", "silent=%zu nodes=%zu", silence.silent_count, silence.known_count);
    }
}

/* Takes the requests out of the list whose askers do not collect, and tells these. */
static void tell_askers(struct writer_request **list)
{
    for (struct writer_request **at = list; *at != NULL;) {
        struct writer_request *request = *at;
        if (request->done == NULL) {
            at = &request->next;
        } else {
            *at = request->next;
            request->done(request);
        }
    }
}

/* Publishes committed work: the news of the steps, and the answers in list. */
static void publish(struct writer *writer, struct writer_request *list, int64_t now_ms)
{
    writer->queue_stale = writer->queue_stale || writer->transaction.batch.count > 0;
    bool queue_published =
        publish_queue(writer, now_ms); /* first: a submitter whose answer leaves finds the job there */
    tell_askers(&list);
    bool answered = list != NULL;
    news_box_lock(&writer->box);
    for (size_t i = 0; i < writer->transaction.batch.count; i++) {
        news_box_add_step(&writer->box, writer->core, &writer->transaction.batch.items[i]);
    }
    writer->box.news.figures = core_figures(writer->core);
    news_box_add_answers(&writer->box, list);
    news_box_unlock(&writer->box);
    atomic_store(&writer->live, core_live_jobs(writer->core));
    note_brake(writer);
    if (answered || writer->transaction.batch.count > 0 || queue_published) {
        news_box_signal(&writer->box);
    }
    transaction_clear(&writer->transaction);
}

/* The outcome on disk is unknown: all requests get that as their answer, and nothing more is done. */
static void publish_failure(struct writer *writer, struct writer_request *list)
{
    log_error("writer failed", "text=\"%s\"", writer->transaction.failure.text);
    for (struct writer_request *request = list; request != NULL; request = request->next) {
        request->status = 0;
        err_set(&request->error,
                writer->transaction.failure.code == ERR_DISK_FULL ? ERR_DISK_FULL : ERR_UNKNOWN_OUTCOME,
                "the change may or may not have been stored: %s", writer->transaction.failure.text);
        err_hint(&request->error, "ask again with the same Idempotency-Key when the controller is back");
    }
    transaction_clear(&writer->transaction);
    inbox_close(&writer->inbox);
    news_box_lock(&writer->box);
    writer->box.news.failed = true;
    writer->box.news.error = writer->transaction.failure;
    news_box_unlock(&writer->box);
    publish(writer, list, INT64_MIN);
    news_box_signal(&writer->box);
}

/* --- batches -------------------------------------------------------------------------------------------- */

int64_t writer_due_ms(const struct writer *writer)
{
    int64_t deadline = core_deadline(writer->core);
    int64_t lazy_ms = transaction_due_ms(&writer->transaction);
    deadline = lazy_ms < deadline ? lazy_ms : deadline;
    if (writer->queue_stale && writer->queue_due_ms < deadline) {
        deadline = writer->queue_due_ms;
    }
    int64_t question_ms = writer->questions != NULL ? questions_due_ms(writer->questions) : INT64_MAX;
    return question_ms < deadline ? question_ms : deadline;
}

static void add_end(void *closure, uint64_t attempt_id, int64_t visible_us)
{
    news_box_add_end(closure, attempt_id, visible_us);
}

/* Without a thread, the batch's time is the time of the commit. */
static bool commit(struct writer *writer, struct moment now, int64_t *ret_took_us)
{
    int64_t begin_us = clock_boot_us();
    if (!transaction_commit(&writer->transaction)) {
        return false;
    }
    *ret_took_us = clock_boot_us() - begin_us;
    histogram_add(&writer->measures.commits, *ret_took_us);
    int64_t batch_us = now.boot_us != 0 ? now.boot_us : now.boot_ms * 1000;
    news_box_lock(&writer->box);
    core_committed(writer->core, writer->threaded ? clock_boot_us() : batch_us, add_end, &writer->box);
    news_box_unlock(&writer->box);
    return true;
}

/* Where the last step of a batch ended. */
struct lap {
    int64_t at_us;
    size_t passes; /* scheduling passes by then */
};

/* The time of the step that has just been done. */
static int64_t take_time(struct writer *writer, struct lap *lap)
{
    const struct lap now = {.at_us = clock_boot_us(), .passes = core_pass_count(writer->core)};
    int64_t took_us = now.at_us - lap->at_us;
    if (now.passes != lap->passes) {
        histogram_add(&writer->measures.passes, took_us);
    }
    *lap = now;
    return took_us;
}

/* Each request has the share of the commit that it has of the batch. */
static void share_commit(struct writer_request *list, int64_t commit_us)
{
    int64_t batch_us = 1;
    for (const struct writer_request *request = list; request != NULL; request = request->next) {
        batch_us += request->took_us;
    }
    for (struct writer_request *request = list; request != NULL; request = request->next) {
        request->commit_us = commit_us * request->took_us / batch_us;
    }
}

/* Runs one batch in one transaction. */
static bool do_batch(struct writer *writer, struct writer_request *list, bool closing, struct moment now)
{
    struct lap lap = {.at_us = clock_boot_us(), .passes = core_pass_count(writer->core)};
    for (struct writer_request *request = list; request != NULL; request = request->next) {
        if (!do_request(writer, request)) {
            return false;
        }
        request->took_us = take_time(writer, &lap);
    }
    if (now.boot_ms >= core_deadline(writer->core)) {
        if (!do_alone(writer, INPUT_TICK, now)) {
            return false;
        }
        take_time(writer, &lap);
    }
    if (transaction_takes_lazy(&writer->transaction, closing, now.boot_ms) &&
        !transaction_open(&writer->transaction)) {
        return false;
    }
    int64_t commit_us = 0;
    bool ok = !writer->transaction.open || commit(writer, now, &commit_us);
    share_commit(list, commit_us);
    return ok;
}

/* Like writer_run_batch; *ret_closed: the writer is closing, and this was the last batch. */
static bool run_batch(struct writer *writer, struct moment now, bool *ret_closed)
{
    bool closed =
        inbox_is_closed(&writer->inbox); /* first: requests asked before it was closed still count */
    struct writer_request *list = inbox_take(&writer->inbox);
    *ret_closed = closed && inbox_is_empty(&writer->inbox);
    writer->now_us = now.boot_us;
    if (!do_batch(writer, list, *ret_closed, now)) {
        publish_failure(writer, list);
        return false;
    }
    publish(writer, list, now.boot_ms);
    if (writer->questions != NULL) {
        questions_start(writer->questions, writer->core, now);
    }
    if (!store_checkpoint(writer->store, inbox_is_empty(&writer->inbox), &writer->transaction.failure)) {
        publish_failure(writer, NULL);
        return false;
    }
    return true;
}

bool writer_run_batch(struct writer *writer, struct moment now)
{
    bool closed;
    assert(!writer->threaded);
    return run_batch(writer, now, &closed);
}

/* --- the thread ----------------------------------------------------------------------------------------- */

static int64_t due_ms(const void *closure)
{
    return writer_due_ms(closure);
}

static struct moment this_moment(void)
{
    int64_t boot_us = clock_boot_us();
    return (struct moment){.boot_ms = boot_us / 1000, .wall_ms = clock_wall_ms(), .boot_us = boot_us};
}

static void *writer_main(void *closure)
{
    struct writer *writer = closure;
    bool closed = false;
    do {
        inbox_sleep(&writer->inbox, due_ms, writer);
    } while (run_batch(writer, this_moment(), &closed) && !closed);
    questions_end(writer->questions);
    return NULL;
}

/* --- opening and closing -------------------------------------------------------------------------------- */

static void publish_node(const char *name, void *closure)
{
    struct writer *writer = closure;
    struct node_orders *orders = core_orders(writer->core, name);
    if (orders != NULL) {
        news_box_append_orders(&writer->box, orders);
    }
}

static bool boot(struct writer *writer, struct moment now, struct err *err)
{
    if (!load_live(writer->store, writer->core, err)) {
        return false;
    }
    int64_t took_us;
    bool ok =
        do_alone(writer, INPUT_BOOT, now) && (!writer->transaction.open || commit(writer, now, &took_us));
    if (!ok) {
        *err = writer->transaction.failure;
        return false;
    }
    transaction_clear(&writer->transaction);
    writer->queue_stale = true;
    writer->box.news.figures = core_figures(writer->core);
    core_each_node(writer->core, publish_node, writer);
    atomic_store(&writer->live, core_live_jobs(writer->core));
    return true;
}

static void writer_destroy(struct writer *writer)
{
    transaction_finish(&writer->transaction);
    news_box_finish(&writer->box);
    core_destroy(writer->core);
    inbox_finish(&writer->inbox);
    free(writer);
}

struct writer *writer_open(struct store *store, const struct writer_config *config, struct moment now,
                           struct err *err)
{
    const struct core_config core = {.incarnation = store_incarnation(store),
                                     .next_job_key = store_next_job_key(store),
                                     .heartbeat_ms = config->heartbeat_ms,
                                     .share_half_life_ms = config->share_half_life_ms,
                                     .idle_after_ms = config->idle_after_ms,
                                     .webhook_pause_ms = config->webhook_pause_ms,
                                     .pass_work = config->pass_work,
                                     .policy = config->policy};
    struct writer *writer = xzalloc(sizeof *writer);
    writer->store = store;
    writer->transaction.store = store;
    writer->core = core_create(&core);
    inbox_init(&writer->inbox);
    if (!news_box_init(&writer->box, err) || !boot(writer, now, err)) {
        writer_destroy(writer);
        return NULL;
    }
    news_box_signal(&writer->box);
    return writer;
}

static void wake_for_question(void *closure)
{
    struct writer *writer = closure;
    inbox_wake(&writer->inbox);
}

static void question_answered(void *closure, struct writer_request *request)
{
    struct writer *writer = closure;
    request->next = NULL;
    tell_askers(&request);
    if (request != NULL) {
        news_box_lock(&writer->box);
        news_box_add_answers(&writer->box, request);
        news_box_unlock(&writer->box);
        news_box_signal(&writer->box);
    }
}

bool writer_start(struct writer *writer, struct err *err)
{
    const struct questions_config config = {.limit_ms = LIMIT_QUESTION_MS,
                                            .ready = wake_for_question,
                                            .answered = question_answered,
                                            .closure = writer};
    writer->questions = questions_open(&config, err);
    if (writer->questions == NULL) {
        return false;
    }
    errno = pthread_create(&writer->thread, NULL, writer_main, writer);
    writer->threaded = errno == 0;
    return writer->threaded || err_errno(err, "cannot start the writer's thread");
}

void writer_close(struct writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->threaded) {
        inbox_close(&writer->inbox);
        inbox_wake(&writer->inbox);
        pthread_join(writer->thread, NULL);
    }
    questions_close(writer->questions);
    writer_destroy(writer);
}

static bool ask_question(struct writer *writer, struct writer_request *request)
{
    bool taken = questions_add(writer->questions, request);
    if (taken) {
        inbox_wake(&writer->inbox);
    }
    return taken;
}

bool writer_ask(struct writer *writer, struct writer_request *request)
{
    bool asks = request->kind == WRITER_INPUT && request->input.kind == INPUT_ASK;
    return asks && writer->questions != NULL ? ask_question(writer, request)
                                             : inbox_add(&writer->inbox, request);
}

int writer_fd(const struct writer *writer)
{
    return writer->box.fd;
}

void writer_collect(struct writer *writer, struct writer_news *ret_news)
{
    news_box_collect(&writer->box, ret_news);
}

const struct writer_measures *writer_measures(const struct writer *writer)
{
    return &writer->measures;
}

size_t writer_waiting(const struct writer *writer)
{
    return inbox_waiting(&writer->inbox);
}

size_t writer_questions(const struct writer *writer)
{
    return questions_waiting(writer->questions);
}

size_t writer_live_jobs(const struct writer *writer)
{
    return atomic_load(&writer->live);
}

bool writer_holds_leases(const struct writer *writer)
{
    return atomic_load(&writer->braked);
}

struct core *writer_core(struct writer *writer)
{
    return writer->core;
}

void writer_trace(struct writer *writer, struct text *trace)
{
    core_trace(writer->core, trace);
}
