/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions in a child process. fork() copies the whole state in a fraction of a millisecond for each
 * 10 MiB, and the child may take as long as a question needs. It writes one answer after the other into a
 * pipe, which a thread of this file reads. A child that dies or takes too long costs one question its answer,
 * and the others a new child. writer.c decides when to fork: between two steps. */
#include "daemon/writer/questions.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/writer/writer.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/limits_controller.h"

/* A child, and the questions that it answers in this order. */
struct child {
    pid_t pid;    /* 0: none */
    bool running; /* it may be killed: its pid is not free for others yet */
    int fd;       /* gives its answers */
    struct writer_request *list;
};

struct questions {
    struct questions_config config;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ending;                    /* no child is started any more */
    bool closing;                   /* the thread ends */
    struct writer_request *waiting; /* the oldest first */
    struct writer_request **waiting_end;
    atomic_size_t waiting_count; /* read by any thread */
    struct child child;

    int64_t due_ms; /* no child is started before; for the writer's thread alone */
    const struct writer_request
        *twice; /* a child failed with it: it gets one more; for the own thread alone */
};

/* What a child writes before the bytes of an answer. */
struct answer_head {
    int status; /* 0: error is set */
    struct err error;
    int64_t took_us;
    size_t length;
};

/* --- the child ------------------------------------------------------------------------------------------ */

static bool write_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t written = write(fd, at, length);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        at += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool answer(struct core *core, struct writer_request *request, struct moment now, int fd)
{
    int64_t began_us = clock_boot_us();
    struct answer_head head = {0};
    struct step step;
    request->input.wall_ms = now.wall_ms;
    core_step(core, &request->input, now.boot_ms, &step);
    head.error = step.err;
    if (step.ok) {
        head.status = request->render(request, &step, &request->answer);
    }
    step_finish(&step);
    head.length = request->answer.length;
    head.took_us = clock_boot_us() - began_us;
    return write_all(fd, &head, sizeof head) && write_all(fd, request->answer.bytes, head.length);
}

/* Gives up what the parent alone holds, files and sockets among it, and goes with it. */
static void leave_parent(int fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_FAILURE);
    }
    close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0U, 0);
    prctl(PR_SET_NAME, "gpuctld-answers");
    setpriority(PRIO_PROCESS, 0, QUESTION_NICE);
}

static _Noreturn void run_child(struct core *core, struct writer_request *list, struct moment now, int fd,
                                pid_t parent)
{
    leave_parent(fd, parent);
    for (struct writer_request *request = list; request != NULL; request = request->next) {
        if (!answer(core, request, now, fd)) {
            _exit(EXIT_FAILURE);
        }
    }
    _exit(EXIT_SUCCESS);
}

/* --- starting it ---------------------------------------------------------------------------------------- */

/* With the lock held. */
static struct writer_request *take_waiting(struct questions *questions)
{
    struct writer_request *list = questions->waiting, **end = &list;
    size_t count = 0;
    while (*end != NULL && count < LIMIT_QUESTIONS_AT_ONCE) {
        end = &(*end)->next;
        count++;
    }
    questions->waiting = *end;
    *end = NULL;
    questions->waiting_count -= count;
    if (questions->waiting == NULL) {
        questions->waiting_end = &questions->waiting;
    }
    return list;
}

/* With the lock held: puts the list before those that wait. */
static void put_back(struct questions *questions, struct writer_request *list)
{
    struct writer_request **end = &list;
    while (*end != NULL) {
        end = &(*end)->next;
        questions->waiting_count++;
    }
    if (questions->waiting == NULL) {
        questions->waiting_end = end;
    }
    *end = questions->waiting;
    questions->waiting = list;
}

static void refuse(struct questions *questions, struct writer_request *request, const char *why)
{
    err_set(&request->error, ERR_UNAVAILABLE, "the question was not answered: %s", why);
    err_hint(&request->error, "ask again");
    questions->config.answered(questions->config.closure, request);
}

static void refuse_all(struct questions *questions, struct writer_request *list, const char *why)
{
    while (list != NULL) {
        struct writer_request *request = list;
        list = request->next;
        refuse(questions, request, why);
    }
}

/* fork() stops the thread: the longer it took, the later comes the next, so that it takes at most 1 % of the
 * thread's time. What the thread then writes to shared pages costs about as much again. */
static bool fork_child(struct questions *questions, struct core *core, struct writer_request *list,
                       struct moment now, struct child *ret_child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    int64_t began_us = clock_boot_us();
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        run_child(core, list, now, ends[1], parent);
    }
    int failure = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = failure;
        return false;
    }
    questions->due_ms = now.boot_ms + (clock_boot_us() - began_us) * QUESTION_PACE / 1000;
    *ret_child = (struct child){.pid = pid, .running = true, .fd = ends[0], .list = list};
    return true;
}

size_t questions_waiting(const struct questions *questions)
{
    return atomic_load(&questions->waiting_count);
}

int64_t questions_due_ms(struct questions *questions)
{
    pthread_mutex_lock(&questions->lock);
    bool due = questions->waiting != NULL && questions->child.pid == 0 && !questions->ending;
    int64_t due_ms = due ? questions->due_ms : INT64_MAX;
    pthread_mutex_unlock(&questions->lock);
    return due_ms;
}

void questions_start(struct questions *questions, struct core *core, struct moment now)
{
    if (now.boot_ms < questions_due_ms(questions)) {
        return;
    }
    struct child child;
    pthread_mutex_lock(&questions->lock);
    struct writer_request *list = take_waiting(questions);
    pthread_mutex_unlock(&questions->lock);
    if (!fork_child(questions, core, list, now, &child)) {
        refuse_all(questions, list, strerror(errno));
        return;
    }
    pthread_mutex_lock(&questions->lock);
    questions->child = child;
    pthread_cond_signal(&questions->changed);
    pthread_mutex_unlock(&questions->lock);
}

