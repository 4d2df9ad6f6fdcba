/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the maintenance windows: which there are, for which nodes, and what may become one. It promises that
 * they come by their beginning, that each names nodes which exist, and that one which is over is gone. What a
 * window means for a node and for what runs there is left to departure.c. */
#include "daemon/core/window.h"

#include <string.h>

#include "daemon/core/departure.h"
#include "daemon/core/node.h"
#include "daemon/core/record.h"
#include "daemon/core/state.h"
#include "daemon/core/trace.h"
#include "proto/base/cleanup.h"
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

static void drop(struct core *core, struct window *window)
{
    DL_DELETE(core->windows, window);
    core->window_count--;
    WINDOW_ROW(ROW_FREE, window->row)
    free(window);
}

void window_clear(struct core *core)
{
    while (core->windows != NULL) {
        drop(core, core->windows);
    }
}

void window_drop_past(struct core *core)
{
    struct window *window, *next;
    DL_FOREACH_SAFE (core->windows, window, next) {
        if (departure_time(core, window->until_ms) <= core->now_ms) {
            trace_line(core, "window %s has ended", window->id);
            record_window_gone(core, window->id);
            drop(core, window);
        }
    }
}

/* --- whose ---------------------------------------------------------------------------------------------- */

/* The next of the names in a list; *at moves behind it. false: there is none. */
static bool next_name(const char **at, const char **ret_name, size_t *ret_length)
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
    while (next_name(&list, &name, &length)) {
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

/* --- what may become one -------------------------------------------------------------------------------- */

static bool check_names(const struct core *core, const char *list, struct err *err)
{
    const char *name;
    size_t length;
    while (next_name(&list, &name, &length)) {
        autofree char *one = xstrndup(name, length);
        if (node_find(core, one) == NULL) {
            return err_field(err, ERR_FIELD, "nodes", "list the nodes", "no node is named %.64s", one);
        }
    }
    return true;
}

static bool check_pool(const struct core *core, const char *pool, struct err *err)
{
    for (size_t i = 0; i < core->node_count; i++) {
        if (strcmp(core->nodes[i]->pool, pool) == 0) {
            return true;
        }
    }
    return err_field(err, ERR_FIELD, "pool", "list the nodes, which shows their pools",
                     "no node is in pool %.64s", pool);
}

static bool check_times(const struct core *core, const struct window_row *row, struct err *err)
{
    if (row->from_ms >= row->until_ms) {
        return err_field(err, ERR_FIELD, "until", "name a time after its beginning",
                         "the window would end before it begins");
    }
    if (departure_time(core, row->until_ms) <= core->now_ms) {
        return err_field(err, ERR_FIELD, "until", "name a time to come", "the window would be over already");
    }
    return true;
}

static bool add(struct core *core, const struct window_row *asked, struct err *err)
{
    struct window_row row = *asked;
    row.created_ms = core->change_set.wall_ms;
    if (!check_times(core, &row, err) || (row.nodes != NULL && !check_names(core, row.nodes, err)) ||
        (row.pool != NULL && !check_pool(core, row.pool, err))) {
        return false;
    }
    if (core->window_count >= LIMIT_WINDOWS) {
        return err_field(err, ERR_CONFLICT, "nodes", "remove some, or name a pool or all nodes in one",
                         "there are %d windows already", LIMIT_WINDOWS);
    }
    trace_line(core, "window %s is made%s", row.id, row.hard ? ", hard" : "");
    window_list(core, &row);
    record_window(core, &row);
    departure_judge_all(core);
    return true;
}

static bool take_away(struct core *core, const char *id, struct err *err)
{
    struct window *window;
    DL_FOREACH (core->windows, window) {
        if (strcmp(window->id, id) == 0) {
            break;
        }
    }
    if (window == NULL) {
        return err_field(err, ERR_NOT_FOUND, "id", "list the windows", "there is no window %.64s", id);
    }
    trace_line(core, "window %s is removed", id);
    record_window_gone(core, id);
    drop(core, window);
    departure_judge_all(core);
    return true;
}

bool window_take(struct core *core, const struct input *input, struct err *err)
{
    return input->window.remove != NULL ? take_away(core, input->window.remove, err)
                                        : add(core, input->window.row, err);
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
