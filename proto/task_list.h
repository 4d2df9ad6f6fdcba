/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of tasks as people write them: "3,7,10-20", each once and in their order. */
#ifndef PROTO_TASK_LIST_H
#define PROTO_TASK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tasks first .. first + count - 1, behind `before` others of the list. */
struct task_range {
    int32_t first, count, before;
};

struct task_list {
    size_t range_count;
    struct task_range ranges[];
};

/* Reads a list of at most LIMIT_TASK_RANGES parts whose numbers are below `tasks`. NULL: the text is no such
 * list. The caller frees it. */
struct task_list *task_list_read(const char *text, int64_t tasks);

/* A copy, which the caller frees; NULL for NULL. */
struct task_list *task_list_copy(const struct task_list *list);

int64_t task_list_count(const struct task_list *list);

/* The number at a place of the list, from 0; the place is below task_list_count. */
int64_t task_list_at(const struct task_list *list, int64_t place);

/* The place of a number; -1: the list has not got it. */
int64_t task_list_place(const struct task_list *list, int64_t task);

#endif
