/* SPDX-License-Identifier: Apache-2.0 */
/* Reads long lists page by page, and keeps all items, or only one page at a time. In the second way it
 * promises that all pages are of one attempt. */
#include "client/cli/transport/pages.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/states.h"

const json_t *pages_list(const json_t *page, const char *name, struct err *err)
{
    const json_t *list = json_object_get(page, name);
    if (!json_is_array(list)) {
        err_set(err, ERR_MALFORMED, "the controller's reply has no list \"%s\"", name);
        return NULL;
    }
    return list;
}

void pages_states(struct text *path, bool terminal)
{
    autotext struct text states = {0};
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        if (job_state_terminal((enum job_state)state) == terminal) {
            text_printf(&states, "%s%s", states.length > 0 ? "," : "", job_state_text((enum job_state)state));
        }
    }
    api_query(path, "state", states.bytes);
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

static json_t *get_page(struct api *api, const char *path, const char *cursor, const char *next,
                        struct err *err)
{
    autotext struct text whole = {0};
    text_append(&whole, path);
    api_query(&whole, cursor, next);
    return api_read(api, whole.bytes, err);
}

json_t *api_list(struct api *api, const char *path, const char *name, const char *cursor, int64_t max,
                 struct err *err)
{
    autojson json_t *items = json_array();
    autofree char *next = NULL;
    do {
        autojson json_t *page = get_page(api, path, cursor, next, err);
        const json_t *found = page != NULL ? pages_list(page, name, err) : NULL;
        if (found == NULL) {
            return NULL;
        }
        for (size_t i = 0; i < json_array_size(found) && (int64_t)json_array_size(items) < max; i++) {
            json_array_append(items, json_array_get(found, i));
        }
        bool more = (int64_t)json_array_size(items) < max; /* also behind a page without items */
        free(next);
        next = more ? next_of(page) : NULL;
    } while (next != NULL);
    return give(items);
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
        autojson json_t *page = get_page(api, whole.bytes, cursor, next, err);
        free(give(next));
        if (page == NULL || !take(page, closure, err)) {
            return false;
        }
        next = next_of(page);
        pin_attempt(&whole, page);
    } while (next != NULL);
    return true;
}
