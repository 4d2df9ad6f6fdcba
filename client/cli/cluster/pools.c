/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl pools`: lists the pools, and says which of the reserved ones lend, and which demand isolation. */
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

/* --- list --- */

static const struct column columns[] = {
    COLUMN("NAME", "name", cell_plain),     COLUMN("KIND", "kind", cell_plain),
    COLUMN("LENDS", "lend", cell_yes),      COLUMN("ISOLATION", "isolation", cell_plain),
    COLUMN("TYPE", "gpu_type", cell_plain), COLUMN("GPUS", "gpus", cell_plain),
    COLUMN("FREE", "free", cell_plain)};

/* One for each type of a pool. */
static json_t *rows_of(const json_t *pools)
{
    json_t *rows = json_array();
    size_t i, j;
    json_t *pool, *type;
    json_array_foreach (pools, i, pool) {
        json_array_foreach (json_object_get(pool, "types"), j, type) {
            json_t *row = json_copy(pool);
            json_object_update(row, type);
            json_array_append_new(rows, row);
        }
    }
    return rows;
}

static const struct listing pools = {
    .path = "/v1/pools", .name = "pools", LIST_COLUMNS(columns), .rows = rows_of, .uncut = true};

static const struct verb verb_list = {
    .name = "list",
    .summary = "List the pools with their GPUs.",
    LISTS(pools),
    .rows = {rows_format},
};

/* --- set --- */

#define NO_ISOLATION "none"

struct set_options {
    bool lend;
    const char *isolation;
};

static const struct option_row set_rows[] = {
    ROW_FLAG(struct set_options, lend, 0, "lend",
             "jobs that ask for on-demand GPUs may borrow what is free; else they may not"),
    ROW_CHOICE(struct set_options, isolation, 0, "isolation", "KIND",
               "user: only nodes that run jobs as the users of their owners may be in the pool; none: any",
               "user|none"),
    ROW_FORMAT, ROWS_END};

/* What the pool has so far, of what is set as a whole; a pool that is not there has nothing. */
static json_t *settings_of(struct api *api, const char *name, struct err *err)
{
    autojson json_t *answer = api_get(api, err, "/v1/pools");
    json_t *settings = answer != NULL ? json_object() : NULL;
    const json_t *pool;
    size_t i;
    json_array_foreach (json_object_get(answer, "pools"), i, pool) {
        if (settings != NULL && strcmp(json_string_of(pool, "name"), name) == 0) {
            json_object_set(settings, "lend", json_object_get(pool, "lend"));
            json_object_set(settings, "isolation", json_object_get(pool, "isolation"));
        }
    }
    return settings;
}

static bool set_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct set_options *options = call->options;
    const char *name = call->rest[0], *isolation = options->isolation;
    autojson json_t *settings = settings_of(call->api, name, err);
    if (settings == NULL) {
        return false;
    }
    if (isolation != NULL) {
        bool none = strcmp(isolation, NO_ISOLATION) == 0;
        json_object_set_new(settings, "isolation", none ? json_null() : json_string(isolation));
    }
    if (isolation == NULL || options->lend) {
        json_object_set_new(settings, "lend", json_boolean(options->lend));
    }
    autojson json_t *pool = api_ask(call->api, "PUT", settings, err, "/v1/pools/%s", name);
    if (isolation != NULL) {
        return answer_note(call, pool, err, "isolation of pool %s: %s", name, isolation);
    }
    return answer_note(call, pool, err, "pool %s %s", name, options->lend ? "lends" : "does not lend");
}

static const struct verb verb_set = {
    .name = "set",
    .arguments = "NAME --lend | --no-lend | --isolation user|none",
    .summary = "Say whether a reserved pool lends what is free, and which nodes a pool takes.",
    .details = "What was borrowed is given back when work that is entitled to it wants it.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct set_options),
    .rows = {set_rows},
    .run = set_run,
};

static const struct verb *const nested[] = {&verb_list, &verb_set, NULL};

const struct verb verb_pools = {
    .name = "pools",
    .summary = "List the pools; let reserved ones lend, or take isolated nodes alone.",
    .nested = nested,
};
