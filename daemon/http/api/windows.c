/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of maintenance windows: list, make, remove. It promises that nodes are named in one of three
 * ways: by name, by pool, or all. Whether they exist, and what a window means, is the core's part. */
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/wire/views.h"

/* "a,b" to ["a","b"], NULL to NULL. */
static void write_names(const char *names, struct text *out)
{
    text_append(out, "[");
    for (const char *at = names; *at != '\0';) {
        size_t length = strcspn(at, ",");
        member_separate(out);
        text_json_string(out, at, length);
        at += length + (at[length] == ',');
    }
    text_append(out, "]");
}

static void write_window(const struct window_row *row, struct text *out)
{
    autotext struct text nodes = {0};
    if (row->nodes != NULL) {
        write_names(row->nodes, &nodes);
    }
    const struct window_view view = {.id = row->id,
                                     .nodes = nodes.bytes,
                                     .pool = row->pool,
                                     .from_ms = row->from_ms,
                                     .until_ms = row->until_ms,
                                     .hard = row->hard,
                                     .reason = row->reason,
                                     .owner = row->owner,
                                     .created_ms = row->created_ms};
    window_view_encode(&view, out);
}

/* --- list ----------------------------------------------------------------------------------------------- */

bool windows_list(struct request *request, struct err *err)
{
    autotext struct text json = {0};
    autorows struct rows rows = reader_windows(request->server->reader, err);
    struct window_row row;
    text_append(&json, "{\"windows\":[");
    while (rows_window(&rows, &row)) {
        member_separate(&json);
        write_window(&row, &json);
    }
    text_append(&json, "]}");
    return !rows.failed && request_reply_json(request, 200, &json);
}

/* --- changes -------------------------------------------------------------------------------------------- */

struct window_ask {
    struct ask ask;
    struct window_row row;
    struct text nodes;
    char id[ID_LENGTH + 1];
};

static void window_ask_finish(struct ask *ask)
{
    text_finish(&((struct window_ask *)ask)->nodes);
}

static int render_made(const struct writer_request *writer, const struct step *step, struct text *out)
{
    for (size_t i = 0; i < step->change_count; i++) {
        if (step->changes[i].kind == CHANGE_WINDOW_INSERT) {
            write_window(&step->changes[i].window, out);
        }
    }
    return 201;
}

static bool read_names(const json_t *nodes, struct text *out, struct err *err)
{
    size_t count = json_array_size(nodes);
    if (!json_is_array(nodes) || count == 0 || count > LIMIT_WINDOW_NODES) {
        return err_field(err, ERR_FIELD, "nodes", "name a pool, or send all=true, for more of them",
                         "nodes must be an array of 1 to %d names", LIMIT_WINDOW_NODES);
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(nodes, i));
        if (name == NULL || !text_is_name(name, LIMIT_NAME_BYTES)) {
            return err_field(err, ERR_FIELD, "nodes", "list the nodes", "nodes[%zu] is no name of a node", i);
        }
        text_printf(out, "%s%s", i > 0 ? "," : "", name);
    }
    return true;
}

/* Exactly one of nodes, pool and all. */
static bool read_whose(const json_t *json, struct window_ask *asked, struct err *err)
{
    const json_t *nodes = json_object_get(json, "nodes");
    bool named = nodes != NULL && !json_is_null(nodes), all = false;
    if (!json_read_text(json, "pool", &asked->row.pool, err) || !json_read_bool(json, "all", &all, err) ||
        (named && !read_names(nodes, &asked->nodes, err))) {
        return false;
    }
    asked->row.nodes = named ? asked->nodes.bytes : NULL;
    return named + (asked->row.pool != NULL) + all == 1 ||
           err_field(err, ERR_FIELD, "nodes", NULL, "send exactly one of nodes, pool and all=true");
}

static bool read_moment(const json_t *json, const char *name, int64_t *ret_wall_ms, struct err *err)
{
    const char *text = NULL;
    if (!json_need_text(json, name, &text, err)) {
        return false;
    }
    return text_to_wall_ms(text, ret_wall_ms) ||
           err_field(err, ERR_FIELD, name, "write it as 2026-11-21T09:30:00Z",
                     "%s must be a time of RFC 3339", name);
}

static bool read_window(const json_t *json, struct window_ask *asked, struct err *err)
{
    struct window_row *row = &asked->row;
    if (!request_only_fields(json, "nodes pool all from until hard reason", err) ||
        !read_whose(json, asked, err) || !read_moment(json, "from", &row->from_ms, err) ||
        !read_moment(json, "until", &row->until_ms, err) || !json_read_bool(json, "hard", &row->hard, err) ||
        !json_read_text(json, "reason", &row->reason, err)) {
        return false;
    }
    return row->reason == NULL || strlen(row->reason) <= LIMIT_REASON_BYTES ||
           err_field(err, ERR_FIELD, "reason", NULL, "the reason is longer than %d bytes",
                     LIMIT_REASON_BYTES);
}

bool windows_make(struct request *request, struct err *err)
{
    autoask struct window_ask *asked = ask_create(request, sizeof *asked, render_made);
    asked->ask.finish = window_ask_finish;
    if (!read_window(request->json, asked, err)) {
        return false;
    }
    uint8_t random[10];
    server_random(request->server, random, sizeof random);
    text_id_from_bytes(random, asked->id);
    asked->row.id = asked->ask.subject = asked->id;
    asked->row.owner = identity_owner(request->who);
    asked->ask.writer.input.kind = INPUT_WINDOW;
    asked->ask.writer.input.window.row = &asked->row;
    return ask_writer(give(asked), err);
}

static int render_removed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    member_write_text(out, "{\"id\":", writer->input.window.remove);
    text_append(out, ",\"removed\":true}");
    return 200;
}

bool windows_remove(struct request *request, struct err *err)
{
    struct ask *ask = ask_create(request, sizeof *ask, render_removed);
    ask->writer.input.kind = INPUT_WINDOW;
    ask->writer.input.window.remove = request->argument;
    return ask_writer(ask, err);
}
