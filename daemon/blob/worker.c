/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the helper thread and its two queues: tasks to do, and tasks done. Each task is worked on and
 * collected exactly once, in order. The caller owns the tasks and their memory. */
#include "daemon/blob/worker.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/text/text.h"

struct queue {
    struct task *first;
    struct task **end;
};

struct worker {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all members but fd */
    pthread_cond_t given;
    struct queue todo, finished;
    bool closing;
    int fd;
    void (*settle)(void *closure); /* or NULL */
    void *settle_closure;
};

static void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static void queue_add(struct queue *queue, struct task *task)
{
    task->next = NULL;
    *queue->end = task;
    queue->end = &task->next;
}

static struct task *queue_take_all(struct queue *queue)
{
    struct task *first = queue->first;
    queue_init(queue);
    return first;
}

/* Reports finished tasks at once, unless they must be settled with the rest of their batch. */
static void tell(struct worker *worker, struct task *list)
{
    pthread_mutex_lock(&worker->mutex);
    while (list != NULL) {
        struct task *task = list;
        list = task->next;
        queue_add(&worker->finished, task);
    }
    pthread_mutex_unlock(&worker->mutex);
    const uint64_t one = 1;
    ssize_t written = write(worker->fd, &one, sizeof one);
    (void)written; /* a full counter is readable, too */
}

static void work_list(struct worker *worker, struct task *list)
{
    for (struct task *task = list, *next; task != NULL; task = next) {
        next = task->next;
        task->work(task);
        if (worker->settle == NULL) {
            task->next = NULL;
            tell(worker, task);
        }
    }
    if (worker->settle != NULL) {
        worker->settle(worker->settle_closure);
        tell(worker, list);
    }
}

static void *worker_main(void *closure)
{
    struct worker *worker = closure;
    for (;;) {
        pthread_mutex_lock(&worker->mutex);
        while (worker->todo.first == NULL && !worker->closing) {
            pthread_cond_wait(&worker->given, &worker->mutex);
        }
        struct task *list = queue_take_all(&worker->todo);
        pthread_mutex_unlock(&worker->mutex);
        if (list == NULL) {
            return NULL;
        }
        work_list(worker, list);
    }
}

struct worker *worker_open(struct err *err)
{
    struct worker *worker = xzalloc(sizeof *worker);
    queue_init(&worker->todo);
    queue_init(&worker->finished);
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->given, NULL);
    worker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->fd >= 0) {
        errno = pthread_create(&worker->thread, NULL, worker_main, worker);
    }
    if (worker->fd < 0 || errno != 0) {
        err_errno(err, "cannot start the helper thread");
        if (worker->fd >= 0) {
            close(worker->fd);
        }
        free(worker);
        return NULL;
    }
    return worker;
}

void worker_settle_by(struct worker *worker, void (*settle)(void *closure), void *closure)
{
    pthread_mutex_lock(&worker->mutex);
    worker->settle = settle;
    worker->settle_closure = closure;
    pthread_mutex_unlock(&worker->mutex);
}

void worker_close(struct worker *worker)
{
    if (worker == NULL) {
        return;
    }
    pthread_mutex_lock(&worker->mutex);
    worker->closing = true;
    pthread_cond_signal(&worker->given);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(worker->thread, NULL);
    worker_collect(worker);
    pthread_cond_destroy(&worker->given);
    pthread_mutex_destroy(&worker->mutex);
    close(worker->fd);
    free(worker);
}

void worker_give(struct worker *worker, struct task *task)
{
    pthread_mutex_lock(&worker->mutex);
    queue_add(&worker->todo, task);
    pthread_cond_signal(&worker->given);
    pthread_mutex_unlock(&worker->mutex);
}

int worker_fd(const struct worker *worker)
{
    return worker->fd;
}

void worker_collect(struct worker *worker)
{
    uint64_t count;
    ssize_t got = read(worker->fd, &count, sizeof count);
    (void)got; /* an empty counter means that nothing is done */
    pthread_mutex_lock(&worker->mutex);
    struct task *list = queue_take_all(&worker->finished);
    pthread_mutex_unlock(&worker->mutex);
    while (list != NULL) {
        struct task *task = list;
        list = task->next;
        task->done(task);
    }
}

/* On Linux these are of the calling thread alone. */
void worker_give_way(void)
{
    setpriority(PRIO_PROCESS, 0, 10);
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
}
