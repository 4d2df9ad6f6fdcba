/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the secrets of jobs, and opens their values. A job gets the secret of its owner, else that of its
 * project while its owner is a member there. A value is opened when an order goes to a node, and never
 * before. vault.c has the keys; api/secrets.c serves people. */
#include "daemon/http/secrets/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/auth/principal.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/store/store.h"
#include "daemon/vault/vault.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/spec/jobspec_parts.h"

bool secrets_open(struct server *server, struct err *err)
{
    autofree char *folder = file_folder_of(server->config.store_path);
    autofree char *path = xprintf("%s/" VAULT_FILE, folder);
    server->secrets = xzalloc(sizeof *server->secrets);
    return (server->secrets->vault = vault_open(path, err)) != NULL;
}

void secrets_close(struct secrets *secrets)
{
    if (secrets != NULL) {
        vault_close(secrets->vault);
        free(secrets);
    }
}

/* The secret that a job of this owner and project gets by the name. The row borrows from the rows, which the
 * caller closes in any case. */
static bool find(const struct server *server, const struct principal *who, const char *project,
                 const char *name, struct rows *rows, struct secret_row *ret_row, bool *ret_found,
                 struct err *err)
{
    *rows = reader_secret(server->reader, who->name, "", name, err);
    *ret_found = rows_secret(rows, ret_row);
    if (*ret_found || rows->failed || !authorize_secrets(server->projects, who, project)) {
        return !rows->failed;
    }
    rows_close(rows);
    *rows = reader_secret(server->reader, "", project, name, err);
    *ret_found = rows_secret(rows, ret_row);
    return !rows->failed;
}

static bool check(const struct submitter *submitter, const char *field, const char *name, const char *project,
                  struct err *err)
{
    autorows struct rows rows = {0};
    struct secret_row row;
    bool found;
    if (!find(submitter->server, identity_principal(submitter->who), project, name, &rows, &row, &found,
              err)) {
        return false;
    }
    if (!found) {
        err_field(err, ERR_FIELD, field, NULL, "there is no secret %s of yours or of project %s", name,
                  project);
        return err_hint(err, "set it first: gpuctl secret set %s", name);
    }
    return true;
}

bool secrets_check(const struct submitter *submitter, const struct job_spec *spec, struct err *err)
{
    const char *project = job_spec_project(spec);
    for (size_t i = 0; i < spec->secret_count; i++) {
        autofree char *field = xprintf("secrets[%zu]", i);
        if (!check(submitter, field, spec->secrets[i].name, project, err)) {
            return false;
        }
    }
    for (size_t i = 0; i < spec->input_count; i++) {
        const char *name = spec->inputs[i].secret;
        autofree char *field = xprintf("inputs[%zu]", i);
        if (name != NULL && !check(submitter, field, name, project, err)) {
            return false;
        }
    }
    return spec->image_secret == NULL || check(submitter, "image_secret", spec->image_secret, project, err);
}

json_t *secrets_value(const struct server *server, const char *owner, const char *project, const char *name)
{
    autorows struct rows rows = {0};
    struct secret_row row;
    struct err err;
    bool found;
    uint8_t *value;
    size_t size;
    struct principal who;
    principal_of_job(&who, owner, project);
    bool read = find(server, &who, project, name, &rows, &row, &found, &err);
    principal_finish(&who);
    if (!read || (found && !vault_unseal(server->secrets->vault,
                                         &(struct vault_label){row.owner, row.project, row.name}, row.sealed,
                                         (size_t)row.sealed_size, &value, &size, &err))) {
        log_error("secret unreadable", "owner=%s project=%s name=%s reason=\"%s\"", owner, project, name,
                  err.text);
        return json_null();
    }
    if (!found) {
        return json_null();
    }
    char *base64 = text_to_base64(value, size);
    json_t *json = json_string(base64);
    vault_wipe(base64, strlen(base64));
    vault_wipe(value, size);
    return json;
}

void secrets_for_staging(const struct server *server, json_t *staging)
{
    const char *owner = json_string_of(staging, "owner"), *project = json_string_of(staging, "project");
    const char *of_image = json_string_of(staging, "image_secret");
    json_t *input;
    size_t i;
    if (owner == NULL || project == NULL) {
        return; /* it names none */
    }
    json_array_foreach (json_object_get(staging, "inputs"), i, input) {
        const char *name = json_string_of(input, "secret");
        if (name != NULL) {
            json_object_set_new(input, "value", secrets_value(server, owner, project, name));
        }
    }
    if (of_image != NULL) {
        json_object_set_new(staging, "image_auth", secrets_value(server, owner, project, of_image));
    }
}

json_t *secrets_for_order(const struct server *server, const struct order *order, const json_t *spec)
{
    const json_t *named = json_object_get(spec, "secrets");
    const char *project = json_string_of(spec, "project");
    struct job_secret *secrets = NULL;
    size_t count = 0;
    struct err err;
    if (json_array_size(named) == 0) {
        return NULL;
    }
    json_t *values = json_array();
    if (jobspec_decode_secrets(named, &secrets, &count, &err)) {
        for (size_t i = 0; i < count; i++) {
            json_array_append_new(values, secrets_value(server, order->owner,
                                                        project != NULL ? project : DEFAULT_PROJECT,
                                                        secrets[i].name));
        }
    }
    free(secrets);
    return values;
}
