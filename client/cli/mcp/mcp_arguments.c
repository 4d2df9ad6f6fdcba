/* SPDX-License-Identifier: Apache-2.0 */
/* Makes JSON Schemas from the rows of arguments, and checks arguments against the same rows. It promises that
 * a schema allows nothing that the check refuses by name or type. What a value means is left to the tools and
 * to the controller. */
#include "client/cli/mcp/mcp_arguments.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

/* --- schema --------------------------------------------------------------------------------------------- */

static json_t *choices_of(const char *choices)
{
    json_t *list = json_array();
    for (const char *at = choices;; at++) {
        size_t length = strcspn(at, "|");
        json_array_append_new(list, json_stringn(at, length));
        at += length;
        if (*at == '\0') {
            return list;
        }
    }
}

static json_t *type_schema(enum mcp_type type)
{
    switch (type) {
    case MCP_TEXT:
        return json_pack("{s:s}", "type", "string");
    case MCP_WHOLE:
        return json_pack("{s:s}", "type", "integer");
    case MCP_NUMBER:
        return json_pack("{s:s}", "type", "number");
    case MCP_FLAG:
        return json_pack("{s:s}", "type", "boolean");
    case MCP_TEXTS:
        return json_pack("{s:s,s:{s:s}}", "type", "array", "items", "type", "string");
    case MCP_TEXT_MAP:
        return json_pack("{s:s,s:{s:s}}", "type", "object", "additionalProperties", "type", "string");
    case MCP_OBJECT:
        return json_pack("{s:s}", "type", "object");
    case MCP_ARRAY:
        return json_pack("{s:s}", "type", "array");
    }
    return NULL;
}

static json_t *argument_schema(const struct mcp_argument *row)
{
    json_t *schema = type_schema(row->type);
    json_object_set_new(schema, "description", json_string(row->description));
    if (row->max > row->min) {
        json_object_set_new(schema, "minimum", json_integer(row->min));
        json_object_set_new(schema, "maximum", json_integer(row->max));
    }
    if (row->choices != NULL) {
        json_object_set_new(schema, "enum", choices_of(row->choices));
    }
    return schema;
}

static void add_rows(const struct mcp_argument *rows, json_t *properties, json_t *required)
{
    for (const struct mcp_argument *row = rows; row->name != NULL; row++) {
        json_object_set_new(properties, row->name, argument_schema(row));
        if (row->required) {
            json_array_append_new(required, json_string(row->name));
        }
    }
}

json_t *mcp_arguments_schema(const struct mcp_argument *rows, const struct mcp_argument *more)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    add_rows(rows, properties, required);
    if (more != NULL) {
        add_rows(more, properties, required);
    }
    return json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", 0);
}

/* --- check ---------------------------------------------------------------------------------------------- */

static bool refuse_unknown(const struct mcp_argument *rows, const char *name, struct err *err)
{
    autotext struct text known = {0};
    for (const struct mcp_argument *row = rows; row->name != NULL; row++) {
        text_printf(&known, "%s%s", known.length > 0 ? ", " : "", row->name);
    }
    return err_field(err, ERR_FIELD, name, NULL, "there is no argument \"%.64s\"", name) ||
           err_hint(err, known.length > 0 ? "there are %s" : "this tool takes none", known.bytes);
}

static bool check_names(const struct mcp_argument *rows, const json_t *arguments, struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)arguments, name, value) {
        const struct mcp_argument *row = rows;
        while (row->name != NULL && strcmp(row->name, name) != 0) {
            row++;
        }
        if (row->name == NULL) {
            return refuse_unknown(rows, name, err);
        }
    }
    return true;
}

static bool check_choice(const struct mcp_argument *row, const char *text, struct err *err)
{
    autojson json_t *choices = choices_of(row->choices);
    size_t i;
    json_t *choice;
    json_array_foreach (choices, i, choice) {
        if (strcmp(json_string_value(choice), text) == 0) {
            return true;
        }
    }
    return err_field(err, ERR_FIELD, row->name, NULL, "%s must be one of %s", row->name, row->choices);
}

static bool check_text(const struct mcp_argument *row, const json_t *arguments, struct err *err)
{
    const char *text = NULL;
    return json_read_text(arguments, row->name, &text, err) &&
           (text == NULL || row->choices == NULL || check_choice(row, text, err));
}

static bool check_whole(const struct mcp_argument *row, const json_t *arguments, struct err *err)
{
    bool bounded = row->max > row->min;
    int64_t number;
    return json_read_int(arguments, row->name, bounded ? row->min : INT64_MIN, bounded ? row->max : INT64_MAX,
                         &number, err);
}

static bool check_one(const struct mcp_argument *row, const json_t *arguments, struct err *err)
{
    const json_t *value = json_object_get(arguments, row->name);
    bool flag;
    if (value == NULL || json_is_null(value)) {
        return !row->required || err_field(err, ERR_FIELD, row->name, NULL, "%s is missing", row->name);
    }
    switch (row->type) {
    case MCP_TEXT:
        return check_text(row, arguments, err);
    case MCP_WHOLE:
        return check_whole(row, arguments, err);
    case MCP_FLAG:
        return json_read_bool(arguments, row->name, &flag, err);
    case MCP_NUMBER:
    case MCP_TEXTS:
    case MCP_TEXT_MAP:
    case MCP_OBJECT:
    case MCP_ARRAY:
        break; /* only fields of jobs, which the controller checks */
    }
    return true;
}

bool mcp_arguments_check(const struct mcp_argument *rows, const json_t *arguments, struct err *err)
{
    bool good = check_names(rows, arguments, err);
    for (const struct mcp_argument *row = rows; good && row->name != NULL; row++) {
        good = check_one(row, arguments, err);
    }
    return good;
}

int64_t mcp_arguments_whole(const json_t *arguments, const char *name, int64_t other)
{
    int64_t number = other;
    return json_whole(json_object_get(arguments, name), &number) ? number : other;
}
