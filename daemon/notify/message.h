/* SPDX-License-Identifier: Apache-2.0 */
/* What a webhook is sent: the body, its name, and its signature by the scheme of Standard Webhooks. */
#ifndef NOTIFY_MESSAGE_H
#define NOTIFY_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/store.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

#define MESSAGE_ID_BYTES 32

/* A new secret, "whsec_...", of random bytes. The caller frees it. */
char *message_secret(const uint8_t random[HASH_BYTES]);

/* The name of a delivery, the same in all its tries: "msg_4294967297". */
void message_id(int64_t key, char out[MESSAGE_ID_BYTES]);

/* The body. page is the address of the web page, for links; or NULL. *ret_found false: the job is gone. */
bool message_body(struct reader *reader, const struct delivery_row *row, const char *page, struct text *out,
                  bool *ret_found, struct err *err);

/* The value of webhook-signature: "v1,..." over "id.seconds.body". The caller frees it. */
char *message_sign(const char *secret, const char *id, int64_t seconds, const struct text *body);

#endif
