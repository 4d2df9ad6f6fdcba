/* SPDX-License-Identifier: Apache-2.0 */
/* Collects remarks for people about the translation of a file, and prints them. */
#include "client/cli/show/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cli/show/print.h"
#include "proto/base/text/text.h"

#define NOTE_BYTES 512

void notes_add(struct notes *notes, const char *format, ...)
{
    char line[NOTE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    notes->items = xrealloc(notes->items, (notes->count + 1) * sizeof notes->items[0]);
    notes->items[notes->count++] = xstrdup(line);
}

void notes_print(const struct notes *notes, const char *name)
{
    for (size_t i = 0; i < notes->count; i++) {
        print_note("%s: %s", name, notes->items[i]);
    }
}

void notes_finish(struct notes *notes)
{
    for (size_t i = 0; i < notes->count; i++) {
        free(notes->items[i]);
    }
    free(notes->items);
    *notes = (struct notes){0};
}
