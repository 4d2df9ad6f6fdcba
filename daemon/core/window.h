/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance windows: times in which nodes get no work. */
#ifndef CORE_WINDOW_H
#define CORE_WINDOW_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;
struct node;
struct window;
struct window_row;

/* A copy of the row, listed. */
void window_list(struct core *core, const struct window_row *row);
/* Frees all, at the end of the core. */
void window_clear(struct core *core);

/* Whether the node is one of its nodes. */
bool window_covers(const struct window *window, const struct node *node);

/* Drops those that are over; their rows go, too. */
void window_drop_past(struct core *core);

/* The input WINDOW. */
bool window_take(struct core *core, const struct input *input, struct err *err);

void window_check(const struct core *core);

#endif
