/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones: how far their clocks are from UTC, and when that changes. Seconds since 1970 throughout. */
#ifndef CALENDAR_ZONE_H
#define CALENDAR_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

/* From begin up to, but not at, end the clocks are offset_s ahead of UTC. INT64_MIN and INT64_MAX: without
 * an end. */
struct zone_span {
    int64_t begin, end;
    int64_t offset_s;
};

struct zone;

/* The zone of an IANA name, from the files of the C library; UTC needs none. NULL with ERR_FIELD
 * time_zone. */
struct zone *zone_open(const char *name, struct err *err);
/* Takes NULL. */
void zone_close(struct zone *zone);

/* The same from the bytes of such a file (RFC 8536). NULL: they are none. */
struct zone *zone_decode(const void *bytes, size_t length);

/* The span that holds the moment. */
struct zone_span zone_span_at(const struct zone *zone, int64_t at_s);

static inline void cleanup_zone(struct zone **zone)
{
    zone_close(*zone);
}
#define autozone __attribute__((cleanup(cleanup_zone)))

#endif
