/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the Model Context Protocol on a pair of files: JSON-RPC 2.0, one message a line. */
#ifndef CLI_MCP_MESSAGE_H
#define CLI_MCP_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* Codes of JSON-RPC. */
enum mcp_fault {
    MCP_NOT_JSON = -32700,
    MCP_NOT_A_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_WRONG_PARAMS = -32602
};

enum mcp_line { MCP_LINE, MCP_LINE_TOO_LONG, MCP_LINES_END };

/* The next line, without its end. Of one that has more than CLIENT_MCP_LINE_BYTES nothing is kept. */
enum mcp_line mcp_line_read(FILE *in, struct text *line);

enum mcp_kind {
    MCP_REQUEST,
    MCP_NOTIFICATION,
    MCP_RESPONSE, /* to a request of ours, of which there are none */
    MCP_FAULT     /* nothing of these: it is answered with fault and text */
};

struct mcp_message {
    json_t *json;
    enum mcp_kind kind;
    const json_t *id; /* borrowed, as all below; NULL: it has none, or a wrong one */
    const char *method;
    const json_t *params; /* or NULL */
    enum mcp_fault fault;
    char text[sizeof((struct err *)0)->text];
};

void mcp_message_decode(const struct text *line, struct mcp_message *ret_message);
void mcp_message_finish(struct mcp_message *message);

/* Answers with a result, which is the JSON text of an object on one line. false: out cannot be written. */
bool mcp_reply_result(FILE *out, const json_t *id, const char *result, struct err *err);
/* Answers with an error. id NULL: the message had none that could be read. */
bool mcp_reply_fault(FILE *out, const json_t *id, enum mcp_fault fault, const char *text, struct err *err);

#endif
