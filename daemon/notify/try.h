/* SPDX-License-Identifier: Apache-2.0 */
/* One try of a delivery: a request to the receiver. */
#ifndef NOTIFY_TRY_H
#define NOTIFY_TRY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/rows.h"
#include "proto/base/http/networks.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/text.h"

struct
try {
    int64_t key, tries; /* with this one */
    char *webhook;      /* id; owned */
    struct text body;
    struct curl_slist *headers;
    CURL *easy; /* NULL: nothing is sent */
    char answer[CURL_ERROR_SIZE];
    int64_t answer_bytes;
    const struct networks *allowed;
    bool refused; /* the address is not an allowed one */
};

/* Makes the request; the body is taken over. */
struct try *try_create(const struct delivery_row *row, const struct webhook_row *webhook, struct text *body,
                       const struct networks *allowed, int64_t wall_ms);
void try_destroy(struct try *try);

/* The HTTP status of an answer; 0: there was none, and why not is in *ret_error, owned by the try. */
int64_t try_result(struct try *try, CURLcode code, const char **ret_error);

#endif
