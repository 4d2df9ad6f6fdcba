/* SPDX-License-Identifier: Apache-2.0 */
/* Serves webhooks: list, make, show, change, remove, test. A secret is shown once, in the answer that made
 * it. People see and change their own, administrators all. Whom a webhook may tell what is the core's part.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/webhooks/webhook_ask.h"
#include "daemon/notify/message.h"
#include "daemon/notify/target.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

/* "a,b" to ["a","b"]. */
static void write_kinds(const char *kinds, struct text *out)
{
    text_append(out, ",\"events\":[");
    while (*kinds != '\0') {
        size_t length = strcspn(kinds, ",");
        member_separate(out);
        text_json_string(out, kinds, length);
        kinds += length;
        kinds += *kinds == ',';
    }
    text_append(out, "]");
}

/* The caller writes the end. */
static void begin_webhook(const struct webhook_row *row, struct text *out)
{
    autofree char *url = target_mask(row->url);
    member_write_text(out, "{\"id\":", row->id);
    member_write_text(out, ",\"name\":", row->name);
    member_write_text(out, ",\"owner\":", row->owner);
    member_write_text(out, ",\"url\":", url);
    member_write_text(out, ",\"scope\":", webhook_scope_text(row->scope));
    member_write_text(out, ",\"project\":", row->project);
    write_kinds(row->kinds, out);
    member_write_bool(out, ",\"tasks\":", row->tasks);
    member_write_bool(out, ",\"enabled\":", row->enabled);
    member_write_text(out, ",\"reason\":", row->reason);
    member_write_time(out, ",\"failing_since\":", row->failing_ms);
    member_write_time(out, ",\"created_at\":", row->created_ms);
}

static void write_webhook(const struct webhook_row *row, const char *secret, struct text *out)
{
    begin_webhook(row, out);
    if (secret != NULL) {
        member_write_text(out, ",\"secret\":", secret);
    }
    text_append(out, "}");
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* Webhooks have addresses and secrets of people: administrators alone see those of others. */
static const char *scope_of(const struct request *request)
{
    return identity_is_admin(request->who) ? NULL : identity_owner(request->who);
}

static bool is_mine(const struct request *request, const char *owner)
{
    const char *scope = scope_of(request);
    return scope == NULL || strcmp(scope, owner) == 0;
}

bool webhook_find_row(struct request *request, struct rows *ret_rows, struct webhook_row *ret_row,
                      struct err *err)
{
    *ret_rows = reader_webhook(request->server->reader, request->argument, err);
    if (rows_webhook(ret_rows, ret_row) && is_mine(request, ret_row->owner)) {
        return true;
    }
    return !ret_rows->failed && err_field(err, ERR_NOT_FOUND, "id", "list the webhooks",
                                          "there is no webhook %s", request->argument);
}

static bool write_shown(const struct request *request, const struct webhook_row *row, struct text *out,
                        struct err *err)
{
    begin_webhook(row, out);
    bool read = deliveries_write_newest(request, row->id, out, err);
    text_append(out, "}");
    return read;
}

bool webhooks_show(struct request *request, struct err *err)
{
    autotext struct text json = {0};
    autorows struct rows rows = {0};
    struct webhook_row row;
    if (!webhook_find_row(request, &rows, &row, err)) {
        return false;
    }
    return write_shown(request, &row, &json, err) && request_reply_json(request, 200, &json);
}

/* One row more than the page has tells whether there is a next one. The cursor is the id of the last. */
bool webhooks_list(struct request *request, struct err *err)
{
    const char *after = query_text(request->query, "cursor");
    int64_t limit = LIMIT_LIST_DEFAULT_ROWS;
    if (!query_int(request->query, "limit", 1, LIMIT_LIST_ROWS, &limit, err)) {
        return false;
    }
    autotext struct text json = {0};
    autofree char *last = NULL;
    autorows struct rows rows = reader_webhooks(request->server->reader, scope_of(request),
                                                after != NULL ? after : "", limit + 1, err);
    struct webhook_row row;
    bool more;
    text_append(&json, "{\"webhooks\":[");
    while ((more = rows_webhook(&rows, &row)) && limit-- > 0) {
        member_separate(&json);
        if (!write_shown(request, &row, &json, err)) {
            return false;
        }
        free(last);
        last = xstrdup(row.id);
    }
    member_write_text(&json, "],\"next\":", more ? last : NULL);
    text_append(&json, "}");
    return !rows.failed && request_reply_json(request, 200, &json);
}

/* --- changes -------------------------------------------------------------------------------------------- */

static void webhook_ask_finish(struct ask *ask)
{
    struct webhook_ask *asked = (struct webhook_ask *)ask;
    text_finish(&asked->kinds);
    free(asked->secret);
    free(asked->keys);
}

struct webhook_ask *webhook_ask_create(struct request *request, enum webhook_action action,
                                       int (*render)(const struct writer_request *, const struct step *,
                                                     struct text *))
{
    struct webhook_ask *asked = ask_create(request, sizeof *asked, render);
    asked->ask.finish = webhook_ask_finish;
    asked->ask.writer.input.kind = INPUT_WEBHOOK;
    asked->ask.writer.input.webhook.action = action;
    asked->ask.writer.input.webhook.id = request->argument;
    asked->ask.writer.input.webhook.owner = scope_of(request);
    return asked;
}

/* The webhook as the step has written it. */
static bool render_webhook(const struct step *step, const char *secret, struct text *out)
{
    for (size_t i = step->change_count; i > 0; i--) {
        if (step->changes[i - 1].kind == CHANGE_WEBHOOK_PUT) {
            write_webhook(&step->changes[i - 1].webhook, secret, out);
            return true;
        }
    }
    return false;
}

static int render_made(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct webhook_ask *asked = writer->asker;
    render_webhook(step, asked->secret, out);
    return 201;
}

static int render_changed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    render_webhook(step, NULL, out);
    return 200;
}

