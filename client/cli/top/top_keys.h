/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as a terminal sends them: characters of UTF-8, and sequences that begin with an escape. */
#ifndef CLI_TOP_KEYS_H
#define CLI_TOP_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum top_key_kind {
    TOP_KEY_TEXT, /* a character that can be printed */
    TOP_KEY_UP,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_TAB,
    TOP_KEY_BACK_TAB,
    TOP_KEY_BACKSPACE,
    TOP_KEY_OTHER /* no key that has a meaning here */
};

struct top_key {
    enum top_key_kind kind;
    char text[5]; /* of TOP_KEY_TEXT: one character */
};

#define TOP_KEYS_BYTES 256

/* Bytes that have come and are not decoded yet. {0} is the beginning. */
struct top_keys {
    char bytes[TOP_KEYS_BYTES];
    size_t length;
};

/* Bytes that have no room are dropped. */
void top_keys_add(struct top_keys *keys, const char *bytes, size_t length);
/* Takes the next key. silent: nothing came for a while, so that a sequence which has begun is taken as it is.
 * false: there is none, or the rest of it is to come. */
bool top_keys_next(struct top_keys *keys, bool silent, struct top_key *ret_key);

#endif
