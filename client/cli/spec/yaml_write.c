/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON as YAML with libyaml's emitter: texts of several lines as blocks, and texts that would read as
 * another value in quotes. */
#include "client/cli/spec/yaml_write.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

#define LINE_COLUMNS 120

static int append(void *closure, unsigned char *bytes, size_t length)
{
    text_append_bytes(closure, bytes, length);
    return 1;
}

/* A node is added unless memory is out. Its number. */
static int must(int id)
{
    if (id == 0) {
        out_of_memory();
    }
    return id;
}

static int add_scalar(yaml_document_t *document, const char *text, yaml_scalar_style_t style)
{
    return must(
        yaml_document_add_scalar(document, NULL, (const yaml_char_t *)text, (int)strlen(text), style));
}

/* Letters and what cannot begin or be a value of another kind. */
static bool reads_as_text(const char *text)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(words[i], text) == 0) {
            return false;
        }
    }
    bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || *text == '/';
    return letter &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=@+-")] ==
               '\0';
}

static int add_text(yaml_document_t *document, const char *text)
{
    bool lines = strchr(text, '\n') != NULL;
    return add_scalar(document, text,
                      reads_as_text(text) ? YAML_PLAIN_SCALAR_STYLE
                      : lines             ? YAML_LITERAL_SCALAR_STYLE
                                          : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

static int add_value(yaml_document_t *document, const json_t *value)
{
    const char *name;
    size_t i;
    json_t *inner;
    if (json_is_object(value)) {
        int map = must(yaml_document_add_mapping(document, NULL, YAML_BLOCK_MAPPING_STYLE));
        json_object_foreach ((json_t *)(uintptr_t)value, name, inner) {
            int key = add_text(document, name);
            must(yaml_document_append_mapping_pair(document, map, key, add_value(document, inner)));
        }
        return map;
    }
    if (json_is_array(value)) {
        int list = must(yaml_document_add_sequence(document, NULL, YAML_BLOCK_SEQUENCE_STYLE));
        json_array_foreach (value, i, inner) {
            must(yaml_document_append_sequence_item(document, list, add_value(document, inner)));
        }
        return list;
    }
    if (json_is_string(value)) {
        return add_text(document, json_string_value(value));
    }
    autofree char *text = json_dumps(value, JSON_ENCODE_ANY);
    return add_scalar(document, text, YAML_PLAIN_SCALAR_STYLE);
}

bool yaml_write(const json_t *value, struct text *out, struct err *err)
{
    yaml_emitter_t emitter;
    yaml_document_t document;
    must(yaml_emitter_initialize(&emitter));
    must(yaml_document_initialize(&document, NULL, NULL, NULL, 1, 1));
    add_value(&document, value);
    yaml_emitter_set_output(&emitter, append, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, LINE_COLUMNS);
    bool good = yaml_emitter_dump(&emitter, &document) != 0; /* takes the document over */
    good = good && yaml_emitter_close(&emitter) != 0;
    if (!good) {
        err_set(err, ERR_INTERNAL, "cannot write YAML: %s",
                emitter.problem != NULL ? emitter.problem : "no memory");
    }
    yaml_emitter_delete(&emitter);
    return good;
}
