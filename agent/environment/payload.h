/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads: blobs of the controller, cached on disk by their hash, and copied into the working folders of
 * attempts. */
#ifndef AGENT_PAYLOAD_H
#define AGENT_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/controller_client.h"
#include "proto/base/err.h"

struct payloads;
struct payload_order;

/* folder is made if it does not exist. */
struct payloads *payloads_create(const char *folder, struct controller_client *controller, struct err *err);
/* All orders must have ended before. */
void payloads_destroy(struct payloads *payloads);

/* Fills an open, empty file with the blob of this SHA-256, which is fetched if it is not in the cache. done
 * is called later, once, after the order was freed, with NULL or the error. The caller keeps the file. */
struct payload_order *payload_fill(struct payloads *payloads, const char *hash, int file,
                                   void (*done)(void *closure, const struct err *err), void *closure);
/* Like payload_fill without a file: only brings the blob into the cache. */
struct payload_order *payload_fetch(struct payloads *payloads, const char *hash,
                                    void (*done)(void *closure, const struct err *err), void *closure);
/* How many bytes of an order's blob have arrived so far; 0 if it was in the cache. */
int64_t payload_arrived(const struct payload_order *order);
/* Opens a cached blob for reading; -1 if it is not in the cache. */
int payload_open(const struct payloads *payloads, const char *hash);
/* Ends an order without a call of done; NULL is allowed. */
void payload_cancel(struct payload_order *order);

/* Copies one piece; true while there is more to copy. */
bool payloads_step(struct payloads *payloads);

#endif
