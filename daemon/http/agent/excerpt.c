/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the output of programs on nodes fit to be shown: no control character but the end of a line, no
 * half of a character, and no more bytes than the caller allows. */
#include "daemon/http/agent/excerpt.h"

#include <stdbool.h>
#include <string.h>

#include "proto/base/text/text.h"

static bool is_blank(char byte)
{
    return byte == ' ' || (unsigned char)byte < ' ' || byte == '\x7f';
}

/* C1 controls, U+0080 to U+009F, are two bytes, and act like an escape in some terminals. */
static bool is_wide_control(const char *at)
{
    return (unsigned char)at[0] == 0xc2 && (unsigned char)at[1] >= 0x80 && (unsigned char)at[1] <= 0x9f;
}

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* How many of the first bytes to take: all, or max at most, between two characters. */
static size_t fitting(const char *text, size_t max)
{
    size_t length = strnlen(text, max + 1);
    if (length <= max) {
        return length;
    }
    length = max;
    while (length > 0 && continues(text[length])) {
        length--;
    }
    return length;
}

char *excerpt_fit(const char *text, size_t max, enum excerpt_form form)
{
    if (text == NULL) {
        return NULL;
    }
    while (is_blank(*text) && *text != '\0') {
        text++;
    }
    char *copy = xstrndup(text, fitting(text, max));
    char *out = copy;
    for (const char *at = copy; *at != '\0'; at++) {
        bool wide = is_wide_control(at);
        bool control = wide || (is_blank(*at) && (*at != '\n' || form == EXCERPT_LINE));
        *out++ = control ? ' ' : *at;
        at += wide;
    }
    while (out > copy && is_blank(out[-1])) {
        out--;
    }
    *out = '\0';
    return copy;
}
