/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes maintenance windows. A window names nodes or a pool that exist, and begins before its
 * end. departure.c applies windows to nodes. */
#include "daemon/core/inputs/maintenance.h"

#include <string.h>

#include "daemon/core/fleet/departure.h"
#include "daemon/core/fleet/window.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

static bool check_names(const struct core *core, const char *list, struct err *err)
{
    const char *name;
    size_t length;
    while (window_next_name(&list, &name, &length)) {
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
    struct window *window = window_find(core, id);
    if (window == NULL) {
        return err_field(err, ERR_NOT_FOUND, "id", "list the windows", "there is no window %.64s", id);
    }
    trace_line(core, "window %s is removed", id);
    record_window_gone(core, id);
    window_drop(core, window);
    departure_judge_all(core);
    return true;
}

bool maintenance_take(struct core *core, const struct input *input, struct err *err)
{
    return input->window.remove != NULL ? take_away(core, input->window.remove, err)
                                        : add(core, input->window.row, err);
}
