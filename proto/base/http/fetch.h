/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to an identity provider: bounded in size and time, without redirects, and encrypted unless the
 * provider is on this host. Needs libcurl. */
#ifndef BASE_FETCH_H
#define BASE_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* https, or http to this host; without a user, a query and a fragment. */
bool fetch_is_safe(const char *url);

struct fetch {
    const char *url;
    const char *form; /* a POST of application/x-www-form-urlencoded; NULL: a GET */
    const char *user_agent;
    int64_t limit_bytes, timeout_ms;
    const atomic_bool *stop; /* it ends soon when this is set; or NULL */
};

/* Sends it and waits. ERR_UNREACHABLE if there is no reply, or one that is too long; ERR_USAGE if the URL is
 * not safe. The caller finishes *ret_body in any case. */
bool fetch_send(const struct fetch *fetch, struct text *ret_body, long *ret_status, struct err *err);

/* Appends "&name=value" to a form, escaped; the first without "&". */
void fetch_add(struct text *form, const char *name, const char *value);

#endif
