/* SPDX-License-Identifier: Apache-2.0 */
/* Settings for options without a flag. Each option of a program that is not for the command line only is also
 * the variable GPUCTL_<NAME>, then a line of the program's file in $XDG_CONFIG_HOME/gpuctl (or
 * ~/.config/gpuctl), then a line of the same file in /etc/gpuctl. The files are INI files, read by inih. */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/settings/options.h"
#include "proto/base/text/text.h"

/* The files of the three programs, by name; the Python client shares gpuctl's file. */
#define SETTINGS_CLIENT     "config"
#define SETTINGS_CONTROLLER "controller.conf"
#define SETTINGS_AGENT      "agent.conf"

#define SETTINGS_NO_FILE "none" /* instead of a path: no file is read */

struct settings;

/* Reads both files of that name. A missing file is no error; a file that cannot be parsed is one, and the
 * error names file and line. only, where it is not NULL, is the path of the one file that is read instead. */
struct settings *settings_load(const char *name, const char *only, struct err *err);
void settings_destroy(struct settings *settings);

static inline void cleanup_settings(struct settings **settings)
{
    settings_destroy(*settings);
}
#define autosettings __attribute__((cleanup(cleanup_settings)))

/* Sets the targets of those options that are settings and were not given (given is as options_parse marks it;
 * NULL: none was given). Texts are borrowed from the settings or the environment. ERR_USAGE, naming file and
 * line, for a wrong value and for a name that is no setting, with the nearest known name. List items are
 * separated by commas. */
bool settings_apply(struct settings *settings, const struct option_spec *specs, size_t count,
                    const bool *given, struct err *err);

/* settings_any: whether any file has a line that sets something. settings_says: whether a line sets this name
 * or alias (may be NULL). */
bool settings_any(const struct settings *settings);
bool settings_says(const struct settings *settings, const char *name, const char *alias);
/* Appends the paths of the files that were read, such as "/etc/gpuctl/agent.conf"; "no file" if none was. */
void settings_name_files(const struct settings *settings, struct text *out);

/* What sets the option, for people: "GPUCTL_URL" or "/etc/gpuctl/config:3". The caller frees it; NULL:
 * nothing does. */
char *settings_cause(const struct settings *settings, const struct option_spec *spec);

/* Appends "name = value" for an option, with the value of its target. */
void settings_write(const struct option_spec *spec, struct text *out);

/* The path where the file of that name belongs: below /etc for root, below the user's configuration for
 * others. The caller frees it. */
char *settings_place(const char *name);
/* The folder of this user's configuration: $XDG_CONFIG_HOME/gpuctl, else ~/.config/gpuctl. The caller frees
 * it. */
char *settings_user_directory(void);

/* The state folder of this user: $XDG_STATE_HOME/gpuctl, else ~/.local/state/gpuctl. The caller frees it. */
char *settings_state_directory(void);

#endif
