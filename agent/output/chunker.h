/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts bytes into pieces where their content says so: bytes that are put in or taken out change the pieces
 * around them alone. */
#ifndef AGENT_CHUNKER_H
#define AGENT_CHUNKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The piece that is being looked for. Initialise it with {0}. */
struct chunker {
    uint64_t sum;
    size_t length; /* bytes of the piece so far, LIMIT_CHECKPOINT_PIECE_BYTES at most */
};

/* Goes on through the next bytes, up to the end of the piece: true if it is among them. */
bool chunker_go(struct chunker *chunker, const uint8_t *bytes, size_t length);

#endif
