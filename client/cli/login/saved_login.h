/* SPDX-License-Identifier: Apache-2.0 */
/* A login at an identity provider: trading it for a token of the controller, and what is kept of it between
 * two calls of gpuctl. */
#ifndef CLI_SAVED_LOGIN_H
#define CLI_SAVED_LOGIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cli/login/device_flow.h"
#include "proto/base/err.h"

/* Texts are owned. */
struct saved_login {
    char *url;   /* of the controller */
    char *token; /* that it gave; NULL: the one in the folder */
    char *issuer, *client_id, *scopes;
    char *refresh_token; /* NULL: the provider gave none */
    int64_t expires_ms;  /* of the token, wall clock */
};

void saved_login_finish(struct saved_login *login);

/* The provider that the controller names, in *ret_json, which the caller releases. cacert NULL: the system's.
 * ERR_NOT_FOUND: it has none. */
bool saved_login_find(const char *url, const char *cacert, json_t **ret_json,
                      struct identity_provider *ret_provider, struct err *err);
/* Trades the ID token for a token; the rest of the login is of the provider. */
bool saved_login_trade(const char *url, const char *cacert, const struct identity_provider *provider,
                       const struct identity_tokens *tokens, struct saved_login *ret_login, struct err *err);

/* Writes the login into the folder of the user's configuration, and its token, if it is known. */
bool saved_login_write(const char *folder, const struct saved_login *login, struct err *err);
/* false: there is none. Its token is not read. */
bool saved_login_read(const char *folder, struct saved_login *ret_login);
/* Also of a login that is none any more. */
void saved_login_remove(const char *folder);
/* Waits until no other gpuctl of this user renews; the lock ends with the file, which the caller closes. */
int saved_login_lock(const char *folder);

#endif
