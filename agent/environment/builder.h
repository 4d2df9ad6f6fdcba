/* SPDX-License-Identifier: Apache-2.0 */
/* Environments being built: a few at once, each once for all who want it. */
#ifndef AGENT_BUILDER_H
#define AGENT_BUILDER_H

#include <stdbool.h>

#include "agent/base/children.h"
#include "agent/environment/environments.h"

struct builder;
struct build_order;

/* script is the path of gpuctl_environment.py; copied. */
struct builder *builder_create(const char *script, struct children *children,
                               struct environments *environments);
/* All orders have ended before. */
void builder_destroy(struct builder *builder);

/* How a build ended. */
enum build_end {
    BUILD_READY,
    BUILD_REFUSED, /* and would be on any node */
    BUILD_UNABLE,  /* the node cannot, and it stays so */
    BUILD_FAILED,  /* this time */
};

struct build_call {
    struct environment_need need; /* copied */
    int requirements;             /* the text, open to be read; taken over */
    /* What is being done, one line; NULL: it goes on, and there is nothing new to say. */
    void (*told)(void *closure, const char *text);
    /* Once, and the order is gone before. text is why there is none. Not from within
     * build_start. */
    void (*done)(void *closure, enum build_end end, const char *text);
    void *closure;
};

/* NULL with an error where the node has no such Python; the descriptor is closed then. */
struct build_order *build_start(struct builder *builder, const struct build_call *call, struct err *err);
/* Without a word; NULL is allowed. What nobody else wants is stopped. */
void build_cancel(struct build_order *order);

#endif
