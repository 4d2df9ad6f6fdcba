/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads: blobs of the controller, cached on disk by their hash, and copied into the working folders of
 * attempts. */
#ifndef AGENT_PAYLOAD_H
#define AGENT_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/controller_client.h"
#include "agent/objects/object_client.h"
#include "proto/base/err.h"

struct payloads;
struct payload_order;

/* folder is made if it does not exist. */
struct payloads *payloads_create(const char *folder, struct controller_client *controller,
                                 struct object_client *objects, struct err *err);
/* All orders must have ended before. */
void payloads_destroy(struct payloads *payloads);

/* Called later, once, after the order was freed, with NULL or the error. blob is the blob, open for reading
 * from its beginning, borrowed; -1 with an error, and where a file was filled. */
typedef void payload_done(void *closure, int blob, const struct err *err);

/* Fills an open, empty file with the blob of this SHA-256, which is fetched if it is not in the cache. The
 * caller keeps the file. What was read for it had that hash, else it is an error. */
struct payload_order *payload_fill(struct payloads *payloads, const char *hash, int file, payload_done *done,
                                   void *closure);
/* Like payload_fill without a file: opens the blob, when it has been read and its hash is right. */
struct payload_order *payload_open(struct payloads *payloads, const char *hash, payload_done *done,
                                   void *closure);
/* How many bytes of an order's blob have arrived so far; 0 if it was in the cache. */
int64_t payload_arrived(const struct payload_order *order);
/* Ends an order without a call of done; NULL is allowed. */
void payload_cancel(struct payload_order *order);

/* Reads, and copies, one piece; true while there is more to do. */
bool payloads_step(struct payloads *payloads);

#endif
