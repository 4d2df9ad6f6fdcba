/* SPDX-License-Identifier: Apache-2.0 */
/* base64url without padding (RFC 7515), as JSON web tokens have it. */
#ifndef IDENTITY_BASE64URL_H
#define IDENTITY_BASE64URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* false: a character that does not belong there, bits that are left over, or more than room bytes. */
bool base64url_decode(const char *text, size_t length, uint8_t *out, size_t room, size_t *ret_length);

#endif
