/* SPDX-License-Identifier: Apache-2.0 */
/* Parses command lines by a table of options and prints the table's --help. Every refusal is ERR_USAGE, names
 * the option as it was typed, and suggests the nearest known one. Targets of options before the refused one
 * may be set already. The programs set the targets' defaults. */
#include "proto/base/settings/options.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define HELP_COLUMN 28 /* the help of wider labels starts on the next line */

/* The state of reading one command line. */
struct walk {
    const struct option_spec *specs;
    size_t count;
    int argc;
    char **argv;
    int next;    /* the argument to be read next */
    bool *given; /* by index; or NULL */
    struct err *err;
};

/* Adds the hint that all errors here carry; returns false. */
static bool hinted(struct err *err)
{
    return err_hint(err, "see --help");
}

static bool is_called(const char *known, const char *name, size_t length)
{
    return known != NULL && strncmp(known, name, length) == 0 && known[length] == '\0';
}

static const struct option_spec *find_among(const struct option_spec *specs, size_t count, const char *name,
                                            size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (is_called(specs[i].name, name, length) || is_called(specs[i].alias, name, length)) {
            return &specs[i];
        }
    }
    return NULL;
}

static const struct option_spec *find_name(const struct walk *walk, const char *name, size_t length)
{
    return find_among(walk->specs, walk->count, name, length);
}

const struct option_spec *options_find(const struct option_spec *specs, size_t count, const char *name)
{
    return find_among(specs, count, name, strlen(name));
}

static const struct option_spec *find_letter(const struct walk *walk, char letter)
{
    for (size_t i = 0; i < walk->count; i++) {
        if (walk->specs[i].letter != '\0' && walk->specs[i].letter == letter) {
            return &walk->specs[i];
        }
    }
    return NULL;
}

/* The option whose name is nearest to the word; NULL when no name is near enough. */
static const struct option_spec *find_nearest(const struct option_spec *specs, size_t count, const char *word,
                                              bool flags_only)
{
    const struct option_spec *nearest = NULL;
    unsigned best = (unsigned)(strlen(word) / 3) + 2;
    for (size_t i = 0; i < count; i++) {
        unsigned distance = text_distance(word, specs[i].name);
        if (distance < best && (!flags_only || specs[i].kind == OPTION_FLAG)) {
            nearest = &specs[i];
            best = distance;
        }
    }
    return nearest;
}

const struct option_spec *options_nearest(const struct option_spec *specs, size_t count, const char *word)
{
    return find_nearest(specs, count, word, false);
}

static void note_given(const struct walk *walk, const struct option_spec *spec)
{
    if (walk->given != NULL) {
        walk->given[spec - walk->specs] = true;
    }
}

static bool refuse_unknown(const struct walk *walk, const char *name, size_t length)
{
    autofree char *word = xstrndup(name, length);
    const char *no = "";
    const struct option_spec *meant = find_nearest(walk->specs, walk->count, word, false);
    if (meant == NULL && strncmp(word, "no-", 3) == 0) {
        no = "no-";
        meant = find_nearest(walk->specs, walk->count, word + 3, true);
    }
    if (meant == NULL) {
        err_set(walk->err, ERR_USAGE, "unknown option --%s", word);
    } else {
        err_set(walk->err, ERR_USAGE, "unknown option --%s; did you mean --%s%s?", word, no, meant->name);
    }
    return hinted(walk->err);
}

/* --- values --------------------------------------------------------------------------------------------- */

/* Whether the value is one of "a|b|c". */
static bool is_choice(const char *choices, const char *value)
{
    size_t length = strlen(value);
    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strcspn(at, "|") == length && memcmp(at, value, length) == 0) {
            return true;
        }
    }
    return false;
}

static bool take_text(const struct option_spec *spec, const char *shown, const char *value, struct err *err)
{
    if (spec->choices != NULL && !is_choice(spec->choices, value)) {
        err_set(err, ERR_USAGE, "%s must be one of %s, not \"%s\"", shown, spec->choices, value);
        return hinted(err);
    }
    *(const char **)spec->target = value;
    return true;
}

