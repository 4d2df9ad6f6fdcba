/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the walk over pages that are too many to keep. It promises that one page is in memory at a time, and
 * that all are of one attempt. What the pages hold is the callers'. */
#include "client/cli/pages.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"

const json_t *pages_list(const json_t *page, const char *name, struct err *err)
{
    const json_t *list = json_object_get(page, name);
    if (!json_is_array(list)) {
        err_set(err, ERR_MALFORMED, "the controller's reply has no list \"%s\"", name);
        return NULL;
    }
    return list;
}

void pages_number(struct text *path, const char *name, int64_t number)
{
    if (number >= 0) {
        char digits[24];
        snprintf(digits, sizeof digits, "%lld", (long long)number);
        api_query(path, name, digits);
    }
}

/* The cursor of the next page as text, NULL after the last; the caller's. */
static char *next_of(const json_t *page)
{
    const json_t *next = json_object_get(page, "next");
    if (json_is_integer(next)) {
        return xprintf("%lld", (long long)json_integer_value(next));
    }
    return json_is_string(next) ? xstrdup(json_string_value(next)) : NULL;
}

static void pin_attempt(struct text *path, const json_t *page)
{
    const json_t *attempt = json_object_get(page, "attempt");
    if (json_integer_value(attempt) > 0 && strstr(path->bytes, "attempt=") == NULL) {
        pages_number(path, "attempt", json_integer_value(attempt));
    }
}

bool pages_each(struct api *api, const char *path, const char *cursor,
                bool (*take)(const json_t *page, void *closure, struct err *err), void *closure,
                struct err *err)
{
    autotext struct text whole = {0};
    autofree char *next = NULL;
    text_append(&whole, path);
    do {
        autotext struct text page_path = {0};
        text_append(&page_path, whole.bytes);
        api_query(&page_path, cursor, next);
        autojson json_t *page = api_get(api, page_path.bytes, err);
        free(give(next));
        if (page == NULL || !take(page, closure, err)) {
            return false;
        }
        next = next_of(page);
        pin_attempt(&whole, page);
    } while (next != NULL);
    return true;
}
