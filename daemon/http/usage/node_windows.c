/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the maintenance windows that are not over, and finds that of a node. */
#include "daemon/http/usage/node_windows.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

/* One window, as far as nodes show it. */
struct kept {
    char *nodes, *pool; /* owned, or NULL */
    struct span span;
};

/* By their beginning. */
struct windows {
    struct kept *items; /* owned */
    size_t count;
};

static char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

struct windows *windows_read(struct reader *reader, struct err *err)
{
    struct windows *windows = xzalloc(sizeof *windows);
    autorows struct rows rows = reader_windows(reader, err);
    struct window_row row;
    while (rows_window(&rows, &row)) {
        windows->items = xrealloc(windows->items, (windows->count + 1) * sizeof *windows->items);
        windows->items[windows->count++] =
            (struct kept){.nodes = copy_or_null(row.nodes),
                          .pool = copy_or_null(row.pool),
                          .span = {.from_ms = row.from_ms, .until_ms = row.until_ms, .hard = row.hard}};
    }
    if (rows.failed) {
        windows_destroy(windows);
        return NULL;
    }
    return windows;
}

void windows_destroy(struct windows *windows)
{
    if (windows == NULL) {
        return;
    }
    for (size_t i = 0; i < windows->count; i++) {
        free(windows->items[i].nodes);
        free(windows->items[i].pool);
    }
    free(windows->items);
    free(windows);
}

static bool is_named(const char *names, const char *node)
{
    size_t length = strlen(node);
    for (const char *at = names; *at != '\0';) {
        size_t name = strcspn(at, ",");
        if (name == length && strncmp(at, node, length) == 0) {
            return true;
        }
        at += name + (at[name] == ',');
    }
    return false;
}

static bool covers(const struct kept *window, const struct node_row *node)
{
    if (window->nodes != NULL) {
        return is_named(window->nodes, node->name);
    }
    return window->pool == NULL || strcmp(window->pool, node->pool) == 0;
}

struct span windows_of_node(const struct windows *windows, const struct node_row *node, int64_t wall_ms)
{
    for (size_t i = 0; i < windows->count; i++) {
        if (windows->items[i].span.until_ms > wall_ms && covers(&windows->items[i], node)) {
            return windows->items[i].span;
        }
    }
    return (struct span){0};
}

bool windows_keep_free(const struct windows *windows, const struct node_row *node, int64_t wall_ms)
{
    const struct span span = windows_of_node(windows, node, wall_ms);
    return span.until_ms != 0 && span.from_ms <= wall_ms;
}
