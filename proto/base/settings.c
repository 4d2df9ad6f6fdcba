/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the settings that come from the environment and from the two configuration files. It promises the
 * order of precedence, that a file is understood whole or refused with its line, and that an empty value
 * counts as none. Which names mean something, and that flags come first, is left to the programs. */
#include "proto/base/settings.h"

#include <errno.h>
#include <ini.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/text.h"

#define FILE_BYTES  (64 * 1024) /* a hundred times what anyone writes by hand */
#define SYSTEM_FILE "/etc/gpuctl/config"

struct setting {
    char *name; /* lower case, with underscores */
    char *value;
};

struct settings {
    struct setting *items; /* those of the user's file first */
    size_t count;
};

/* One file while it is read. */
struct reading {
    struct settings *settings;
    size_t first;      /* index of this file's first setting */
    const char *at;    /* what inih has not asked for yet */
    int line;          /* the line that inih has */
    int wrong_line;    /* the first line that is refused here, 0 for none */
    char problem[160]; /* what is wrong with it */
};

/* --- names
 * -----------------------------------------------------------------------------------------------------------
 */

/* "Token-File" to "token_file", or with upper to "TOKEN_FILE". The result is the caller's. */
static char *spell(const char *name, bool upper)
{
    char *spelt = xstrdup(name);
    for (char *at = spelt; *at != '\0'; at++) {
        if (*at == '-') {
            *at = '_';
        } else if (upper && *at >= 'a' && *at <= 'z') {
            *at = (char)(*at - 'a' + 'A');
        } else if (!upper && *at >= 'A' && *at <= 'Z') {
            *at = (char)(*at - 'A' + 'a');
        }
    }
    return spelt;
}

static const char *find_from(const struct settings *settings, size_t first, const char *spelt)
{
    for (size_t i = first; i < settings->count; i++) {
        if (strcmp(settings->items[i].name, spelt) == 0) {
            return settings->items[i].value;
        }
    }
    return NULL;
}

/* --- files
 * -----------------------------------------------------------------------------------------------------------
 */

/* Keeps the first problem. Returns 0, which tells inih that the line is refused. */
static int refuse_line(struct reading *reading, const char *problem, const char *word)
{
    if (reading->wrong_line == 0) {
        reading->wrong_line = reading->line;
        snprintf(reading->problem, sizeof reading->problem, "%s%s", problem, word);
    }
    return 0;
}

/* Gives inih the next line, as fgets would. Indentation is dropped, which inih would take for a continued
 * value; lines that do not fit are refused, which inih would take for two. */
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
    if (find_from(settings, reading->first, spelt) != NULL) {
        return refuse_line(reading, "given twice: ", spelt);
    }
    settings->items = xrealloc(settings->items, (settings->count + 1) * sizeof settings->items[0]);
    settings->items[settings->count++] = (struct setting){.name = give(spelt), .value = xstrdup(value)};
    return 1;
}

static bool read_settings(struct settings *settings, const char *path, struct err *err)
{
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return true;
    }
    autofree char *bytes = NULL;
    if (!file_read(path, FILE_BYTES, &bytes, NULL, err)) {
        return false;
    }
    struct reading reading = {.settings = settings, .first = settings->count, .at = bytes};
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

/* --- places
 * ----------------------------------------------------------------------------------------------------------
 */

/* The home folder by the environment, else by the user database, else "/", where what follows fails and says
 * so. */
static const char *home(void)
{
    const char *path = getenv("HOME");
    if (path != NULL && path[0] == '/') {
        return path;
    }
    const struct passwd *user = getpwuid(getuid());
    return user != NULL && user->pw_dir[0] == '/' ? user->pw_dir : "/";
}

/* $VARIABLE/gpuctl, else ~/fallback/gpuctl; a relative value is ignored, as the XDG specification wants it.
 */
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

/* --- settings
 * -------------------------------------------------------------------------------------------------------- */

struct settings *settings_load(struct err *err)
{
    struct settings *settings = xzalloc(sizeof *settings);
    autofree char *folder = xdg_folder("XDG_CONFIG_HOME", ".config");
    autofree char *user_file = xprintf("%s/config", folder);
    if (!read_settings(settings, user_file, err) || !read_settings(settings, SYSTEM_FILE, err)) {
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
    free(settings->items);
    free(settings);
}

static const char *from_environment(const char *name)
{
    autofree char *upper = spell(name, true);
    autofree char *variable = xprintf("GPUCTL_%s", upper);
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *settings_get(const struct settings *settings, const char *name)
{
    const char *value = from_environment(name);
    if (value != NULL) {
        return value;
    }
    autofree char *spelt = spell(name, false);
    for (size_t i = 0; i < settings->count; i++) {
        if (strcmp(settings->items[i].name, spelt) == 0 && settings->items[i].value[0] != '\0') {
            return settings->items[i].value;
        }
    }
    return NULL;
}
