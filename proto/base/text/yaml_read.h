/* SPDX-License-Identifier: Apache-2.0 */
/* One YAML document as a JSON value that remembers where each part of it stood. */
#ifndef BASE_YAML_READ_H
#define BASE_YAML_READ_H

#include <jansson.h>
#include <stddef.h>

#include "proto/base/err.h"

/* Where one value stood, and a scalar's own spelling: "1e-3" where the value is 0.001. */
struct yaml_mark {
    char *path; /* as errors name fields: "files[2].path"; "" is the whole */
    size_t line;
    char *spelling; /* NULL: a map or a sequence */
};

struct yaml {
    json_t *json;
    struct yaml_mark *marks;
    size_t mark_count;
};

/* Maps, sequences and scalars by the core schema of YAML 1.2: `no` and `12:30` are text. Aliases, tags, a
 * second document, a key that is there twice, NaN and what is larger or deeper than the limits are refused.
 * ERR_USAGE names the file, line and column. */
bool yaml_parse(const char *name, const char *bytes, size_t length, struct yaml *ret_yaml, struct err *err);
void yaml_finish(struct yaml *yaml);

/* The line of a field, or of the nearest thing around it; 0 where the document does not say anything. */
size_t yaml_line(const struct yaml *yaml, const char *field);
/* How the scalar was written; NULL where the field is no scalar. Borrowed. */
const char *yaml_spelling(const struct yaml *yaml, const char *field);

#endif
