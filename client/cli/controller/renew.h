/* SPDX-License-Identifier: Apache-2.0 */
/* Renews the token of a login that is about to end. */
#ifndef CLI_RENEW_H
#define CLI_RENEW_H

#include "client/cli/transport/context.h"
#include "proto/base/err.h"

/* Where the context's token is of a login and soon ends: gets another one, without the person if the identity
 * provider has allowed that. ERR_UNAUTHENTICATED: it has ended, and the person has to log in again. */
bool renew_login(struct context *context, struct err *err);

#endif
