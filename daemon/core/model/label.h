/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of nodes. */
#ifndef CORE_MODEL_LABEL_H
#define CORE_MODEL_LABEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct label;
struct node;
struct text;

/* Copies the labels of a checked object, sorted by key; the caller owns them. NULL has none. */
struct label *labels_copy(const json_t *object, size_t *ret_count);
void labels_free(struct label *labels, size_t count);

/* Decodes labels from the text of a row; encodes them again: appends a JSON object, nothing for a node
 * without labels. */
struct label *labels_decode(const char *json, size_t *ret_count);
void labels_encode(const struct node *node, struct text *out);

/* NULL: the node has no such label. */
const char *label_value(const struct node *node, const char *key);

/* Whether it runs jobs as the users of their owners. */
bool label_isolated(const struct node *node);

#endif
