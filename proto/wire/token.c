/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and parses tokens. The controller decides what a token grants. */
#include "proto/wire/token.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

void token_secret_make(const uint8_t random[TOKEN_SECRET_RANDOM], char out[TOKEN_SECRET_LENGTH + 1])
{
    autofree char *plain = text_to_base64(random, TOKEN_SECRET_RANDOM);
    for (size_t i = 0; i < TOKEN_SECRET_LENGTH; i++) {
        out[i] = (char)(plain[i] == '+' ? '-' : plain[i] == '/' ? '_' : plain[i]);
    }
    out[TOKEN_SECRET_LENGTH] = '\0';
    explicit_bzero(plain, strlen(plain));
}

const char *token_after_prefix(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0) {
        return NULL;
    }
    const char *token = text + length;
    bool sound = strlen(token) == TOKEN_ID_LENGTH + 1 + TOKEN_SECRET_LENGTH && token[TOKEN_ID_LENGTH] == '_';
    return sound ? token : NULL;
}
