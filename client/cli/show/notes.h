/* SPDX-License-Identifier: Apache-2.0 */
/* Remarks about the translation of a file, a line each. */
#ifndef CLI_NOTES_H
#define CLI_NOTES_H

#include <stddef.h>

struct notes {
    char **items;
    size_t count;
};

void notes_add(struct notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Each on stderr, with the name of the file in front. */
void notes_print(const struct notes *notes, const char *name);
void notes_finish(struct notes *notes);

#endif
