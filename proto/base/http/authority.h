/* SPDX-License-Identifier: Apache-2.0 */
/* The first contact with a controller whose authority is known here only by its pin. Needs libcurl. */
#ifndef BASE_AUTHORITY_H
#define BASE_AUTHORITY_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* A request without a token: a POST of JSON, or a GET if there is no body. */
struct contact {
    const char *url, *path;
    const char *body;       /* or NULL */
    const char *cacert;     /* file of certificates that sign the controller's; NULL: the system's */
    bool unverified;        /* any certificate is taken */
    const char *user_agent; /* or NULL */
};

struct contact_reply {
    struct text body; /* the caller finishes it */
    long status;
    int64_t date_ms;  /* the server's clock; 0: it did not say */
    int64_t again_ms; /* how long it wants to be left alone; 0: it did not say */
};

/* Sends one request and waits for the reply, which may have 64 KiB. ERR_UNAUTHENTICATED if the controller's
 * certificate is refused, ERR_UNREACHABLE if there is no reply; *ret_reply is set in any case. */
bool contact_send(const struct contact *contact, struct contact_reply *ret_reply, struct err *err);

/* Fetches the certificate of the authority from https://HOST:PORT and compares it with the pin. Nothing else
 * in the reply is trusted, and no token is sent. The caller frees *ret_pem. *ret_ahead_ms: how far the clock
 * here is ahead of the server's clock; 0 when the server did not say. It is set on failure, too. */
bool authority_fetch(const char *url, const char *pin, char **ret_pem, int64_t *ret_ahead_ms,
                     struct err *err);

/* Called after a certificate was refused: adds the clock as the cause if the clock is far enough off to
 * explain it. */
void authority_blame_clock(int64_t ahead_ms, struct err *err);

#endif
