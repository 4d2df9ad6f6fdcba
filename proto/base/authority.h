/* SPDX-License-Identifier: Apache-2.0 */
/* The first contact with a controller whose authority nobody here knows yet, but for its pin. Needs libcurl.
 */
#ifndef BASE_AUTHORITY_H
#define BASE_AUTHORITY_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* Fetches the certificate of the authority from https://HOST:PORT and compares it with the pin; nothing else
 * is believed of what answers, and no token is sent. *ret_pem is the caller's. *ret_ahead_ms: how far the
 * clock here is ahead of the one there, 0 when that did not say; set on failure, too. */
bool authority_fetch(const char *url, const char *pin, char **ret_pem, int64_t *ret_ahead_ms,
                     struct err *err);

/* A certificate was refused: blames the clock, where it is off so far that this may be why. */
void authority_blame_clock(int64_t ahead_ms, struct err *err);

#endif
