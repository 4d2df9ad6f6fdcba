/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a request on a helper thread. It outlives its request when the client goes away. */
#ifndef HTTP_REQUEST_WORK_H
#define HTTP_REQUEST_WORK_H

#include <stdbool.h>

#include "daemon/blob/worker.h"
#include "daemon/http/request/request.h"

/* Embed it as the first member of the struct of the work. */
struct request_work {
    struct task task;                            /* first */
    struct request *request;                     /* NULL: it has ended */
    void (*work)(struct task *task);             /* on the helper thread */
    int64_t took_us;                             /* there */
    bool working;                                /* the helper thread has it */
    void (*returned)(struct request_work *work); /* called when the helper thread is done; NULL: nothing */
    void (*reply)(struct request_work *work);    /* called after that, if the request is still there */
    void (*free)(struct request_work *work);     /* called when both the request and the work have ended */
};

/* Ties the work to the request, which has no other state then. */
void request_work_begin(struct request_work *work, struct request *request,
                        void (*free)(struct request_work *work));
/* Gives it to the helper thread, which calls work. The request waits; true. */
bool request_work_give(struct request_work *own, struct worker *worker, void (*work)(struct task *task),
                       void (*reply)(struct request_work *work));

#endif
