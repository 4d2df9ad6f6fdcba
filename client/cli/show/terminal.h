/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others on a terminal: it may be coloured and rewrite its own line, and steers nothing else. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "proto/base/text/text.h"

#define TERMINAL_SEQUENCE_BYTES 64 /* of a colour; a longer one is shown as it is written */

/* Of one stream; {0} is its beginning. */
struct terminal {
    char held[TERMINAL_SEQUENCE_BYTES + 4]; /* the beginning of a sequence */
    size_t held_length;
    unsigned continues; /* bytes of the character that has begun */
    bool lead;          /* c2 has come */
};

/* Is the file a terminal? Bytes for other files stay unchanged. */
bool terminal_is(FILE *file);

/* Appends the bytes, fit for a terminal. A sequence that is not whole yet is held. */
void terminal_clean(struct terminal *terminal, const char *bytes, size_t length, struct text *out);
/* The stream has ended: appends the held bytes. */
void terminal_finish(struct terminal *terminal, struct text *out);

/* Writes them to the file, cleaned if that is a terminal; false as fwrite fails. */
bool terminal_write(struct terminal *terminal, FILE *file, const char *bytes, size_t length);

#endif
