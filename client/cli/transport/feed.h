/* SPDX-License-Identifier: Apache-2.0 */
/* One event stream of the controller that survives its restarts: connects again where it left off. */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "client/cli/transport/sse.h"
#include "proto/base/err.h"

struct feed;

/* last_id is where to go on from, or NULL. */
struct feed *feed_create(struct api *api, const char *path, const char *last_id);
void feed_destroy(struct feed *feed);

static inline void cleanup_feed(struct feed **feed)
{
    feed_destroy(*feed);
}
#define autofeed __attribute__((cleanup(cleanup_feed)))

/* Call after each api_turn, when feed_next gave its last: connects again when that is due. false: refused
 * for good. */
bool feed_tend(struct feed *feed, struct err *err);
/* How long api_turn may wait at most before feed_tend has something to do. */
int64_t feed_patience_ms(const struct feed *feed);
/* The next event that has come in; false when there is none now. Borrowed until the next call. The event
 * `end`, after which there is nothing, is not handed out. */
bool feed_next(struct feed *feed, struct sse_event *ret_event);
/* Reads to the end: take gets each event, flush (or NULL) is called when no more has come yet. */
bool feed_read(struct feed *feed, bool (*take)(const struct sse_event *event, void *closure, struct err *err),
               bool (*flush)(void *closure, struct err *err), void *closure, struct err *err);
/* The event `end` has come. A reply that stops without it is a lost connection. */
bool feed_ended(const struct feed *feed);
/* Last-Event-ID; "" before the first. */
const char *feed_last_id(const struct feed *feed);

#endif
