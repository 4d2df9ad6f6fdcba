/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from a list of the API to JSON, a table, or names alone. Columns are the verbs'. */
#include "client/cli/common/list.h"

#include "client/cli/transport/api.h"
#include "client/cli/common/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

static void print_keys(const json_t *items, const char *key, struct text *out)
{
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        const char *text = json_string_of(item, key);
        text_printf(out, "%s\n", text != NULL ? text : "");
    }
}

void list_print(const struct call *call, const struct listing *listing, const json_t *items, struct text *out)
{
    if (call->common->quiet) {
        print_keys(items, listing->key, out);
        return;
    }
    if (print_is_json(call->format)) {
        print_list(call->format, listing->shown != NULL ? listing->shown : listing->name, items, out);
        return;
    }
    autogrid struct grid *grid = grid_create(listing->columns, listing->count);
    autojson json_t *rows = listing->rows != NULL ? listing->rows(items) : NULL;
    grid_add_rows(grid, rows != NULL ? rows : items);
    bool wide = call->format == FORMAT_WIDE || listing->uncut;
    grid_print(grid, wide, print_width(), print_colour(), out);
}

static bool show(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    const struct listing *listing = call->verb->listing;
    autojson json_t *items = api_list(call->api, listing->path, listing->name, "cursor", LIMIT_LISTED, err);
    autojson json_t *chosen = items != NULL && listing->choose != NULL ? listing->choose(items) : NULL;
    *ret_last = false;
    if (items != NULL) {
        list_print(call, listing, chosen != NULL ? chosen : items, out);
    }
    return items != NULL;
}

bool list_run(const struct call *call, int *ret_exit, struct err *err)
{
    return watch_run(call, show, err);
}
