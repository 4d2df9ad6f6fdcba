/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the body of a batch into the texts of its specs, without reading the specs. A spec that is no JSON
 * is a text like the others as long as its quotes and brackets are in pairs; its reader refuses it. */
#include "daemon/http/submit/spec_list.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_spaces(struct spec_list *list)
{
    while (list->at < list->length && is_space(list->bytes[list->at])) {
        list->at++;
    }
}

/* Whether the byte is next, after spaces; then it is passed. */
static bool passes(struct spec_list *list, char wanted)
{
    skip_spaces(list);
    bool there = list->at < list->length && list->bytes[list->at] == wanted;
    list->at += there;
    return there;
}

static bool refuse(const struct spec_list *list, const char *wanted, struct err *err)
{
    err_set(err, ERR_MALFORMED, "byte %zu of the body: %s is missing", list->at + 1, wanted);
    return err_hint(err, "send a list of job specs, or one a line as application/x-ndjson");
}

bool spec_list_open(struct spec_list *list, const char *bytes, size_t length, bool lines, struct err *err)
{
    *list = (struct spec_list){.bytes = bytes, .length = length, .lines = lines};
    return lines || passes(list, '[') || refuse(list, "the [ of a list", err);
}

/* --- one a line ----------------------------------------------------------------------------------------- */

static void next_line(struct spec_list *list, const char **ret_text, size_t *ret_length)
{
    skip_spaces(list);
    if (list->at == list->length) {
        *ret_text = NULL;
        return;
    }
    const char *text = list->bytes + list->at;
    size_t rest = list->length - list->at;
    const char *end = memchr(text, '\n', rest);
    *ret_text = text;
    *ret_length = end != NULL ? (size_t)(end - text) : rest;
    list->at += *ret_length;
}

/* --- a list --------------------------------------------------------------------------------------------- */

/* The index of the quote that ends the string which begins at `at`; length when the string does not end. */
static size_t string_end(const struct spec_list *list, size_t at)
{
    for (at++; at < list->length && list->bytes[at] != '"'; at++) {
        at += list->bytes[at] == '\\';
    }
    return at < list->length ? at : list->length;
}

/* The index of the comma or bracket behind the value which begins at `at`; length when there is none. */
static size_t value_end(const struct spec_list *list, size_t at)
{
    size_t depth = 0;
    for (; at < list->length; at++) {
        char c = list->bytes[at];
        if (c == '"') {
            at = string_end(list, at);
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (depth == 0 && (c == ',' || c == ']')) {
            return at;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return list->length;
}

/* Behind the last value. */
static bool end(struct spec_list *list, const char **ret_text, struct err *err)
{
    *ret_text = NULL;
    skip_spaces(list);
    return list->at == list->length || refuse(list, "the end of the body behind the list", err);
}

static bool next_value(struct spec_list *list, const char **ret_text, size_t *ret_length, struct err *err)
{
    if (passes(list, ']')) {
        return end(list, ret_text, err);
    }
    if (list->begun && !passes(list, ',')) {
        return refuse(list, "the ] of the list", err);
    }
    list->begun = true;
    skip_spaces(list);
    size_t begin = list->at;
    list->at = value_end(list, begin);
    if (list->at == list->length) {
        return refuse(list, "the ] of the list", err);
    }
    *ret_text = list->bytes + begin;
    *ret_length = list->at - begin;
    return true;
}

bool spec_list_next(struct spec_list *list, const char **ret_text, size_t *ret_length, struct err *err)
{
    if (list->lines) {
        next_line(list, ret_text, ret_length);
    } else if (!next_value(list, ret_text, ret_length, err)) {
        return false;
    }
    while (*ret_text != NULL && *ret_length > 0 && is_space((*ret_text)[*ret_length - 1])) {
        --*ret_length;
    }
    return true;
}
