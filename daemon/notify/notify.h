/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the deliveries of webhooks, on a thread of its own. */
#ifndef NOTIFY_NOTIFY_H
#define NOTIFY_NOTIFY_H

#include <stdint.h>

#include "proto/base/http/networks.h"
#include "proto/base/err.h"

struct notify;
struct writer;

struct notify_config {
    struct writer *writer;          /* gets the outcomes; outlives the thread, not the notify */
    const char *store_path;         /* its rows are read */
    const struct networks *allowed; /* borrowed */
    const char *page;               /* address of the web page, for links, borrowed; or NULL */
};

struct notify *notify_open(const struct notify_config *config, struct err *err);
/* Ends the thread. What is under way is sent again after the next start. NULL is allowed, as in the next. */
void notify_stop(struct notify *notify);
/* Frees it, after the writer was closed. */
void notify_destroy(struct notify *notify);

/* A delivery may have become due. Any thread. */
void notify_wake(struct notify *notify);

/* Tries since the start, by what became of them. Any thread. */
struct notify_figures {
    uint64_t delivered; /* answered with 2xx */
    uint64_t refused;   /* answered with another status */
    uint64_t failed;    /* not answered */
};
struct notify_figures notify_figures(const struct notify *notify);

#endif
