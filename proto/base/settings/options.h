/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines by one table: parsing, --help and shell completion all use it. */
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
    OPTION_LIST,     /* struct option_list *: may be repeated */
};

struct option_list {
    const char **items; /* borrowed from argv; the array is freed by options_finish_list */
    size_t count;
};

struct option_spec {
    char letter;            /* 0: no short form */
    const char *name;       /* without the dashes */
    const char *value_name; /* in --help: "FILE"; NULL for flags */
    const char *help;       /* one line */
    enum option_kind kind;
    void *target;
    int64_t min, max; /* of OPTION_INT */
    const char
        *choices; /* "table|wide|json": the only values of an OPTION_TEXT, checked and completed; else NULL */
    const char *joined;     /* "it": -it is this flag, although a letter of it is another option; or NULL */
    const char *alias;      /* an older name, accepted but not shown; or NULL */
    bool command_line_only; /* not a setting: see proto/base/settings/settings.h */
};

/* Parses argv[1..]. Options and positional arguments may mix; "--" ends the options. With stop_at_positional
 * the first positional argument ends them, too (for `run -- argv` and for subcommands). *ret_rest gets the
 * positional arguments: pointers into argv, in an array that the caller frees. ERR_USAGE names the option and
 * suggests the nearest known one. --help is an ordinary flag of the table. given, where it is not NULL, has
 * count elements; the elements of options that argv names become true. */
bool options_parse(const struct option_spec *specs, size_t count, int argc, char **argv,
                   bool stop_at_positional, bool *given, char ***ret_rest, size_t *ret_rest_count,
                   struct err *err);

/* Sets one target from a value as people write it. A flag takes true or false, yes or no, on or off, 1 or 0.
 * shown is the option's name in messages. An OPTION_LIST gets one item more. */
bool options_take(const struct option_spec *spec, const char *shown, const char *value, struct err *err);

/* options_find: the option with that name or alias. options_nearest: the option whose name is nearest to the
 * word. NULL when there is none. */
const struct option_spec *options_find(const struct option_spec *specs, size_t count, const char *name);
const struct option_spec *options_nearest(const struct option_spec *specs, size_t count, const char *word);

/* Writes usage, summary and the table in the usual form. Options that are also settings come first, if the
 * table has any that are not. */
void options_help(FILE *out, const char *usage, const char *summary, const struct option_spec *specs,
                  size_t count);

void options_finish_list(struct option_list *list);

#endif
