/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up the GPUs of nodes. It promises that each GPU of a node is counted once: used, free or unavailable.
 */
#include "client/cli/top/top_head.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "client/cli/top/top_columns.h"
#include "proto/base/text/json.h"
#include "proto/states.h"

#define BAR_CELLS 20

static struct top_group *find(struct top_group *groups, size_t count, const char *pool, const char *type)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(groups[i].pool, pool) == 0 && strcmp(groups[i].type, type) == 0) {
            return &groups[i];
        }
    }
    return NULL;
}

static void add(struct top_group *group, const json_t *node)
{
    const char *state = json_string_of(node, "state");
    bool takes_work = state != NULL && strcmp(state, node_state_text(NODE_READY)) == 0;
    json_int_t all = json_integer_value(json_object_get(node, "gpus"));
    json_int_t free_gpus = json_integer_value(json_object_get(node, "free_gpus"));
    json_int_t used = top_node_used(node);
    json_int_t idle = takes_work ? free_gpus : 0;
    group->used += used;
    group->free += idle;
    group->unavailable += all - used - idle;
}

static int compare(const void *left, const void *right)
{
    const struct top_group *a = left, *b = right;
    int order = strcmp(a->pool, b->pool);
    return order != 0 ? order : strcmp(a->type, b->type);
}

struct top_group *top_groups_make(const json_t *nodes, size_t *ret_count)
{
    struct top_group *groups = NULL;
    size_t count = 0, room = 0, i;
    json_t *node;
    json_array_foreach (nodes, i, node) {
        const char *pool = print_text_of(node, "pool"), *type = print_text_of(node, "gpu_type");
        struct top_group *group = find(groups, count, pool, type);
        if (group == NULL) {
            XGROW(groups, count, room, 8);
            group = &groups[count++];
            *group = (struct top_group){.pool = pool, .type = type};
        }
        add(group, node);
    }
    if (count > 0) {
        qsort(groups, count, sizeof groups[0], compare);
    }
    *ret_count = count;
    return groups;
}

static void draw_group(const struct top_group *group, size_t names, const struct top_look *look,
                       struct text_list *frame)
{
    struct top_line line;
    json_int_t all = group->used + group->free + group->unavailable;
    autotext struct text name = {0};
    autotext struct text bar = {0};
    text_printf(&name, "%s in %s", group->type, group->pool);
    top_bar(look, all > 0 ? (double)group->used / (double)all : 0, BAR_CELLS, &bar);
    top_line_begin(&line, look, NULL);
    top_line_field(&line, name.bytes, names + 2, false, NULL);
    top_line_put(&line, bar.bytes, TOP_GREEN);
    top_line_putf(&line, "  %lld of %lld in use, %lld free, ", (long long)group->used, (long long)all,
                  (long long)group->free);
    top_line_putf(&line, "%lld unavailable", (long long)group->unavailable);
    top_line_end(&line, frame);
}

static size_t name_width(const struct top_group *group)
{
    return print_measure(group->pool) + print_measure(group->type) + strlen(" in ");
}

void top_groups_draw(const json_t *nodes, size_t most, const struct top_look *look, struct text_list *frame)
{
    size_t count, names = 0;
    struct top_group *groups = top_groups_make(nodes, &count);
    size_t shown = count > most ? most - 1 : count;
    for (size_t i = 0; i < shown; i++) {
        size_t width = name_width(&groups[i]);
        names = width > names ? width : names;
    }
    for (size_t i = 0; i < shown; i++) {
        draw_group(&groups[i], names, look, frame);
    }
    if (shown < count) {
        struct top_line line;
        top_line_begin(&line, look, NULL);
        top_line_putf(&line, "and %zu more types and pools", count - shown);
        top_line_end(&line, frame);
    }
    free(groups);
}
