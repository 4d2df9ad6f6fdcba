/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one size that comes and goes with every request: kept for the next one. With 64 requests under
 * way the allocator's own fast lists, of seven each, are always empty. One thread only. */
#ifndef HTTP_BLOCKS_H
#define HTTP_BLOCKS_H

#include <stddef.h>

struct blocks {
    size_t bytes;       /* of a block; set by the owner */
    struct block *free; /* kept */
    size_t count;
};

/* size zero bytes: a block, or from the allocator when a block is too small. */
void *blocks_take(struct blocks *blocks, size_t size);
/* Gives back memory that was taken with this size. */
void blocks_give(struct blocks *blocks, void *memory, size_t size);
/* Frees the kept blocks. */
void blocks_finish(struct blocks *blocks);

#endif
