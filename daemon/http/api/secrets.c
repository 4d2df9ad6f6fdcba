/* SPDX-License-Identifier: Apache-2.0 */
/* Serves secrets: set, list, remove, and seal all under a new key. No answer holds a value, nor does the
 * audit. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/secrets/secrets.h"
#include "daemon/store/store.h"
#include "daemon/vault/vault.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

/* --- whose ---------------------------------------------------------------------------------------------- */

/* One of the two is "". */
struct scope {
    const char *owner, *project;
};

static bool scope_of(const struct request *request, const char *project, struct scope *ret_scope,
                     struct err *err)
{
    const char *name = identity_owner(request->who);
    *ret_scope = project != NULL ? (struct scope){"", project} : (struct scope){name, ""};
    if (project == NULL ||
        authorize_secrets(request->server->projects, identity_principal(request->who), project)) {
        return true;
    }
    err_field(err, ERR_FORBIDDEN, "project", NULL, "there is no project %.64s whose secrets you may use",
              project);
    return err_hint(err, "have an administrator call `gpuctl quotas set project %.64s --member %s=user`",
                    project, name);
}

/* --- list ----------------------------------------------------------------------------------------------- */

static void write_secret(const struct secret_row *row, struct text *out)
{
    member_write_text(out, "{\"name\":", row->name);
    member_write_text(out, ",\"project\":", row->project[0] != '\0' ? row->project : NULL);
    member_write_int(out, ",\"bytes\":", (int64_t)vault_value_size((size_t)row->sealed_size));
    member_write_text(out, ",\"set_by\":", row->set_by);
    member_write_time(out, ",\"set_at\":", row->set_ms);
    text_append(out, "}");
}

bool secrets_list(struct request *request, struct err *err)
{
    const char *project = NULL;
    struct scope scope;
    if (!query_name(request->query, "project", &project, err) || !scope_of(request, project, &scope, err)) {
        return false;
    }
    autotext struct text json = {0};
    autorows struct rows rows = reader_secrets(request->server->reader, scope.owner, scope.project, err);
    struct secret_row row;
    text_append(&json, "{\"secrets\":[");
    while (rows_secret(&rows, &row)) {
        member_separate(&json);
        write_secret(&row, &json);
    }
    text_append(&json, "]}");
    return !rows.failed && request_reply_json(request, 200, &json);
}

/* --- set and remove ------------------------------------------------------------------------------------- */

struct secret_ask {
    struct ask ask;
    struct change change;
    uint8_t *sealed; /* owned, as is the next */
    char *detail;
};

static void secret_ask_finish(struct ask *ask)
{
    struct secret_ask *asked = (struct secret_ask *)ask;
    ask->request->server->secrets->asks--;
    free(asked->sealed);
    free(asked->detail);
}

static struct secret_ask *secret_ask_create(struct request *request, enum change_kind kind,
                                            int (*render)(const struct writer_request *, const struct step *,
                                                          struct text *))
{
    struct secret_ask *asked = ask_create(request, sizeof *asked, render);
    asked->change.kind = kind;
    asked->change.secret.name = request->argument;
    asked->ask.writer.kind = WRITER_RECORD;
    asked->ask.writer.records = &asked->change;
    asked->ask.writer.record_count = 1;
    asked->ask.finish = secret_ask_finish;
    request->server->secrets->asks++;
    return asked;
}

/* The audit says of which project the secret is; a value is never part of it. */
static void scope_take(struct secret_ask *asked, const struct scope *scope)
{
    asked->change.secret.owner = scope->owner;
    asked->change.secret.project = scope->project;
    if (scope->project[0] != '\0') {
        asked->detail = xprintf("{\"project\":\"%s\"}", scope->project);
        asked->ask.detail = asked->detail;
    }
}

static int render_set(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct secret_ask *asked = writer->asker;
    write_secret(&asked->change.secret, out);
    return 200;
}

