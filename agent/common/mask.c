/* SPDX-License-Identifier: Apache-2.0 */
/* Finds all values at once with an automaton of Knuth, Morris and Pratt for each. Bytes wait in a window from
 * the first that could still belong to a value; each byte of the window is covered or not. What is covered
 * without a gap becomes one MASK, so that values may overlap. Where nothing has begun, memchr skips to the
 * next first byte of a value. */
#include "agent/common/mask.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits.h"

struct value {
    uint8_t *bytes;
    size_t length;
    uint32_t *fallback; /* by the bytes that fit: how many of them also begin the value */
};

struct mask {
    bool unknown;
    struct value values[LIMIT_JOB_SECRETS];
    size_t count;
};

struct mask_stream {
    const struct mask *mask;
    size_t fit[LIMIT_JOB_SECRETS]; /* the longest end of the window that begins the value */
    char *window, *covered;
    size_t length, room;
    bool masking; /* the last byte before the window was covered */
};

static void wipe(void *bytes, size_t length)
{
    if (bytes != NULL) {
        explicit_bzero(bytes, length);
        free(bytes);
    }
}

/* --- values --------------------------------------------------------------------------------------------- */

struct mask *mask_create(void)
{
    return xzalloc(sizeof(struct mask));
}

struct mask *mask_create_unknown(void)
{
    struct mask *mask = mask_create();
    mask->unknown = true;
    return mask;
}

bool mask_is_unknown(const struct mask *mask)
{
    return mask->unknown;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static uint32_t *make_fallback(const uint8_t *bytes, size_t length)
{
    uint32_t *fallback = xzalloc((length + 1) * sizeof *fallback);
    uint32_t fit = 0;
    for (size_t i = 1; i < length; i++) {
        while (fit > 0 && bytes[fit] != bytes[i]) {
            fit = fallback[fit];
        }
        fit += bytes[fit] == bytes[i];
        fallback[i + 1] = fit;
    }
    return fallback;
}

void mask_add(struct mask *mask, const void *bytes, size_t length)
{
    const uint8_t *first = bytes;
    while (length > 0 && is_blank(first[length - 1])) {
        length--;
    }
    for (; length > 0 && is_blank(*first); length--) {
        first++;
    }
    if (length < LIMIT_MASKED_BYTES || mask->count == LIMIT_JOB_SECRETS) {
        return;
    }
    struct value *value = &mask->values[mask->count++];
    value->bytes = xalloc(length);
    value->length = length;
    memcpy(value->bytes, first, length);
    value->fallback = make_fallback(value->bytes, length);
}

void mask_destroy(struct mask *mask)
{
    for (size_t i = 0; mask != NULL && i < mask->count; i++) {
        wipe(mask->values[i].bytes, mask->values[i].length);
        free(mask->values[i].fallback);
    }
    free(mask);
}

/* --- a stream ------------------------------------------------------------------------------------------- */

struct mask_stream *mask_stream_create(const struct mask *mask)
{
    struct mask_stream *stream = xzalloc(sizeof *stream);
    stream->mask = mask;
    return stream;
}

void mask_stream_destroy(struct mask_stream *stream)
{
    if (stream != NULL) {
        wipe(stream->window, stream->room);
        free(stream->covered);
        free(stream);
    }
}

static void window_append(struct mask_stream *stream, const char *bytes, size_t length)
{
    size_t needed = stream->length + length;
    if (length == 0) {
        return;
    }
    if (needed > stream->room) {
        char *window = xalloc(2 * needed);
        if (stream->length > 0) {
            memcpy(window, stream->window, stream->length);
        }
        wipe(stream->window, stream->room);
        stream->window = window;
        stream->room = 2 * needed;
        stream->covered = xrealloc(stream->covered, stream->room);
    }
    memcpy(stream->window + stream->length, bytes, length);
    memset(stream->covered + stream->length, 0, length);
    stream->length = needed;
}

/* Follows one value over the bytes of the window from `from` on. */
static void follow(struct mask_stream *stream, size_t index, size_t from)
{
    const struct value *value = &stream->mask->values[index];
    const uint8_t *window = (const uint8_t *)stream->window;
    size_t fit = stream->fit[index];
    for (size_t i = from; i < stream->length; i++) {
        if (fit == 0) {
            const uint8_t *next = memchr(&window[i], value->bytes[0], stream->length - i);
            if (next == NULL) {
                break;
            }
            i = (size_t)(next - window);
        }
        while (fit > 0 && value->bytes[fit] != window[i]) {
            fit = value->fallback[fit];
        }
        fit += value->bytes[fit] == window[i];
        if (fit == value->length) {
            memset(&stream->covered[i + 1 - fit], 1, fit);
            fit = value->fallback[fit];
        }
    }
    stream->fit[index] = fit;
}

/* Appends the first bytes of the window, and takes them out of it. */
static void window_show(struct mask_stream *stream, size_t count, struct text *out)
{
    for (size_t at = 0; at < count;) {
        const bool covered = stream->covered[at] != 0;
        const char *change = memchr(&stream->covered[at], covered ? 0 : 1, count - at);
        size_t end = change != NULL ? (size_t)(change - stream->covered) : count;
        if (!covered) {
            text_append_bytes(out, &stream->window[at], end - at);
        } else if (!stream->masking) {
            text_append(out, MASK);
        }
        stream->masking = covered;
        at = end;
    }
    stream->length -= count;
    if (count > 0 && stream->length > 0) {
        memmove(stream->window, &stream->window[count], stream->length);
        memmove(stream->covered, &stream->covered[count], stream->length);
    }
}

void mask_feed(struct mask_stream *stream, const char *bytes, size_t length, struct text *out)
{
    size_t from = stream->length, held = 0;
    window_append(stream, bytes, length);
    for (size_t i = 0; i < stream->mask->count; i++) {
        follow(stream, i, from);
        held = stream->fit[i] > held ? stream->fit[i] : held;
    }
    window_show(stream, stream->length - held, out);
}

void mask_end(struct mask_stream *stream, struct text *out)
{
    window_show(stream, stream->length, out);
    memset(stream->fit, 0, sizeof stream->fit);
}

char *mask_text(const struct mask *mask, char *text)
{
    if (mask == NULL || text == NULL) {
        return text;
    }
    if (mask->unknown) {
        free(text);
        return NULL;
    }
    struct text out = {0};
    struct mask_stream *stream = mask_stream_create(mask);
    text_append(&out, "");
    mask_feed(stream, text, strlen(text), &out);
    if (stream->length >= LIMIT_MASKED_BYTES) {
        memset(stream->covered, 1, stream->length);
    }
    mask_end(stream, &out);
    mask_stream_destroy(stream);
    wipe(text, strlen(text));
    return text_take(&out);
}
