/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the reply to each idempotent request: from its scope to the key in replies, in memory. */
#ifndef STORE_SCOPES_H
#define STORE_SCOPES_H

#include <stddef.h>
#include <stdint.h>

struct scopes {
    struct scopes_entry *entries;
    size_t room; /* a power of two, or 0 */
    size_t count;
};

/* Starts as {0}. */
void scopes_finish(struct scopes *scopes);

/* key is not 0. */
void scopes_add(struct scopes *scopes, const uint8_t scope[32], int64_t key);

/* The next key whose scope may be this one, 0 when there is none; *cursor starts as 0. The caller compares
 * the whole scope in the row. */
int64_t scopes_next(const struct scopes *scopes, const uint8_t scope[32], size_t *cursor);

#endif
