/* SPDX-License-Identifier: Apache-2.0 */
/* Where the reply to each idempotent request lies: from scope to key of replies, in memory. */
#ifndef STORE_SCOPES_H
#define STORE_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Replies of about the same time. */
struct scopes_generation {
    struct scopes_entry *entries;
    size_t room; /* a power of two, or 0 */
    size_t count;
    int64_t began_ms;  /* wall clock */
    int64_t first_key; /* the smallest; 0: there is none */
};

struct scopes {
    struct scopes_generation newer, older;
    int64_t forgotten_key; /* replies up to this key are in neither */
};

/* Starts as {0}. */
void scopes_finish(struct scopes *scopes);

/* Adds a new reply. key is larger than all before. Forgets replies that are older than IDEMPOTENCY_KEPT_MS,
 * but not each at once. */
void scopes_add(struct scopes *scopes, const uint8_t scope[32], int64_t key, int64_t at_ms);

/* Adds a stored reply, newest first. False: it is too old, and so are all before it. newest_ms is the time of
 * the newest. */
bool scopes_load(struct scopes *scopes, const uint8_t scope[32], int64_t key, int64_t at_ms,
                 int64_t newest_ms);

/* The position of a search, which starts as {0}. */
struct scopes_cursor {
    size_t newer, older;
};

/* The next key whose scope may be this one, 0 when there is none. Whoever asks compares the whole scope in
 * the row. */
int64_t scopes_next(const struct scopes *scopes, const uint8_t scope[32], struct scopes_cursor *cursor);

#endif
