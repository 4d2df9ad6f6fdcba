/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of task numbers, and finds numbers in them. A list costs what it has of parts, however many
 * numbers these stand for. */
#include "proto/task_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "proto/limits.h"

/* Digits alone, below the limit. */
static bool take_number(const char **at, int64_t limit, int64_t *ret_number)
{
    const char *start = *at;
    int64_t number = 0;
    while (**at >= '0' && **at <= '9' && number < limit) {
        number = number * 10 + (*(*at)++ - '0');
    }
    *ret_number = number;
    return *at > start && number < limit;
}

/* "3" or "10-20". */
static bool take_range(const char **at, int64_t limit, struct task_range *range)
{
    int64_t first, last;
    if (!take_number(at, limit, &first)) {
        return false;
    }
    last = first;
    if (**at == '-') {
        (*at)++;
        if (!take_number(at, limit, &last)) {
            return false;
        }
    }
    *range = (struct task_range){.first = (int32_t)first, .count = (int32_t)(last - first + 1)};
    return last >= first;
}

static size_t size_of(size_t ranges)
{
    return sizeof(struct task_list) + ranges * sizeof(struct task_range);
}

static size_t count_parts(const char *text)
{
    size_t parts = 1;
    for (; *text != '\0'; text++) {
        parts += *text == ',';
    }
    return parts;
}

struct task_list *task_list_read(const char *text, int64_t tasks)
{
    size_t parts = count_parts(text);
    if (parts > LIMIT_TASK_RANGES) {
        return NULL;
    }
    struct task_list *list = xzalloc(size_of(parts));
    int64_t free_from = 0; /* the smallest number that may come next */
    for (const char *at = text; list->range_count < parts; at++) {
        struct task_range *range = &list->ranges[list->range_count];
        if (!take_range(&at, tasks, range) || range->first < free_from ||
            *at != (list->range_count + 1 < parts ? ',' : '\0')) {
            free(list);
            return NULL;
        }
        range->before = list->range_count > 0 ? range[-1].before + range[-1].count : 0;
        free_from = range->first + range->count;
        list->range_count++;
    }
    return list;
}

struct task_list *task_list_copy(const struct task_list *list)
{
    return list != NULL ? memcpy(xalloc(size_of(list->range_count)), list, size_of(list->range_count)) : NULL;
}

int64_t task_list_count(const struct task_list *list)
{
    const struct task_range *last = &list->ranges[list->range_count - 1];
    return last->before + last->count;
}

int64_t task_list_at(const struct task_list *list, int64_t place)
{
    size_t low = 0, high = list->range_count;
    assert(place >= 0 && place < task_list_count(list));
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        *(list->ranges[middle].before <= place ? &low : &high) = middle;
    }
    return list->ranges[low].first + place - list->ranges[low].before;
}

int64_t task_list_place(const struct task_list *list, int64_t task)
{
    for (size_t i = 0; i < list->range_count; i++) {
        const struct task_range *range = &list->ranges[i];
        if (task >= range->first && task < range->first + range->count) {
            return range->before + task - range->first;
        }
    }
    return -1;
}
