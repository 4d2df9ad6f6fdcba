/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes strictly: bytes have one spelling, so that a token which was used cannot come again in another. */
#include "daemon/identity/base64url.h"

#define BITS 6 /* of a character */

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool base64url_decode(const char *text, size_t length, uint8_t *out, size_t room, size_t *ret_length)
{
    unsigned bits = 0, held = 0;
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        int value = value_of(text[i]);
        if (value < 0) {
            return false;
        }
        bits = (bits << BITS | (unsigned)value) & 0xfff;
        held += BITS;
        if (held >= 8) {
            held -= 8;
            if (count == room) {
                return false;
            }
            out[count++] = (uint8_t)(bits >> held);
        }
    }
    *ret_length = count;
    return held < BITS && (bits & ((1U << held) - 1)) == 0;
}
