/* SPDX-License-Identifier: Apache-2.0 */
/* What the resources of webhooks and deliveries share. */
#ifndef HTTP_WEBHOOK_ASK_H
#define HTTP_WEBHOOK_ASK_H

#include <stdbool.h>

#include "daemon/http/api/ask.h"
#include "daemon/store/store.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct request;

/* One change of a webhook. */
struct webhook_ask {
    struct ask ask;
    struct webhook_row row; /* of a new one */
    char id[ID_LENGTH + 1]; /* likewise */
    char *secret;           /* likewise; owned */
    struct text kinds;
    int64_t *keys; /* of deliveries; owned */
    int64_t left;  /* deliveries that the request did not name for want of room */
};

/* An ask about the webhook that the request names, as far as the sender may change it. */
struct webhook_ask *webhook_ask_create(struct request *request, enum webhook_action action,
                                       int (*render)(const struct writer_request *, const struct step *,
                                                     struct text *));

/* The webhook that the request names; its texts are borrowed from rows, which the caller closes.
 * ERR_NOT_FOUND when there is none, or when it belongs to someone else. */
bool webhook_find_row(struct request *request, struct rows *ret_rows, struct webhook_row *ret_row,
                      struct err *err);

/* Writes the members last_delivery and failures of a webhook, as the newest of its deliveries say. */
bool deliveries_write_newest(const struct request *request, const char *webhook, struct text *out,
                             struct err *err);

#endif
