/* SPDX-License-Identifier: Apache-2.0 */
/* Computes and compares pins of certificate authorities. A pin is as trustworthy as the place that the caller
 * has it from. */
#include "proto/base/crypto/pin.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END   "-----END CERTIFICATE-----"

bool pin_of(const char *pem, char out[PIN_BYTES])
{
    const char *begin = strstr(pem, BEGIN);
    const char *end = begin != NULL ? strstr(begin, END) : NULL;
    if (end == NULL) {
        return false;
    }
    autotext struct text base64 = {0};
    for (const char *at = begin + strlen(BEGIN); at < end; at++) {
        if (strchr(" \t\r\n", *at) == NULL) {
            text_append_bytes(&base64, at, 1);
        }
    }
    autofree uint8_t *der = NULL;
    size_t length;
    if (base64.length == 0 || !text_from_base64(base64.bytes, base64.length, &der, &length)) {
        return false;
    }
    memcpy(out, PIN_PREFIX, strlen(PIN_PREFIX));
    hash_hex(der, length, out + strlen(PIN_PREFIX));
    return true;
}

bool pin_check_form(const char *pin, const char *field, struct err *err)
{
    size_t prefix = strlen(PIN_PREFIX);
    bool sound = strncasecmp(pin, PIN_PREFIX, prefix) == 0 && strlen(pin + prefix) == HASH_HEX &&
                 strspn(pin + prefix, "0123456789abcdefABCDEF") == HASH_HEX;
    return sound || err_field(err, ERR_USAGE, field,
                              "copy the whole line that gpuctl nodes join-command or gpuctld init printed",
                              "%s must be " PIN_PREFIX " and 64 hexadecimal digits", field);
}

bool pin_fits(const char *pin, const char *pem)
{
    char found[PIN_BYTES];
    return pin_of(pem, found) && strcasecmp(found, pin) == 0;
}
