/* SPDX-License-Identifier: Apache-2.0 */
/* A gear hash: each byte shifts the sum and adds a number of its own, so the sum depends on the last 64 bytes
 * alone. A piece ends where the upper bits of the sum are zero. */
#include "agent/output/chunker.h"

#include "proto/limits.h"

#define MEAN_BITS 20
#define LEAST     (LIMIT_CHECKPOINT_PIECE_BYTES / 16)

/* The same numbers on all nodes: splitmix64 of the byte. */
static uint64_t gear(uint8_t byte)
{
    uint64_t z = (byte + 1ULL) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

bool chunker_go(struct chunker *chunker, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        chunker->sum = (chunker->sum << 1) + gear(bytes[i]);
        chunker->length++;
        bool cut = chunker->length >= LEAST && chunker->sum >> (64 - MEAN_BITS) == 0;
        if (cut || chunker->length == LIMIT_CHECKPOINT_PIECE_BYTES) {
            return true;
        }
    }
    return false;
}
