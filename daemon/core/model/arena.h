/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: memory that is freed all at once. */
#ifndef CORE_MODEL_ARENA_H
#define CORE_MODEL_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

struct arena *arena_create(void);
void arena_destroy(struct arena *arena);

/* Memory for any type, not cleared. Running out of memory aborts. */
void *arena_alloc(struct arena *arena, size_t size);
/* A larger copy of an array in the arena; the old array stays until the arena ends. */
void *arena_grow(struct arena *arena, const void *array, size_t old_size, size_t new_size);
/* A copy of the text; NULL gives NULL. */
const char *arena_copy(struct arena *arena, const char *text);
const char *arena_vprintf(struct arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0), nonnull(2)));

#endif