/* Changes that are with the writer count as if each added one. */
static bool check_room(const struct server *server, const struct scope *scope, const char *name,
                       struct err *err)
{
    int64_t all, own, asks = (int64_t)server->secrets->asks;
    autorows struct rows rows = reader_secret(server->reader, scope->owner, scope->project, name, err);
    struct secret_row row;
    if (rows_secret(&rows, &row)) {
        return true;
    }
    if (rows.failed || !reader_secret_counts(server->reader, scope->owner, scope->project, &all, &own, err)) {
        return false;
    }
    if (own + asks > LIMIT_SECRETS_OF_OWNER) {
        return err_field(err, ERR_CONFLICT, "name", "remove one that you do not need",
                         "there are %lld secrets already, the limit is %d", (long long)own,
                         LIMIT_SECRETS_OF_OWNER);
    }
    return all + asks <= LIMIT_SECRETS ||
           err_field(err, ERR_CONFLICT, "name", "ask others to remove some",
                     "there are %lld secrets of all people, the limit is %d", (long long)all, LIMIT_SECRETS);
}

/* Exactly one of value and base64; *ret_decoded is owned where it is the latter. */
static bool read_value(const json_t *json, const char **ret_value, size_t *ret_size, uint8_t **ret_decoded,
                       struct err *err)
{
    const char *base64 = NULL;
    const json_t *value = json_object_get(json, "value");
    if (!json_read_text(json, "value", ret_value, err) || !json_read_text(json, "base64", &base64, err)) {
        return false;
    }
    if ((*ret_value != NULL) == (base64 != NULL)) {
        return err_field(err, ERR_FIELD, "value", "bytes that are no text go into base64",
                         "send exactly one of value and base64");
    }
    if (base64 == NULL) {
        *ret_size = json_string_length(value);
    } else if (text_from_base64(base64, strlen(base64), ret_decoded, ret_size)) {
        *ret_value = (const char *)*ret_decoded;
    } else {
        return err_field(err, ERR_FIELD, "base64", NULL, "base64 is not base64 of RFC 4648");
    }
    return (*ret_size > 0 && *ret_size <= (size_t)LIMIT_SECRET_BYTES) ||
           err_field(err, ERR_FIELD, "value", NULL, "a secret has 1 to %lld bytes, not %zu",
                     LIMIT_SECRET_BYTES, *ret_size);
}

static bool seal(struct server *server, const json_t *json, struct secret_ask *asked, struct err *err)
{
    struct secret_row *row = &asked->change.secret;
    const struct vault_label label = {row->owner, row->project, row->name};
    const char *value = NULL;
    uint8_t *decoded = NULL;
    size_t size = 0, sealed_size;
    bool sealed = read_value(json, &value, &size, &decoded, err) &&
                  vault_seal(server->secrets->vault, &label, value, size, &asked->sealed, &sealed_size, err);
    vault_wipe(decoded, size);
    if (sealed) {
        row->sealed = asked->sealed;
        row->sealed_size = (int64_t)sealed_size;
    }
    return sealed;
}

bool secrets_put(struct request *request, struct err *err)
{
    struct server *server = request->server;
    const char *project = NULL;
    struct scope scope;
    autoask struct secret_ask *asked = secret_ask_create(request, CHANGE_SECRET_PUT, render_set);
    if (!jobspec_is_secret_name(request->argument)) {
        return err_field(err, ERR_FIELD, "name", "it becomes a variable: HF_TOKEN for instance",
                         "a secret's name has 1 to %d letters, digits and '_', no digit first",
                         LIMIT_NAME_BYTES);
    }
    if (!request_only_fields(request->json, "value base64 project", err) ||
        !json_read_text(request->json, "project", &project, err) ||
        !scope_of(request, project, &scope, err) || !check_room(server, &scope, request->argument, err)) {
        return false;
    }
    scope_take(asked, &scope);
    asked->change.secret.set_by = identity_owner(request->who);
    asked->change.secret.set_ms = server->wall_ms;
    return seal(server, request->json, asked, err) && ask_writer(give(asked), err);
}

static int render_removed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct secret_ask *asked = writer->asker;
    member_write_text(out, "{\"name\":", asked->change.secret.name);
    text_append(out, ",\"removed\":true}");
    return 200;
}

bool secrets_remove(struct request *request, struct err *err)
{
    const char *project = NULL;
    struct scope scope;
    struct secret_row row;
    if (!query_name(request->query, "project", &project, err) || !scope_of(request, project, &scope, err)) {
        return false;
    }
    autorows struct rows rows =
        reader_secret(request->server->reader, scope.owner, scope.project, request->argument, err);
    if (!rows_secret(&rows, &row)) {
        return !rows.failed && err_field(err, ERR_NOT_FOUND, "name", "see gpuctl secret list",
                                         "there is no secret %s", request->argument);
    }
    struct secret_ask *asked = secret_ask_create(request, CHANGE_SECRET_DELETE, render_removed);
    scope_take(asked, &scope);
    return ask_writer(asked, err);
}

