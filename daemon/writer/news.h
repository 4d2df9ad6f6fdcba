/* SPDX-License-Identifier: Apache-2.0 */
/* The news of the writer: what its commits changed and which requests they answered, kept until the HTTP
 * thread collects it. */
#ifndef DAEMON_WRITER_NEWS_H
#define DAEMON_WRITER_NEWS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"

struct writer_request;

/* The time from the receipt of the submission until the end of an attempt was on disk. */
struct writer_end {
    uint64_t attempt_id;
    int64_t visible_us;
};

/* What came since the last collection, all of it committed. */
struct writer_news {
    struct writer_request *answered; /* a list by next */
    struct node_orders **orders;     /* the newest per changed node; owned by the receiver */
    size_t order_count;
    struct job_touch *touched; /* jobs whose state or history changed */
    size_t touched_count;
    bool jobs_gone;               /* some were removed */
    struct core_figures figures;  /* the newest */
    struct queue_snapshot *queue; /* the newest; NULL: none since the last call */
    struct writer_end *ends;      /* at most LIMIT_RECENT_ENDS */
    size_t end_count;
    bool failed; /* a commit failed: the outcome on disk is unknown, and error says why; the process must end
                    after it has sent the answers (503) */
    struct err error;
};
void writer_news_finish(struct writer_news *news); /* frees the rest; the caller has taken over answered
                                                      and each of orders */

/* The news that was not collected yet. What is added under one hold of the lock is collected together. */
struct news_box {
    int fd; /* readable when there is news */
    pthread_mutex_t lock;
    struct writer_news news;
    size_t touched_room;
};

bool news_box_init(struct news_box *box, struct err *err);
void news_box_finish(struct news_box *box);
void news_box_lock(struct news_box *box);
void news_box_unlock(struct news_box *box);
/* Makes the fd readable. */
void news_box_signal(const struct news_box *box);
void news_box_collect(struct news_box *box, struct writer_news *ret_news);

/* With the lock held: */

/* The jobs and orders that a step changed. */
void news_box_add_step(struct news_box *box, const struct core *core, const struct step *step);
/* Takes over the orders of a node that has none in the box. */
void news_box_append_orders(struct news_box *box, struct node_orders *orders);
void news_box_add_end(struct news_box *box, uint64_t attempt_id, int64_t visible_us);
/* Takes over the requests of a list by next. */
void news_box_add_answers(struct news_box *box, struct writer_request *list);
/* Takes over the snapshot; an older one goes. */
void news_box_set_queue(struct news_box *box, struct queue_snapshot *queue);

#endif
