/* SPDX-License-Identifier: Apache-2.0 */
/* The frames on the connection of a stream into a running job (docs/architecture/streams.md): one byte of
 * kind, three of length in network order, and that many bytes. The controller passes them on unread. */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

#define FRAME_HEAD_BYTES 4
#define FRAME_ROOM       (FRAME_HEAD_BYTES + LIMIT_FRAME_BYTES) /* of the longest frame */

enum frame_kind {
    FRAME_DATA = 1, /* of stdin or stdout, a terminal or a connection */
    FRAME_END,      /* no more of these come from this side */
    FRAME_STDERR,   /* from the job */
    FRAME_SIZE,     /* to the job: of the terminal, rows and columns */
    FRAME_EXIT,     /* from the job: exit code, and signal or 0. The stream is over */
    FRAME_FAILURE,  /* from the job: a sentence. The stream is over */
    FRAME_CREDIT, /* from the job: so many bytes more of DATA may be sent to it, beyond STREAM_CREDIT_BYTES */
};

struct frame {
    enum frame_kind kind;
    const char *bytes; /* borrowed from what was decoded */
    size_t length;
    /* of SIZE: rows, columns; of EXIT: code, signal; of CREDIT: bytes, 0 */
    uint32_t numbers[2];
};

enum frame_look { FRAME_WHOLE, FRAME_PART, FRAME_WRONG };

/* Reads the frame at the beginning of the bytes. WHOLE: *ret_used is its length with its head. PART: more has
 * to come. WRONG: it breaks the protocol, which *err says. */
enum frame_look frame_decode(const char *bytes, size_t length, struct frame *ret_frame, size_t *ret_used,
                             struct err *err);

/* Writes the head of a frame whose bytes follow it. */
void frame_head(enum frame_kind kind, size_t length, char out[FRAME_HEAD_BYTES]);
/* Writes a whole frame of numbers: SIZE, EXIT or CREDIT. Returns its length, at most FRAME_NUMBERS_BYTES. */
#define FRAME_NUMBERS_BYTES (FRAME_HEAD_BYTES + 4)
size_t frame_numbers(enum frame_kind kind, uint32_t first, uint32_t second, char out[FRAME_NUMBERS_BYTES]);

#endif
