/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes as AWS Signature Version 4 wants it: what a signature counts otherwise than a server is refused. */
#include "proto/s3/s3_escape.h"

#include <string.h>

void s3_escape(struct text *out, const char *text, bool keep_slashes)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     strchr("-._~", c) != NULL || (c == '/' && keep_slashes);
        text_printf(out, plain ? "%c" : "%%%02X", c);
    }
}
