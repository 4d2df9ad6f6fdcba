/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates memory that lives as long as one step. Allocated memory stays in place until arena_destroy frees
 * all of it. */
#include "daemon/core/model/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"

#define CHUNK_BYTES 4000 /* one page with malloc's overhead; a submission that is placed needs 3 KB */

struct chunk {
    struct chunk *next;
    size_t used, room;
    alignas(max_align_t) char bytes[];
};

struct arena {
    struct chunk *newest;
};

struct arena *arena_create(void)
{
    return xzalloc(sizeof(struct arena));
}

void arena_destroy(struct arena *arena)
{
    if (arena == NULL) {
        return;
    }
    for (struct chunk *chunk = arena->newest, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(arena);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t aligned = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    struct chunk *chunk = arena->newest;
    if (chunk == NULL || chunk->room - chunk->used < aligned) {
        size_t room = aligned > CHUNK_BYTES ? aligned : CHUNK_BYTES;
        chunk = xalloc(sizeof *chunk + room);
        *chunk = (struct chunk){.next = arena->newest, .used = 0, .room = room};
        arena->newest = chunk;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += aligned;
    return memory;
}

void *arena_grow(struct arena *arena, const void *array, size_t old_size, size_t new_size)
{
    void *larger = arena_alloc(arena, new_size);
    if (old_size > 0) {
        memcpy(larger, array, old_size);
    }
    return larger;
}

const char *arena_copy(struct arena *arena, const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    size_t size = strlen(text) + 1;
    return memcpy(arena_alloc(arena, size), text, size);
}

const char *arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list copy;
    va_copy(copy, args);
    int length = vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    char *printed = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(printed, (size_t)length + 1, format, args);
    return printed;
}
