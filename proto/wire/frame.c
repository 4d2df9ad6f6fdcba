/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes frames. Each kind has its lengths, and a frame that breaks them ends the stream: what
 * comes behind it cannot be trusted. */
#include "proto/wire/frame.h"

#include "proto/limits.h"

/* Lengths that a kind may have, and the bytes of its first number. */
static const struct {
    size_t least, most, first;
} shapes[] = {
    [FRAME_DATA] = {1, LIMIT_FRAME_BYTES, 0},
    [FRAME_END] = {0, 0, 0},
    [FRAME_STDERR] = {1, LIMIT_FRAME_BYTES, 0},
    [FRAME_SIZE] = {4, 4, 2},
    [FRAME_EXIT] = {2, 2, 1},
    [FRAME_FAILURE] = {1, LIMIT_STREAM_FAILURE_BYTES, 0},
    [FRAME_CREDIT] = {4, 4, 4},
};
#define KINDS (sizeof shapes / sizeof shapes[0])

static uint32_t number_of(const unsigned char *bytes, size_t length)
{
    uint32_t number = 0;
    for (size_t i = 0; i < length; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

static void number_put(uint32_t number, char *out, size_t length)
{
    for (size_t i = length; i > 0; i--) {
        out[i - 1] = (char)(number & 0xff);
        number >>= 8;
    }
}

enum frame_look frame_decode(const char *bytes, size_t length, struct frame *ret_frame, size_t *ret_used,
                             struct err *err)
{
    const unsigned char *head = (const unsigned char *)bytes;
    if (length == 0) {
        return FRAME_PART;
    }
    size_t kind = head[0];
    if (kind >= KINDS || kind == 0) {
        err_set(err, ERR_MALFORMED, "a frame of the stream has the unknown kind %zu", kind);
        return FRAME_WRONG;
    }
    if (length < FRAME_HEAD_BYTES) {
        return FRAME_PART;
    }
    size_t size = number_of(head + 1, FRAME_HEAD_BYTES - 1);
    if (size < shapes[kind].least || size > shapes[kind].most) {
        err_set(err, ERR_MALFORMED, "a frame of the stream of kind %zu has %zu bytes", kind, size);
        return FRAME_WRONG;
    }
    if (length < FRAME_HEAD_BYTES + size) {
        return FRAME_PART;
    }
    const unsigned char *content = head + FRAME_HEAD_BYTES;
    size_t first = shapes[kind].first;
    *ret_frame =
        (struct frame){.kind = (enum frame_kind)kind, .bytes = bytes + FRAME_HEAD_BYTES, .length = size};
    if (first > 0) {
        ret_frame->numbers[0] = number_of(content, first);
        ret_frame->numbers[1] = number_of(content + first, size - first);
    }
    *ret_used = FRAME_HEAD_BYTES + size;
    return FRAME_WHOLE;
}

void frame_head(enum frame_kind kind, size_t length, char out[FRAME_HEAD_BYTES])
{
    out[0] = (char)kind;
    number_put((uint32_t)length, out + 1, FRAME_HEAD_BYTES - 1);
}

size_t frame_numbers(enum frame_kind kind, uint32_t first, uint32_t second, char out[FRAME_NUMBERS_BYTES])
{
    size_t whole = shapes[kind].most, part = shapes[kind].first;
    frame_head(kind, whole, out);
    number_put(first, out + FRAME_HEAD_BYTES, part);
    number_put(second, out + FRAME_HEAD_BYTES + part, whole - part);
    return FRAME_HEAD_BYTES + whole;
}