static bool take_int(const struct option_spec *spec, const char *shown, const char *value, struct err *err)
{
    if (!text_to_int(value, spec->min, spec->max, spec->target)) {
        err_set(err, ERR_USAGE, "%s must be a whole number from %lld to %lld, not \"%s\"", shown,
                (long long)spec->min, (long long)spec->max, value);
        return hinted(err);
    }
    return true;
}

static bool take_duration(const struct option_spec *spec, const char *shown, const char *value,
                          struct err *err)
{
    if (!text_to_duration_ms(value, spec->target)) {
        err_set(err, ERR_USAGE, "%s must be a duration such as 90s, 15m or 2h, not \"%s\"", shown, value);
        return hinted(err);
    }
    return true;
}

static void list_append(struct option_list *list, const char *item)
{
    list->items = xrealloc(list->items, (list->count + 1) * sizeof list->items[0]);
    list->items[list->count++] = item;
}

static bool take_flag(const struct option_spec *spec, const char *shown, const char *value, struct err *err)
{
    bool on = is_choice("true|yes|on|1", value);
    if (!on && !is_choice("false|no|off|0", value)) {
        err_set(err, ERR_USAGE, "%s must be true or false, not \"%s\"", shown, value);
        return hinted(err);
    }
    *(bool *)spec->target = on;
    return true;
}

bool options_take(const struct option_spec *spec, const char *shown, const char *value, struct err *err)
{
    switch (spec->kind) {
    case OPTION_TEXT:
        return take_text(spec, shown, value, err);
    case OPTION_INT:
        return take_int(spec, shown, value, err);
    case OPTION_DURATION:
        return take_duration(spec, shown, value, err);
    case OPTION_LIST:
        list_append(spec->target, value);
        return true;
    case OPTION_FLAG:
        return take_flag(spec, shown, value, err);
    }
    abort();
}

/* Takes the value that is part of the same argument, else the next argument. */
static bool take_value_or_next(struct walk *walk, const struct option_spec *spec, const char *shown,
                               const char *value)
{
    if (value == NULL && walk->next >= walk->argc) {
        err_set(walk->err, ERR_USAGE, "%s needs a value", shown);
        return hinted(walk->err);
    }
    if (value == NULL) {
        value = walk->argv[walk->next++];
    }
    note_given(walk, spec);
    return options_take(spec, shown, value, walk->err);
}

/* --- arguments ------------------------------------------------------------------------------------------ */

/* Finds a flag by its name or by "no-" and its name; *ret_on says which. NULL: no such flag. */
static const struct option_spec *find_flag(const struct walk *walk, const char *name, size_t length,
                                           bool *ret_on)
{
    const struct option_spec *spec = find_name(walk, name, length);
    *ret_on = spec != NULL;
    if (spec == NULL && length > 3 && strncmp(name, "no-", 3) == 0) {
        spec = find_name(walk, name + 3, length - 3);
    }
    return spec != NULL && spec->kind == OPTION_FLAG ? spec : NULL;
}

static bool read_long(struct walk *walk, const char *name)
{
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    bool on;
    const struct option_spec *flag = find_flag(walk, name, length, &on);
    if (flag != NULL && value != NULL) {
        err_set(walk->err, ERR_USAGE, "--%.*s takes no value", (int)length, name);
        return hinted(walk->err);
    }
    if (flag != NULL) {
        *(bool *)flag->target = on;
        note_given(walk, flag);
        return true;
    }
    const struct option_spec *spec = find_name(walk, name, length);
    if (spec == NULL) {
        return refuse_unknown(walk, name, length);
    }
    autofree char *shown = xprintf("--%s", spec->name);
    return take_value_or_next(walk, spec, shown, value);
}

static bool read_joined(struct walk *walk, const char *letters)
{
    for (size_t i = 0; i < walk->count; i++) {
        const struct option_spec *spec = &walk->specs[i];
        if (spec->joined != NULL && strcmp(spec->joined, letters) == 0) {
            *(bool *)spec->target = true;
            note_given(walk, spec);
            return true;
        }
    }
    return false;
}

