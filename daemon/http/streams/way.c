/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the bytes in one piece of memory, which goes with the last of them: a way that is idle has none. */
#include "daemon/http/streams/way.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"

void way_hold(struct way *way, const char *bytes, size_t length)
{
    way->held = xalloc(length);
    memcpy(way->held, bytes, length);
    way->from = 0;
    way->length = length;
}

void way_taken(struct way *way, size_t count)
{
    way->from += count;
    way->length -= count;
    if (way->length == 0) {
        free(way->held);
        way->held = NULL;
    }
}
