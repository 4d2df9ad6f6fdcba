/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the request for a stream. */
#include "proto/wire/stream_request.h"

#include <string.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/members.h"

#define SIZE_MOST       65535
#define TERM_BYTES      64
#define DEFAULT_ROWS    24
#define DEFAULT_COLUMNS 80

static bool read_word(const json_t *word, size_t *bytes, struct err *err)
{
    const char *text = json_string_value(word);
    if (text == NULL) {
        return err_field(err, ERR_FIELD, "command", NULL, "command holds something that is no text");
    }
    *bytes += strlen(text) + 1;
    return true;
}

static bool read_command(json_t *json, struct stream_request *request, struct err *err)
{
    json_t *command;
    size_t bytes = 0;
    if (!member_read_array(json, "command", LIMIT_STREAM_WORDS, &command, err)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(command); i++) {
        if (!read_word(json_array_get(command, i), &bytes, err)) {
            return false;
        }
    }
    if (json_array_size(command) == 0 || json_string_length(json_array_get(command, 0)) == 0) {
        return err_field(err, ERR_FIELD, "command", NULL, "command names no program");
    }
    request->command = command;
    return bytes <= LIMIT_STREAM_COMMAND_BYTES ||
           err_field(err, ERR_FIELD, "command", NULL, "command is longer than %lld bytes",
                     (long long)LIMIT_STREAM_COMMAND_BYTES);
}

static bool read_terminal(const json_t *json, struct stream_request *request, struct err *err)
{
    const json_t *terminal = json_object_get(json, "terminal");
    request->terminal = terminal != NULL && !json_is_null(terminal);
    if (!request->terminal) {
        return true;
    }
    request->rows = DEFAULT_ROWS;
    request->columns = DEFAULT_COLUMNS;
    if (!json_is_object(terminal)) {
        return err_field(err, ERR_FIELD, "terminal", NULL, "terminal is no object");
    }
    if (!json_read_int(terminal, "rows", 0, SIZE_MOST, &request->rows, err) ||
        !json_read_int(terminal, "columns", 0, SIZE_MOST, &request->columns, err) ||
        !json_read_text(terminal, "term", &request->term, err)) {
        return false;
    }
    return request->term == NULL || text_is_name(request->term, TERM_BYTES) ||
           err_field(err, ERR_FIELD, "term", NULL, "term is not the name of a kind of terminal");
}

bool stream_request_decode(json_t *json, struct stream_request *ret_request, struct err *err)
{
    struct stream_request request = {0};
    const char *kind;
    if (!json_need_text(json, "kind", &kind, err) ||
        !json_read_int(json, "rank", 0, LIMIT_GPUS - 1, &request.rank, err)) {
        return false;
    }
    if (strcmp(kind, "forward") == 0) {
        request.kind = STREAM_KIND_FORWARD;
        *ret_request = request;
        return json_need_int(json, "port", 1, UINT16_MAX, &ret_request->port, err);
    }
    if (strcmp(kind, "exec") != 0) {
        return err_field(err, ERR_FIELD, "kind", "write exec or forward", "there is no kind of stream \"%s\"",
                         kind);
    }
    if (!read_command(json, &request, err) || !json_read_bool(json, "input", &request.input, err) ||
        !read_terminal(json, &request, err)) {
        return false;
    }
    *ret_request = request;
    return true;
}
