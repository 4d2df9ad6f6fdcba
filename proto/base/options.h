/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines by one table: parsing, --help and shell completion all come from it. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/err.h"

enum option_kind {
    OPTION_FLAG,     /* bool *: --name and --no-name */
    OPTION_TEXT,     /* const char **: borrowed from argv */
    OPTION_INT,      /* int64_t *: a whole number in min..max */
    OPTION_DURATION, /* int64_t *: milliseconds, written 90s, 15m, 2h */
    OPTION_LIST,     /* struct option_list *: may be given again and again */
};

struct option_list {
    const char **items; /* borrowed from argv; the array is freed by options_finish_list */
    size_t count;
};

struct option_spec {
    char letter;            /* 0 where there is no short form */
    const char *name;       /* without the dashes */
    const char *value_name; /* in --help: "FILE"; NULL for flags */
    const char *help;       /* one line */
    enum option_kind kind;
    void *target;
    int64_t min, max; /* of OPTION_INT */
    const char
        *choices; /* "table|wide|json": the only values of an OPTION_TEXT, checked and completed; else NULL */
};

/* Parses argv[1..]. Options and positional arguments may mix; "--" ends the options. With stop_at_positional
 * the first positional argument ends them too (for `run -- argv` and for verbs). The positional arguments are
 * left in *ret_rest (pointers into argv, array freed by the caller). ERR_USAGE names the option and suggests
 * the one that was meant. --help is an ordinary flag of the table. */
bool options_parse(const struct option_spec *specs, size_t count, int argc, char **argv,
                   bool stop_at_positional, char ***ret_rest, size_t *ret_rest_count, struct err *err);

/* Writes usage, summary and the table in the usual form. */
void options_help(FILE *out, const char *usage, const char *summary, const struct option_spec *specs,
                  size_t count);

void options_finish_list(struct option_list *list);

#endif
