/* SPDX-License-Identifier: Apache-2.0 */
/* The totals at the top of the picture: GPUs of each type and pool. */
#ifndef CLI_TOP_HEAD_H
#define CLI_TOP_HEAD_H

#include <jansson.h>
#include <stddef.h>

#include "client/cli/top/top_frame.h"
#include "proto/base/text/text.h"

/* The GPUs of one type in one pool. */
struct top_group {
    const char *pool, *type; /* borrowed from the nodes */
    json_int_t used, free, unavailable;
};

/* GPUs that are free count as unavailable on nodes that take no new work. The caller frees the array, which
 * is in the order of pools and types. */
struct top_group *top_groups_make(const json_t *nodes, size_t *ret_count);

/* Adds a line for each group, at most so many, the last of which says how many are left out. */
void top_groups_draw(const json_t *nodes, size_t most, const struct top_look *look, struct text_list *frame);

#endif
