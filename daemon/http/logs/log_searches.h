/* SPDX-License-Identifier: Apache-2.0 */
/* Searches of the output of jobs. They have a thread of their own and delay neither uploads nor readers. One
 * runs at a time, in turn between users. */
#ifndef HTTP_LOG_SEARCHES_H
#define HTTP_LOG_SEARCHES_H

#include <stdbool.h>

#include "proto/base/err.h"

struct server;

bool log_searches_open(struct server *server, struct err *err);
/* After all requests have ended. */
void log_searches_close(struct server *server);

#endif
