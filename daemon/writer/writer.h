/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: one thread makes every change of state, in batches that are one transaction each. */
#ifndef DAEMON_WRITER_WRITER_H
#define DAEMON_WRITER_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/writer/histogram.h"
#include "daemon/store/store.h"
#include "daemon/writer/moment.h"
#include "daemon/writer/news.h"
#include "proto/base/text/text.h"

enum writer_kind {
    WRITER_INPUT,  /* an input for the core */
    WRITER_INPUTS, /* several, in one transaction: a refused one does not stop the others */
    WRITER_RECORD, /* rows outside the core's rules: tokens, blobs */
};

/* A requested change and its answer. The caller owns it before writer_ask and after writer_collect returned
 * it. input, inputs and records must point to data that lives for all that time. */
struct writer_request {
    enum writer_kind kind;
    struct input input;
    const struct input *inputs; /* of WRITER_INPUTS; input then has the time alone */
    size_t input_count;
    const struct change *records; /* of WRITER_INPUTS: written with them, as its renders have left them */
    size_t record_count;
    int64_t arrived_ms; /* CLOCK_BOOTTIME: the time of the step */
    int64_t arrived_us; /* time when the request was complete, for records; 0: arrived_ms has the time */

    bool keyed;        /* it came with an Idempotency-Key: */
    uint8_t scope[32]; /* SHA-256 of owner, route and key */
    uint8_t body[32];  /* SHA-256 of the raw body */

    /* Noted in the same transaction when the request succeeds for the first time; NULL: nothing is. Status 0
     * is that of the answer. What it points to lives as long as the request. */
    const struct audit_row *audit;

    /* Renders the answer of a successful step, on the writer's thread and before the commit, or in the
     * process of a question; uses only its arguments. Of several inputs: the end of the answer, when all of
     * them are done. */
    int (*render)(const struct writer_request *request, const struct step *step,
                  struct text *out); /* returns the HTTP status */
    /* The same for each of several inputs, in their order, whether the step was refused or not. */
    void (*render_each)(const struct writer_request *request, size_t index, const struct step *step,
                        struct text *out);

    /* The answer. Status 0: error is set; any other status: answer has the JSON. */
    int status;
    struct err error;
    struct text answer;
    bool replayed; /* it repeats the first answer to an earlier request with the same key */

    int64_t took_us;   /* on the writer's thread, without the commit, or in the process of a question */
    int64_t commit_us; /* its share of the commit */

    /* NULL: the request is collected. Else the writer's thread calls it when the request is answered, and
     * does not touch the request afterwards. It must not wait. */
    void (*done)(struct writer_request *request);

    void *asker;                 /* for the caller */
    struct writer_request *next; /* for the writer */
};

/* How long the writer's work has taken. */
struct writer_measures {
    struct histogram commits; /* transactions, until they were on disk */
    struct histogram
        passes; /* requests and ticks that had scheduling passes, with the changes of their rows */
};

struct writer_config {
    int64_t heartbeat_ms;
    int64_t share_half_life_ms;
    int64_t idle_after_ms;
    int64_t webhook_pause_ms; /* 0: DEFAULT_WEBHOOK_PAUSE_MS */
    int64_t pass_work;        /* for tests: struct core_config */
    enum policy policy;
};

struct writer;

/* Loads the live state from the store and boots the core. From then on the writer processes requests either
 * on its own thread or in calls of writer_run_batch. */
struct writer *writer_open(struct store *store, const struct writer_config *config, struct moment now,
                           struct err *err);
/* Starts the thread. */
bool writer_start(struct writer *writer, struct err *err);
/* Instead of the thread: processes one batch of requests and due work, and returns. False: a commit failed,
 * and nothing more is done. */
bool writer_run_batch(struct writer *writer, struct moment now);
/* When a batch is due without a request, CLOCK_BOOTTIME; INT64_MAX: never. */
int64_t writer_due_ms(const struct writer *writer);
/* With a thread: processes the remaining requests, commits, ends the thread. Without: drops the requests. */
void writer_close(struct writer *writer);

/* Queues a request; false when LIMIT_WRITER_QUEUE inputs wait already, or LIMIT_QUESTIONS of INPUT_ASK
 * (answer 503). Any thread. */
bool writer_ask(struct writer *writer, struct writer_request *request);

/* An fd that is readable when writer_collect has something. */
int writer_fd(const struct writer *writer);

/* Takes the news since the last call. */
void writer_collect(struct writer *writer, struct writer_news *ret_news);

/* As long as the writer lives. Any thread. */
const struct writer_measures *writer_measures(const struct writer *writer);
/* Inputs that wait for the next batch. Any thread. */
size_t writer_waiting(const struct writer *writer);
/* Questions that wait for a copy of the process. Any thread. */
size_t writer_questions(const struct writer *writer);
/* The number of live jobs as of the last commit. Any thread. */
size_t writer_live_jobs(const struct writer *writer);
/* Whether most nodes are silent, so that no lease expires. Any thread. */
bool writer_holds_leases(const struct writer *writer);

/* For tests that check the core between batches and the reasons of its decisions (core_trace). */
struct core *writer_core(struct writer *writer);
void writer_trace(struct writer *writer, struct text *trace);

#endif
