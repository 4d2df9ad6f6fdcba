/* SPDX-License-Identifier: Apache-2.0 */
/* A request's question to the writer: the change that it asks for, and how its answer becomes the reply. */
#ifndef HTTP_ASK_H
#define HTTP_ASK_H

#include <stddef.h>

#include "daemon/writer/writer.h"

struct request;
struct server;

/* First member of what a resource sends to the writer. */
struct ask {
    struct writer_request writer;
    struct request *request; /* NULL: nobody waits for it; then answered is called, and nothing else here */
    size_t size;             /* of the whole */
    const char *subject;     /* for the audit: the id of what is made; NULL: the path says it all */
    const char *detail;      /* likewise, a JSON object; NULL: the body, where that has no secret */
    /* Called on the HTTP thread when the change is committed, before the reply is given; NULL: nothing to do.
     */
    void (*committed)(struct ask *ask);
    /* Called on the HTTP thread when the change was refused; true: it has given the reply itself. NULL: the
     * reply is the error. */
    bool (*refused)(struct ask *ask);
    /* Called on the HTTP thread in place of a reply; it owns the ask. */
    void (*answered)(struct server *server, struct ask *ask);
    /* Releases what the resource holds in it, in any case; NULL: nothing. */
    void (*finish)(struct ask *ask);
};

/* Makes an ask of size bytes, whose first is the ask; the rest is zero. It asks for an input; kind may be
 * changed. The render, which runs on the writer's thread, finds it as writer->asker; NULL: the reply is the
 * core's own answer. */
void *ask_create(struct request *request, size_t size,
                 int (*render)(const struct writer_request *writer, const struct step *step,
                               struct text *out));

/* Takes over an ask and hands it to the writer; the reply follows the writer's answer. A keyed route's
 * Idempotency-Key goes with it. false: it was not handed over; ERR_UNAVAILABLE when the writer is full. */
bool ask_writer(void *ask, struct err *err);

/* The same for a change that no request asks for. The ask stays the caller's until it is answered. */
bool ask_alone(struct server *server, struct ask *ask, struct err *err);

/* Releases an ask that was not handed over; NULL: nothing. */
void ask_destroy(struct ask *ask);

static inline void cleanup_ask(void *ask)
{
    ask_destroy(*(void **)ask);
}
#define autoask __attribute__((cleanup(cleanup_ask)))

/* For server.c: the writer has answered. */
void ask_answered(struct server *server, struct writer_request *writer);

#endif
