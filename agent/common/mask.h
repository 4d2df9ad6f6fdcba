/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the values of secrets in bytes that pass by MASK, wherever the pieces are cut. Needs only libc. */
#ifndef AGENT_MASK_H
#define AGENT_MASK_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/text/text.h"

#define MASK "***"

/* The values. */
struct mask;

struct mask *mask_create(void);
/* Values that are not known any more: no text can be masked. */
struct mask *mask_create_unknown(void);
bool mask_is_unknown(const struct mask *mask);
/* Adds a value without the blanks around it; nothing if it is shorter than LIMIT_MASKED_BYTES then. */
void mask_add(struct mask *mask, const void *bytes, size_t length);
/* Overwrites the values; takes NULL. No stream may use them any more. */
void mask_destroy(struct mask *mask);

/* One stream of bytes. */
struct mask_stream;

struct mask_stream *mask_stream_create(const struct mask *mask);
/* Takes the next bytes, and appends those that may be shown. The last bytes are held back as long as they
 * could be the beginning of a value: until the next bytes, or the end. */
void mask_feed(struct mask_stream *stream, const char *bytes, size_t length, struct text *out);
/* Appends the bytes that are held back: no more come. */
void mask_end(struct mask_stream *stream, struct text *out);
/* Takes NULL. */
void mask_stream_destroy(struct mask_stream *stream);

/* Masks a text in its place, whose end may have been cut off: the beginning of a value there is masked, too.
 * The caller frees the result. NULL stays NULL; without a mask it is the text. NULL, too, if the values are
 * unknown. */
char *mask_text(const struct mask *mask, char *text);

#endif
