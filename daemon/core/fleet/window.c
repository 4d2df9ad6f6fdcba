/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the maintenance windows, and tells which nodes each covers. Windows are listed by their beginning. A
 * window that is over is removed. maintenance.c checks new windows. departure.c and eviction.c apply them. */
#include "daemon/core/fleet/window.h"

#include <string.h>

#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "proto/limits.h"

/* --- the list ------------------------------------------------------------------------------------------- */

static bool begins_before(const struct window *a, const struct window *b)
{
    return a->from_ms != b->from_ms ? a->from_ms < b->from_ms : strcmp(a->id, b->id) < 0;
}

void window_list(struct core *core, const struct window_row *row)
{
    struct window *window = xzalloc(sizeof *window);
    window->row = *row;
    WINDOW_ROW(ROW_OWN, window->row)
    struct window *after = core->windows;
    while (after != NULL && begins_before(after, window)) {
        after = after->next;
    }
    if (after != NULL) {
        DL_PREPEND_ELEM(core->windows, after, window);
    } else {
        DL_APPEND(core->windows, window);
    }
    core->window_count++;
}

void window_drop(struct core *core, struct window *window)
{
    DL_DELETE(core->windows, window);
    core->window_count--;
    WINDOW_ROW(ROW_FREE, window->row)
    free(window);
}

struct window *window_find(const struct core *core, const char *id)
{
    struct window *window;
    DL_FOREACH (core->windows, window) {
        if (strcmp(window->id, id) == 0) {
            break;
        }
    }
    return window;
}

void window_clear(struct core *core)
{
    while (core->windows != NULL) {
        window_drop(core, core->windows);
    }
}

void window_drop_past(struct core *core, int64_t wall_ms)
{
    struct window *window, *next;
    DL_FOREACH_SAFE (core->windows, window, next) {
        if (window->until_ms <= wall_ms) {
            trace_line(core, "window %s has ended", window->id);
            record_window_gone(core, window->id);
            window_drop(core, window);
        }
    }
}

/* --- covered nodes -------------------------------------------------------------------------------------- */

bool window_next_name(const char **at, const char **ret_name, size_t *ret_length)
{
    if (**at == '\0') {
        return false;
    }
    *ret_name = *at;
    *ret_length = strcspn(*at, ",");
    *at += *ret_length;
    *at += **at == ',';
    return true;
}

static bool names(const char *list, const char *node)
{
    const char *name;
    size_t length;
    while (window_next_name(&list, &name, &length)) {
        if (strncmp(name, node, length) == 0 && node[length] == '\0') {
            return true;
        }
    }
    return false;
}

bool window_covers(const struct window *window, const struct node *node)
{
    if (window->nodes != NULL) {
        return names(window->nodes, node->name);
    }
    return window->pool == NULL || strcmp(window->pool, node->pool) == 0;
}

void window_check(const struct core *core)
{
    size_t count = 0;
    for (const struct window *window = core->windows; window != NULL; window = window->next) {
        assert(window->from_ms < window->until_ms && (window->nodes == NULL || window->pool == NULL));
        assert(window->next == NULL || begins_before(window, window->next));
        count++;
    }
    assert(count == core->window_count && count <= LIMIT_WINDOWS);
}
