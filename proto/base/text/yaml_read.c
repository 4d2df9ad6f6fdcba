/* SPDX-License-Identifier: Apache-2.0 */
/* Reads YAML as JSON. libyaml finds the structure; the core schema says which values plain scalars have. It
 * promises to refuse, with its place, whatever it cannot carry over exactly, and that work and memory are
 * bounded by the size of the text. */
#include "proto/base/text/yaml_read.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_client.h"

/* --- the core schema: which unquoted words are no text --- */

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static const char *past_sign(const char *word)
{
    return word + (*word == '-' || *word == '+');
}

static bool only(const char *word, const char *allowed)
{
    return *word != '\0' && word[strspn(word, allowed)] == '\0';
}

/* The base of a whole number; 0: it is no whole number. */
static int base_of(const char *word)
{
    if (strncmp(word, "0x", 2) == 0) {
        return only(word + 2, "0123456789abcdefABCDEF") ? 16 : 0;
    }
    if (strncmp(word, "0o", 2) == 0) {
        return only(word + 2, "01234567") ? 8 : 0;
    }
    return only(past_sign(word), "0123456789") ? 10 : 0;
}

/* [-+] ( . digits | digits [ . digits ] ) [ e [-+] digits ] */
static bool is_real(const char *word)
{
    static const char *const digits = "0123456789";
    const char *at = past_sign(word);
    size_t whole = strspn(at, digits);
    at += whole;
    size_t fraction = 0;
    if (*at == '.') {
        fraction = strspn(++at, digits);
        at += fraction;
    }
    if (whole + fraction == 0) {
        return false;
    }
    if (*at == 'e' || *at == 'E') {
        return only(past_sign(at + 1), digits);
    }
    return *at == '\0';
}

static bool is_no_number(const char *word)
{
    const char *unsigned_word = past_sign(word);
    return is_one_of(word, ".nan", ".NaN", ".NAN") || is_one_of(unsigned_word, ".inf", ".Inf", ".INF");
}

static const char *read_number(const char *word, int base, json_t **ret_value)
{
    errno = 0;
    long long whole = base != 0 ? strtoll(base == 10 ? word : word + 2, NULL, base) : 0;
    double real = base == 0 ? strtod(word, NULL) : 0;
    if ((base != 0 && errno != 0) || !isfinite(real)) {
        return "the number does not fit into 64 bits";
    }
    *ret_value = base != 0 ? json_integer(whole) : json_real(real);
    return NULL;
}

/* *ret_value is a new reference: null, true, false, a number, else text. Returns NULL, or what is wrong with
 * the word, which JSON cannot carry: a number is carried over or refused, never rounded to another whole
 * number. */
static const char *yaml_plain(const char *word, json_t **ret_value)
{
    int base = base_of(word);
    if (is_no_number(word)) {
        return "NaN and infinity cannot be values here";
    }
    if (base != 0 || is_real(word)) {
        return read_number(word, base, ret_value);
    }
    if (*word == '\0' || strcmp(word, "~") == 0 || is_one_of(word, "null", "Null", "NULL")) {
        *ret_value = json_null();
    } else if (is_one_of(word, "true", "True", "TRUE")) {
        *ret_value = json_true();
    } else if (is_one_of(word, "false", "False", "FALSE")) {
        *ret_value = json_false();
    } else {
        *ret_value = json_string(word);
    }
    return NULL;
}

/* One walk over a document. */
struct reader {
    yaml_parser_t parser;
    const char *name;
    const char *bytes;
    size_t length;
    struct yaml *yaml;
    struct text path; /* of the value that is read */
    int depth;
    struct err *err;
};

static bool refuse(struct reader *reader, yaml_mark_t mark, const char *hint, const char *what)
{
    return err_field(reader->err, ERR_USAGE, NULL, hint, "%s:%zu:%zu: %s", reader->name, mark.line + 1,
                     mark.column + 1, what);
}

/* --- errors of syntax --- */

/* Does the line, counted from 0, begin with white space that holds a tab? */
static bool tab_indents(const struct reader *reader, size_t line)
{
    const char *at = reader->bytes;
    const char *end = reader->bytes + reader->length;
    while (line > 0 && at != NULL && at < end) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at != NULL ? at + 1 : NULL;
        line--;
    }
    while (at != NULL && at < end && (*at == ' ' || *at == '\t')) {
        if (*at++ == '\t') {
            return true;
        }
    }
    return false;
}

static bool refuse_syntax(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem != NULL ? parser->problem : "not enough memory";
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error == YAML_READER_ERROR) {
        return err_field(reader->err, ERR_USAGE, NULL, "write the file as UTF-8", "%s: %s at byte %zu",
                         reader->name, problem, parser->problem_offset);
    }
    if (tab_indents(reader, mark.line)) {
        return refuse(reader, mark, "indent with spaces", "a tab cannot indent in YAML");
    }
    return refuse(reader, mark, NULL, problem);
}

