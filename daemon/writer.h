/* SPDX-License-Identifier: Apache-2.0 */
/* The one writer: whatever changes state passes here, on one thread, in batches that are one transaction
 * each.
 */
#ifndef DAEMON_WRITER_H
#define DAEMON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/store/store.h"
#include "proto/base/text.h"

enum writer_kind {
    WRITER_INPUT,  /* an input for the core */
    WRITER_RECORD, /* rows whose rules the core does not own: tokens, blobs */
};

/* A change that somebody asks for, and its answer. The asker owns it before writer_ask and after it came back
 * from writer_collect. What input and records point to must live for all that time. */
struct writer_request {
    enum writer_kind kind;
    struct input input;
    const struct change *records;
    size_t record_count;
    int64_t arrived_ms; /* CLOCK_BOOTTIME: the time of the step */
    int64_t arrived_us; /* the same when it was whole, for records; 0: as arrived_ms says */

    bool keyed;        /* an Idempotency-Key came with it: */
    uint8_t scope[32]; /* SHA-256 of owner, route and key */
    uint8_t body[32];  /* SHA-256 of the raw body */

    /* Makes the answer of a step that went well, on the writer's thread and before the commit; touches
     * nothing but its arguments. */
    int (*render)(const struct writer_request *request, const struct step *step,
                  struct text *out); /* returns the HTTP status */

    /* The answer: status 0 stands for error, which is then set; else the JSON in answer. */
    int status;
    struct err error;
    struct text answer;
    bool replayed; /* it is the first answer to an earlier request with the same key */

    void *asker;                 /* for whoever asked */
    struct writer_request *next; /* the writer's */
};

/* When something is done: by the clock that decides, CLOCK_BOOTTIME, and by the one that people read. */
struct moment {
    int64_t boot_ms, wall_ms;
    int64_t boot_us; /* as boot_ms, for records; 0: as boot_ms says */
};

struct writer_config {
    int64_t heartbeat_ms;
    int64_t share_half_life_ms;
    enum policy policy;
};

struct writer;

/* Loads the live state from the store and boots the core. From here on the writer works in what is asked
 * either on a thread of its own, or when it is told to. */
struct writer *writer_open(struct store *store, const struct writer_config *config, struct moment now,
                           struct err *err);
/* Starts the thread. */
bool writer_start(struct writer *writer, struct err *err);
/* In the place of the thread: works in one batch of what was asked and what is due, and returns. False: a
 * commit has failed, and nothing more is done. */
bool writer_run_batch(struct writer *writer, struct moment now);
/* When a batch has something to do that nobody asks for, CLOCK_BOOTTIME; INT64_MAX for never. */
int64_t writer_due_ms(const struct writer *writer);
/* With a thread: works in what was asked, commits, ends the thread. Without: forgets what was asked. */
void writer_close(struct writer *writer);

/* Hands a request in; false when LIMIT_WRITER_QUEUE requests wait already (answer 503). Any thread. */
bool writer_ask(struct writer *writer, struct writer_request *request);

/* Readable when writer_collect has something. */
int writer_fd(const struct writer *writer);

/* The end of an attempt was on disk so long after its submission was received. */
struct writer_end {
    uint64_t attempt_id;
    int64_t visible_us;
};

/* What has happened since the last call; all of it is committed. */
struct writer_news {
    struct writer_request *answered; /* a list by next */
    struct node_orders **orders;     /* the newest of each node that changed; owned by the receiver */
    size_t order_count;
    struct job_touch *touched; /* jobs whose state or history changed */
    size_t touched_count;
    struct writer_end *ends; /* LIMIT_RECENT_ENDS at most */
    size_t end_count;
    bool failed; /* a commit failed: the outcome on disk is unknown, error says why; the process must end once
                  * the answers (503) are out */
    struct err error;
};
void writer_collect(struct writer *writer, struct writer_news *ret_news);
void writer_news_finish(
    struct writer_news *news); /* frees the arrays; answered and each of orders have found owners */

/* How many jobs are live, as of the last commit. Any thread. */
size_t writer_live_jobs(const struct writer *writer);
/* Whether most nodes are silent, so that no lease ends. Any thread. */
bool writer_holds_leases(const struct writer *writer);

/* For those who check the core between batches, and want to know why it decided (core_trace). */
struct core *writer_core(struct writer *writer);
void writer_trace(struct writer *writer, struct text *trace);

#endif
