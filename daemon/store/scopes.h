/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the reply to each idempotent request: from its scope to the key in replies, in memory. */
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
};

struct scopes {
    struct scopes_generation newer, older;
    int64_t mark_key;      /* replies up to this key are older */
    int64_t forgotten_key; /* replies up to this key are in neither */
    int64_t age_ms;        /* of the mark, as far as the controller has run meanwhile */
};

/* Starts as {0}. */
void scopes_finish(struct scopes *scopes);

/* Adds a reply, new or stored, unless it is forgotten. */
void scopes_add(struct scopes *scopes, const uint8_t scope[32], int64_t key);

/* The controller has run for this long since the last call. True: the mark has moved to last_key, and all
 * replies up to the earlier mark are forgotten. */
bool scopes_age(struct scopes *scopes, int64_t elapsed_ms, int64_t last_key);

/* The position of a search, which starts as {0}. */
struct scopes_cursor {
    size_t newer, older;
};

/* The next key whose scope may be this one, 0 when there is none. Whoever asks compares the whole scope in
 * the row. */
int64_t scopes_next(const struct scopes *scopes, const uint8_t scope[32], struct scopes_cursor *cursor);

#endif