/* --- the thread ----------------------------------------------------------------------------------------- */

/* false: the pipe is at its end, or the time is over. */
static bool read_all(int fd, void *bytes, size_t length, int64_t until_ms)
{
    char *at = bytes;
    while (length > 0) {
        int64_t left_ms = until_ms - clock_boot_ms();
        struct pollfd look = {.fd = fd, .events = POLLIN};
        int found = left_ms > 0 ? poll(&look, 1, (int)left_ms) : 0;
        ssize_t got = found > 0 ? read(fd, at, length) : found;
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        at += got > 0 ? got : 0;
        length -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool read_answer(const struct child *child, int64_t limit_ms, struct writer_request *request)
{
    int64_t until_ms = clock_boot_ms() + limit_ms;
    struct answer_head head;
    if (!read_all(child->fd, &head, sizeof head, until_ms)) {
        return false;
    }
    autofree char *bytes = xalloc(head.length + 1);
    if (!read_all(child->fd, bytes, head.length, until_ms)) {
        return false;
    }
    text_append_bytes(&request->answer, bytes, head.length);
    request->status = head.status;
    request->error = head.error;
    request->took_us = head.took_us;
    return true;
}

/* Reads answers until the list is through or the child fails; returns the questions without an answer. */
static struct writer_request *read_answers(struct questions *questions, const struct child *child)
{
    struct writer_request *list = child->list;
    while (list != NULL && read_answer(child, questions->config.limit_ms, list)) {
        struct writer_request *request = list;
        list = request->next;
        questions->twice = questions->twice == request ? NULL : questions->twice;
        questions->config.answered(questions->config.closure, request);
    }
    return list;
}

/* The first question of the list had no answer from this child. It gets one more. */
static void give_up_first(struct questions *questions, struct writer_request *list, int status)
{
    struct writer_request *rest = list;
    bool again = questions->twice != list;
    log_warning("question unanswered", "again=%d status=%d", again, status);
    questions->twice = again ? list : NULL;
    if (!again) {
        rest = list->next;
        refuse(questions, list, "its process took too long, or ended");
    }
    pthread_mutex_lock(&questions->lock);
    if (!questions->ending) {
        put_back(questions, rest);
        rest = NULL;
    }
    pthread_mutex_unlock(&questions->lock);
    refuse_all(questions, rest, "the controller is ending");
}

static void attend(struct questions *questions, struct child child)
{
    int status;
    struct writer_request *list = read_answers(questions, &child);
    if (list != NULL) {
        kill(child.pid, SIGKILL);
    }
    pthread_mutex_lock(&questions->lock);
    questions->child.running = false;
    pthread_mutex_unlock(&questions->lock);
    while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(child.fd);
    if (list != NULL) {
        give_up_first(questions, list, status);
    }
}

static void *run_thread(void *closure)
{
    struct questions *questions = closure;
    pthread_mutex_lock(&questions->lock);
    while (!questions->closing || questions->child.pid != 0) {
        if (questions->child.pid == 0) {
            pthread_cond_wait(&questions->changed, &questions->lock);
            continue;
        }
        const struct child child = questions->child;
        pthread_mutex_unlock(&questions->lock);
        attend(questions, child);
        pthread_mutex_lock(&questions->lock);
        questions->child = (struct child){0};
        pthread_mutex_unlock(&questions->lock);
        questions->config.ready(questions->config.closure);
        pthread_mutex_lock(&questions->lock);
    }
    pthread_mutex_unlock(&questions->lock);
    return NULL;
}

/* --- opening and closing -------------------------------------------------------------------------------- */

struct questions *questions_open(const struct questions_config *config, struct err *err)
{
    struct questions *questions = xzalloc(sizeof *questions);
    questions->config = *config;
    questions->waiting_end = &questions->waiting;
    pthread_mutex_init(&questions->lock, NULL);
    pthread_cond_init(&questions->changed, NULL);
    errno = pthread_create(&questions->thread, NULL, run_thread, questions);
    if (errno == 0) {
        return questions;
    }
    err_errno(err, "cannot start the thread for questions");
    free(questions);
    return NULL;
}

bool questions_add(struct questions *questions, struct writer_request *request)
{
    pthread_mutex_lock(&questions->lock);
    bool taken = !questions->ending && questions->waiting_count < LIMIT_QUESTIONS;
    if (taken) {
        request->next = NULL;
        *questions->waiting_end = request;
        questions->waiting_end = &request->next;
        questions->waiting_count++;
    }
    pthread_mutex_unlock(&questions->lock);
    return taken;
}

void questions_end(struct questions *questions)
{
    pthread_mutex_lock(&questions->lock);
    questions->ending = true;
    struct writer_request *list = questions->waiting;
    questions->waiting = NULL;
    questions->waiting_end = &questions->waiting;
    questions->waiting_count = 0;
    if (questions->child.running) {
        kill(questions->child.pid, SIGKILL);
    }
    pthread_mutex_unlock(&questions->lock);
    refuse_all(questions, list, "the controller is ending");
}

void questions_close(struct questions *questions)
{
    if (questions == NULL) {
        return;
    }
    questions_end(questions);
    pthread_mutex_lock(&questions->lock);
    questions->closing = true;
    pthread_cond_signal(&questions->changed);
    pthread_mutex_unlock(&questions->lock);
    pthread_join(questions->thread, NULL);
    pthread_mutex_destroy(&questions->lock);
    pthread_cond_destroy(&questions->changed);
    free(questions);
}
