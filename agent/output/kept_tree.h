/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a rank keeps ($GPUCTL_OUTPUT_DIR), as one stream of bytes (proto/wire/files/kept_files.h).
 */
#ifndef AGENT_KEPT_TREE_H
#define AGENT_KEPT_TREE_H

#include <stddef.h>
#include <stdint.h>

struct kept_tree;

/* The files below `name` in an attempt's folder, which no process of the attempt changes any more; at most so
 * many bytes of them. NULL when there are none. */
struct kept_tree *kept_tree_open(const char *logs, const char *name, int64_t limit);
void kept_tree_close(struct kept_tree *tree); /* NULL is allowed */

/* The length of the stream. */
int64_t kept_tree_bytes(const struct kept_tree *tree);

/* Reads as many bytes from the offset as there are, up to length. What somebody has taken from a file
 * meanwhile is read as zeros. */
size_t kept_tree_read(struct kept_tree *tree, int64_t offset, char *buffer, size_t length);

#endif
