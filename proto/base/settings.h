/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that no flag gave: each option of a program that is not for the command line only is also the
 * variable GPUCTL_<NAME>, then a line of the program's file in $XDG_CONFIG_HOME/gpuctl (or ~/.config/gpuctl),
 * then of the same in /etc/gpuctl. The files are INI files, read by inih. */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/options.h"
#include "proto/base/text.h"

/* The files of the three programs, by name; gpuctl's is also that of the Python client. */
#define SETTINGS_CLIENT     "config"
#define SETTINGS_CONTROLLER "controller.conf"
#define SETTINGS_AGENT      "agent.conf"

#define SETTINGS_NO_FILE "none" /* in the place of a path: no file is read */

struct settings;

/* Reads both files of that name; one that is not there is no error, one that cannot be parsed is, naming file
 * and line. only, where it is not NULL, is the path of the one file that is read in their place. */
struct settings *settings_load(const char *name, const char *only, struct err *err);
void settings_destroy(struct settings *settings);

static inline void cleanup_settings(struct settings **settings)
{
    settings_destroy(*settings);
}
#define autosettings __attribute__((cleanup(cleanup_settings)))

/* Sets the targets of those options that are settings and that were not given (as options_parse marks them;
 * NULL: none was). Texts are borrowed from the settings or the environment. A line whose name is no setting
 * is refused with ERR_USAGE, naming file and line and the name that was meant; so is a wrong value. In lists
 * items are separated by commas. */
bool settings_apply(struct settings *settings, const struct option_spec *specs, size_t count,
                    const bool *given, struct err *err);

/* Whether any file had a line that sets something; and one with this name or alias (may be NULL). */
bool settings_any(const struct settings *settings);
bool settings_says(const struct settings *settings, const char *name, const char *alias);
/* Appends the paths of the files that were read, "/etc/gpuctl/agent.conf"; "no file" where there was none. */
void settings_name_files(const struct settings *settings, struct text *out);

/* Appends "name = value" for an option as its target has it. */
void settings_write(const struct option_spec *spec, struct text *out);

/* Where the file of that name belongs: below /etc for root, below the user's configuration for others. The
 * caller frees it. */
char *settings_place(const char *name);
/* The folder of this user's configuration: $XDG_CONFIG_HOME/gpuctl, else ~/.config/gpuctl. The caller frees
 * it. */
char *settings_user_directory(void);

/* The state folder of this user: $XDG_STATE_HOME/gpuctl, else ~/.local/state/gpuctl. The caller frees it. */
char *settings_state_directory(void);

#endif
