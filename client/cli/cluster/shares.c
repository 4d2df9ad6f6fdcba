/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl shares`: compares the use of projects and their users with their fair shares. */
#include "client/cli/common/answer.h"
#include "proto/base/text/json.h"

static void show_hours(const json_t *account, const char *member, struct text *out)
{
    text_printf(out, "%.1f GPU h", json_number_value(json_object_get(account, member)));
}

static void show_percent(const json_t *account, const char *member, struct text *out)
{
    text_printf(out, "%.1f %%", 100 * json_number_value(json_object_get(account, member)));
}

/* "2 h 05 min later" */
static void show_turn(const json_t *account, const char *member, struct text *out)
{
    char span[32];
    double delay_s = json_number_value(json_object_get(account, member));
    double size_s = delay_s < 0 ? -delay_s : delay_s;
    text_from_duration_ms((int64_t)(size_s * 1000), span, sizeof span);
    if (size_s >= 1) {
        text_printf(out, "%s %s", span, delay_s < 0 ? "earlier" : "later");
    }
}

static const struct column columns[] = {
    COLUMN("PROJECT", "project", cell_plain),     COLUMN("USER", "user", cell_plain),
    COLUMN("GPUS", "gpus", cell_plain),           COLUMN("QUEUED", "queued_jobs", cell_plain),
    COLUMN("USED", "used_gpu_hours", show_hours), COLUMN("SHARE", "share", show_percent),
    COLUMN("TARGET", "target", show_percent),     COLUMN("TURN", "delay_s", show_turn),
};

static void add_row(json_t *rows, const json_t *project, const json_t *account, bool is_user)
{
    json_t *row = json_copy((json_t *)(uintptr_t)account);
    json_object_set(row, "project", json_object_get(project, "name"));
    json_object_set(row, "user", is_user ? json_object_get(account, "name") : json_null());
    json_array_append_new(rows, row);
}

static json_t *rows_of(const json_t *projects)
{
    json_t *rows = json_array();
    size_t i, j;
    json_t *project, *user;
    json_array_foreach (projects, i, project) {
        add_row(rows, project, project, false);
        json_array_foreach (json_object_get(project, "users"), j, user) {
            add_row(rows, project, user, true);
        }
    }
    return rows;
}

/* Users as a whole have no share: they share within their projects. */
static json_t *projects_of(const json_t *accounts)
{
    json_t *projects = json_array();
    size_t i;
    json_t *account;
    json_array_foreach (accounts, i, account) {
        if (json_object_get(account, "share") != NULL) {
            json_array_append(projects, account);
        }
    }
    return projects;
}

static const struct listing shares = {.path = "/v1/accounts",
                                      .name = "accounts",
                                      .shown = "projects",
                                      .choose = projects_of,
                                      LIST_COLUMNS(columns),
                                      .rows = rows_of};

const struct verb verb_shares = {
    .name = "shares",
    .summary = "Show what projects and users have used, against their fair shares.",
    .details =
        "Past use counts half after the controller's --share-half-life. SHARE is the part of all use that "
        "was "
        "this one's,\nTARGET the part that its weight gives it. TURN is by how much its waiting jobs are "
        "put off or brought forward:\nan hour for each doubling, three at most; for users within a project "
        "half of that.",
    LISTS(shares),
    .rows = {rows_watched},
};
