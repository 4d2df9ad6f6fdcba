/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads: blobs of the controller, kept on disk by their hash, and their copies in the working folders of
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

/* folder is made if need be. */
struct payloads *payloads_create(const char *folder, struct controller_client *controller, struct err *err);
/* All orders have ended before. */
void payloads_destroy(struct payloads *payloads);

/* Fills an open, empty file with the blob of this SHA-256, fetching it first if it is not here. done is
 * called later, once, with NULL or what went wrong; the order is gone before. The file stays the caller's. */
struct payload_order *payload_fill(struct payloads *payloads, const char *hash, int file,
                                   void (*done)(void *closure, const struct err *err), void *closure);
/* The same, without a file: the blob is only to be here. */
struct payload_order *payload_fetch(struct payloads *payloads, const char *hash,
                                    void (*done)(void *closure, const struct err *err), void *closure);
/* How many bytes of the blob of an order have come so far; 0 where it was here before. */
int64_t payload_arrived(const struct payload_order *order);
/* Opens a blob that is here, to be read; -1 where it is not. */
int payload_open(const struct payloads *payloads, const char *hash);
/* Ends an order without a word; NULL is allowed. */
void payload_cancel(struct payload_order *order);

/* Copies a piece of what is to be copied; true while there is more. */
bool payloads_step(struct payloads *payloads);

#endif
