/* SPDX-License-Identifier: Apache-2.0 */
/* Finds elements in the XML of S3. S3 puts no attributes, comments or CDATA into the elements that we read,
 * so an answer that has some is one in which these elements are missing. */
#include "proto/s3/s3_answer.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

static const char *find(struct s3_element in, const char *tag)
{
    return in.length > 0 ? memmem(in.bytes, in.length, tag, strlen(tag)) : NULL;
}

static void move_to(struct s3_element *rest, const char *at)
{
    rest->length -= (size_t)(at - rest->bytes);
    rest->bytes = at;
}

bool s3_answer_next(struct s3_element *rest, const char *name, struct s3_element *ret_element)
{
    autofree char *open = xprintf("<%s>", name), *end = xprintf("</%s>", name);
    struct s3_element inner = *rest;
    const char *at = find(inner, open);
    if (at == NULL) {
        return false;
    }
    move_to(&inner, at + strlen(open));
    const char *last = find(inner, end);
    if (last == NULL) {
        return false;
    }
    *ret_element = (struct s3_element){inner.bytes, (size_t)(last - inner.bytes)};
    move_to(rest, last + strlen(end));
    return true;
}

/* --- text ----------------------------------------------------------------------------------------------- */

/* A character by its number: "#38" or "#x26". Those above 127 are no part of what we read by number. */
static bool append_number(const char *number, struct text *out)
{
    bool hex = number[0] == 'x';
    char *end;
    unsigned long value = strtoul(number + hex, &end, hex ? 16 : 10);
    if (end == number + hex || *end != '\0' || value == 0 || value > 127) {
        return false;
    }
    const char c = (char)value;
    text_append_bytes(out, &c, 1);
    return true;
}

static bool append_entity(const char *name, struct text *out)
{
    static const char *const known[][2] = {
        {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i][0]) == 0) {
            text_append(out, known[i][1]);
            return true;
        }
    }
    return name[0] == '#' && append_number(name + 1, out);
}

/* Moves *at behind the entity. */
static bool take_entity(const char **at, const char *end, struct text *out)
{
    char name[8];
    const char *semicolon = memchr(*at, ';', (size_t)(end - *at));
    size_t length = semicolon != NULL ? (size_t)(semicolon - *at) : 0;
    if (length < 2 || length > sizeof name) {
        return false;
    }
    memcpy(name, *at + 1, length - 1);
    name[length - 1] = '\0';
    *at = semicolon + 1;
    return append_entity(name, out);
}

static bool decode(struct s3_element element, struct text *out)
{
    const char *end = element.bytes + element.length;
    text_reserve(out, 0);
    for (const char *at = element.bytes; at < end;) {
        if (*at == '&') {
            if (!take_entity(&at, end, out)) {
                return false;
            }
        } else if (*at == '<' || *at == '\0') {
            return false;
        } else {
            text_append_bytes(out, at++, 1);
        }
    }
    return true;
}

char *s3_answer_text(struct s3_element within, const char *name)
{
    struct s3_element element;
    autotext struct text text = {0};
    return s3_answer_next(&within, name, &element) && decode(element, &text) ? text_take(&text) : NULL;
}

int64_t s3_answer_int(struct s3_element within, const char *name)
{
    autofree char *text = s3_answer_text(within, name);
    int64_t value = -1;
    return text != NULL && text_to_int(text, 0, INT64_MAX, &value) ? value : -1;
}
