/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of nodes. */
#ifndef CORE_MODEL_LABEL_H
#define CORE_MODEL_LABEL_H

#include <jansson.h>
#include <stddef.h>

struct label;
struct node;
struct text;

/* The labels of an object that was checked, by key, which the caller owns; none for NULL. */
struct label *labels_copy(const json_t *object, size_t *ret_count);
void labels_free(struct label *labels, size_t count);

/* The same from the text of a row, and back: appends a JSON object, nothing where there are none. */
struct label *labels_decode(const char *json, size_t *ret_count);
void labels_encode(const struct node *node, struct text *out);

/* NULL: the node has no such label. */
const char *label_value(const struct node *node, const char *key);

#endif
