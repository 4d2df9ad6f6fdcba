/* SPDX-License-Identifier: Apache-2.0 */
/* Serves nodes: list, show, drain, resume, fence, expire, remove, leave. A node that has missed its
 * heartbeats shows as SUSPECT, which is in no row. The core carries out the actions. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/usage/node_windows.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/orders/outbox.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/samples/samples.h"
#include "daemon/http/usage/node_facts.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/wire/views.h"

/* --- views ---------------------------------------------------------------------------------------------- */

/* An agent may have come to offer less than is held. */
static int64_t at_least_0(int64_t number)
{
    return number > 0 ? number : 0;
}

/* whole: one node with its devices. */
static void write_node(const struct server *server, const struct windows *windows, const struct node_row *row,
                       const struct node_used *used, bool whole, struct text *out)
{
    const struct span window = windows_of_node(windows, row, server->wall_ms);
    autojson json_t *devices = json_parse(row->devices, strlen(row->devices), NULL);
    struct node_facts facts;
    node_facts_read(server, row, devices, used, &facts);
    const struct node_view view = {.name = row->name,
                                   .state = facts.state,
                                   .pool = row->pool,
                                   .pool_kind = row->pool_kind,
                                   .gpu_type = facts.gpu_type,
                                   .gpus = facts.gpus,
                                   .free_gpus = facts.free_gpus,
                                   .unavailable_gpus = facts.unavailable_gpus,
                                   .millicpus = row->millicpus,
                                   .free_millicpus = at_least_0(row->millicpus - used->millicpus),
                                   .memory_bytes = row->memory_bytes,
                                   .free_memory_bytes = at_least_0(row->memory_bytes - used->memory_bytes),
                                   .unavailable = facts.unavailable,
                                   .address = row->address,
                                   .version = row->version,
                                   .host_id = row->host_id,
                                   .isolation = row->isolation,
                                   .slots = row->slots,
                                   .heartbeat_age_ms = facts.heartbeat_age_ms,
                                   .reason = row->reason,
                                   .labels = row->labels,
                                   .expires_ms = row->expires_at_ms,
                                   .window_from_ms = window.from_ms,
                                   .window_until_ms = window.until_ms,
                                   .window_hard = window.hard,
                                   .devices = whole ? row->devices : NULL};
    node_view_encode(&view, out);
}

/* One row more than the page has tells whether there is a next one. The cursor is the name of the last. */
static bool write_page(const struct server *server, const char *after, int64_t limit, struct text *out,
                       struct err *err)
{
    autowindows struct windows *windows = windows_read(server->reader, err);
    if (windows == NULL) {
        return false;
    }
    autofree char *last = NULL;
    autorows struct rows rows = reader_nodes(server->reader, after, limit + 1, err);
    struct node_row row;
    struct node_used used;
    bool more;
    text_append(out, "{\"nodes\":[");
    while ((more = rows_node(&rows, &row, &used)) && limit-- > 0) {
        member_separate(out);
        write_node(server, windows, &row, &used, false, out);
        free(last);
        last = xstrdup(row.name);
    }
    member_write_text(out, "],\"next\":", more ? last : NULL);
    member_write_bool(out, ",\"leases_held\":", writer_holds_leases(server->config.writer));
    text_append(out, "}");
    return !rows.failed;
}

bool nodes_list(struct request *request, struct err *err)
{
    const char *after = query_text(request->query, "cursor");
    int64_t limit = LIMIT_LIST_ROWS;
    autotext struct text json = {0};
    return query_int(request->query, "limit", 1, LIMIT_LIST_ROWS, &limit, err) &&
           write_page(request->server, after != NULL ? after : "", limit, &json, err) &&
           request_reply_json(request, 200, &json);
}

bool nodes_show(struct request *request, struct err *err)
{
    const struct server *server = request->server;
    autotext struct text json = {0};
    autowindows struct windows *windows = windows_read(server->reader, err);
    if (windows == NULL) {
        return false;
    }
    autorows struct rows rows = reader_node(server->reader, request->argument, err);
    struct node_row row;
    struct node_used used;
    if (!rows_node(&rows, &row, &used)) {
        return !rows.failed && err_set(err, ERR_NOT_FOUND, "there is no node %s", request->argument);
    }
    write_node(server, windows, &row, &used, true, &json);
    return request_reply_json(request, 200, &json);
}

/* --- actions -------------------------------------------------------------------------------------------- */

/* The state that the step has left the node in. */
static int render_action(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct input *input = &writer->input;
    enum node_state state = NODE_STATE_COUNT;
    for (size_t i = 0; i < step->change_count; i++) {
        const struct change *change = &step->changes[i];
        if (change->kind == CHANGE_NODE_PUT && strcmp(change->node.name, input->node.name) == 0) {
            state = change->node.state;
        }
    }
    member_write_text(out, "{\"name\":", input->node.name);
    if (state != NODE_STATE_COUNT) {
        member_write_text(out, ",\"state\":", node_state_text(state));
    }
    text_append(out, "}");
    return 200;
}

static bool read_action(const struct request *request, enum node_action action, const char **ret_reason,
                        struct err *err)
{
    bool fence = action == NODE_ACTION_FENCE;
    bool dead = false;
    if (!request_only_fields(request->json, fence ? "reason assert_dead" : "reason", err) ||
        !json_read_text(request->json, "reason", ret_reason, err) ||
        !json_read_bool(request->json, "assert_dead", &dead, err)) {
        return false;
    }
    if (*ret_reason != NULL && strlen(*ret_reason) > LIMIT_REASON_BYTES) {
        return err_field(err, ERR_FIELD, "reason", NULL, "the reason is longer than %d bytes",
                         LIMIT_REASON_BYTES);
    }
    if (fence && !dead) {
        return err_field(err, ERR_FIELD, "assert_dead", "make sure that nothing runs there, then send true",
                         "fencing gives the node's jobs to other nodes: assert_dead must be true");
    }
    return true;
}

