/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the moments at which ends were on disk. It promises the newest of them; what they are for is
 * timing.c's. */
#include "daemon/http/ends.h"

#include <stdlib.h>

#include "proto/base/text.h"
#include "proto/limits.h"

void ends_finish(struct ends *ends)
{
    free(ends->ring);
    *ends = (struct ends){0};
}

void ends_add(struct ends *ends, const struct writer_end *end)
{
    if (ends->ring == NULL) {
        ends->ring = xzalloc(LIMIT_ENDS_KEPT * sizeof *ends->ring);
    }
    ends->ring[ends->count++ % LIMIT_ENDS_KEPT] = *end;
}

int64_t ends_find(const struct ends *ends, uint64_t epoch)
{
    size_t kept = ends->count < LIMIT_ENDS_KEPT ? ends->count : LIMIT_ENDS_KEPT;
    for (size_t i = 0; i < kept; i++) {
        if (ends->ring[i].epoch == epoch) {
            return ends->ring[i].visible_us;
        }
    }
    return 0;
}
