/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl quotas`: lists the limits of projects and users, and their use. quotas_set.c changes the limits. */
#include "client/cli/common/answer.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

/* "3 of 20" */
static void show_jobs(const json_t *account, const char *member, struct text *out)
{
    autofree char *limit = xprintf("max_%s", member);
    const json_t *most = json_object_get(json_object_get(account, "limits"), limit);
    cell_plain(account, member, out);
    if (most != NULL) {
        text_printf(out, " of %lld", (long long)json_integer_value(most));
    }
}

static void show_hours(const json_t *account, const char *member, struct text *out)
{
    const json_t *limit = json_object_get(json_object_get(account, "limits"), "gpu_hours");
    if (limit != NULL) {
        text_printf(out, "%.1f of %.15g in ", json_number_value(json_object_get(account, member)),
                    json_number_value(json_object_get(limit, "hours")));
        cell_seconds(limit, "period_s", out);
    }
}

static const struct column columns[] = {
    COLUMN("KIND", "kind", cell_plain),
    COLUMN("NAME", "name", cell_plain),
    COLUMN("RUNNING", "running_jobs", show_jobs),
    COLUMN("QUEUED", "queued_jobs", show_jobs),
    COLUMN("HOURS", "period_gpu_hours", show_hours),
    COLUMN("TYPE", "gpu_type", cell_plain),
    COLUMN("GPUS", "gpus", cell_plain),
    COLUMN("BORROWED", "borrowed", cell_plain),
    COLUMN("QUOTA", "quota", cell_plain),
    COLUMN("MOST", "max_gpus", cell_plain),
};

/* The account with what one row of it says besides, which is taken over. */
static void add_row(json_t *rows, json_t *account, json_t *more)
{
    json_t *row = json_copy(account);
    json_object_update_new(row, more);
    json_array_append_new(rows, row);
}

/* One for each type, and one for all of them where that says more. */
static json_t *rows_of(const json_t *accounts)
{
    json_t *rows = json_array();
    size_t i, j;
    json_t *account, *use;
    json_array_foreach (accounts, i, account) {
        const json_t *uses = json_object_get(account, "use");
        json_t *bound = json_object_get(json_object_get(json_object_get(account, "limits"), "max_gpus"), "*");
        if (json_array_size(uses) != 1 || bound != NULL) {
            add_row(rows, account, json_pack("{s:s, s:O?}", "gpu_type", "all", "max_gpus", bound));
        }
        json_array_foreach (uses, j, use) {
            json_int_t lent = json_integer_value(json_object_get(use, "gpus")) -
                              json_integer_value(json_object_get(use, "entitled"));
            json_t *more = json_copy(use);
            json_object_set_new(more, "borrowed", json_integer(lent));
            add_row(rows, account, more);
        }
    }
    return rows;
}

static const struct listing accounts = {
    .path = "/v1/accounts", .name = "accounts", LIST_COLUMNS(columns), .rows = rows_of};

static const struct verb verb_list = {
    .name = "list",
    .summary = "List what projects and users may use, and what they use.",
    LISTS(accounts),
    .rows = {rows_watched},
};

static const struct verb *const nested[] = {&verb_list, &verb_quotas_set, &verb_quotas_unset, NULL};

const struct verb verb_quotas = {
    .name = "quotas",
    .summary = "Show and set what projects and users may use.",
    .nested = nested,
};
