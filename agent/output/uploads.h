/* SPDX-License-Identifier: Apache-2.0 */
/* Files on their way to the controller as blobs. */
#ifndef AGENT_UPLOADS_H
#define AGENT_UPLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/controller_client.h"
#include "proto/base/err.h"

struct uploads;
struct upload;

struct uploads *uploads_create(struct controller_client *controller);
/* All uploads have ended before. */
void uploads_destroy(struct uploads *uploads);

/* Puts the first size bytes of a file as a blob; the file is taken over. done is called later, once, with
 * their SHA-256 in hex when the controller has them, else with NULL and what went wrong; the upload is gone
 * before. */
struct upload *upload_begin(struct uploads *uploads, int file, int64_t size,
                            void (*done)(void *closure, const char *hash, const struct err *err),
                            void *closure);
/* Ends an upload without a word; NULL is allowed. */
void upload_cancel(struct upload *upload);

/* Hashes a piece of what is to be hashed; true while there is more. */
bool uploads_step(struct uploads *uploads);

#endif
