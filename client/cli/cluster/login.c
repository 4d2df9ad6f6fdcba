/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl login`: makes this user's programs speak to a controller from now on, with a token that exists or
 * with one of a login at an identity provider. It writes config into the user's configuration folder, and
 * into the folder of the context token and ca.pem, and login.json of such a login. It promises to write
 * nothing before the controller has accepted the token. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/login/saved_context.h"
#include "client/cli/transport/api.h"
#include "client/cli/login/saved_login.h"
#include "client/cli/show/print.h"
#include "client/cli/frame/verb.h"
#include "proto/base/http/authority.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/crypto/pin.h"
#include "proto/base/settings/settings.h"

#define TOKEN_BYTES 4096

struct login_options {
    const char *pin, *token_file, *cacert, *context;
    bool plain_allowed;
};

/* One login. */
struct login {
    const struct login_options *options;
    char *url, *token; /* owned, as all that follows */
    char *folder, *config_file, *token_file, *ca_file;
    char *new_ca_file;        /* until the controller has taken the token */
    struct saved_login saved; /* its url is NULL: the token is not of an identity provider */
    int64_t ahead_ms;
};

static const struct option_row login_rows[] = {
    ROW_TEXT(struct login_options, pin, 0, "ca-pin", "PIN", "of the controller's certificate authority"),
    ROW_TEXT(struct login_options, token_file, 0, "token-file", "FILE",
             "that holds your token; - reads it from stdin (without: log in at the controller's identity "
             "provider)"),
    ROW_TEXT(struct login_options, cacert, 0, "cacert", "FILE", "certificates to trust, instead of --ca-pin",
             .spec.alias = "ca-file"),
    ROW_TEXT(struct login_options, context, 0, "context", "NAME",
             "name this controller, beside those that you have: `gpuctl context` changes between them",
             .absent_text = SAVED_CONTEXT_DEFAULT),
    ROW_FLAG(struct login_options, plain_allowed, 0, "insecure-plain-http", "allow http to another host"),
    ROWS_END};

static void finish(struct login *login)
{
    if (login->token != NULL) {
        explicit_bzero(login->token, strlen(login->token));
    }
    if (login->new_ca_file != NULL) {
        unlink(login->new_ca_file);
    }
    saved_login_finish(&login->saved);
    free(login->url);
    free(login->token);
    free(login->folder);
    free(login->config_file);
    free(login->token_file);
    free(login->ca_file);
    free(login->new_ca_file);
}

static bool read_token(struct login *login, struct err *err)
{
    const char *path = login->options->token_file;
    if (strcmp(path, "-") == 0) {
        char line[TOKEN_BYTES] = "";
        login->token = xstrdup(fgets(line, sizeof line, stdin) != NULL ? line : "");
        explicit_bzero(line, sizeof line);
    } else if (!file_read(path, TOKEN_BYTES, &login->token, NULL, err)) {
        return false;
    }
    login->token[strcspn(login->token, " \t\r\n")] = '\0';
    return login->token[0] != '\0' ||
           err_field(err, ERR_USAGE, "token-file", NULL, "%s does not hold a token", path);
}

static bool fetch_authority(struct login *login, struct err *err)
{
    autofree char *pem = NULL;
    if (login->options->pin == NULL) {
        return true;
    }
    login->new_ca_file = xprintf("%s.new", login->ca_file);
    return pin_check_form(login->options->pin, "ca-pin", err) &&
           authority_fetch(login->url, login->options->pin, &pem, &login->ahead_ms, err) &&
           file_replace(login->new_ca_file, pem, strlen(pem), 0644, err);
}

static const char *cacert_of(const struct login *login)
{
    return login->new_ca_file != NULL ? login->new_ca_file : login->options->cacert;
}

/* Has the person log in at the identity provider of the controller. */
static bool ask_provider(struct login *login, struct err *err)
{
    autojson json_t *json = NULL;
    struct identity_provider provider;
    struct identity_tokens tokens = {NULL, NULL};
    if (!saved_login_find(login->url, cacert_of(login), &json, &provider, err)) {
        if (err->code == ERR_NOT_FOUND) {
            err_field(err, ERR_USAGE, "token-file",
                      "an administrator makes one: gpuctl token create --owner NAME --out FILE",
                      "login needs the file that holds your token, with --token-file: the controller has no "
                      "identity provider");
        } else if (err->code == ERR_UNREACHABLE) {
            authority_blame_clock(login->ahead_ms, err);
        }
        return false;
    }
    bool good = device_flow_run(&provider, &tokens, err) &&
                saved_login_trade(login->url, cacert_of(login), &provider, &tokens, &login->saved, err);
    identity_tokens_finish(&tokens);
    if (good) {
        login->token = xstrdup(login->saved.token);
    }
    return good;
}

/* Does the controller take the token? */
static bool try_token(const struct login *login, struct err *err)
{
    const char *cacert = cacert_of(login);
    struct context context = {.url = xstrdup(login->url),
                              .token = xstrdup(login->token),
                              .cacert = cacert != NULL ? xstrdup(cacert) : NULL};
    autoapi struct api *api = api_create(&context);
    autojson json_t *version = api_get(api, err, "/version");
    if (version == NULL && err->code == ERR_UNREACHABLE) {
        authority_blame_clock(login->ahead_ms, err);
    }
    return version != NULL;
}

/* The default context is saved only beside others. */
static bool use(const struct login *login, struct err *err)
{
    const char *cacert = login->new_ca_file != NULL ? login->ca_file : login->options->cacert;
    autofree char *found = cacert != NULL && cacert[0] != '/' ? realpath(cacert, NULL) : NULL;
    const char *name = login->options->context;
    autosaved_context struct saved_context context = {.name = xstrdup(name),
                                                      .url = xstrdup(login->url),
                                                      .token_file = xstrdup(login->token_file),
                                                      .plain_allowed = login->options->plain_allowed};
    if (cacert != NULL) {
        context.cacert = xstrdup(found != NULL ? found : cacert);
    }
    autonames struct file_names names;
    saved_context_list(&names);
    bool alone = names.count == 0 && strcmp(name, SAVED_CONTEXT_DEFAULT) == 0;
    return (alone || saved_context_write(&context, err)) && saved_context_use(&context, err);
}

static bool keep(struct login *login, struct err *err)
{
    autofree char *line = xprintf("%s\n", login->token);
    bool kept = file_replace(login->token_file, line, strlen(line), 0600, err);
    explicit_bzero(line, strlen(line));
    if (kept && login->new_ca_file != NULL && rename(login->new_ca_file, login->ca_file) != 0) {
        return err_errno(err, "cannot write %s", login->ca_file);
    }
    if (kept && login->saved.url == NULL) {
        saved_login_remove(login->folder); /* one of before */
    }
    return kept && (login->saved.url == NULL || saved_login_write(login->folder, &login->saved, err)) &&
           use(login, err);
}

static bool run(struct login *login, const char *url, struct err *err)
{
    login->url = context_trim_url(url);
    if (!saved_context_check(login->options->context, err)) {
        return false;
    }
    autofree char *configuration = settings_user_directory();
    login->config_file = xprintf("%s/" SETTINGS_CLIENT, configuration);
    login->folder = saved_context_folder(login->options->context);
    login->token_file = xprintf("%s/token", login->folder);
    login->ca_file = xprintf("%s/ca.pem", login->folder);
    bool named = login->options->token_file != NULL;
    return context_check_url(login->url, login->options->plain_allowed, err) &&
           (!named || read_token(login, err)) && file_make_directories(login->folder, 0700, err) &&
           fetch_authority(login, err) && (named || ask_provider(login, err)) && try_token(login, err) &&
           (strcmp(login->options->context, SAVED_CONTEXT_DEFAULT) == 0 || saved_context_keep_used(err)) &&
           keep(login, err);
}

static bool login_run(const struct call *call, int *ret_exit, struct err *err)
{
    struct login login = {.options = call->options};
    bool good = run(&login, call->rest[0], err);
    if (good) {
        print_note("logged in at %s; %s says so", login.url, login.config_file);
    }
    finish(&login);
    return good;
}

const struct verb verb_login = {
    .name = "login",
    .arguments = "URL",
    .summary = "Speak to this controller from now on.",
    .details =
        "Without --token-file you are shown an address and a code: open the address in a browser on "
        "any device,\nlog in at your identity provider, and enter the code. Writes "
        "~/.config/gpuctl/config, with the token and\nthe certificate beside it. The Python client reads "
        "the same.",
    .least = 1,
    .most = 1,
    .reach = REACH_NOTHING,
    .options_size = sizeof(struct login_options),
    .rows = {login_rows},
    .run = login_run,
};
