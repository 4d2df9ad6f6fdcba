/* SPDX-License-Identifier: Apache-2.0 */
/* The job specs in the body of a batch: a JSON list, or NDJSON, one spec a line. */
#ifndef HTTP_SPEC_LIST_H
#define HTTP_SPEC_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

/* A place in a body. */
struct spec_list {
    const char *bytes; /* borrowed */
    size_t length, at;
    bool lines; /* NDJSON */
    bool begun; /* a value of the list has been passed */
};

/* Begins with the first spec. ERR_MALFORMED when the body of a JSON list does not begin as one. */
bool spec_list_open(struct spec_list *list, const char *bytes, size_t length, bool lines, struct err *err);

/* The text of the next spec, borrowed from the body; it may be no JSON. *ret_text NULL: there are no more.
 * ERR_MALFORMED when the list itself is broken, so that nobody can tell where its specs end. */
bool spec_list_next(struct spec_list *list, const char **ret_text, size_t *ret_length, struct err *err);

#endif
