/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl secret`: sets, lists and removes what jobs ask for by name. A value comes from a file, from stdin
 * or from a terminal that does not show it, and never from the command line, which everybody on the host can
 * read. The controller shows no value. */
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "client/cli/common/answer.h"
#include "client/cli/controller/connect.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

struct secret_options {
    const char *project, *file;
};

#define ROW_PROJECT                                                                                          \
    ROW_TEXT(struct secret_options, project, 'p', "project", "NAME",                                         \
             "of this project, whose user you are; else your own", .sent_as = "project")

static void wipe(void *bytes, size_t length)
{
    if (bytes != NULL) {
        explicit_bzero(bytes, length);
        free(bytes);
    }
}

/* /v1/secrets, with a name where there is one. */
static char *path_of(const struct call *call, const char *name)
{
    const struct secret_options *options = call->options;
    struct text path = {0};
    text_append(&path, "/v1/secrets");
    if (name != NULL) {
        text_printf(&path, "/%s", name);
    }
    api_query(&path, "project", options->project);
    return text_take(&path);
}

/* --- set --- */

static const struct option_row set_rows[] = {
    ROW_PROJECT,
    ROW_TEXT(struct secret_options, file, 0, "file", "FILE", "all bytes of it are the value; else stdin"),
    ROW_FORMAT, ROWS_END};

/* A prompt, whose answer the terminal does not show. */
static void begin_typing(const char *name, struct termios *ret_before)
{
    struct termios hidden;
    if (tcgetattr(STDIN_FILENO, ret_before) == 0) {
        hidden = *ret_before;
        hidden.c_lflag &= (tcflag_t)~ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    }
    fprintf(stderr, "value of %s: ", name);
}

static void end_typing(const struct termios *before)
{
    tcsetattr(STDIN_FILENO, TCSAFLUSH, before);
    fputs("\n", stderr);
}

/* Up to the end, or of a terminal one line. One line end at the end is not part of it. */
static bool read_stdin(const char *name, char **ret_value, size_t *ret_length, struct err *err)
{
    const size_t room = (size_t)LIMIT_SECRET_BYTES + 3;
    const bool terminal = isatty(STDIN_FILENO) == 1;
    struct termios before = {0};
    char *value = xzalloc(room);
    size_t length = 0;
    if (terminal) {
        begin_typing(name, &before);
        length = fgets(value, (int)room, stdin) != NULL ? strlen(value) : 0;
        end_typing(&before);
    } else {
        length = fread(value, 1, room - 1, stdin);
    }
    length -= length > 0 && value[length - 1] == '\n';
    length -= length > 0 && value[length - 1] == '\r';
    *ret_value = value;
    *ret_length = length;
    return ferror(stdin) == 0 || err_set(err, ERR_IO, "cannot read stdin");
}

static bool read_value(const struct call *call, char **ret_value, size_t *ret_length, struct err *err)
{
    const struct secret_options *options = call->options;
    const size_t most = (size_t)LIMIT_SECRET_BYTES;
    bool read = options->file != NULL ? file_read(options->file, most, ret_value, ret_length, err)
                                      : read_stdin(call->rest[0], ret_value, ret_length, err);
    if (!read) {
        return false;
    }
    return (*ret_length > 0 && *ret_length <= most) ||
           err_field(err, ERR_USAGE, "file", "give it on stdin, or name a file with --file",
                     "a secret has 1 to %lld bytes, not %zu", LIMIT_SECRET_BYTES, *ret_length);
}

static bool set_run(const struct call *call, int *ret_exit, struct err *err)
{
    char *value = NULL;
    size_t length = 0;
    autojson json_t *wanted = json_object();
    option_send(set_rows, call->options, wanted);
    bool read = read_value(call, &value, &length, err);
    if (read) {
        char *base64 = text_to_base64((const uint8_t *)value, length);
        json_object_set_new(wanted, "base64", json_string(base64));
        wipe(base64, strlen(base64));
    }
    wipe(value, length);
    if (!read) {
        return false;
    }
    autojson json_t *secret = api_ask(call->api, "PUT", wanted, err, "/v1/secrets/%s", call->rest[0]);
    return answer_note(call, secret, err, "secret %s is set: gpuctl submit --secret %s", call->rest[0],
                       call->rest[0]);
}

static const struct verb verb_set = {
    .name = "set",
    .arguments = "NAME",
    .summary = "Set a secret to what stdin or a file holds.",
    .details =
        "Without --file the value is read from stdin, without the line end at its end; a terminal asks for "
        "it and does not\n"
        "show it. NAME is that of the variable in which jobs find it, unless they name another.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct secret_options),
    .rows = {set_rows},
    .run = set_run,
};

/* --- list --- */

static const struct option_row list_rows[] = {ROW_PROJECT, ROW_QUIET("names alone"), ROW_FORMAT, ROWS_END};

static const struct column columns[] = {
    COLUMN("NAME", "name", cell_plain), COLUMN("BYTES", "bytes", cell_plain),
    COLUMN("SET", "set_at", cell_time), COLUMN("BY", "set_by", cell_plain)};

static const struct listing secrets = {
    .name = "secrets", LIST_COLUMNS(columns), .key = "name", .uncut = true};

static bool list_secrets(const struct call *call, int *ret_exit, struct err *err)
{
    autotext struct text out = {0};
    autofree char *path = path_of(call, NULL);
    autojson json_t *answer = api_read(call->api, path, err);
    if (answer == NULL) {
        return false;
    }
    list_print(call, &secrets, json_object_get(answer, "secrets"), &out);
    return print_out(&out, err);
}

static const struct verb verb_list = {
    .name = "list",
    .summary = "List your secrets, or those of a project, without their values.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct secret_options),
    .rows = {list_rows},
    .run = list_secrets,
};

/* --- rm --- */

static const struct option_row rm_rows[] = {ROW_PROJECT, ROWS_END};

static bool rm_run(const struct call *call, int *ret_exit, struct err *err)
{
    autofree char *path = path_of(call, call->rest[0]);
    if (!api_send(call->api, &(struct request){.method = "DELETE", .path = path}, NULL, err)) {
        return false;
    }
    print_note("secret %s is removed", call->rest[0]);
    return true;
}

static const struct verb verb_take_away = {
    .name = "rm",
    .arguments = "NAME",
    .summary = "Remove a secret. Jobs that have it keep it until they end.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct secret_options),
    .rows = {rm_rows},
    .run = rm_run,
};

static const struct verb *const nested[] = {&verb_set, &verb_list, &verb_take_away, NULL};

const struct verb verb_secret = {
    .name = "secret",
    .summary = "Set tokens, passwords and keys that jobs ask for by name.",
    .nested = nested,
};
