/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and reads the tokens of ranks, and keeps the secret behind them. Nobody can make a token without
 * the secret, and the token and run of one attempt tell nothing of another's. The router checks whether
 * the attempt still lives. */
#include "daemon/http/auth/rank_token.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

static bool make_key(const char *path, uint8_t key[HASH_BYTES], struct err *err)
{
    char line[HASH_HEX + 2];
    random_fill(key, HASH_BYTES);
    text_to_hex(key, HASH_BYTES, line);
    line[HASH_HEX] = '\n';
    return file_replace(path, line, HASH_HEX + 1, 0600, err);
}

bool rank_key_open(const char *path, uint8_t ret_key[HASH_BYTES], struct err *err)
{
    autofree char *line = NULL;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return make_key(path, ret_key, err);
    }
    if (!file_read(path, HASH_HEX + 2, &line, NULL, err)) {
        return false;
    }
    line[strcspn(line, "\n")] = '\0';
    return text_from_hex(line, ret_key, HASH_BYTES) || err_set(err, ERR_IO, "%s holds no key", path);
}

/* The HMAC of the purpose and the attempt id. */
static void derive(const uint8_t key[HASH_BYTES], const char *purpose, uint64_t attempt_id,
                   char out[HASH_HEX + 1])
{
    uint8_t digest[HASH_BYTES];
    char text[64];
    int length = snprintf(text, sizeof text, "%s %llu", purpose, (unsigned long long)attempt_id);
    hash_keyed(key, HASH_BYTES, text, (size_t)length, digest);
    text_to_hex(digest, HASH_BYTES, out);
}

void rank_token_make(const uint8_t key[HASH_BYTES], uint64_t attempt_id, char out[RANK_TOKEN_BYTES])
{
    char secret[HASH_HEX + 1];
    derive(key, "token", attempt_id, secret);
    snprintf(out, RANK_TOKEN_BYTES, "gcr_%016llx_%s", (unsigned long long)attempt_id, secret);
}

bool rank_token_read(const uint8_t key[HASH_BYTES], const char *text, uint64_t *ret_attempt_id)
{
    uint64_t bytes;
    uint8_t given[HASH_BYTES], right[HASH_BYTES];
    char number[17], secret[HASH_HEX + 1];
    if (strnlen(text, RANK_TOKEN_BYTES) != RANK_TOKEN_LENGTH || strncmp(text, "gcr_", 4) != 0 ||
        text[20] != '_') {
        return false;
    }
    memcpy(number, text + 4, 16);
    number[16] = '\0';
    if (!text_from_hex(number, (uint8_t *)&bytes, sizeof bytes) ||
        !text_from_hex(text + 21, given, HASH_BYTES)) {
        return false;
    }
    uint64_t attempt_id = be64toh(bytes);
    derive(key, "token", attempt_id, secret);
    if (!text_from_hex(secret, right, HASH_BYTES) || !hash_equal(given, right)) {
        return false;
    }
    *ret_attempt_id = attempt_id;
    return true;
}

void rank_run_id(const uint8_t key[HASH_BYTES], uint64_t attempt_id, char out[TRACKING_RUN_ID_BYTES])
{
    char digest[HASH_HEX + 1];
    derive(key, "run", attempt_id, digest);
    memcpy(out, digest, TRACKING_RUN_ID_BYTES - 1);
    out[TRACKING_RUN_ID_BYTES - 1] = '\0';
}
