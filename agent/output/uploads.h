/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads files to the controller as blobs. */
#ifndef AGENT_UPLOADS_H
#define AGENT_UPLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/controller_client.h"
#include "proto/base/err.h"

struct uploads;
struct upload;

struct uploads *uploads_create(struct controller_client *controller);
/* All uploads must have ended before. */
void uploads_destroy(struct uploads *uploads);

/* Uploads the first size bytes of a file as a blob, and takes the file over. done is called later, once,
 * after the upload was freed: with the SHA-256 in hex when the controller has the bytes, else with NULL and
 * the error. */
struct upload *upload_begin(struct uploads *uploads, int file, int64_t size,
                            void (*done)(void *closure, const char *hash, const struct err *err),
                            void *closure);
/* Ends an upload without a call of done; NULL is allowed. */
void upload_cancel(struct upload *upload);

/* Hashes one piece; true while there is more to hash. */
bool uploads_step(struct uploads *uploads);

#endif
