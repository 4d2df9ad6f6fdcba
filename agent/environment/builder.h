/* SPDX-License-Identifier: Apache-2.0 */
/* Builds environments: a few at once, each once for all orders that want it. */
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
/* All orders must have ended before. */
void builder_destroy(struct builder *builder);

/* How a build ended. */
enum build_end {
    BUILD_READY,
    BUILD_REFUSED, /* the requirements are wrong on any node */
    BUILD_UNABLE,  /* this node cannot build it, now or later */
    BUILD_FAILED,  /* this time; another try may succeed */
};

struct build_call {
    struct environment_need need; /* copied */
    int requirements;             /* descriptor of the text, open for reading; taken over */
    /* One line of progress; NULL: it goes on without news. */
    void (*told)(void *closure, const char *text);
    /* Called once, after the order was freed; never from within build_start. text says why there is no
     * environment. */
    void (*done)(void *closure, enum build_end end, const char *text);
    void *closure;
};

/* NULL with an error if the node has no such Python; the descriptor is closed in that case, too. */
struct build_order *build_start(struct builder *builder, const struct build_call *call, struct err *err);
/* Ends an order without a call of done; NULL is allowed. A build that no order wants any more is stopped. */
void build_cancel(struct build_order *order);

#endif
