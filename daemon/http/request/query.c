/* SPDX-License-Identifier: Apache-2.0 */
/* Reads query parameters. A parameter that the route does not know is refused by name, so that a mistyped
 * filter never shows everything. Handlers interpret the values. */
#include "daemon/http/request/query.h"

#include <string.h>

#include "daemon/http/request/gate.h"
#include "proto/base/text/text.h"

/* The gate has seen that each '%' has its two digits. */
static void decode(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '+' ? ' ' : *c;
    }
    gate_unescape(text);
}

bool query_lists(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; length > 0 && (at = strstr(at, name)) != NULL; at += length) {
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool add(struct query *query, char *item, const char *known, struct err *err)
{
    if (*item == '\0') {
        return true;
    }
    char *equals = strchr(item, '=');
    char *value = item + strlen(item);
    if (equals != NULL) {
        *equals = '\0';
        value = equals + 1;
    }
    decode(item);
    decode(value);
    if (known == NULL || (strcmp(known, "*") != 0 && !query_lists(known, item))) {
        err_field(err, ERR_UNKNOWN_FIELD, item, NULL, "this path has no query parameter \"%s\"", item);
        return known == NULL ? false : err_hint(err, "it has: %s", known);
    }
    if (query->count == LIMIT_QUERY_PARAMETERS) {
        return err_set(err, ERR_MALFORMED, "the query has more than %d parameters", LIMIT_QUERY_PARAMETERS);
    }
    query->items[query->count].name = item;
    query->items[query->count++].value = value;
    return true;
}

bool query_parse(char *text, const char *known, struct query *ret_query, struct err *err)
{
    ret_query->count = 0;
    char *item = text;
    while (item != NULL) {
        char *next = strchr(item, '&');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (!add(ret_query, item, known, err)) {
            return false;
        }
        item = next;
    }
    return true;
}

const char *query_text(const struct query *query, const char *name)
{
    for (size_t i = 0; query != NULL && i < query->count; i++) {
        if (strcmp(query->items[i].name, name) == 0) {
            return query->items[i].value;
        }
    }
    return NULL;
}

bool query_int(const struct query *query, const char *name, int64_t min, int64_t max, int64_t *ret_value,
               struct err *err)
{
    const char *text = query_text(query, name);
    if (text != NULL && !text_to_int(text, min, max, ret_value)) {
        return err_field(err, ERR_FIELD, name, NULL, "%s must be a whole number from %lld to %lld", name,
                         (long long)min, (long long)max);
    }
    return true;
}

bool query_name(const struct query *query, const char *name, const char **ret_value, struct err *err)
{
    const char *text = query_text(query, name);
    *ret_value = text != NULL ? text : *ret_value;
    return text == NULL || text_is_name(text, LIMIT_NAME_BYTES) ||
           err_field(err, ERR_FIELD, name, NULL,
                     "%s must be a name: up to %d letters, digits, '.', '_' and '-', beginning with a letter "
                     "or digit",
                     name, LIMIT_NAME_BYTES);
}

bool query_owner(const struct query *query, const char **ret_owner, struct err *err)
{
    const char *text = query_text(query, "owner");
    if (text != NULL && text_is_service(text) && text_is_owner(text, LIMIT_NAME_BYTES)) {
        *ret_owner = text;
        return true;
    }
    return query_name(query, "owner", ret_owner, err);
}

bool query_duration(const struct query *query, const char *name, int64_t max_ms, int64_t *ret_ms,
                    struct err *err)
{
    const char *text = query_text(query, name);
    if (text == NULL) {
        return true;
    }
    int64_t ms;
    if (!text_to_duration_ms(text, &ms)) {
        return err_field(err, ERR_FIELD, name, "write 30, 30s or 500ms", "%s must be a time", name);
    }
    *ret_ms = ms < max_ms ? ms : max_ms;
    return true;
}

bool query_moment(const struct query *query, const char *name, int64_t *ret_wall_ms, struct err *err)
{
    const char *text = query_text(query, name);
    if (text == NULL || text_to_int(text, 0, INT64_MAX / 2, ret_wall_ms) ||
        text_to_wall_ms(text, ret_wall_ms)) {
        return true;
    }
    return err_field(err, ERR_FIELD, name, "write 2026-11-21T09:30:00Z or milliseconds since 1970",
                     "%s must be a moment", name);
}
