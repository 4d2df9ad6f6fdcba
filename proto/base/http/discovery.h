/* SPDX-License-Identifier: Apache-2.0 */
/* The document in which an identity provider says where its parts are (OpenID Connect Discovery). */
#ifndef BASE_DISCOVERY_H
#define BASE_DISCOVERY_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/http/fetch.h"

/* Where things are; texts are of json. */
struct discovery {
    json_t *json;
    const char *keys;   /* jwks_uri */
    const char *token;  /* token_endpoint */
    const char *device; /* device_authorization_endpoint; NULL: it has none */
};

/* Reads the document, which must be of the issuer. ERR_UNAVAILABLE says what is wrong with it. */
bool discovery_decode(const char *bytes, size_t length, const char *issuer, struct discovery *ret_discovery,
                      struct err *err);
/* Fetches it; the URL and form of fetch are ignored. */
bool discovery_fetch(const char *issuer, const struct fetch *fetch, struct discovery *ret_discovery,
                     struct err *err);
void discovery_finish(struct discovery *discovery);

#endif
