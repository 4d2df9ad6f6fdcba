/* SPDX-License-Identifier: Apache-2.0 */
/* Reads settings from the environment and from a program's two configuration files. It keeps the order of
 * precedence; a file is read whole or refused with its line; an empty value counts as not set. The program's
 * table of options says which settings exist. */
#include "proto/base/settings/settings.h"

#include <errno.h>
#include <ini.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

#define FILE_BYTES   (64 * 1024) /* a hundred times the size of a file written by hand */
#define SYSTEM_PLACE "/etc/gpuctl"

struct setting {
    char *name; /* lower case, with dashes */
    char *value;
    const char *path; /* the file; borrowed from the settings */
    int line;
};

struct settings {
    struct setting *items; /* the user's file first */
    size_t count;
    char *paths[2]; /* the files that were read; or NULL */
    char **texts;   /* the items of split lists */
    size_t text_count;
};

/* One file while it is read. */
struct reading {
    struct settings *settings;
    const char *path;  /* of this file */
    size_t first;      /* index of its first setting */
    const char *at;    /* the part that inih has not asked for yet */
    int line;          /* the line that inih is at */
    int wrong_line;    /* the first line that was refused here; 0: none */
    char problem[160]; /* the fault in wrong_line */
};

/* --- names ---------------------------------------------------------------------------------------------- */

/* Spells "Token_File" as "token-file", or with upper as "TOKEN_FILE". The caller frees the result. */
static char *spell(const char *name, bool upper)
{
    char *spelt = xstrdup(name);
    for (char *at = spelt; *at != '\0'; at++) {
        if (*at == '-' || *at == '_') {
            *at = upper ? '_' : '-';
        } else if (upper && *at >= 'a' && *at <= 'z') {
            *at = (char)(*at - 'a' + 'A');
        } else if (!upper && *at >= 'A' && *at <= 'Z') {
            *at = (char)(*at - 'A' + 'a');
        }
    }
    return spelt;
}

static bool is_there(const struct settings *settings, size_t first, const char *spelt)
{
    for (size_t i = first; i < settings->count; i++) {
        if (strcmp(settings->items[i].name, spelt) == 0) {
            return true;
        }
    }
    return false;
}

/* --- files ---------------------------------------------------------------------------------------------- */

/* Keeps the first problem. Returns 0, which tells inih that the line is refused. */
static int refuse_line(struct reading *reading, const char *problem, const char *word)
{
    if (reading->wrong_line == 0) {
        reading->wrong_line = reading->line;
        snprintf(reading->problem, sizeof reading->problem, "%s%s", problem, word);
    }
    return 0;
}

/* Gives inih the next line, as fgets would. Drops indentation, because inih would take an indented line for a
 * continued value. Refuses lines that do not fit, because inih would take such a line for two. */
static char *next_line(char *line, int room, void *stream)
{
    struct reading *reading = stream;
    if (*reading->at == '\0') {
        return NULL;
    }
    reading->line++;
    size_t length = strcspn(reading->at, "\n");
    size_t indent = strspn(reading->at, " \t");
    indent = indent < length ? indent : length;
    size_t kept = length - indent;
    if (kept >= (size_t)room) {
        refuse_line(reading, "the line is too long", "");
        kept = 0;
    }
    memcpy(line, reading->at + indent, kept);
    line[kept] = '\0';
    reading->at += length + (reading->at[length] == '\n');
    return line;
}

static int take_setting(void *user, const char *section, const char *name, const char *value)
{
    struct reading *reading = user;
    struct settings *settings = reading->settings;
    if (section[0] != '\0' && strcmp(section, "gpuctl") != 0) {
        return refuse_line(reading, "unknown section ", section);
    }
    autofree char *spelt = spell(name, false);
    if (is_there(settings, reading->first, spelt)) {
        return refuse_line(reading, "given twice: ", spelt);
    }
    settings->items = xrealloc(settings->items, (settings->count + 1) * sizeof settings->items[0]);
    settings->items[settings->count++] = (struct setting){
        .name = give(spelt), .value = xstrdup(value), .path = reading->path, .line = reading->line};
    return 1;
}

