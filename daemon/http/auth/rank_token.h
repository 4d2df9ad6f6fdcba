/* SPDX-License-Identifier: Apache-2.0 */
/* The names of an attempt's ranks towards tracking: a token and a run, both derived from the attempt id
 * with a secret of the controller. So nothing is stored, and an order can always be given again. */
#ifndef HTTP_RANK_TOKEN_H
#define HTTP_RANK_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/mlflow/tracking.h"
#include "proto/base/err.h"
#include "proto/base/crypto/hash.h"

/* gcr_<attempt id in 16 hex digits>_<HMAC in 64> */
#define RANK_TOKEN_LENGTH (4 + 16 + 1 + HASH_HEX)
#define RANK_TOKEN_BYTES  (RANK_TOKEN_LENGTH + 1)

/* Reads the secret from the file, which is made with fresh random bytes when it is not there. */
bool rank_key_open(const char *path, uint8_t ret_key[HASH_BYTES], struct err *err);

void rank_token_make(const uint8_t key[HASH_BYTES], uint64_t attempt_id, char out[RANK_TOKEN_BYTES]);

/* true when the text is a token of ours, whose attempt id is then told; compares in constant time. */
bool rank_token_read(const uint8_t key[HASH_BYTES], const char *text, uint64_t *ret_attempt_id);

/* The run of an attempt. */
void rank_run_id(const uint8_t key[HASH_BYTES], uint64_t attempt_id, char out[TRACKING_RUN_ID_BYTES]);

#endif