static const char default_kinds[] = "succeeded,failed,canceled,timed_out,requeued,idle";

/* ["a","b"] to "a,b". */
static bool read_kinds(const json_t *json, struct text *out, struct err *err)
{
    const json_t *kinds = json_object_get(json, "events");
    if (kinds == NULL || json_is_null(kinds)) {
        return true;
    }
    size_t count = json_array_size(kinds);
    if (!json_is_array(kinds) || count == 0 || count > EVENT_KIND_COUNT) {
        return err_field(err, ERR_FIELD, "events", "write [\"succeeded\", \"failed\"]",
                         "events must be an array of 1 to %d kinds of events", EVENT_KIND_COUNT);
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(kinds, i));
        enum event_kind kind;
        if (name == NULL || !event_kind_from_text(name, &kind)) {
            return err_field(err, ERR_FIELD, "events", "see the events of a job for their kinds",
                             "there is no event \"%.64s\"", name != NULL ? name : "");
        }
        text_printf(out, "%s%s", i > 0 ? "," : "", name);
    }
    return true;
}

static bool check_url(const struct request *request, const char *url, struct err *err)
{
    static const struct networks none = {0};
    const struct networks *networks = request->server->config.webhook_networks;
    return target_check(url, networks != NULL ? networks : &none, err);
}

static bool read_name(const char *name, const char *what, struct err *err)
{
    return name == NULL || text_is_name(name, LIMIT_NAME_BYTES) ||
           err_field(err, ERR_FIELD, what, NULL,
                     "the %s must be 1 to %d letters, digits and . _ -, and start with a letter or digit",
                     what, LIMIT_NAME_BYTES);
}

static bool read_scope(const struct request *request, const json_t *json, struct webhook_row *row,
                       struct err *err)
{
    const char *scope = webhook_scope_text(WEBHOOK_OWN);
    if (!json_read_text(json, "scope", &scope, err)) {
        return false;
    }
    if (!webhook_scope_from_text(scope, &row->scope)) {
        return err_field(err, ERR_FIELD, "scope", "write own, named or all", "there is no scope \"%.64s\"",
                         scope);
    }
    return row->scope != WEBHOOK_ALL || identity_is_admin(request->who) ||
           err_field(err, ERR_FORBIDDEN, "scope", "write own, or ask an administrator",
                     "only an administrator's webhook can tell of everybody's jobs");
}

