/* SPDX-License-Identifier: Apache-2.0 */
/* The tool job_logs: a bounded part of one stream of a rank's output, and where the next part begins. */
#ifndef CLI_MCP_LOGS_H
#define CLI_MCP_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cli/mcp/mcp_calls.h"

/* A part of a stream, as the bytes that a reply carries. */
struct mcp_part {
    int64_t offset; /* of its first byte in the stream */
    int64_t size;   /* of the stream, as far as it is stored */
    const char *bytes;
    size_t length;
};

/* Reads a Content-Range: "bytes 3-7/20", or "bytes" and an asterisk for none of 20. false: it is neither. */
bool mcp_part_read_range(const char *content_range, struct mcp_part *part);

/* Leaves out a character at its end that has more bytes in the stream; and with head, the end of a character
 * at its beginning. */
void mcp_part_trim(struct mcp_part *part, bool head);

bool mcp_job_logs(const struct mcp_call *call, struct text *out, struct err *err);

#endif