static struct ask *action_ask_create(struct request *request, enum node_action action,
                                     int (*render)(const struct writer_request *, const struct step *,
                                                   struct text *))
{
    struct ask *ask = ask_create(request, sizeof *ask, render);
    ask->writer.input.kind = INPUT_NODE;
    ask->writer.input.node.name = request->argument;
    ask->writer.input.node.action = action;
    ask->writer.input.node.by = identity_owner(request->who);
    return ask;
}

bool nodes_order(struct request *request, struct err *err)
{
    enum node_action action = (enum node_action)request->route->what;
    const char *reason = NULL;
    if (!read_action(request, action, &reason, err)) {
        return false;
    }
    struct ask *ask = action_ask_create(request, action, render_action);
    ask->writer.input.node.reason = reason;
    return ask_writer(ask, err);
}

static bool read_expiry(const struct request *request, int64_t *ret_expires_at_ms, struct err *err)
{
    const json_t *at = json_object_get(request->json, "at");
    *ret_expires_at_ms = 0;
    if (!request_only_fields(request->json, "at", err)) {
        return false;
    }
    if (json_is_null(at)) {
        return true;
    }
    const char *text = json_string_value(at);
    return (text != NULL && text_to_wall_ms(text, ret_expires_at_ms)) ||
           err_field(err, ERR_FIELD, "at", "write it as 2026-11-21T09:30:00Z, or null for never",
                     "at must be a time of RFC 3339, or null");
}

bool nodes_expire(struct request *request, struct err *err)
{
    int64_t expires_at_ms;
    if (!read_expiry(request, &expires_at_ms, err)) {
        return false;
    }
    struct ask *ask = action_ask_create(request, NODE_ACTION_EXPIRE, render_action);
    ask->writer.input.node.expires_at_ms = expires_at_ms;
    return ask_writer(ask, err);
}

/* --- remove --------------------------------------------------------------------------------------------- */

static bool is_removed(const struct step *step)
{
    for (size_t i = 0; i < step->change_count; i++) {
        if (step->changes[i].kind == CHANGE_NODE_DELETE) {
            return true;
        }
    }
    return false;
}

/* 202: it is fenced, and goes when its attempts have ended on the other nodes; then somebody has to ask
 * again. */
static int render_removed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    bool removed = is_removed(step);
    member_write_text(out, "{\"name\":", writer->input.node.name);
    member_write_bool(out, ",\"removed\":", removed);
    text_append(out, "}");
    return removed ? 200 : 202;
}

/* The tokens that were bound to it went with its row. */
static void forget_node(struct request *request, const char *name)
{
    struct server *server = request->server;
    struct err err;
    outbox_forget(server->outbox, name);
    samples_forget(server, name);
    log_info("node remove", "node=%s by=%s", name, identity_owner(request->who));
    if (!auth_load(server->auth, server->reader, &err)) {
        server_fail(server, &err); /* a token that is revoked must not go on */
    }
}

static void removed(struct ask *ask)
{
    if (ask->writer.status == 200) {
        forget_node(ask->request, ask->request->argument);
    }
}

bool nodes_remove(struct request *request, struct err *err)
{
    const char *force = query_text(request->query, "force");
    if (force != NULL && strcmp(force, "true") != 0 && strcmp(force, "false") != 0) {
        return err_field(err, ERR_FIELD, "force", NULL, "force must be true or false");
    }
    struct ask *ask = action_ask_create(request, NODE_ACTION_REMOVE, render_removed);
    ask->committed = removed;
    ask->writer.input.node.force = force != NULL && strcmp(force, "true") == 0;
    return ask_writer(ask, err);
}

/* --- leave ---------------------------------------------------------------------------------------------- */

struct leave {
    struct ask ask;
    struct leave_message message;
    bool forgotten;
};

static bool is_lost(const struct step *step)
{
    for (size_t i = 0; i < step->change_count; i++) {
        const struct change *change = &step->changes[i];
        if (change->kind == CHANGE_NODE_PUT && change->node.state == NODE_LOST) {
            return true;
        }
    }
    return false;
}

static int render_left(const struct writer_request *writer, const struct step *step, struct text *out)
{
    struct leave *leave = writer->asker;
    leave->forgotten = is_removed(step);
    const struct leave_reply reply = {.gone = leave->forgotten || is_lost(step)};
    autojson json_t *json = leave_reply_encode(&reply);
    autofree char *text = json_text(json);
    text_append(out, text);
    return 200;
}

static void left(struct ask *ask)
{
    const struct leave *leave = (struct leave *)ask;
    if (leave->forgotten) {
        forget_node(ask->request, leave->message.node);
    }
}

static void leave_finish(struct ask *ask)
{
    leave_message_finish(&((struct leave *)ask)->message);
}

bool nodes_leave(struct request *request, struct err *err)
{
    autoask struct leave *leave = ask_create(request, sizeof *leave, render_left);
    leave->ask.finish = leave_finish;
    if (!leave_message_decode(give(request->json), &leave->message, err) ||
        !identity_acts_for(request->who, leave->message.node, err)) {
        return false;
    }
    leave->ask.committed = left;
    leave->ask.writer.input.kind = INPUT_NODE;
    leave->ask.writer.input.node.name = leave->message.node;
    leave->ask.writer.input.node.action = NODE_ACTION_LEAVE;
    leave->ask.writer.input.node.leave = &leave->message;
    return ask_writer(give(leave), err);
}