static bool next_event(struct reader *reader, yaml_event_t *event)
{
    bool good = yaml_parser_parse(&reader->parser, event) != 0;
    if (!good && reader->parser.error == YAML_MEMORY_ERROR) {
        out_of_memory();
    }
    return good || refuse_syntax(reader);
}

/* --- scalars --- */

static bool read_plain(struct reader *reader, const yaml_event_t *event, const char *word, json_t **ret_value)
{
    const char *problem = yaml_plain(word, ret_value);
    return problem == NULL || refuse(reader, event->start_mark, "put it into quotes if it is text", problem);
}

/* Aliases and tags make a short text mean a long or a strange one; job files need neither. */
static bool check_decoration(struct reader *reader, const yaml_event_t *event, const yaml_char_t *anchor,
                             const yaml_char_t *tag)
{
    if (anchor != NULL) {
        return refuse(reader, event->start_mark, "write the value out where it is needed",
                      "anchors are not understood");
    }
    return tag == NULL ||
           refuse(reader, event->start_mark, "put text into quotes", "tags are not understood");
}

/* --- marks --- */

static bool mark(struct reader *reader, const yaml_event_t *event, const char *spelling)
{
    struct yaml *yaml = reader->yaml;
    if (yaml->mark_count == LIMIT_YAML_VALUES) {
        return refuse(reader, event->start_mark, "put large contents into files and name them under files",
                      "there are more than 8192 values");
    }
    if ((yaml->mark_count & (yaml->mark_count - 1)) == 0) { /* full: room is a power of two */
        size_t room = yaml->mark_count == 0 ? 1 : 2 * yaml->mark_count;
        yaml->marks = xrealloc(yaml->marks, room * sizeof yaml->marks[0]);
    }
    yaml->marks[yaml->mark_count++] =
        (struct yaml_mark){.path = xstrdup(reader->path.length > 0 ? reader->path.bytes : ""),
                           .line = event->start_mark.line + 1,
                           .spelling = spelling != NULL ? xstrdup(spelling) : NULL};
    return true;
}

/* Cuts the path back to its former length. */
static void leave(struct reader *reader, size_t length)
{
    reader->path.length = length;
    if (reader->path.bytes != NULL) {
        reader->path.bytes[length] = '\0';
    }
}

/* --- values --- */

static bool read_value(struct reader *reader, const yaml_event_t *event, json_t **ret_value);

static bool check_scalar(struct reader *reader, const yaml_event_t *event)
{
    if (memchr(event->data.scalar.value, '\0', event->data.scalar.length) != NULL) {
        return refuse(reader, event->start_mark, NULL, "a NUL cannot be part of a text");
    }
    return check_decoration(reader, event, event->data.scalar.anchor, event->data.scalar.tag);
}

static bool read_scalar(struct reader *reader, const yaml_event_t *event, json_t **ret_value)
{
    const char *word = (const char *)event->data.scalar.value;
    if (!check_scalar(reader, event) || !mark(reader, event, word)) {
        return false;
    }
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        return read_plain(reader, event, word, ret_value);
    }
    *ret_value = json_string(word);
    return true;
}

static bool read_sequence(struct reader *reader, json_t **ret_value)
{
    json_t *array = json_array();
    *ret_value = array;
    size_t length = reader->path.length;
    for (;;) {
        yaml_event_t event;
        json_t *item = NULL;
        if (!next_event(reader, &event)) {
            return false;
        }
        bool over = event.type == YAML_SEQUENCE_END_EVENT;
        text_printf(&reader->path, "[%zu]", json_array_size(array));
        bool good = over || read_value(reader, &event, &item);
        leave(reader, length);
        yaml_event_delete(&event);
        if (item != NULL) {
            json_array_append_new(array, item);
        }
        if (over || !good) {
            return good;
        }
    }
}

static bool check_key(struct reader *reader, const yaml_event_t *event, const json_t *object)
{
    if (event->type == YAML_ALIAS_EVENT) {
        return refuse(reader, event->start_mark, "write the value out where it is needed",
                      "aliases are not understood");
    }
    if (event->type != YAML_SCALAR_EVENT) {
        return refuse(reader, event->start_mark, NULL, "a key must be a word or a text");
    }
    if (!check_scalar(reader, event)) {
        return false;
    }
    const char *key = (const char *)event->data.scalar.value;
    if (event->data.scalar.length > LIMIT_YAML_KEY_BYTES) {
        return refuse(reader, event->start_mark, NULL, "the key is longer than 255 bytes");
    }
    if (json_object_get(object, key) == NULL) {
        return true;
    }
    autofree char *what = xprintf("%.64s is there twice", key);
    return refuse(reader, event->start_mark, "leave one of them out", what);
}

/* Reads the value of the key. */
static bool read_member(struct reader *reader, const char *key, json_t *object)
{
    yaml_event_t event;
    json_t *value = NULL;
    if (!next_event(reader, &event)) {
        return false;
    }
    size_t length = reader->path.length;
    text_printf(&reader->path, "%s%s", length > 0 ? "." : "", key);
    bool good = read_value(reader, &event, &value);
    leave(reader, length);
    yaml_event_delete(&event);
    if (value != NULL) {
        json_object_set_new(object, key, value);
    }
    return good;
}

