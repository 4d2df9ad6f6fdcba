/* SPDX-License-Identifier: Apache-2.0 */
/* The progress that nodes report of the environments that they stage for waiting jobs. The core decides
 * which node is ready. */
#ifndef HTTP_STAGING_BOARD_H
#define HTTP_STAGING_BOARD_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "proto/base/text/text.h"
#include "proto/wire/views.h"

struct staging_board;

struct staging_board *staging_board_create(void);
void staging_board_destroy(struct staging_board *board);

/* Takes the node's newest orders; stagings that they do not list any more are forgotten. */
void staging_board_told(struct staging_board *board, const struct node_orders *orders, int64_t now_ms);

/* Notes the node's progress with a staging; text is one line, or NULL. Stagings that its orders do not list
 * are not noted. */
void staging_board_hear(struct staging_board *board, const char *node, const char *key, const char *text,
                        int64_t now_ms);

/* The nodes that get this ready, those without progress for longest first, *ret_count of them. The array is
 * the caller's to free, its strings are good until the board changes. */
struct staging_view *staging_board_look(const struct staging_board *board, const char *key, int64_t now_ms,
                                        size_t *ret_count);

/* Such nodes as one sentence, "node n1 builds the environment: Installing torch (34 s); 3 other nodes, too".
 * environment: they stage an environment, too. */
void staging_board_say(const struct staging_view *nodes, size_t count, bool environment, struct text *out);

#endif
