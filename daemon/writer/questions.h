/* SPDX-License-Identifier: Apache-2.0 */
/* Questions: requests that change nothing. A copy of the process answers them, so that the writer's thread
 * goes on, and a question can neither change the state nor end the controller. */
#ifndef DAEMON_WRITER_QUESTIONS_H
#define DAEMON_WRITER_QUESTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/writer/moment.h"
#include "proto/base/err.h"

struct core;
struct questions;
struct writer_request;

struct questions_config {
    int64_t limit_ms; /* the time that one question may take */
    /* A process has ended: the writer's thread shall see when it may start the next. Called on the thread of
     * the questions. */
    void (*ready)(void *closure);
    /* Takes an answered request back. Called on the thread of the questions or of questions_close. */
    void (*answered)(void *closure, struct writer_request *request);
    void *closure;
};

struct questions *questions_open(const struct questions_config *config, struct err *err);
/* Ends the process that answers. Questions without an answer get ERR_UNAVAILABLE. */
void questions_close(struct questions *questions);

/* Queues a question. false: LIMIT_QUESTIONS wait already, or the writer has ended. Any thread. */
bool questions_add(struct questions *questions, struct writer_request *request);

/* On the writer's thread, between two steps: */

/* Questions that wait for a process. Any thread. */
size_t questions_waiting(const struct questions *questions);

/* When questions_start has something to do, CLOCK_BOOTTIME in ms; INT64_MAX: never. */
int64_t questions_due_ms(struct questions *questions);
/* Starts a process that answers waiting questions from a copy of the core. Does nothing before
 * questions_due_ms. */
void questions_start(struct questions *questions, struct core *core, struct moment now);
/* No process is started from now on. Questions without an answer get ERR_UNAVAILABLE. */
void questions_end(struct questions *questions);

#endif
