/* SPDX-License-Identifier: Apache-2.0 */
/* The first contact with a controller whose authority is known here only by its pin. Needs libcurl. */
#ifndef BASE_AUTHORITY_H
#define BASE_AUTHORITY_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* Fetches the certificate of the authority from https://HOST:PORT and compares it with the pin. Nothing else
 * in the reply is trusted, and no token is sent. The caller frees *ret_pem. *ret_ahead_ms: how far the clock
 * here is ahead of the server's clock; 0 when the server did not say. It is set on failure, too. */
bool authority_fetch(const char *url, const char *pin, char **ret_pem, int64_t *ret_ahead_ms,
                     struct err *err);

/* Called after a certificate was refused: adds the clock as the cause if the clock is far enough off to
 * explain it. */
void authority_blame_clock(int64_t ahead_ms, struct err *err);

#endif
