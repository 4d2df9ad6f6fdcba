/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance windows as nodes, GPUs and the overview show them. */
#ifndef HTTP_NODE_WINDOWS_H
#define HTTP_NODE_WINDOWS_H

#include <stdint.h>

#include "daemon/store/store.h"

struct windows;

/* When one is; until_ms 0: there is none. */
struct span {
    int64_t from_ms, until_ms;
    bool hard;
};

/* All that are not over; NULL on failure. */
struct windows *windows_read(struct reader *reader, struct err *err);
void windows_destroy(struct windows *windows);

static inline void cleanup_windows(struct windows **windows)
{
    windows_destroy(*windows);
}
#define autowindows __attribute__((cleanup(cleanup_windows)))

/* The window that the node is in, else its next. */
struct span windows_of_node(const struct windows *windows, const struct node_row *node, int64_t wall_ms);
/* Whether it is in one, and gets no new work. */
bool windows_keep_free(const struct windows *windows, const struct node_row *node, int64_t wall_ms);

#endif
