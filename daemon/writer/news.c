/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the writer's news under one lock until it is collected. */
#include "daemon/writer/news.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/writer/writer.h"
#include "proto/limits_controller.h"

bool news_box_init(struct news_box *box, struct err *err)
{
    *box = (struct news_box){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    pthread_mutex_init(&box->lock, NULL);
    return box->fd >= 0 || err_errno(err, "cannot make an eventfd");
}

void news_box_finish(struct news_box *box)
{
    for (size_t i = 0; i < box->news.order_count; i++) {
        node_orders_destroy(box->news.orders[i]);
    }
    writer_news_finish(&box->news);
    pthread_mutex_destroy(&box->lock);
    close(box->fd);
}

void writer_news_finish(struct writer_news *news)
{
    free(news->orders);
    free(news->touched);
    free(news->ends);
    queue_snapshot_destroy(news->queue);
    *news = (struct writer_news){0};
}

void news_box_lock(struct news_box *box)
{
    pthread_mutex_lock(&box->lock);
}

void news_box_unlock(struct news_box *box)
{
    pthread_mutex_unlock(&box->lock);
}

void news_box_signal(const struct news_box *box)
{
    const uint64_t one = 1;
    ssize_t written = write(box->fd, &one, sizeof one);
    (void)written; /* a full counter is readable, too */
}

void news_box_collect(struct news_box *box, struct writer_news *ret_news)
{
    uint64_t count;
    ssize_t got = read(box->fd, &count, sizeof count);
    (void)got; /* an empty counter is no error */
    news_box_lock(box);
    *ret_news = box->news;
    box->news = (struct writer_news){
        .figures = box->news.figures, .failed = box->news.failed, .error = box->news.error};
    box->touched_room = 0;
    news_box_unlock(box);
}

static void add_touched(struct news_box *box, const struct step *step)
{
    struct writer_news *news = &box->news;
    size_t needed = news->touched_count + step->touched_count;
    if (needed > box->touched_room) {
        box->touched_room = 2 * needed;
        news->touched = xrealloc(news->touched, box->touched_room * sizeof *news->touched);
    }
    if (step->touched_count > 0) {
        memcpy(news->touched + news->touched_count, step->touched,
               step->touched_count * sizeof *step->touched);
        news->touched_count = needed;
    }
}

void news_box_append_orders(struct news_box *box, struct node_orders *orders)
{
    struct writer_news *news = &box->news;
    news->orders = xrealloc(news->orders, (news->order_count + 1) * sizeof(struct node_orders *));
    news->orders[news->order_count++] = orders;
}

/* Newer orders of a node replace orders that were not collected yet. */
static void add_orders(struct news_box *box, struct node_orders *orders)
{
    struct writer_news *news = &box->news;
    for (size_t i = 0; i < news->order_count; i++) {
        if (strcmp(news->orders[i]->node, orders->node) == 0) {
            node_orders_destroy(news->orders[i]);
            news->orders[i] = orders;
            return;
        }
    }
    news_box_append_orders(box, orders);
}

void news_box_add_step(struct news_box *box, const struct core *core, const struct step *step)
{
    add_touched(box, step);
    box->news.jobs_gone |= step->change_count > 0 && step->changes[0].kind == CHANGE_JOB_DELETE;
    for (size_t i = 0; i < step->dirty_count; i++) {
        struct node_orders *orders = core_orders(core, step->dirty_nodes[i]);
        if (orders != NULL) {
            add_orders(box, orders);
        }
    }
}

void news_box_add_end(struct news_box *box, uint64_t attempt_id, int64_t visible_us)
{
    struct writer_news *news = &box->news;
    if (news->end_count < LIMIT_RECENT_ENDS) {
        news->ends = xrealloc(news->ends, (news->end_count + 1) * sizeof *news->ends);
        news->ends[news->end_count++] = (struct writer_end){attempt_id, visible_us};
    }
}

void news_box_add_answers(struct news_box *box, struct writer_request *list)
{
    struct writer_request **end = &list;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = box->news.answered;
    box->news.answered = list;
}

void news_box_set_queue(struct news_box *box, struct queue_snapshot *queue)
{
    queue_snapshot_destroy(box->news.queue);
    box->news.queue = queue;
}