static bool read_order(const struct request *request, struct webhook_ask *asked, struct err *err)
{
    const json_t *json = request->json;
    struct webhook_row *row = &asked->row;
    return request_only_fields(json, "url name scope project events tasks", err) &&
           json_need_text(json, "url", &row->url, err) && check_url(request, row->url, err) &&
           json_read_text(json, "name", &row->name, err) && read_name(row->name, "name", err) &&
           read_scope(request, json, row, err) && json_read_text(json, "project", &row->project, err) &&
           read_name(row->project, "project", err) && read_kinds(json, &asked->kinds, err) &&
           json_read_bool(json, "tasks", &row->tasks, err);
}

bool webhooks_make(struct request *request, struct err *err)
{
    autoask struct webhook_ask *asked = webhook_ask_create(request, WEBHOOK_ACTION_MAKE, render_made);
    struct webhook_row *row = &asked->row;
    if (!read_order(request, asked, err)) {
        return false;
    }
    uint8_t id[10], secret[HASH_BYTES];
    server_random(request->server, id, sizeof id);
    text_id_from_bytes(id, asked->id);
    random_fill(secret, sizeof secret);
    asked->secret = message_secret(secret);
    row->id = asked->ask.subject = asked->id;
    row->owner = identity_owner(request->who);
    row->secret = asked->secret;
    row->kinds = asked->kinds.length > 0 ? asked->kinds.bytes : default_kinds;
    row->enabled = true;
    asked->ask.writer.input.webhook.row = row;
    return ask_writer(give(asked), err);
}

bool webhooks_change(struct request *request, struct err *err)
{
    const json_t *json = request->json;
    autoask struct webhook_ask *asked = webhook_ask_create(request, WEBHOOK_ACTION_CHANGE, render_changed);
    struct input *input = &asked->ask.writer.input;
    if (!request_only_fields(json, "url events tasks enabled", err) ||
        !json_read_text(json, "url", &input->webhook.url, err) ||
        (input->webhook.url != NULL && !check_url(request, input->webhook.url, err)) ||
        !read_kinds(json, &asked->kinds, err) || !json_read_bool(json, "tasks", &input->webhook.tasks, err) ||
        !json_read_bool(json, "enabled", &input->webhook.enabled, err)) {
        return false;
    }
    input->webhook.kinds = asked->kinds.length > 0 ? asked->kinds.bytes : NULL;
    input->webhook.sets_tasks = json_is_boolean(json_object_get(json, "tasks"));
    input->webhook.sets_enabled = json_is_boolean(json_object_get(json, "enabled"));
    return ask_writer(give(asked), err);
}

static int render_removed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    member_write_text(out, "{\"id\":", writer->input.webhook.id);
    text_append(out, ",\"removed\":true}");
    return 200;
}

bool webhooks_remove(struct request *request, struct err *err)
{
    return ask_writer(webhook_ask_create(request, WEBHOOK_ACTION_REMOVE, render_removed), err);
}

static int render_tested(const struct writer_request *writer, const struct step *step, struct text *out)
{
    char key[24] = "";
    for (size_t i = 0; i < step->change_count; i++) {
        if (step->changes[i].kind == CHANGE_DELIVERY_INSERT) {
            snprintf(key, sizeof key, "%lld", (long long)step->changes[i].delivery.key);
        }
    }
    member_write_text(out, "{\"delivery\":", key);
    text_append(out, "}");
    return 202;
}

bool webhooks_test(struct request *request, struct err *err)
{
    return request_only_fields(request->json, "", err) &&
           ask_writer(webhook_ask_create(request, WEBHOOK_ACTION_TEST, render_tested), err);
}
