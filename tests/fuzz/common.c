/* SPDX-License-Identifier: Apache-2.0 */
/* What targets share, and the one that fails. */
#include <string.h>

#include "proto/base/text/text.h"
#include "tests/fuzz/fuzz.h"

char *fuzz_text(const uint8_t *bytes, size_t size)
{
    char *text = xalloc(size + 1);
    memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

bool fuzz_planted(const uint8_t *bytes, size_t size)
{
    FUZZ_MUST(size < 4 || memcmp(bytes, "bug!", 4) != 0);
    return true;
}
