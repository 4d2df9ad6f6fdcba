/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers in a ring when the newest ends were on disk. timing.c shows them. */
#include "daemon/http/base/recent_ends.h"

#include <stdlib.h>

#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

void recent_ends_finish(struct recent_ends *ends)
{
    free(ends->ring);
    *ends = (struct recent_ends){0};
}

void recent_ends_add(struct recent_ends *ends, const struct writer_end *end)
{
    if (ends->ring == NULL) {
        ends->ring = xzalloc(LIMIT_RECENT_ENDS * sizeof *ends->ring);
    }
    ends->ring[ends->count++ % LIMIT_RECENT_ENDS] = *end;
}

int64_t recent_ends_find(const struct recent_ends *ends, uint64_t attempt_id)
{
    size_t kept = ends->count < LIMIT_RECENT_ENDS ? ends->count : LIMIT_RECENT_ENDS;
    for (size_t i = 0; i < kept; i++) {
        if (ends->ring[i].attempt_id == attempt_id) {
            return ends->ring[i].visible_us;
        }
    }
    return 0;
}
