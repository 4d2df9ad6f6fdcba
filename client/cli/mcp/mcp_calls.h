/* SPDX-License-Identifier: Apache-2.0 */
/* What the tools do: each function asks the controller once, and appends its answer to out as the JSON of an
 * object on one line. Arguments have been checked, but for the fields of a job. */
#ifndef CLI_MCP_CALLS_H
#define CLI_MCP_CALLS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/frame/verb.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* One call of a tool. */
struct mcp_call {
    struct api *api;
    const json_t *arguments; /* an object */
    char id[RESOLVED_BYTES]; /* of the job that the argument `job` names; "" where there is none */
};

bool mcp_list_jobs(const struct mcp_call *call, struct text *out, struct err *err);
/* Waits as long as wait_s says for the end of the job. Parts of it that are long are left out. */
bool mcp_show_job(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_explain_job(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_plan_job(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_job_results(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_job_events(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_list_nodes(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_list_pools(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_list_secrets(const struct mcp_call *call, struct text *out, struct err *err);
/* In the answer is the Idempotency-Key, which is also in the hint of an error after which nobody knows
 * whether there is a job. */
bool mcp_submit_job(const struct mcp_call *call, struct text *out, struct err *err);
/* The same. */
bool mcp_clone_job(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_cancel_job(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_hold_job(const struct mcp_call *call, struct text *out, struct err *err);
bool mcp_release_job(const struct mcp_call *call, struct text *out, struct err *err);

#endif