/* Takes over the path. */
static bool read_file(struct settings *settings, char *path, struct err *err)
{
    autofree char *bytes = NULL;
    settings->paths[settings->paths[0] != NULL] = path;
    if (!file_read(path, FILE_BYTES, &bytes, NULL, err)) {
        return false;
    }
    struct reading reading = {.settings = settings, .path = path, .first = settings->count, .at = bytes};
    int bad_line = ini_parse_stream(next_line, &reading, take_setting, &reading);
    if (bad_line < 0) {
        out_of_memory();
    }
    if (reading.wrong_line != 0 && (bad_line == 0 || reading.wrong_line <= bad_line)) {
        return err_set(err, ERR_MALFORMED, "%s:%d: %s", path, reading.wrong_line, reading.problem);
    }
    if (bad_line != 0) {
        return err_set(err, ERR_MALFORMED, "%s:%d: expected \"name = value\"", path, bad_line);
    }
    return true;
}

/* Reads the file if it exists. Takes over the path. */
static bool read_if_there(struct settings *settings, char *path, struct err *err)
{
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        free(path);
        return true;
    }
    return read_file(settings, path, err);
}

/* --- places --------------------------------------------------------------------------------------------- */

/* The home folder by the environment, else by the user database, else "/", where later steps fail with a
 * message. */
static const char *home(void)
{
    const char *path = getenv("HOME");
    if (path != NULL && path[0] == '/') {
        return path;
    }
    const struct passwd *user = getpwuid(getuid());
    return user != NULL && user->pw_dir[0] == '/' ? user->pw_dir : "/";
}

/* $VARIABLE/gpuctl, else ~/fallback/gpuctl. A relative value is ignored, as the XDG specification demands. */
static char *xdg_folder(const char *variable, const char *fallback)
{
    const char *base = getenv(variable);
    if (base != NULL && base[0] == '/') {
        return xprintf("%s/gpuctl", base);
    }
    return xprintf("%s/%s/gpuctl", home(), fallback);
}

char *settings_state_directory(void)
{
    return xdg_folder("XDG_STATE_HOME", ".local/state");
}

char *settings_user_directory(void)
{
    return xdg_folder("XDG_CONFIG_HOME", ".config");
}

char *settings_place(const char *name)
{
    if (geteuid() == 0) {
        return xprintf(SYSTEM_PLACE "/%s", name);
    }
    autofree char *folder = settings_user_directory();
    return xprintf("%s/%s", folder, name);
}

/* --- settings ------------------------------------------------------------------------------------------- */

static bool read_both(struct settings *settings, const char *name, struct err *err)
{
    autofree char *folder = settings_user_directory();
    return read_if_there(settings, xprintf("%s/%s", folder, name), err) &&
           read_if_there(settings, xprintf(SYSTEM_PLACE "/%s", name), err);
}

struct settings *settings_load(const char *name, const char *only, struct err *err)
{
    struct settings *settings = xzalloc(sizeof *settings);
    bool none = only != NULL && strcmp(only, SETTINGS_NO_FILE) == 0;
    bool read =
        none || (only != NULL ? read_file(settings, xstrdup(only), err) : read_both(settings, name, err));
    if (!read) {
        settings_destroy(settings);
        return NULL;
    }
    return settings;
}

void settings_destroy(struct settings *settings)
{
    if (settings == NULL) {
        return;
    }
    for (size_t i = 0; i < settings->count; i++) {
        free(settings->items[i].name);
        free(settings->items[i].value);
    }
    for (size_t i = 0; i < settings->text_count; i++) {
        free(settings->texts[i]);
    }
    free(settings->items);
    free(settings->texts);
    free(settings->paths[0]);
    free(settings->paths[1]);
    free(settings);
}

bool settings_any(const struct settings *settings)
{
    return settings->count > 0;
}

bool settings_says(const struct settings *settings, const char *name, const char *alias)
{
    return is_there(settings, 0, name) || (alias != NULL && is_there(settings, 0, alias));
}

void settings_name_files(const struct settings *settings, struct text *out)
{
    text_append(out, settings->paths[0] != NULL ? settings->paths[0] : "no file");
    if (settings->paths[1] != NULL) {
        text_printf(out, " and %s", settings->paths[1]);
    }
}

static const char *from_environment(const char *name, char **ret_variable)
{
    autofree char *upper = spell(name, true);
    *ret_variable = xprintf("GPUCTL_%s", upper);
    const char *value = getenv(*ret_variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The first line in the files that sets the option. */
static const struct setting *from_files(const struct settings *settings, const struct option_spec *spec)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct setting *setting = &settings->items[i];
        bool meant = strcmp(setting->name, spec->name) == 0 ||
                     (spec->alias != NULL && strcmp(setting->name, spec->alias) == 0);
        if (meant && setting->value[0] != '\0') {
            return setting;
        }
    }
    return NULL;
}

