/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that a flag did not give: GPUCTL_<NAME> in the environment, then $XDG_CONFIG_HOME/gpuctl/config
 * (or ~/.config), then /etc/gpuctl/config, both INI files read by inih. */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdbool.h>

#include "proto/base/err.h"

struct settings;

/* Reads both files; one that is not there is no error, one that cannot be parsed is, naming file and line. */
struct settings *settings_load(struct err *err);
void settings_destroy(struct settings *settings);

/* The value of "url", "token_file", ... or NULL; borrowed. Dashes and underscores are alike. */
const char *settings_get(const struct settings *settings, const char *name);

/* The state folder of this user: $XDG_STATE_HOME/gpuctl, else ~/.local/state/gpuctl. The caller frees it. */
char *settings_state_directory(void);

#endif
