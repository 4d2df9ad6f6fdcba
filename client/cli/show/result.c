/* SPDX-License-Identifier: Apache-2.0 */
/* Puts results into words. It promises one line for each result and never opens a pickle. */
#include "client/cli/show/result.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/states.h"

static bool is_exception(const struct result *result)
{
    return strcmp(result->kind, result_kind_text(RESULT_EXCEPTION)) == 0;
}

bool result_read(const json_t *json, struct result *ret_result, struct err *err)
{
    struct result result = {0};
    if (!json_need_int(json, "rank", 0, INT64_MAX, &result.rank, err) ||
        !json_need_text(json, "kind", &result.kind, err) ||
        !json_read_int(json, "size", 0, INT64_MAX, &result.size, err) ||
        !json_read_text(json, "sha256", &result.sha256, err)) {
        return false;
    }
    result.shown = json_object_get(json, is_exception(&result) ? "error" : "json");
    *ret_result = result;
    return true;
}

/* The sentence of an error file: {"message": TEXT} or {"message": {"message": TEXT}}. NULL where there is
 * none. */
static const char *sentence(const json_t *error)
{
    const json_t *message = json_object_get(error, "message");
    return json_string_value(json_is_object(message) ? json_object_get(message, "message") : message);
}

void result_text(const struct result *result, struct text *out)
{
    const char *said = is_exception(result) ? sentence(result->shown) : NULL;
    if (said != NULL) {
        text_append_bytes(out, said, strcspn(said, "\r\n"));
    } else if (result->shown != NULL) {
        autofree char *json = json_text(result->shown);
        text_append(out, json);
    } else {
        text_append(out, "pickle");
    }
}

struct grid *result_grid(void)
{
    static const struct column columns[] = {{.title = "RANK"},
                                            {.title = "KIND"},
                                            {.title = "SIZE"},
                                            {.title = "SHA256", .wide = true},
                                            {.title = "VALUE"}};
    return grid_create(columns, sizeof columns / sizeof columns[0]);
}

void result_row(const struct result *result, struct grid *grid)
{
    autotext struct text shown = {0};
    char size[32];
    print_bytes(result->size, size);
    result_text(result, &shown);
    grid_addf(grid, "%lld", (long long)result->rank);
    grid_add(grid, result->kind);
    grid_add(grid, result->sha256 != NULL ? size : NULL);
    grid_add(grid, result->sha256);
    grid_add(grid, shown.bytes);
}
