/* SPDX-License-Identifier: Apache-2.0 */
/* When the ends of the last attempts were on disk: known once nothing is written of them any more, so it is
 * kept in memory, for LIMIT_RECENT_ENDS of them and until the controller ends. */
#ifndef HTTP_RECENT_ENDS_H
#define HTTP_RECENT_ENDS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/writer/writer.h"

/* Starts as {0}. */
struct recent_ends {
    struct writer_end *ring; /* owned */
    size_t count;            /* of all that ever came */
};

void recent_ends_finish(struct recent_ends *ends);
void recent_ends_add(struct recent_ends *ends, const struct writer_end *end);
/* Microseconds since the submission was received; 0: not known. */
int64_t recent_ends_find(const struct recent_ends *ends, uint64_t attempt_id);

#endif
