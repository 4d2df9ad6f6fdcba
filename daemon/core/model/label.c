/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the labels of nodes in memory and in rows. Equal labels are equal texts. proto/spec/node_label.c
 * checks labels; constraint.c evaluates them. */
#include "daemon/core/model/label.h"

#include <string.h>

#include "daemon/core/model/state.h"
#include "proto/base/text/json.h"
#include "proto/spec/node_label.h"

static int by_key(const void *a, const void *b)
{
    const struct label *left = a, *right = b;
    return strcmp(left->key, right->key);
}

struct label *labels_copy(const json_t *object, size_t *ret_count)
{
    size_t count = 0;
    struct label *labels = xalloc((json_object_size(object) + 1) * sizeof *labels);
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        labels[count++] = (struct label){.key = xstrdup(key), .value = xstrdup(json_string_value(value))};
    }
    qsort(labels, count, sizeof *labels, by_key);
    *ret_count = count;
    return labels;
}

void labels_free(struct label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(labels[i].key);
        free(labels[i].value);
    }
    free(labels);
}

struct label *labels_decode(const char *json, size_t *ret_count)
{
    autojson json_t *object = json != NULL ? json_parse(json, strlen(json), NULL) : NULL;
    assert(json == NULL || json_is_object(object));
    return labels_copy(object, ret_count);
}

void labels_encode(const struct node *node, struct text *out)
{
    for (size_t i = 0; i < node->label_count; i++) {
        text_append(out, i == 0 ? "{" : ",");
        text_json_string(out, node->labels[i].key, strlen(node->labels[i].key));
        text_append(out, ":");
        text_json_string(out, node->labels[i].value, strlen(node->labels[i].value));
    }
    if (node->label_count > 0) {
        text_append(out, "}");
    }
}

const char *label_value(const struct node *node, const char *key)
{
    for (size_t i = 0; i < node->label_count; i++) {
        if (strcmp(node->labels[i].key, key) == 0) {
            return node->labels[i].value;
        }
    }
    return NULL;
}

bool label_isolated(const struct node *node)
{
    const char *isolation = label_value(node, ISOLATION_LABEL);
    return isolation != NULL && strcmp(isolation, ISOLATION_BY_USERS) == 0;
}
