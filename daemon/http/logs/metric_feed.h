/* SPDX-License-Identifier: Apache-2.0 */
/* Makes pages of points, or events, from the pieces of metrics streams. */
#ifndef HTTP_METRIC_FEED_H
#define HTTP_METRIC_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/blob/logs.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* Chooses lines of a stream, which has those of all ranks of a node. */
struct metric_filter {
    int64_t ranks;    /* of the job: a line that names another one is none */
    int64_t rank;     /* -1: all */
    const char *name; /* NULL: all, and as events also progress */
};

/* Appends limit points at most, with commas between them, and takes their number off *limit. ret_next is the
 * id to go on from; "" when nothing more is stored. The page ends early when it has looked at
 * LIMIT_METRIC_PAGE_BYTES. */
bool metric_page(struct log_reader *reader, const struct metric_filter *filter, int64_t *limit,
                 struct text *out, char ret_next[LOG_ID_BYTES], struct err *err);

/* One piece, and how far its lines were looked at. Starts as {0}; the caller sets `at` to 0 with each
 * new piece. */
struct metric_lines {
    struct log_piece piece;
    size_t at;
    int64_t budget; /* bytes that may still be looked at */
};

/* Appends the events of the piece's next lines, each with an id: the prefix, and the id of the place behind
 * it. false: out has LIMIT_SSE_FILL_BYTES, or the budget is used up; call again with a new one. */
bool metric_events(struct metric_lines *lines, const struct metric_filter *filter, const char *prefix,
                   struct text *out);

#endif
