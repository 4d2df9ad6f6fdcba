/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of this node on disk: the newest in its token file, those that it replaced in FILE.earlier. */
#ifndef AGENT_NODE_TOKENS_H
#define AGENT_NODE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

/* The newest; NULL with an error. The caller frees it. */
char *node_tokens_newest(const char *file, struct err *err);
/* An earlier one, 1 for the one before the newest, and so on; NULL if there is none. The caller frees it. */
char *node_tokens_earlier(const char *file, size_t number);
/* Replaces the newest, and keeps it with the earlier ones, at most LIMIT_EARLIER_TOKENS: the youngest of
 * them, and the oldest, which the node joined with. */
bool node_tokens_replace(const char *file, const char *token, struct err *err);
/* The same when the node joins: what it had before is not kept. */
bool node_tokens_begin(const char *file, const char *token, struct err *err);

#endif
