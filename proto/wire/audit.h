/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of the audit: each row has a hash of itself and of the hash of the row before, so a row that was
 * changed, put in or taken out later does not fit its neighbours. */
#ifndef PROTO_AUDIT_H
#define PROTO_AUDIT_H

#include <stdint.h>

#include "proto/base/crypto/hash.h"
#include "proto/wire/views.h"

/* SHA-256 of the hash of the row before, 32 zeros before row 1; of seq, at_ms, status, owner, role, token,
 * address, method, path, subject, code and detail, each as text with a NUL behind it: numbers in decimal,
 * what is absent as "". view->hash is not looked at. */
void audit_hash(const uint8_t before[HASH_BYTES], const struct audit_view *view, uint8_t out[HASH_BYTES]);

#endif
