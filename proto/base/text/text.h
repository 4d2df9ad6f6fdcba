/* SPDX-License-Identifier: Apache-2.0 */
/* Text: a growing buffer, strict numbers, durations and sizes as people write them, hex, base32 and base64.
 * Running out of memory aborts. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

/* Ends the program with a message on stderr. Allocates nothing. */
void out_of_memory(void) __attribute__((noreturn));

/* malloc, calloc, realloc and strdup that end in out_of_memory. */
void *xalloc(size_t size);
void *xzalloc(size_t size);
void *xrealloc(void *pointer, size_t size);

/* Makes room for one item more in an array with count items and room for *room, which is first so many and
 * then doubles. */
#define XGROW(items, count, room, first)                                                                     \
    ((items) = (count) == (room) ? xgrow((items), sizeof *(items), &(room), (first)) : (items))
static inline void *xgrow(void *items, size_t size, size_t *room, size_t first)
{
    *room = *room > 0 ? 2 * *room : first;
    return xrealloc(items, *room * size);
}

char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t length);
char *xprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A buffer that grows; bytes always ends with a NUL that length does not count. Initialise it with {0}. */
struct text {
    char *bytes;
    size_t length;
    size_t room;
};

void text_finish(struct text *text);
void text_clear(struct text *text);
void text_reserve(struct text *text, size_t more);
void text_append(struct text *text, const char *string);
void text_append_bytes(struct text *text, const void *bytes, size_t length);
/* Appends a decimal number; many times faster than text_printf. */
void text_append_int(struct text *text, int64_t value);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends the string as one word of a shell, in quotes. */
void text_append_shell_word(struct text *text, const char *word);
/* Appends the bytes as a quoted JSON string; bytes that are not UTF-8 become U+FFFD. */
void text_json_string(struct text *text, const char *bytes, size_t length);
/* Takes the bytes out of the buffer; the caller frees them. Never NULL. */
char *text_take(struct text *text);

static inline void cleanup_text(struct text *text)
{
    text_finish(text);
}
#define autotext __attribute__((cleanup(cleanup_text)))

/* Texts that the list owns; a NULL stands behind the last, so items is an argv. Initialise it with {0}. */
struct text_list {
    char **items;
    size_t count;
};
/* Takes the text over. */
void text_list_add(struct text_list *list, char *text);
void text_list_finish(struct text_list *list);

/* Reads a whole decimal number and nothing else; false when the string is not one or the number is outside
 * min..max. */
bool text_to_int(const char *string, int64_t min, int64_t max, int64_t *ret_value);

/* Reads "90", "90s", "15m", "2h", "1d12h", "250ms" as milliseconds; false for any other text or if it does
 * not fit. */
bool text_to_duration_ms(const char *string, int64_t *ret_ms);
/* Writes "1.4 s", "3 min", "2 h 05 min" for people; buffer has 32 bytes or more. */
void text_from_duration_ms(int64_t ms, char *buffer, size_t size);

/* Reads "1048576", "512M", "64G", "1T" as bytes; K, M, G and T stand for powers of 1024, also in the
 * spellings MB, Mi and MiB, in any case. False for any other text or if it does not fit. */
bool text_to_size(const char *string, int64_t *ret_bytes);

/* Reads RFC 3339 with any offset, "2026-11-21T09:30:00.125Z", as milliseconds since 1970; finer digits are
 * cut off. False for anything else, including leap seconds. */
bool text_to_wall_ms(const char *string, int64_t *ret_wall_ms);

/* Like text_to_wall_ms, and also reads "+2h": a duration from now_wall_ms on. */
bool text_to_moment_ms(const char *string, int64_t now_wall_ms, int64_t *ret_wall_ms);

/* Writes length bytes in lower-case hex; out has room for 2*length+1 bytes. */
void text_to_hex(const uint8_t *bytes, size_t length, char *out);
/* Reads exactly length bytes from 2*length hex digits; the string must end there. */
bool text_from_hex(const char *hex, uint8_t *out, size_t length);

/* An id: 16 characters of base32 (a-z2-7) from 10 random bytes; out has room for 17 bytes. */
#define ID_LENGTH 16
void text_id_from_bytes(const uint8_t bytes[10], char out[ID_LENGTH + 1]);
/* Draws an id. */
void random_id(char out[ID_LENGTH + 1]);
bool text_is_id(const char *string);

/* RFC 4648 base64 with padding. text_from_base64 returns false on any byte outside the alphabet. The caller
 * frees *ret_bytes. */
char *text_to_base64(const uint8_t *bytes, size_t length);
bool text_from_base64(const char *string, size_t string_length, uint8_t **ret_bytes, size_t *ret_length);

/* true when the name has 1..max characters from letters, digits, '.', '_', '-', and starts with a letter or
 * digit. */
bool text_is_name(const char *string, size_t max);
/* Whose a job or a token may be: a name, or that of a service account, which is "service:" and a name. */
#define TEXT_SERVICE "service:"
bool text_is_owner(const char *string, size_t max);
bool text_is_service(const char *owner);

/* Edit distance of two short words, ignoring case; used to suggest the nearest known name. */
unsigned text_distance(const char *a, const char *b);

#endif
