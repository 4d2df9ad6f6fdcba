/* SPDX-License-Identifier: Apache-2.0 */
/* The one door: whatever changes state passes here, on one thread, in batches that are one transaction each.
 */
#ifndef DAEMON_DOOR_H
#define DAEMON_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/store/store.h"
#include "proto/base/text.h"

enum door_kind {
    DOOR_INPUT,  /* an input for the core */
    DOOR_RECORD, /* rows whose rules the core does not own: tokens, blobs */
};

/* A change that somebody asks for, and its answer. The asker owns it before door_ask and after it came back
 * from door_collect. What input and records point to must live for all that time. */
struct door_request {
    enum door_kind kind;
    struct input input;
    const struct change *records;
    size_t record_count;
    int64_t arrived_ms; /* CLOCK_BOOTTIME: the time of the step */
    int64_t arrived_us; /* the same when it was whole, for records; 0: as arrived_ms says */

    bool keyed;        /* an Idempotency-Key came with it: */
    uint8_t scope[32]; /* SHA-256 of owner, route and key */
    uint8_t body[32];  /* SHA-256 of the raw body */

    /* Makes the answer of a step that went well, on the door's thread and before the commit; touches nothing
     * but its arguments. */
    int (*render)(const struct door_request *request, const struct step *step,
                  struct text *out); /* returns the HTTP status */

    /* The answer: status 0 stands for error, which is then set; else the JSON in answer. */
    int status;
    struct err error;
    struct text answer;
    bool replayed; /* it is the first answer to an earlier request with the same key */

    void *asker;               /* for whoever asked */
    struct door_request *next; /* the door's */
};

/* When something is done: by the clock that decides, CLOCK_BOOTTIME, and by the one that people read. */
struct moment {
    int64_t boot_ms, wall_ms;
    int64_t boot_us; /* as boot_ms, for records; 0: as boot_ms says */
};

struct door_config {
    int64_t beat_ms;
    int64_t share_half_life_ms;
    enum policy policy;
};

struct door;

/* Loads the live state from the store and boots the core. From here on the door works in what is asked either
 * on a thread of its own, or when it is told to. */
struct door *door_open(struct store *store, const struct door_config *config, struct moment now,
                       struct err *err);
/* Starts the thread. */
bool door_start(struct door *door, struct err *err);
/* In the place of the thread: works in one batch of what was asked and what is due, and returns. False: a
 * commit has failed, and nothing more is done. */
bool door_turn(struct door *door, struct moment now);
/* When a turn has something to do that nobody asks for, CLOCK_BOOTTIME; INT64_MAX for never. */
int64_t door_due_ms(const struct door *door);
/* With a thread: works in what was asked, commits, ends the thread. Without: forgets what was asked. */
void door_close(struct door *door);

/* Hands a request in; false when LIMIT_DOOR_QUEUE requests wait already (answer 503). Any thread. */
bool door_ask(struct door *door, struct door_request *request);

/* Readable when door_collect has something. */
int door_fd(const struct door *door);

/* The end of an attempt was on disk so long after its submission was received. */
struct door_end {
    uint64_t epoch;
    int64_t visible_us;
};

/* What has happened since the last call; all of it is committed. */
struct door_news {
    struct door_request *answered; /* a list by next */
    struct node_orders **orders;   /* the newest of each node that changed; owned by the receiver */
    size_t order_count;
    struct job_touch *touched; /* jobs whose state or history changed */
    size_t touched_count;
    struct door_end *ends; /* LIMIT_ENDS_KEPT at most */
    size_t end_count;
    bool failed; /* a commit failed: the outcome on disk is unknown, error says why; the process must end once
                  * the answers (503) are out */
    struct err error;
};
void door_collect(struct door *door, struct door_news *ret_news);
void door_news_finish(
    struct door_news *news); /* frees the arrays; answered and each of orders have found owners */

/* How many jobs are live, as of the last commit. Any thread. */
size_t door_live_jobs(const struct door *door);
/* Whether most nodes are silent, so that no lease ends. Any thread. */
bool door_holds_leases(const struct door *door);

/* For those who check the core between turns, and want to know why it decided (core_trace). */
const struct core *door_core(const struct door *door);
void door_trace(struct door *door, struct text *trace);

#endif
