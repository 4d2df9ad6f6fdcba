/* SPDX-License-Identifier: Apache-2.0 */
/* Reads `after` as people write it: beginnings of ids, and a colon before the condition.
 * proto/spec/jobspec.c knows the conditions. */
#include "client/cli/spec/after.h"

#include <string.h>

#include "client/cli/common/resolve.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/base/text.h"

/* "ID", "ID:afterany". New reference; NULL where the text is not UTF-8. */
static json_t *item_of(const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    autofree char *job = xstrndup(text, length);
    return json_pack("{s:s, s:s*}", "job", job, "when", colon != NULL ? colon + 1 : NULL);
}

void after_spell_out(json_t *spec)
{
    json_t *after = json_object_get(spec, "after");
    if (json_is_string(after)) {
        json_object_set_new(spec, "after", json_pack("[O]", after));
        after = json_object_get(spec, "after");
    }
    for (size_t i = 0; i < json_array_size(after); i++) {
        const char *text = json_string_value(json_array_get(after, i));
        if (text != NULL) {
            json_array_set_new(after, i, item_of(text));
        }
    }
}

bool after_add(json_t *spec, const struct option_list *list, struct err *err)
{
    if (list->count == 0) {
        return true;
    }
    const json_t *base = json_object_get(spec, "after");
    json_t *after = json_is_array(base) ? json_deep_copy(base) : json_array();
    json_object_set_new(spec, "after", after);
    for (size_t i = 0; i < list->count; i++) {
        if (json_array_append_new(after, item_of(list->items[i])) != 0) {
            return err_field(err, ERR_USAGE, "after", "write --after ID or --after ID:afterany",
                             "--after %zu is not UTF-8", i + 1);
        }
    }
    return true;
}

const char *after_job(const json_t *item)
{
    return json_string_of(item, "job");
}

bool after_fill(struct api *api, json_t *spec, bool (*is_ours)(const char *job, const void *closure),
                const void *closure, struct err *err)
{
    const json_t *after = json_object_get(spec, "after");
    for (size_t i = 0; api != NULL && i < json_array_size(after); i++) {
        json_t *item = json_array_get(after, i);
        const char *job = after_job(item);
        char id[RESOLVED_BYTES];
        if (job == NULL || (is_ours != NULL && is_ours(job, closure))) {
            continue;
        }
        if (!resolve_job(api, job, id, err)) {
            const struct err why = *err;
            autofree char *field = xprintf("after[%zu]", i);
            return err_field(err, why.code, field, why.hint, "%s: %s", field, why.text);
        }
        json_object_set_new(item, "job", json_string(id));
    }
    return true;
}

void after_pretend(json_t *spec)
{
    const json_t *after = json_object_get(spec, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        json_t *item = json_array_get(after, i);
        if (after_job(item) != NULL) {
            const uint8_t number[10] = {(uint8_t)(i >> 8), (uint8_t)i};
            char id[RESOLVED_BYTES];
            text_id_from_bytes(number, id);
            json_object_set_new(item, "job", json_string(id));
        }
    }
}
