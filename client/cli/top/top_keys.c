/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes keys. It promises that a sequence which comes in several parts is one key, that unknown sequences
 * and bytes that are not UTF-8 are keys without a meaning, and that no byte is taken for two keys. */
#include "client/cli/top/top_keys.h"

#include <stdlib.h>
#include <string.h>

#define ESCAPE    '\033'
#define BACKSPACE '\b'
#define DELETE    0x7f

void top_keys_add(struct top_keys *keys, const char *bytes, size_t length)
{
    size_t room = sizeof keys->bytes - keys->length;
    size_t taken = length < room ? length : room;
    memcpy(keys->bytes + keys->length, bytes, taken);
    keys->length += taken;
}

static void drop(struct top_keys *keys, size_t length)
{
    keys->length -= length;
    memmove(keys->bytes, keys->bytes + length, keys->length);
}

static bool take(struct top_keys *keys, size_t length, enum top_key_kind kind, struct top_key *ret_key)
{
    *ret_key = (struct top_key){.kind = kind};
    if (kind == TOP_KEY_TEXT) {
        memcpy(ret_key->text, keys->bytes, length);
    }
    drop(keys, length);
    return true;
}

/* "5~" is page up. */
static enum top_key_kind numbered(const char *number)
{
    static const enum top_key_kind kinds[] = {
        [1] = TOP_KEY_HOME,      [4] = TOP_KEY_END,  [5] = TOP_KEY_PAGE_UP,
        [6] = TOP_KEY_PAGE_DOWN, [7] = TOP_KEY_HOME, [8] = TOP_KEY_END};
    long value = strtol(number, NULL, 10);
    bool known = value == 1 || (value >= 4 && value <= 8);
    return known ? kinds[value] : TOP_KEY_OTHER;
}

/* text is behind "ESC [" or "ESC O", and ends with the final byte. */
static enum top_key_kind kind_of(const char *text, char final)
{
    switch (final) {
    case 'A':
        return TOP_KEY_UP;
    case 'B':
        return TOP_KEY_DOWN;
    case 'C':
        return TOP_KEY_RIGHT;
    case 'D':
        return TOP_KEY_LEFT;
    case 'H':
        return TOP_KEY_HOME;
    case 'F':
        return TOP_KEY_END;
    case 'Z':
        return TOP_KEY_BACK_TAB;
    case 'M':
        return TOP_KEY_ENTER; /* of a keypad */
    case '~':
        return numbered(text);
    default:
        return TOP_KEY_OTHER;
    }
}

static bool take_sequence(struct top_keys *keys, bool silent, struct top_key *ret_key)
{
    const char *bytes = keys->bytes;
    if (keys->length == 1) {
        return silent && take(keys, 1, TOP_KEY_ESCAPE, ret_key);
    }
    if (bytes[1] != '[' && bytes[1] != 'O') {
        return take(keys, 1, TOP_KEY_ESCAPE, ret_key);
    }
    size_t at = 2;
    while (at < keys->length && bytes[at] >= ' ' && bytes[at] < '@') {
        at++;
    }
    if (at == keys->length) {
        return (silent || at == sizeof keys->bytes) && take(keys, at, TOP_KEY_OTHER, ret_key);
    }
    return take(keys, at + 1, kind_of(bytes + 2, bytes[at]), ret_key);
}

/* Bytes of the character that begins with this one; 0: none does. */
static size_t character_length(unsigned char lead)
{
    return lead >= 0xf5 ? 0 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
}

static bool take_character(struct top_keys *keys, bool silent, struct top_key *ret_key)
{
    size_t length = character_length((unsigned char)keys->bytes[0]);
    for (size_t i = 1; i < length; i++) {
        if (i == keys->length) {
            return silent && take(keys, i, TOP_KEY_OTHER, ret_key);
        }
        if (((unsigned char)keys->bytes[i] & 0xc0) != 0x80) {
            return take(keys, i, TOP_KEY_OTHER, ret_key);
        }
    }
    return length > 0 ? take(keys, length, TOP_KEY_TEXT, ret_key) : take(keys, 1, TOP_KEY_OTHER, ret_key);
}

bool top_keys_next(struct top_keys *keys, bool silent, struct top_key *ret_key)
{
    if (keys->length == 0) {
        return false;
    }
    unsigned char first = (unsigned char)keys->bytes[0];
    switch (first) {
    case ESCAPE:
        return take_sequence(keys, silent, ret_key);
    case '\r':
    case '\n':
        return take(keys, 1, TOP_KEY_ENTER, ret_key);
    case '\t':
        return take(keys, 1, TOP_KEY_TAB, ret_key);
    case BACKSPACE:
    case DELETE:
        return take(keys, 1, TOP_KEY_BACKSPACE, ret_key);
    default:
        break;
    }
    if (first >= 0x80) {
        return take_character(keys, silent, ret_key);
    }
    return take(keys, 1, first >= ' ' ? TOP_KEY_TEXT : TOP_KEY_OTHER, ret_key);
}
