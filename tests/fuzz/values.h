/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of values that are written as one text. */
#ifndef TESTS_FUZZ_VALUES_H
#define TESTS_FUZZ_VALUES_H

#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

/* read is false for a text that is none. */
struct value_kind {
    const char *name;
    bool (*read)(const char *text);
};

static inline bool refused(const struct err *err)
{
    FUZZ_REFUSED(*err);
    return false;
}

/* Reads the rest of an input as the kind that its first line names. */
static inline bool value_read(const struct value_kind *kinds, size_t count, const uint8_t *bytes, size_t size)
{
    autofree char *name = fuzz_line(&bytes, &size);
    autofree char *text = fuzz_text(bytes, size);
    for (size_t i = 0; name != NULL && i < count; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return kinds[i].read(text);
        }
    }
    return false;
}

#endif
