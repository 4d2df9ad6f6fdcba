/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from JSON to YAML, by libyaml's emitter: texts of several lines as blocks, texts that would
 * read as something else in quotes. */
#include "client/cli/yaml_write.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/base/text.h"

#define LINE_COLUMNS 120

static int append(void *closure, unsigned char *bytes, size_t length)
{
    text_append_bytes(closure, bytes, length);
    return 1;
}

/* An event is made unless memory is out; one that was not made must not be given on. */
static void must(int made)
{
    if (made == 0) {
        out_of_memory();
    }
}

static bool emit(yaml_emitter_t *emitter, yaml_event_t *event)
{
    bool good = yaml_emitter_emit(emitter, event) != 0;
    if (!good && emitter->error == YAML_MEMORY_ERROR) {
        out_of_memory();
    }
    return good;
}

static bool emit_scalar(yaml_emitter_t *emitter, const char *text, bool plain, yaml_scalar_style_t style)
{
    yaml_event_t event;
    must(yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), plain,
                                      1, style));
    return emit(emitter, &event);
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

static bool emit_text(yaml_emitter_t *emitter, const char *text)
{
    if (reads_as_text(text)) {
        return emit_scalar(emitter, text, true, YAML_PLAIN_SCALAR_STYLE);
    }
    bool lines = strchr(text, '\n') != NULL;
    return emit_scalar(emitter, text, false,
                       lines ? YAML_LITERAL_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

static bool emit_value(yaml_emitter_t *emitter, const json_t *value);

static bool emit_object(yaml_emitter_t *emitter, const json_t *object)
{
    yaml_event_t event;
    const char *name;
    json_t *value;
    must(yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
    bool good = emit(emitter, &event);
    json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
        good = good && emit_text(emitter, name) && emit_value(emitter, value);
    }
    must(yaml_mapping_end_event_initialize(&event));
    return emit(emitter, &event) && good;
}

static bool emit_array(yaml_emitter_t *emitter, const json_t *array)
{
    yaml_event_t event;
    must(yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE));
    bool good = emit(emitter, &event);
    for (size_t i = 0; i < json_array_size(array); i++) {
        good = good && emit_value(emitter, json_array_get(array, i));
    }
    must(yaml_sequence_end_event_initialize(&event));
    return emit(emitter, &event) && good;
}

static bool emit_value(yaml_emitter_t *emitter, const json_t *value)
{
    if (json_is_object(value)) {
        return emit_object(emitter, value);
    }
    if (json_is_array(value)) {
        return emit_array(emitter, value);
    }
    if (json_is_string(value)) {
        return emit_text(emitter, json_string_value(value));
    }
    autofree char *text = json_dumps(value, JSON_ENCODE_ANY);
    return emit_scalar(emitter, text, true, YAML_PLAIN_SCALAR_STYLE);
}

static bool emit_document(yaml_emitter_t *emitter, const json_t *value)
{
    yaml_event_t event;
    must(yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    if (!emit(emitter, &event)) {
        return false;
    }
    must(yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    if (!emit(emitter, &event) || !emit_value(emitter, value)) {
        return false;
    }
    must(yaml_document_end_event_initialize(&event, 1));
    if (!emit(emitter, &event)) {
        return false;
    }
    must(yaml_stream_end_event_initialize(&event));
    return emit(emitter, &event);
}

bool yaml_write(const json_t *value, struct text *out, struct err *err)
{
    yaml_emitter_t emitter;
    if (yaml_emitter_initialize(&emitter) == 0) {
        out_of_memory();
    }
    yaml_emitter_set_output(&emitter, append, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, LINE_COLUMNS);
    bool good = emit_document(&emitter, value);
    if (!good) {
        err_set(err, ERR_INTERNAL, "cannot write YAML: %s",
                emitter.problem != NULL ? emitter.problem : "no memory");
    }
    yaml_emitter_delete(&emitter);
    return good;
}
