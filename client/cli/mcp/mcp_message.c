/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes messages of JSON-RPC 2.0, one a line. It promises that a message which nobody can make
 * sense of has an answer all the same, that no line takes more memory than its limit, and that what it writes
 * is one line of JSON. mcp.c knows the methods. */
#include "client/cli/mcp/mcp_message.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

/* --- lines ---------------------------------------------------------------------------------------------- */

enum mcp_line mcp_line_read(FILE *in, struct text *line)
{
    bool too_long = false;
    int byte;
    text_clear(line);
    while ((byte = getc_unlocked(in)) != EOF && byte != '\n') {
        too_long = too_long || line->length == CLIENT_MCP_LINE_BYTES;
        if (!too_long) {
            text_append_bytes(line, &(char){(char)byte}, 1);
        }
    }
    if (too_long) {
        text_clear(line);
        return MCP_LINE_TOO_LONG;
    }
    return byte == EOF && line->length == 0 ? MCP_LINES_END : MCP_LINE;
}

/* --- decode --------------------------------------------------------------------------------------------- */

static void refuse(struct mcp_message *message, enum mcp_fault fault, const char *text)
{
    message->kind = MCP_FAULT;
    message->fault = fault;
    snprintf(message->text, sizeof message->text, "%s", text);
}

static void decode_object(struct mcp_message *message)
{
    const json_t *id = json_object_get(message->json, "id");
    const char *version = json_string_of(message->json, "jsonrpc");
    bool answers =
        json_object_get(message->json, "result") != NULL || json_object_get(message->json, "error") != NULL;
    message->id = json_is_string(id) || json_is_number(id) ? id : NULL;
    message->method = json_string_of(message->json, "method");
    message->params = json_object_get(message->json, "params");
    if (version == NULL || strcmp(version, "2.0") != 0) {
        refuse(message, MCP_NOT_A_REQUEST, "\"jsonrpc\" must be \"2.0\"");
    } else if (id != message->id) {
        refuse(message, MCP_NOT_A_REQUEST, "\"id\" must be a string or a number");
    } else if (message->method == NULL && answers) {
        message->kind = MCP_RESPONSE;
    } else if (message->method == NULL) {
        refuse(message, MCP_NOT_A_REQUEST, "\"method\" must be a string");
    } else {
        message->kind = id != NULL ? MCP_REQUEST : MCP_NOTIFICATION;
    }
}

void mcp_message_decode(const struct text *line, struct mcp_message *ret_message)
{
    struct err err;
    *ret_message = (struct mcp_message){.json = json_parse(line->bytes, line->length, &err)};
    if (ret_message->json == NULL) {
        refuse(ret_message, MCP_NOT_JSON, err.text);
    } else if (json_is_object(ret_message->json)) {
        decode_object(ret_message);
    } else { /* batches, which only version 2025-03-26 of the protocol knows, are refused, too */
        refuse(ret_message, MCP_NOT_A_REQUEST, "a message must be one object");
    }
}

void mcp_message_finish(struct mcp_message *message)
{
    json_decref(message->json);
    *message = (struct mcp_message){0};
}

/* --- replies -------------------------------------------------------------------------------------------- */

/* value is the JSON of the member. */
static bool reply(FILE *out, const json_t *id, const char *member, const char *value, struct err *err)
{
    autofree char *id_text = id != NULL ? json_text(id) : xstrdup("null");
    fprintf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":", id_text, member);
    fputs(value, out);
    fputs("}\n", out);
    return fflush(out) == 0 || err_errno(err, "cannot write to the client");
}

bool mcp_reply_result(FILE *out, const json_t *id, const char *result, struct err *err)
{
    return reply(out, id, "result", result, err);
}

bool mcp_reply_fault(FILE *out, const json_t *id, enum mcp_fault fault, const char *text, struct err *err)
{
    autotext struct text error = {0};
    text_printf(&error, "{\"code\":%d,\"message\":", (int)fault);
    text_json_string(&error, text, strlen(text));
    text_append(&error, "}");
    return reply(out, id, "error", error.bytes, err);
}
