/* SPDX-License-Identifier: Apache-2.0 */
/* When the ends of the last attempts were on disk: known once nothing is written of them any more, so it is
 * kept in memory, for LIMIT_ENDS_KEPT of them and until the controller ends. */
#ifndef HTTP_ENDS_H
#define HTTP_ENDS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/writer.h"

/* Starts as {0}. */
struct ends {
    struct writer_end *ring; /* owned */
    size_t count;            /* of all that ever came */
};

void ends_finish(struct ends *ends);
void ends_add(struct ends *ends, const struct writer_end *end);
/* Microseconds since the submission was received; 0: not known. */
int64_t ends_find(const struct ends *ends, uint64_t epoch);

#endif
