/* SPDX-License-Identifier: Apache-2.0 */
/* The token of the administrator, in a file of the state folder. */
#ifndef DAEMON_ADMIN_TOKEN_H
#define DAEMON_ADMIN_TOKEN_H

#include <stdbool.h>

#include "daemon/store/store.h"
#include "proto/base/err.h"

#define ADMIN_TOKEN_FILE "admin.token"

/* On the first start, makes a token. Does nothing if the database has an administrator's token. */
bool admin_token_first(struct store *store, const char *state, struct err *err);

/* Always makes a token; its file replaces an existing one. */
bool admin_token_make(struct store *store, const char *state, struct err *err);

#endif
