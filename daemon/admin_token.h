/* SPDX-License-Identifier: Apache-2.0 */
/* The token of the administrator, in a file of the state folder. */
#ifndef DAEMON_ADMIN_TOKEN_H
#define DAEMON_ADMIN_TOKEN_H

#include <stdbool.h>

#include "daemon/store/store.h"
#include "proto/base/err.h"

#define ADMIN_TOKEN_FILE "admin.token"

/* The first start makes one; where a token of an administrator is known nothing is done. */
bool admin_token_first(struct store *store, const char *state, struct err *err);

/* Makes one in any case: its file replaces the one that is there. */
bool admin_token_make(struct store *store, const char *state, struct err *err);

#endif
