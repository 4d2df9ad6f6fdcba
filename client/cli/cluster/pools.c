/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl pools`: lists the pools, and says which of the reserved ones lend. */
#include "client/cli/common/answer.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

/* --- list --- */

static const struct column columns[] = {
    COLUMN("NAME", "name", cell_plain), COLUMN("KIND", "kind", cell_plain),
    COLUMN("LENDS", "lend", cell_yes),  COLUMN("TYPE", "gpu_type", cell_plain),
    COLUMN("GPUS", "gpus", cell_plain), COLUMN("FREE", "free", cell_plain)};

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

struct set_options {
    bool lend;
};

static const struct option_row set_rows[] = {
    ROW_FLAG(struct set_options, lend, 0, "lend",
             "jobs that ask for on-demand GPUs may borrow what is free; else they may not"),
    ROW_FORMAT, ROWS_END};

static bool set_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct set_options *options = call->options;
    autojson json_t *body = json_pack("{s:b}", "lend", options->lend);
    autojson json_t *pool = api_ask(call->api, "PUT", body, err, "/v1/pools/%s", call->rest[0]);
    return answer_note(call, pool, err, "pool %s %s", call->rest[0],
                       options->lend ? "lends" : "does not lend");
}

static const struct verb verb_set = {
    .name = "set",
    .arguments = "NAME --lend | --no-lend",
    .summary = "Say whether a reserved pool lends what is free.",
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
    .summary = "List the pools; let reserved ones lend.",
    .nested = nested,
};
