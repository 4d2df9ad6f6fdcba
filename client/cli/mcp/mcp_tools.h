/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that a client of the Model Context Protocol finds. */
#ifndef CLI_MCP_TOOLS_H
#define CLI_MCP_TOOLS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/mcp/mcp_arguments.h"
#include "client/cli/mcp/mcp_calls.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

enum mcp_effect {
    MCP_READS,
    MCP_ADDS,    /* each call does it once more */
    MCP_CHANGES, /* again is the same as once */
    MCP_ENDS     /* the same, and what it ends is gone */
};

struct mcp_tool {
    const char *name, *description;
    enum mcp_effect effect;
    bool takes_spec; /* the fields of a job, which the controller checks */
    const struct mcp_argument *arguments;
    bool (*run)(const struct mcp_call *call, struct text *out, struct err *err);
    const struct mcp_argument *more; /* further arguments; or NULL */
};

/* NULL: there is none of that name. */
const struct mcp_tool *mcp_tool_find(const char *name);

/* The answer to tools/list. With changes, those that change something are in it, too. New reference. */
json_t *mcp_tools_list(bool changes);

#endif
