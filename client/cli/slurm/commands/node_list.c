/* SPDX-License-Identifier: Apache-2.0 */
/* Writes names of nodes in Slurm's short form. */
#include "client/cli/slurm/commands/node_list.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

#define DIGITS_MOST 15 /* of a number that is shortened */

struct name {
    const char *text;
    size_t prefix; /* bytes before the number; all of them where there is none */
    size_t digits;
    long long number;
};

static struct name name_of(const char *text)
{
    size_t length = strlen(text), digits = 0;
    while (digits < length && digits < DIGITS_MOST && isdigit((unsigned char)text[length - 1 - digits])) {
        digits++;
    }
    struct name name = {.text = text, .prefix = length - digits, .digits = digits};
    name.number = digits > 0 ? strtoll(text + name.prefix, NULL, 10) : 0;
    return name;
}

/* By the text before the number, by how the number is written, and by the number. */
static int compare(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    size_t least = x->prefix < y->prefix ? x->prefix : y->prefix;
    int order = strncmp(x->text, y->text, least);
    if (order == 0) {
        order = (x->prefix > y->prefix) - (x->prefix < y->prefix);
    }
    if (order == 0) {
        order = (x->number > y->number) - (x->number < y->number);
    }
    return order != 0 ? order : strcmp(x->text, y->text);
}

/* Are the numbers written alike, so that the range between them names both? "9" and "10" are, "09" and "9"
 * are not. */
static bool is_next(const struct name *name, const struct name *next)
{
    bool padded = name->text[name->prefix] == '0' && name->digits > 1;
    bool next_padded = next->text[next->prefix] == '0' && next->digits > 1;
    return next->number == name->number + 1 && (name->digits == next->digits || (!padded && !next_padded));
}

static bool same_prefix(const struct name *a, const struct name *b)
{
    return a->digits > 0 && b->digits > 0 && a->prefix == b->prefix &&
           strncmp(a->text, b->text, a->prefix) == 0;
}

/* The numbers of names that share what is before them. */
static void put_numbers(const struct name *names, size_t count, struct text *out)
{
    for (size_t i = 0; i < count; i++) {
        size_t last = i;
        while (last + 1 < count && is_next(&names[last], &names[last + 1])) {
            last++;
        }
        text_printf(out, "%s%s", i > 0 ? "," : "", names[i].text + names[i].prefix);
        if (last > i) {
            text_printf(out, "-%s", names[last].text + names[last].prefix);
        }
        i = last;
    }
}

static size_t drop_equal(struct name *names, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || strcmp(names[kept - 1].text, names[i].text) != 0) {
            names[kept++] = names[i];
        }
    }
    return kept;
}

void node_list_append(const json_t *list, struct text *out)
{
    size_t count = json_array_size(list);
    autofree struct name *names = xzalloc((count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++) {
        names[i] = name_of(json_string_value(json_array_get(list, i)));
    }
    qsort(names, count, sizeof *names, compare);
    count = drop_equal(names, count);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && same_prefix(&names[i], &names[end])) {
            end++;
        }
        text_append(out, i > 0 ? "," : "");
        if (end == i + 1) {
            text_append(out, names[i].text);
        } else {
            text_append_bytes(out, names[i].text, names[i].prefix);
            text_append(out, "[");
            put_numbers(names + i, end - i, out);
            text_append(out, "]");
        }
        i = end;
    }
}
