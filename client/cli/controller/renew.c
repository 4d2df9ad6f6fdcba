/* SPDX-License-Identifier: Apache-2.0 */
/* Renews a login before a command uses it. One gpuctl renews at a time, because providers give each refresh
 * token out once; the others find the new token. What does not work is said only when the old token has
 * ended: until then it serves. */
#include "client/cli/controller/renew.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/login/saved_login.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/limits_client.h"

static bool is_due(const struct saved_login *login)
{
    return clock_wall_ms() >= login->expires_ms - CLIENT_RENEW_MS;
}

static bool is_over(const struct saved_login *login)
{
    return clock_wall_ms() >= login->expires_ms;
}

static bool ask_again(const struct saved_login *login, struct err *err)
{
    char at[32];
    clock_format_wall(login->expires_ms, at, sizeof at);
    err_set(err, ERR_UNAUTHENTICATED, "the login at %.200s has ended at %s", login->url, at);
    return err_hint(err, "log in again: gpuctl login %.200s", login->url);
}

/* Gets an ID token. The provider may have given another refresh token with it, and take the old one no more:
 * so that is kept before anything else can fail. */
static bool refresh(const char *folder, struct saved_login *login, struct identity_tokens *ret_tokens,
                    struct err *err)
{
    const struct identity_provider provider = {login->issuer, login->client_id, login->scopes};
    if (!device_flow_refresh(&provider, login->refresh_token, ret_tokens, err)) {
        return false;
    }
    explicit_bzero(login->refresh_token, strlen(login->refresh_token));
    free(login->refresh_token);
    login->refresh_token = xstrdup(ret_tokens->refresh_token);
    return saved_login_write(folder, login, err);
}

/* With the lock. */
static bool renew(const char *folder, const struct context *context, struct saved_login *login,
                  struct err *err)
{
    const struct identity_provider provider = {login->issuer, login->client_id, login->scopes};
    struct identity_tokens tokens = {NULL, NULL};
    struct saved_login renewed = {.url = NULL};
    if (login->refresh_token == NULL) {
        return ask_again(login, err);
    }
    bool good = refresh(folder, login, &tokens, err) &&
                saved_login_trade(login->url, context->cacert, &provider, &tokens, &renewed, err) &&
                saved_login_write(folder, &renewed, err);
    saved_login_finish(&renewed);
    identity_tokens_finish(&tokens);
    return good || err_hint(err, "log in again: gpuctl login %.200s", login->url);
}

/* The token that the file has now. */
static bool reload(const char *folder, struct context *context, struct err *err)
{
    autofree char *path = xprintf("%s/token", folder);
    char *token = context_read_token(path, err);
    if (token == NULL) {
        return false;
    }
    explicit_bzero(context->token, strlen(context->token));
    free(context->token);
    context->token = token;
    return true;
}

static bool is_its_token(const char *folder, const struct context *context, const struct saved_login *login)
{
    struct err unused;
    autofree char *path = xprintf("%s/token", folder);
    autofree char *token = context_read_token(path, &unused);
    bool same = token != NULL && strcmp(token, context->token) == 0;
    if (token != NULL) {
        explicit_bzero(token, strlen(token));
    }
    return same && strcmp(login->url, context->url) == 0;
}

static bool renew_locked(const char *folder, struct context *context, struct err *err)
{
    autoclose int lock = saved_login_lock(folder);
    struct saved_login login;
    if (lock < 0 || !saved_login_read(folder, &login)) {
        return true;
    }
    bool good = !is_due(&login) || renew(folder, context, &login, err);
    if (good) {
        good = reload(folder, context, err);
    } else if (!is_over(&login)) {
        good = true;
    }
    saved_login_finish(&login);
    return good;
}

bool renew_login(struct context *context, struct err *err)
{
    struct saved_login login;
    if (context->embedded) {
        return true;
    }
    autofree char *folder = file_folder_of(context->token_file);
    if (!saved_login_read(folder, &login)) {
        return true;
    }
    bool ours = is_its_token(folder, context, &login);
    bool due = ours && is_due(&login);
    bool silent = login.refresh_token == NULL && !is_over(&login);
    saved_login_finish(&login);
    return !due || silent || renew_locked(folder, context, err);
}
