/* SPDX-License-Identifier: Apache-2.0 */
/* Checks labels of nodes. An accepted label can be part of a constraint and never hides a built-in label. The
 * core decides which nodes a constraint fits. */
#include "proto/spec/node_label.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/jobspec_parts.h"

#define MUST_BE_MOUNT ":mount"

#define LIMIT_TEXT(limit)  LIMIT_QUOTE(limit)
#define LIMIT_QUOTE(limit) #limit

enum built_in_label node_label_built_in(const char *key)
{
#define AS_KEY(name, key) key,
    static const char *const keys[] = {BUILT_IN_LABELS(AS_KEY)};
#undef AS_KEY
    int i = 0;
    while (i < BUILT_IN_COUNT && strcmp(keys[i], key) != 0) {
        i++;
    }
    return (enum built_in_label)i;
}

bool node_label_is_value(const char *text)
{
    size_t length = 0;
    while (text[length] > ' ' && text[length] <= '~' && text[length] != ',') {
        length++;
    }
    return text[length] == '\0' && length > 0 && length <= LIMIT_LABEL_VALUE_BYTES;
}

/* called: the label's name in the error. */
static bool check(const char *called, const char *field, const char *key, const char *value, struct err *err)
{
    if (!text_is_name(key, LIMIT_NAME_BYTES)) {
        return err_field(err, ERR_FIELD, field,
                         "write zone=a; a key has letters, digits, '.', '_' and '-', a letter or digit first",
                         "%.80s has no key of 1 to %d characters", called, LIMIT_NAME_BYTES);
    }
    if (node_label_built_in(key) != BUILT_IN_COUNT) {
        return err_field(err, ERR_FIELD, field, "name it otherwise", "%s is a label that every node has",
                         called);
    }
    return (value != NULL && node_label_is_value(value)) ||
           err_field(err, ERR_FIELD, field, "letters, digits and signs, neither blanks nor commas",
                     "%s must have a value of 1 to %d characters", called, LIMIT_LABEL_VALUE_BYTES);
}

bool node_label_take(const char *text, json_t *labels, struct err *err)
{
    size_t length = strcspn(text, "=");
    autofree char *key = xstrndup(text, length);
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    autofree char *called = xprintf("--label %s", key);
    if (!check(called, "--label", key, value, err)) {
        return false;
    }
    if (strncmp(key, VOLUME_LABEL, strlen(VOLUME_LABEL)) == 0) {
        return err_field(err, ERR_FIELD, "--label", "offer it by --volume NAME=PATH",
                         "%s is the label of a volume", key);
    }
    json_object_set_new(labels, key, json_string(value));
    return json_object_size(labels) <= LIMIT_LABELS ||
           err_field(err, ERR_FIELD, "--label", NULL,
                     "a node has at most " LIMIT_TEXT(LIMIT_LABELS) " labels");
}

bool node_labels_check(const json_t *labels, struct err *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(labels) || json_object_size(labels) > LIMIT_LABELS) {
        return err_field(err, ERR_FIELD, "labels", NULL,
                         "labels must be an object of at most " LIMIT_TEXT(LIMIT_LABELS) " strings");
    }
    json_object_foreach ((json_t *)(uintptr_t)labels, key, value) {
        autofree char *field = xprintf("labels.%.*s", LIMIT_NAME_BYTES - (int)strlen("labels."), key);
        if (!check(field, field, key, json_string_value(value), err)) {
            return false;
        }
    }
    return true;
}

bool node_volume_take(const char *text, struct node_volume *ret_volume, struct err *err)
{
    enum volume_access access;
    size_t length = strcspn(text, "="), tail = strlen(MUST_BE_MOUNT);
    struct node_volume volume = {.name = xstrndup(text, length),
                                 .path = xstrdup(text[length] == '=' ? text + length + 1 : "")};
    length = strlen(volume.path);
    if (length > tail && strcmp(volume.path + length - tail, MUST_BE_MOUNT) == 0) {
        volume.must_be_mount = true;
        volume.path[length - tail] = '\0';
    }
    jobspec_take_access(volume.path, &access);
    volume.read_only = access == VOLUME_READ_ONLY;
    if (!jobspec_is_volume_name(volume.name) || !jobspec_is_plain_path(volume.path)) {
        node_volume_finish(&volume);
        return err_field(
            err, ERR_FIELD, "--volume",
            "write NAME=/PATH, with :ro behind it where jobs only read, and :mount where something "
            "must be mounted there",
            "--volume %.200s names no volume and its folder", text);
    }
    *ret_volume = volume;
    return true;
}

void node_volume_finish(struct node_volume *volume)
{
    free(volume->name);
    free(volume->path);
    *volume = (struct node_volume){0};
}
