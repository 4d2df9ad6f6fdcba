/* SPDX-License-Identifier: Apache-2.0 */
/* What people have sent and no job of theirs names yet, and the results that nodes have sent: the rows of the
 * table uploads, in memory. People have a quota of bytes for it. HTTP thread only. */
#ifndef HTTP_UPLOADS_H
#define HTTP_UPLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/crypto/hash.h"
#include "proto/base/err.h"

struct reader;
struct uploads;

struct uploads *uploads_create(int64_t quota_bytes);
/* Takes NULL. */
void uploads_destroy(struct uploads *uploads);
/* Takes in the rows of the store, at the start. */
bool uploads_load(struct uploads *uploads, struct reader *reader, int64_t wall_ms, int64_t now_ms,
                  struct err *err);

/* ERR_LIMIT when the owner would have more than the quota with so many bytes more. Times are CLOCK_BOOTTIME.
 */
bool uploads_allow(struct uploads *uploads, const char *owner, int64_t bytes, int64_t now_ms,
                   struct err *err);
/* The owner has sent the blob: it counts until a job names it, and for RETENTION_BLOB_MS at most. */
void uploads_add(struct uploads *uploads, const char *owner, const uint8_t hash[HASH_BYTES], int64_t bytes,
                 int64_t now_ms);
/* A job of the owner names the blob. */
void uploads_remove(struct uploads *uploads, const char *owner, const uint8_t hash[HASH_BYTES]);
/* The owner for whom the blob is there only if a job of theirs names it; NULL: it has sent the blob, or the
 * owner is NULL. */
const char *uploads_limit(const struct uploads *uploads, const char *owner, const uint8_t hash[HASH_BYTES]);
/* Whether the owner has sent the blob, and it counts. */
bool uploads_has(const struct uploads *uploads, const char *owner, const uint8_t hash[HASH_BYTES]);
/* The owner of what a node sends whose token is its own: no person has such a name. The caller frees it. */
char *uploads_owner_of_node(const char *node);

#endif