static bool read_map(struct reader *reader, json_t **ret_value)
{
    json_t *object = json_object();
    *ret_value = object;
    for (bool over = false, good; !over;) {
        yaml_event_t event;
        if (!next_event(reader, &event)) {
            return false;
        }
        over = event.type == YAML_MAPPING_END_EVENT;
        good = over || (check_key(reader, &event, object) &&
                        read_member(reader, (const char *)event.data.scalar.value, object));
        yaml_event_delete(&event);
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool read_group(struct reader *reader, const yaml_event_t *event, json_t **ret_value)
{
    bool map = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *anchor = map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    const yaml_char_t *tag = map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    if (!check_decoration(reader, event, anchor, tag)) {
        return false;
    }
    if (reader->depth == LIMIT_JSON_DEPTH) {
        return refuse(reader, event->start_mark, NULL, "values are nested too deeply");
    }
    if (!mark(reader, event, NULL)) {
        return false;
    }
    reader->depth++;
    bool good = map ? read_map(reader, ret_value) : read_sequence(reader, ret_value);
    reader->depth--;
    return good;
}

/* *ret_value is the caller's also after a failure. */
static bool read_value(struct reader *reader, const yaml_event_t *event, json_t **ret_value)
{
    if (event->type == YAML_SCALAR_EVENT) {
        return read_scalar(reader, event, ret_value);
    }
    if (event->type == YAML_ALIAS_EVENT) {
        return refuse(reader, event->start_mark, "write the value out where it is needed",
                      "aliases are not understood");
    }
    return read_group(reader, event, ret_value);
}

/* --- documents --- */

/* Drops events up to one of a type that matters. */
static bool skip_to_content(struct reader *reader, yaml_event_t *event)
{
    for (;;) {
        if (!next_event(reader, event)) {
            return false;
        }
        if (event->type != YAML_STREAM_START_EVENT && event->type != YAML_DOCUMENT_START_EVENT &&
            event->type != YAML_DOCUMENT_END_EVENT) {
            return true;
        }
        yaml_event_delete(event);
    }
}

static bool read_document(struct reader *reader)
{
    yaml_event_t event;
    if (!skip_to_content(reader, &event)) {
        return false;
    }
    if (event.type == YAML_STREAM_END_EVENT) {
        yaml_event_delete(&event);
        return err_set(reader->err, ERR_USAGE, "%s is empty", reader->name);
    }
    bool good = read_value(reader, &event, &reader->yaml->json);
    yaml_event_delete(&event);
    if (!good || !skip_to_content(reader, &event)) {
        return false;
    }
    bool over = event.type == YAML_STREAM_END_EVENT;
    yaml_mark_t where = event.start_mark;
    yaml_event_delete(&event);
    return over || refuse(reader, where, "only `gpuctl submit -f FILE` takes several jobs",
                          "a second document begins");
}

bool yaml_parse(const char *name, const char *bytes, size_t length, struct yaml *ret_yaml, struct err *err)
{
    struct yaml yaml = {0};
    struct reader reader = {.name = name, .bytes = bytes, .length = length, .yaml = &yaml, .err = err};
    if (length > LIMIT_SUBMIT_BYTES) {
        return err_field(err, ERR_USAGE, NULL, "put large contents into files and name them under files",
                         "%s has %zu bytes, the limit is %lld", name, length, LIMIT_SUBMIT_BYTES);
    }
    if (yaml_parser_initialize(&reader.parser) == 0) {
        out_of_memory();
    }
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)bytes, length);
    bool good = read_document(&reader);
    yaml_parser_delete(&reader.parser);
    text_finish(&reader.path);
    if (good) {
        *ret_yaml = yaml;
    } else {
        yaml_finish(&yaml);
    }
    return good;
}

void yaml_finish(struct yaml *yaml)
{
    for (size_t i = 0; i < yaml->mark_count; i++) {
        free(yaml->marks[i].path);
        free(yaml->marks[i].spelling);
    }
    free(yaml->marks);
    json_decref(yaml->json);
    *yaml = (struct yaml){0};
}

/* Is the path the field, or something around it? */
static bool is_around(const char *path, const char *field)
{
    size_t length = strlen(path);
    return length == 0 || (strncmp(path, field, length) == 0 &&
                           (field[length] == '\0' || field[length] == '.' || field[length] == '['));
}

size_t yaml_line(const struct yaml *yaml, const char *field)
{
    size_t line = 0;
    size_t longest = 0;
    for (size_t i = 0; i < yaml->mark_count; i++) {
        const struct yaml_mark *at = &yaml->marks[i];
        if (is_around(at->path, field) && strlen(at->path) >= longest) {
            longest = strlen(at->path);
            line = at->line;
        }
    }
    return line;
}

const char *yaml_spelling(const struct yaml *yaml, const char *field)
{
    for (size_t i = 0; i < yaml->mark_count; i++) {
        if (strcmp(yaml->marks[i].path, field) == 0) {
            return yaml->marks[i].spelling;
        }
    }
    return NULL;
}
