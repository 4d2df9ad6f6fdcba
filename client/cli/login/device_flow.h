/* SPDX-License-Identifier: Apache-2.0 */
/* Logging a person in at an identity provider from a terminal: the device flow of OAuth 2.0 (RFC 8628), and
 * the renewal of what it gave. */
#ifndef CLI_DEVICE_FLOW_H
#define CLI_DEVICE_FLOW_H

#include <stdbool.h>

#include "proto/base/err.h"

/* Where, and for which client. Borrowed. */
struct identity_provider {
    const char *issuer, *client_id, *scopes;
};

/* What it gave; the caller finishes it. */
struct identity_tokens {
    char *id_token;
    char *refresh_token; /* NULL: it gave none */
};

void identity_tokens_finish(struct identity_tokens *tokens);

/* Shows the person an address and a code, and waits until they have said yes or no there. ERR_FORBIDDEN: no;
 * ERR_WAIT_TIMEOUT: nothing in time; ERR_UNREACHABLE, ERR_UNAVAILABLE: the provider is away, or cannot do it.
 */
bool device_flow_run(const struct identity_provider *provider, struct identity_tokens *ret_tokens,
                     struct err *err);

/* Asks for another ID token without the person. ERR_UNAUTHENTICATED: they have to log in again. */
bool device_flow_refresh(const struct identity_provider *provider, const char *refresh_token,
                         struct identity_tokens *ret_tokens, struct err *err);

#endif