/* --- a new key ------------------------------------------------------------------------------------------ */

struct rotation {
    struct ask ask;
    struct change *changes; /* owned, with the texts and bytes of their rows */
    size_t count, room;
    int64_t unreadable;
};

static void rotation_finish(struct ask *ask)
{
    struct rotation *rotation = (struct rotation *)ask;
    ask->request->server->secrets->asks--;
    for (size_t i = 0; i < rotation->count; i++) {
        const struct secret_row *row = &rotation->changes[i].secret;
        member_release(row->owner);
        member_release(row->project);
        member_release(row->name);
        member_release(row->set_by);
        member_release(row->sealed);
    }
    free(rotation->changes);
}

/* Nothing is sealed under an older key any more: what was set since has the newest, too. */
static void rotated(struct ask *ask)
{
    struct err err;
    if (!vault_drop_older(ask->request->server->secrets->vault, &err)) {
        log_error("secrets key kept", "reason=\"%s\" remedy=\"rotate the key again\"", err.text);
    }
}

static int render_rotated(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct rotation *rotation = writer->asker;
    member_write_int(out, "{\"sealed\":", (int64_t)rotation->count);
    member_write_int(out, ",\"unreadable\":", rotation->unreadable);
    text_append(out, "}");
    return 200;
}

static bool seal_again(struct vault *vault, const struct secret_row *row, struct rotation *rotation,
                       struct err *err)
{
    const struct vault_label label = {row->owner, row->project, row->name};
    uint8_t *value, *sealed;
    size_t size, sealed_size;
    struct err unreadable;
    if (!vault_unseal(vault, &label, row->sealed, (size_t)row->sealed_size, &value, &size, &unreadable)) {
        log_warning("secret unreadable", "owner=%s project=%s name=%s reason=\"%s\"", row->owner,
                    row->project, row->name, unreadable.text);
        rotation->unreadable++;
        return true;
    }
    bool done = vault_seal(vault, &label, value, size, &sealed, &sealed_size, err);
    vault_wipe(value, size);
    if (!done) {
        return false;
    }
    XGROW(rotation->changes, rotation->count, rotation->room, 64);
    rotation->changes[rotation->count++] = (struct change){.kind = CHANGE_SECRET_SEAL,
                                                           .secret = {.owner = xstrdup(row->owner),
                                                                      .project = xstrdup(row->project),
                                                                      .name = xstrdup(row->name),
                                                                      .set_by = xstrdup(row->set_by),
                                                                      .set_ms = row->set_ms,
                                                                      .sealed_size = (int64_t)sealed_size,
                                                                      .sealed = sealed}};
    return true;
}

static bool seal_all(struct server *server, struct rotation *rotation, struct err *err)
{
    autorows struct rows rows = reader_all_secrets(server->reader, err);
    struct secret_row row;
    while (rows_secret(&rows, &row)) {
        if (!seal_again(server->secrets->vault, &row, rotation, err)) {
            return false;
        }
    }
    return !rows.failed;
}

/* A change that waits could be newer than the row that is read here, and must not be written over. After a
 * crash in between the file still has the older keys. */
bool secrets_rotate(struct request *request, struct err *err)
{
    struct server *server = request->server;
    if (!request_only_fields(request->json, "", err)) {
        return false;
    }
    if (server->secrets->asks > 0) {
        err_set(err, ERR_UNAVAILABLE, "a secret is being changed");
        return err_hint(err, "ask again");
    }
    autoask struct rotation *rotation = ask_create(request, sizeof *rotation, render_rotated);
    rotation->ask.finish = rotation_finish;
    rotation->ask.committed = rotated;
    server->secrets->asks++;
    if (!vault_renew(server->secrets->vault, err) || !seal_all(server, rotation, err)) {
        return false;
    }
    rotation->ask.writer.kind = WRITER_RECORD;
    rotation->ask.writer.records = rotation->changes;
    rotation->ask.writer.record_count = rotation->count;
    return ask_writer(give(rotation), err);
}
