/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a piece of log bytes, so that readers get whole lines and whole characters. */
#include "agent/base/lines.h"

#include <string.h>

/* The length without an incomplete character at the end. */
static size_t whole_characters(const char *bytes, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char byte = (unsigned char)bytes[length - back];
        if ((byte & 0xc0) == 0x80) {
            continue; /* inside a character */
        }
        size_t needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
        return needed > back ? length - back : length;
    }
    return length;
}

size_t lines_cut(const char *bytes, size_t length, bool full, bool final, bool old)
{
    if (final && !full) {
        return length;
    }
    const char *newline = memrchr(bytes, '\n', length);
    if (newline != NULL) {
        return (size_t)(newline - bytes) + 1;
    }
    if (!full && !old) {
        return 0;
    }
    size_t whole = whole_characters(bytes, length);
    return whole > 0 ? whole : length;
}
