/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps freed blocks of memory for the next use, at most LIMIT_BLOCKS_KEPT. A block is zeroed when it is
 * taken. */
#include "daemon/http/base/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

struct block {
    struct block *next;
};

void *blocks_take(struct blocks *blocks, size_t size)
{
    struct block *block = blocks->free;
    if (size > blocks->bytes || block == NULL) {
        return xzalloc(size > blocks->bytes ? size : blocks->bytes);
    }
    blocks->free = block->next;
    blocks->count--;
    memset(block, 0, size);
    return block;
}

void blocks_give(struct blocks *blocks, void *memory, size_t size)
{
    if (size > blocks->bytes || blocks->count == LIMIT_BLOCKS_KEPT) {
        free(memory);
        return;
    }
    struct block *block = memory;
    block->next = blocks->free;
    blocks->free = block;
    blocks->count++;
}

void blocks_finish(struct blocks *blocks)
{
    while (blocks->free != NULL) {
        struct block *block = blocks->free;
        blocks->free = block->next;
        free(block);
    }
    blocks->count = 0;
}
