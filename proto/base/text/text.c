/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps text in memory: the allocators that abort, the growing buffer, and JSON strings. Buffers are always
 * terminated. JSON output is valid whatever the input bytes are. text_spelling.c reads what people write. */
#include "proto/base/text/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void out_of_memory(void)
{
    static const char said[] = ": out of memory\n";
    const struct iovec line[] = {{program_invocation_short_name, strlen(program_invocation_short_name)},
                                 {(void *)(uintptr_t)said, sizeof said - 1}};
    ssize_t written = writev(STDERR_FILENO, line, 2);
    (void)written; /* a failed write cannot be reported to anyone */
    abort();
}

void *xalloc(size_t size)
{
    void *pointer = malloc(size > 0 ? size : 1);
    if (pointer == NULL) {
        out_of_memory();
    }
    return pointer;
}

void *xzalloc(size_t size)
{
    void *pointer = calloc(1, size > 0 ? size : 1);
    if (pointer == NULL) {
        out_of_memory();
    }
    return pointer;
}

void *xrealloc(void *pointer, size_t size)
{
    void *moved = realloc(pointer, size > 0 ? size : 1);
    if (moved == NULL) {
        out_of_memory();
    }
    return moved;
}

char *xstrdup(const char *text)
{
    return xstrndup(text, strlen(text));
}

char *xstrndup(const char *text, size_t length)
{
    size_t used = strnlen(text, length);
    char *copy = xalloc(used + 1);
    memcpy(copy, text, used);
    copy[used] = '\0';
    return copy;
}

char *xprintf(const char *format, ...)
{
    char *printed = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&printed, format, args);
    va_end(args);
    if (length < 0) {
        out_of_memory();
    }
    return printed;
}

/* --- the buffer ----------------------------------------------------------------------------------------- */

void text_list_add(struct text_list *list, char *text)
{
    list->items = xrealloc(list->items, (list->count + 2) * sizeof list->items[0]);
    list->items[list->count++] = text;
    list->items[list->count] = NULL;
}

void text_list_finish(struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct text_list){0};
}

void text_finish(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

void text_clear(struct text *text)
{
    text->length = 0;
    if (text->bytes != NULL) {
        text->bytes[0] = '\0';
    }
}

void text_reserve(struct text *text, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(text->length, more, &need) || need > SIZE_MAX / 4) {
        abort();
    }
    if (need < text->room) {
        return;
    }
    size_t room = text->room + text->room / 2;
    room = room > need ? room : need + 1;
    room = room > 32 ? room : 32;
    text->bytes = xrealloc(text->bytes, room);
    text->bytes[text->length] = '\0';
    text->room = room;
}

void text_append(struct text *text, const char *string)
{
    text_append_bytes(text, string, strlen(string));
}

void text_append_bytes(struct text *text, const void *bytes, size_t length)
{
    if (length >= text->room - text->length) { /* what is appended is short, and there is room mostly */
        text_reserve(text, length);
    }
    if (length > 0) {
        memcpy(text->bytes + text->length, bytes, length);
    }
    text->length += length;
    text->bytes[text->length] = '\0';
}

static int print_at_end(struct text *text, const char *format, va_list args)
{
    va_list copy;
    va_copy(copy, args);
    int length = vsnprintf(text->bytes + text->length, text->room - text->length, format, copy);
    va_end(copy);
    if (length < 0) {
        abort();
    }
    return length;
}

void text_append_shell_word(struct text *text, const char *word)
{
    text_append(text, "'");
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            text_append(text, "'\\''");
        } else {
            text_append_bytes(text, word, 1);
        }
    }
    text_append(text, "'");
}

void text_append_int(struct text *text, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        digits[--at] = '-';
    }
    text_append_bytes(text, digits + at, sizeof digits - at);
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_reserve(text, 0);
    size_t length = (size_t)print_at_end(text, format, args);
    if (length >= text->room - text->length) {
        text_reserve(text, length);
        print_at_end(text, format, args);
    }
    va_end(args);
    text->length += length;
}

char *text_take(struct text *text)
{
    text_reserve(text, 0);
    char *bytes = text->bytes;
    *text = (struct text){0};
    return bytes;
}

/* --- JSON strings --------------------------------------------------------------------------------------- */

/* Checks eight bytes at once: whether all are ASCII that JSON takes unchanged. A borrow can turn a true
 * result into false, never false into true. */
static bool word_is_plain(const char *bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    uint64_t quote = word ^ (ones * '"');
    uint64_t backslash = word ^ (ones * '\\');
    return ((word | (word - ones * ' ') | (quote - ones) | (backslash - ones)) & (ones << 7)) == 0;
}

/* Length of the UTF-8 character of two to four bytes that starts here; 0 when it is not UTF-8 (overlong,
 * surrogate, cut off). */
static size_t utf8_length(const unsigned char *bytes, size_t left)
{
    unsigned char first = bytes[0];
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || left < length) {
        return 0;
    }
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (bytes[1] < low || bytes[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}

/* How many bytes, from here on, go unchanged into a JSON string. */
static size_t plain_run(const char *bytes, size_t length)
{
    size_t at = 0;
    while (at < length) {
        if (length - at >= sizeof(uint64_t) && word_is_plain(bytes + at)) {
            at += sizeof(uint64_t);
            continue;
        }
        unsigned char byte = (unsigned char)bytes[at];
        bool escaped = byte < ' ' || byte == '"' || byte == '\\';
        size_t step = byte < 0x80 ? !escaped : utf8_length((const unsigned char *)bytes + at, length - at);
        if (step == 0) {
            break;
        }
        at += step;
    }
    return at;
}

static void append_escape(struct text *text, unsigned char byte)
{
    static const char letters[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    for (size_t i = 0; i + 1 < sizeof letters; i += 2) {
        if ((unsigned char)letters[i] == byte) {
            text_append_bytes(text, (char[]){'\\', letters[i + 1]}, 2);
            return;
        }
    }
    if (byte < ' ') {
        text_printf(text, "\\u%04x", byte);
    } else {
        text_append_bytes(text, "\\ufffd", 6);
    }
}

void text_json_string(struct text *text, const char *bytes, size_t length)
{
    text_reserve(text, length + 2);
    text_append_bytes(text, "\"", 1);
    size_t at = 0;
    while (at < length) {
        size_t run = plain_run(bytes + at, length - at);
        text_append_bytes(text, bytes + at, run);
        at += run;
        if (at < length) {
            append_escape(text, (unsigned char)bytes[at]);
            at++;
        }
    }
    text_append_bytes(text, "\"", 1);
}
