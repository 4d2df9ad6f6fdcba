/* SPDX-License-Identifier: Apache-2.0 */
/* Puts results into words. It promises one line for each result and never opens a pickle. */
#include "client/cli/show/result.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
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

/* The JSON of a value, the first line of an error's message, or "pickle". */
static void show_value(const json_t *row, const char *member, struct text *out)
{
    struct result result;
    bool good = result_read(row, &result, NULL);
    const char *said = good && is_exception(&result) ? sentence(result.shown) : NULL;
    if (said != NULL) {
        text_append_bytes(out, said, strcspn(said, "\r\n"));
    } else if (good && result.shown != NULL) {
        autofree char *json = json_text(result.shown);
        text_append(out, json);
    } else {
        text_append(out, "pickle");
    }
}

static void show_size(const json_t *row, const char *member, struct text *out)
{
    if (json_string_of(row, "sha256") != NULL) {
        cell_bytes(row, member, out);
    }
}

const struct column result_columns[RESULT_COLUMNS] = {
    COLUMN("RANK", "rank", cell_plain), COLUMN("KIND", "kind", cell_plain), COLUMN("SIZE", "size", show_size),
    WIDE_COLUMN("SHA256", "sha256", cell_plain), COLUMN("VALUE", "json", show_value)};
