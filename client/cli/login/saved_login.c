/* SPDX-License-Identifier: Apache-2.0 */
/* Owns login.json in the user's configuration folder, which only the user can read. The token itself lies
 * beside it, where the Python client reads it, too. */
#include "client/cli/login/saved_login.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/http/authority.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"
#include "proto/wire/views.h"

#define FILE_NAME  "login.json"
#define LOGIN_PATH "/v1/login"

void saved_login_finish(struct saved_login *login)
{
    char **secrets[] = {&login->token, &login->refresh_token};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        if (*secrets[i] != NULL) {
            explicit_bzero(*secrets[i], strlen(*secrets[i]));
            free(*secrets[i]);
        }
    }
    free(login->url);
    free(login->issuer);
    free(login->client_id);
    free(login->scopes);
    *login = (struct saved_login){.url = NULL};
}

/* --- the controller ------------------------------------------------------------------------------------- */

/* body NULL: a GET. The caller owns the answer; NULL: *err. */
static json_t *ask(const char *url, const char *cacert, const char *body, struct err *err)
{
    const struct contact contact = {.url = url,
                                    .path = LOGIN_PATH,
                                    .body = body,
                                    .cacert = cacert,
                                    .user_agent = "gpuctl/" GPUCTL_VERSION};
    struct contact_reply reply;
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    bool answered = contact_send(&contact, &reply, err);
    size_t length = reply.body.length;
    autofree char *text = text_take(&reply.body);
    bool good = answered && reply.status / 100 == 2;
    if (answered && !good) {
        problem_decode(text, length, (int)reply.status, err);
    }
    json_t *json = good ? json_parse(text, length, err) : NULL;
    explicit_bzero(text, length);
    return json;
}

bool saved_login_find(const char *url, const char *cacert, json_t **ret_json,
                      struct identity_provider *ret_provider, struct err *err)
{
    autojson json_t *json = ask(url, cacert, NULL, err);
    *ret_provider = (struct identity_provider){.issuer = json_string_of(json, "issuer"),
                                               .client_id = json_string_of(json, "client_id"),
                                               .scopes = json_string_of(json, "scopes")};
    /* a controller that is older does not know the path, and asks for a token */
    if (json == NULL && err->code != ERR_NOT_FOUND && err->code != ERR_UNAUTHENTICATED) {
        return false;
    }
    if (ret_provider->issuer == NULL || ret_provider->client_id == NULL || ret_provider->scopes == NULL) {
        return err_set(err, ERR_NOT_FOUND, "the controller has no identity provider");
    }
    *ret_json = give(json);
    return true;
}

bool saved_login_trade(const char *url, const char *cacert, const struct identity_provider *provider,
                       const struct identity_tokens *tokens, struct saved_login *ret_login, struct err *err)
{
    struct token_view view;
    autojson json_t *order = json_pack("{ss}", "id_token", tokens->id_token);
    autofree char *body = json_text(order);
    json_t *answer = ask(url, cacert, body, err);
    explicit_bzero(body, strlen(body));
    if (answer == NULL || !token_view_decode(answer, &view, err)) {
        return false;
    }
    if (view.secret == NULL) {
        token_view_finish(&view);
        return err_set(err, ERR_UNAVAILABLE, "the controller gave no token");
    }
    const char *refresh = tokens->refresh_token;
    *ret_login = (struct saved_login){.url = xstrdup(url),
                                      .token = xstrdup(view.secret),
                                      .issuer = xstrdup(provider->issuer),
                                      .client_id = xstrdup(provider->client_id),
                                      .scopes = xstrdup(provider->scopes),
                                      .refresh_token = refresh != NULL ? xstrdup(refresh) : NULL,
                                      .expires_ms = view.expires_ms};
    token_view_finish(&view);
    return true;
}

/* --- files ---------------------------------------------------------------------------------------------- */

static char *path_of(const char *folder)
{
    return xprintf("%s/" FILE_NAME, folder);
}

static bool write_secret(const char *path, char *text, struct err *err)
{
    bool written = file_replace(path, text, strlen(text), 0600, err);
    explicit_bzero(text, strlen(text));
    return written;
}

static bool write_token(const char *folder, const char *token, struct err *err)
{
    autofree char *path = xprintf("%s/token", folder);
    autofree char *line = xprintf("%s\n", token);
    return write_secret(path, line, err);
}

bool saved_login_write(const char *folder, const struct saved_login *login, struct err *err)
{
    autofree char *path = path_of(folder);
    autojson json_t *json =
        json_pack("{ss,ss,ss,ss,sI}", "url", login->url, "issuer", login->issuer, "client_id",
                  login->client_id, "scopes", login->scopes, "expires_ms", (json_int_t)login->expires_ms);
    if (login->refresh_token != NULL) {
        json_object_set_new(json, "refresh_token", json_string(login->refresh_token));
    }
    autofree char *text = json_text(json);
    return (login->token == NULL || write_token(folder, login->token, err)) && write_secret(path, text, err);
}

static char *copy_of(const json_t *json, const char *name)
{
    const char *text = json_string_of(json, name);
    return text != NULL ? xstrdup(text) : NULL;
}

bool saved_login_read(const char *folder, struct saved_login *ret_login)
{
    struct err unused;
    autofree char *path = path_of(folder), *text = NULL;
    size_t length;
    if (!file_read(path, CLIENT_LOGIN_BYTES, &text, &length, &unused)) {
        return false;
    }
    autojson json_t *json = json_parse(text, length, &unused);
    explicit_bzero(text, length);
    *ret_login = (struct saved_login){.url = copy_of(json, "url"),
                                      .issuer = copy_of(json, "issuer"),
                                      .client_id = copy_of(json, "client_id"),
                                      .scopes = copy_of(json, "scopes"),
                                      .refresh_token = copy_of(json, "refresh_token"),
                                      .expires_ms = json_integer_value(json_object_get(json, "expires_ms"))};
    bool whole = ret_login->url != NULL && ret_login->issuer != NULL && ret_login->client_id != NULL &&
                 ret_login->scopes != NULL;
    if (!whole) {
        saved_login_finish(ret_login);
    }
    return whole;
}

void saved_login_remove(const char *folder)
{
    autofree char *path = path_of(folder);
    unlink(path);
}

int saved_login_lock(const char *folder)
{
    autofree char *path = xprintf("%s/login.lock", folder);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) {
        flock(file, LOCK_EX);
    }
    return file;
}
