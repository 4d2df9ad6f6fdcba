/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a tool: rows, from which both the JSON Schema that clients see and the check come. */
#ifndef CLI_MCP_ARGUMENTS_H
#define CLI_MCP_ARGUMENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

enum mcp_type {
    MCP_TEXT,
    MCP_WHOLE, /* a whole number, from min to max where max is above min */
    MCP_NUMBER,
    MCP_FLAG,
    MCP_TEXTS,    /* an array of strings */
    MCP_TEXT_MAP, /* an object of strings */
    MCP_OBJECT,
    MCP_ARRAY
};

/* Rows are constant. A list of them ends with a row without a name. */
struct mcp_argument {
    const char *name;
    enum mcp_type type;
    const char *description;
    bool required;
    int64_t min, max;
    const char *choices; /* of a text: "stdout|stderr"; or NULL */
};

/* The JSON Schema of an object with the members of two lists, of which the second may be NULL, and no others.
 * New reference. */
json_t *mcp_arguments_schema(const struct mcp_argument *rows, const struct mcp_argument *more);

/* ERR_FIELD, naming the argument that is unknown, missing or wrong. */
bool mcp_arguments_check(const struct mcp_argument *rows, const json_t *arguments, struct err *err);

/* Those that were checked; the other value where there is none. */
int64_t mcp_arguments_whole(const json_t *arguments, const char *name, int64_t other);

#endif
