/* SPDX-License-Identifier: Apache-2.0 */
/* Logins by an identity provider. The routes' handlers are in routes.h. */
#ifndef HTTP_LOGINS_H
#define HTTP_LOGINS_H

#include <stdbool.h>

#include "proto/base/err.h"

struct server;

/* Nothing is opened where the configuration has no identity provider. */
bool logins_open(struct server *server, struct err *err);
void logins_close(struct server *server);

#endif
