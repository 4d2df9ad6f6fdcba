/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of one member of a request, or of an object in it. A member of another type fails the call with
 * INVALID_PARAMETER_VALUE, naming the member. A member that is absent or null counts as the argument absent.
 * Texts and values are borrowed from the request. */
#ifndef MLFLOW_FIELD_H
#define MLFLOW_FIELD_H

#include <stddef.h>

#include "daemon/mlflow/call/call.h"

const char *field_text(struct call *call, const json_t *object, const char *name, const char *absent);
/* Reads a whole number, also as text. */
int64_t field_int(struct call *call, const json_t *object, const char *name, int64_t absent);
/* The value of a metric: a number, or a text with one, "NaN", "Infinity" or "-Infinity". */
double field_double(struct call *call, const json_t *object, const char *name);
/* The index of one of the words, which may also come as a number that counts from 1. */
size_t field_word(struct call *call, const char *name, const char *const *words, size_t count, size_t absent);
/* An array of objects; absent: NULL, which json_array_foreach takes for an empty one. */
const json_t *field_objects(struct call *call, const json_t *object, const char *name);
/* An array of texts; a single text counts as an array of one; absent: an empty one. The caller owns it. */
json_t *field_texts(struct call *call, const char *name);

/* These fail the call when the member is absent; the text is "" then. */
const char *field_need_text(struct call *call, const json_t *object, const char *name);
int64_t field_need_int(struct call *call, const json_t *object, const char *name);

/* Reads run_id, or run_uuid, its name in older clients; "" where the call fails. */
const char *field_need_run_id(struct call *call);
/* Reads max_results, from 1 to the limit. */
int64_t field_max_results(struct call *call, int64_t absent, int64_t limit);
/* Reads the numbers of page_token into out, count of them. An absent token leaves out as it is. */
void field_page_token(struct call *call, int64_t *out, size_t count);
/* Appends ',"next_page_token":"..."' with the numbers. */
void page_token_append(struct text *out, const int64_t *numbers, size_t count);

#endif
