/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches objects from the object store, by the URLs to which the controller redirects the agent. */
#ifndef AGENT_OBJECT_CLIENT_H
#define AGENT_OBJECT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/loop.h"
#include "proto/base/err.h"

struct object_client;
struct object_request;

/* controller_url: of the controller that redirects, borrowed; away_ms: how long nobody asks a store that
 * could not be used. */
struct object_client *object_client_create(const char *controller_url, int64_t away_ms, struct loop *loop);
/* Cancels all requests. NULL is allowed. */
void object_client_destroy(struct object_client *client);

/* Whether the store may be asked now. */
bool object_client_is_open(const struct object_client *client);

/* Takes the bytes of the object; `first` marks the first ones. False gives up. */
typedef bool object_arrive(void *closure, const void *bytes, size_t length, bool first);
/* Called later, once, after the request was freed. err is NULL when all bytes have come, ERR_UNREACHABLE when
 * nothing has answered, and ERR_UNAVAILABLE for another answer, or one that broke off. */
typedef void object_done(void *closure, const struct err *err);

/* Begins a fetch from a presigned URL. NULL with ERR_UNREACHABLE when the agent does not go there. */
struct object_request *object_client_get(struct object_client *client, const char *url, object_arrive *arrive,
                                         object_done *done, void *closure, struct err *err);
/* Ends a request without a call of done; NULL is allowed. */
void object_client_cancel(struct object_request *request);

/* The store that was asked last has served an object (err NULL), or cannot be used and is away for a while.
 */
void object_client_judge(struct object_client *client, const struct err *err);

#endif