/* Reads "abc" of "-abc": flags, until a letter takes the rest, or the next argument, as its value. */
static bool read_letters(struct walk *walk, const char *letters)
{
    if (read_joined(walk, letters)) {
        return true;
    }
    for (; *letters != '\0'; letters++) {
        char shown[3] = {'-', *letters, '\0'};
        const struct option_spec *spec = find_letter(walk, *letters);
        if (spec == NULL) {
            err_set(walk->err, ERR_USAGE, "unknown option %s", shown);
            return hinted(walk->err);
        }
        if (spec->kind != OPTION_FLAG) {
            return take_value_or_next(walk, spec, shown, letters[1] != '\0' ? letters + 1 : NULL);
        }
        *(bool *)spec->target = true;
        note_given(walk, spec);
    }
    return true;
}

/* Reads up to the end of the options; positional arguments go to rest, which has room for all of argv. */
static bool read_options(struct walk *walk, bool stop_at_positional, char **rest, size_t *rest_count)
{
    while (walk->next < walk->argc) {
        char *argument = walk->argv[walk->next];
        if (strcmp(argument, "--") == 0) {
            walk->next++;
            return true;
        }
        bool positional = argument[0] != '-' || argument[1] == '\0';
        if (positional && stop_at_positional) {
            return true;
        }
        walk->next++;
        if (positional) {
            rest[(*rest_count)++] = argument;
        } else if (!(argument[1] == '-' ? read_long(walk, argument + 2) : read_letters(walk, argument + 1))) {
            return false;
        }
    }
    return true;
}

bool options_parse(const struct option_spec *specs, size_t count, int argc, char **argv,
                   bool stop_at_positional, bool *given, char ***ret_rest, size_t *ret_rest_count,
                   struct err *err)
{
    struct walk walk = {
        .specs = specs, .count = count, .argc = argc, .argv = argv, .next = 1, .given = given, .err = err};
    autofree char **rest = xzalloc(((size_t)argc + 1) * sizeof rest[0]);
    size_t rest_count = 0;
    if (!read_options(&walk, stop_at_positional, rest, &rest_count)) {
        return false;
    }
    while (walk.next < argc) {
        rest[rest_count++] = argv[walk.next++];
    }
    *ret_rest = give(rest);
    *ret_rest_count = rest_count;
    return true;
}

/* --- help ----------------------------------------------------------------------------------------------- */

/* "  -o, --output FORMAT" */
static void append_label(struct text *label, const struct option_spec *spec)
{
    if (spec->joined != NULL) {
        text_printf(label, " -%s, --%s", spec->joined, spec->name);
    } else if (spec->letter != '\0') {
        text_printf(label, "  -%c, --%s", spec->letter, spec->name);
    } else {
        text_printf(label, "      --%s", spec->name);
    }
    if (spec->kind != OPTION_FLAG) {
        const char *value = spec->value_name != NULL ? spec->value_name : spec->choices;
        text_printf(label, " %s", value != NULL ? value : "VALUE");
    }
}

static void print_option(FILE *out, const struct option_spec *spec)
{
    autotext struct text label = {0};
    append_label(&label, spec);
    bool fits = label.length + 2 <= HELP_COLUMN;
    fputs(label.bytes, out);
    fprintf(out, "%s%*s%s", fits ? "" : "\n", fits ? HELP_COLUMN - (int)label.length : HELP_COLUMN, "",
            spec->help);
    if (spec->choices != NULL && spec->value_name != NULL) {
        fprintf(out, " (%s)", spec->choices);
    }
    fputc('\n', out);
}

static void print_options(FILE *out, const char *title, const struct option_spec *specs, size_t count,
                          bool command_line_only)
{
    bool begun = false;
    for (size_t i = 0; i < count; i++) {
        if (specs[i].command_line_only == command_line_only) {
            fprintf(out, "%s", begun ? "" : title);
            print_option(out, &specs[i]);
            begun = true;
        }
    }
}

void options_help(FILE *out, const char *usage, const char *summary, const struct option_spec *specs,
                  size_t count)
{
    fprintf(out, "Usage: %s\n\n%s\n", usage, summary);
    print_options(out, "\nOptions:\n", specs, count, false);
    print_options(out, "\nOn the command line only:\n", specs, count, true);
}

void options_finish_list(struct option_list *list)
{
    free(list->items);
    *list = (struct option_list){0};
}
