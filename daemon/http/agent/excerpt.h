/* SPDX-License-Identifier: Apache-2.0 */
/* Text that programs on nodes have written, made fit to be shown to people. */
#ifndef HTTP_EXCERPT_H
#define HTTP_EXCERPT_H

#include <stddef.h>

enum excerpt_form {
    EXCERPT_LINE,  /* ends of lines become spaces */
    EXCERPT_LINES, /* they stay */
};

/* A copy of at most max bytes, cut between two characters, without spaces and ends of lines at its own ends.
 * Control characters, which could speak to a terminal, become spaces. text is UTF-8, or NULL; so is the copy.
 */
char *excerpt_fit(const char *text, size_t max, enum excerpt_form form);

#endif
