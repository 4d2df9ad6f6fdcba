/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance windows: times in which nodes get no work. */
#ifndef CORE_FLEET_WINDOW_H
#define CORE_FLEET_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct node;
struct window;
struct window_row;

/* Lists a copy of the row. */
void window_list(struct core *core, const struct window_row *row);
/* The window with this id, NULL: there is none. Frees one that is listed. */
struct window *window_find(const struct core *core, const char *id);
void window_drop(struct core *core, struct window *window);
/* Frees all windows, at the end of the core. */
void window_clear(struct core *core);

/* The next name in a list; *at moves past it. false: there is none. */
bool window_next_name(const char **at, const char **ret_name, size_t *ret_length);

/* Whether the window covers the node. */
bool window_covers(const struct window *window, const struct node *node);

/* Drops those that are over by the wall clock; their rows go, too. */
void window_drop_past(struct core *core, int64_t wall_ms);

void window_check(const struct core *core);

#endif
