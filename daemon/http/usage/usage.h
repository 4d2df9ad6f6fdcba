/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the server that answers who used what. */
#ifndef HTTP_USAGE_H
#define HTTP_USAGE_H

#include <stdbool.h>

#include "proto/base/err.h"

struct server;

/* Reads the prices of the configuration. samples_open comes before. */
bool usage_open(struct server *server, struct err *err);
void usage_close(struct server *server);

#endif
