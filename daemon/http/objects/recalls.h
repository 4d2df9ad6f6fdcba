/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for what the object store has: the handler is called again once it is here. */
#ifndef HTTP_RECALLS_H
#define HTTP_RECALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/objects/objects.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/err.h"

struct artifacts;
struct request;
struct server;
struct worker;

/* Opens the object store, if one is configured, and the threads that wait for it. ERR_USAGE if none is, and
 * some bytes are in one. */
bool recalls_open(struct server *server, struct artifacts *artifacts, struct err *err);
/* Ends what waits for the store, and the threads. */
void recalls_close(struct server *server);

typedef bool recall_again(struct request *request, struct err *err);

/* Whether these files of a job must be brought back first; if not, they count as used. */
bool recall_needs(const struct server *server, const char *job_id, enum job_files what);
/* Brings them back and calls again. */
bool recall_job(struct request *request, const char *job_id, enum job_files what, recall_again *again,
                struct err *err);
/* The same for nobody: who needs them is to try again. false, with ERR_UNAVAILABLE. */
bool recall_job_soon(struct server *server, const char *job_id, enum job_files what, struct err *err);

bool recall_blob(struct request *request, const uint8_t hash[HASH_BYTES], recall_again *again,
                 struct err *err);

/* The thread that waits for things of this name, for work of others. */
struct worker *recalls_worker(const struct server *server, const char *name);

#endif
