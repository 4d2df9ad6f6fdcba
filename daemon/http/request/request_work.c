/* SPDX-License-Identifier: Apache-2.0 */
/* Ties the lives of a request and of its work on a helper thread: the work is freed once, when both have
 * ended, in whatever order they end. */
#include "daemon/http/request/request_work.h"

#include "daemon/http/request/senders.h"
#include "proto/base/clock.h"

static void request_gone(void *state)
{
    struct request_work *work = state;
    work->request = NULL;
    if (!work->working) {
        work->free(work);
    }
}

void request_work_begin(struct request_work *work, struct request *request,
                        void (*free)(struct request_work *work))
{
    work->request = request;
    work->free = free;
    request->state = work;
    request->state_finish = request_gone;
}

static void do_timed(struct task *task)
{
    struct request_work *work = (struct request_work *)task;
    int64_t begin_us = clock_boot_us();
    work->work(task);
    work->took_us = clock_boot_us() - begin_us;
}

static void done(struct task *task)
{
    struct request_work *work = (struct request_work *)task;
    work->working = false;
    if (work->request != NULL) {
        senders_take_back(work->request, work->took_us);
    }
    if (work->returned != NULL) {
        work->returned(work);
    }
    if (work->request == NULL) {
        work->free(work);
    } else {
        work->reply(work);
    }
}

bool request_work_give(struct request_work *own, struct worker *worker, void (*work)(struct task *task),
                       void (*reply)(struct request_work *work))
{
    own->task = (struct task){.work = do_timed, .done = done};
    own->work = work;
    own->reply = reply;
    own->working = true;
    senders_hand_on(own->request);
    worker_give(worker, &own->task);
    return request_wait(own->request);
}