char *settings_cause(const struct settings *settings, const struct option_spec *spec)
{
    autofree char *variable = NULL, *older = NULL;
    if (from_environment(spec->name, &variable) != NULL) {
        return give(variable);
    }
    if (spec->alias != NULL && from_environment(spec->alias, &older) != NULL) {
        return give(older);
    }
    const struct setting *setting = from_files(settings, spec);
    return setting != NULL ? xprintf("%s:%d", setting->path, setting->line) : NULL;
}

/* Takes items separated by commas; blanks around them are dropped. */
static bool take_list(struct settings *settings, const struct option_spec *spec, const char *shown,
                      const char *value, struct err *err)
{
    while (*value != '\0') {
        value += strspn(value, " \t,");
        size_t length = strcspn(value, ","), kept = length;
        while (kept > 0 && (value[kept - 1] == ' ' || value[kept - 1] == '\t')) {
            kept--;
        }
        if (kept > 0) {
            char *item = xstrndup(value, kept);
            settings->texts =
                xrealloc(settings->texts, (settings->text_count + 1) * sizeof settings->texts[0]);
            settings->texts[settings->text_count++] = item;
            if (!options_take(spec, shown, item, err)) {
                return false;
            }
        }
        value += length;
    }
    return true;
}

static bool take(struct settings *settings, const struct option_spec *spec, const char *shown,
                 const char *value, struct err *err)
{
    return spec->kind == OPTION_LIST ? take_list(settings, spec, shown, value, err)
                                     : options_take(spec, shown, value, err);
}

static bool apply(struct settings *settings, const struct option_spec *spec, struct err *err)
{
    autofree char *variable = NULL, *older = NULL;
    const char *value = from_environment(spec->name, &variable);
    if (value != NULL) {
        return take(settings, spec, variable, value, err);
    }
    value = spec->alias != NULL ? from_environment(spec->alias, &older) : NULL;
    if (value != NULL) {
        return take(settings, spec, older, value, err);
    }
    const struct setting *setting = from_files(settings, spec);
    if (setting == NULL) {
        return true;
    }
    autofree char *shown = xprintf("%s:%d: %s", setting->path, setting->line, setting->name);
    return take(settings, spec, shown, setting->value, err);
}

static bool check_name(const struct setting *setting, const struct option_spec *specs, size_t count,
                       struct err *err)
{
    const struct option_spec *known = options_find(specs, count, setting->name);
    if (known != NULL && !known->command_line_only) {
        return true;
    }
    const struct option_spec *meant = known == NULL ? options_nearest(specs, count, setting->name) : NULL;
    if (known != NULL) {
        err_set(err, ERR_USAGE, "%s:%d: %s is for the command line only", setting->path, setting->line,
                setting->name);
    } else if (meant != NULL && !meant->command_line_only) {
        err_set(err, ERR_USAGE, "%s:%d: unknown setting %s; did you mean %s?", setting->path, setting->line,
                setting->name, meant->name);
    } else {
        err_set(err, ERR_USAGE, "%s:%d: unknown setting %s", setting->path, setting->line, setting->name);
    }
    return err_hint(err, "correct or remove that line; the settings are the options of --help");
}

bool settings_apply(struct settings *settings, const struct option_spec *specs, size_t count,
                    const bool *given, struct err *err)
{
    for (size_t i = 0; i < settings->count; i++) {
        if (!check_name(&settings->items[i], specs, count, err)) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        bool wanted = !specs[i].command_line_only && (given == NULL || !given[i]);
        if (wanted && !apply(settings, &specs[i], err)) {
            return false;
        }
    }
    return true;
}

void settings_write(const struct option_spec *spec, struct text *out)
{
    text_printf(out, "%s = ", spec->name);
    switch (spec->kind) {
    case OPTION_FLAG:
        text_append(out, *(const bool *)spec->target ? "true" : "false");
        break;
    case OPTION_TEXT:
        text_append(out, *(const char *const *)spec->target);
        break;
    case OPTION_INT:
        text_append_int(out, *(const int64_t *)spec->target);
        break;
    case OPTION_DURATION:
        text_printf(out, "%lldms", (long long)*(const int64_t *)spec->target);
        break;
    case OPTION_LIST: {
        const struct option_list *list = spec->target;
        for (size_t i = 0; i < list->count; i++) {
            text_printf(out, "%s%s", i > 0 ? "," : "", list->items[i]);
        }
        break;
    }
    }
    text_append(out, "\n");
}
