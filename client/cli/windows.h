/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl nodes window`: maintenance windows. */
#ifndef CLI_WINDOWS_H
#define CLI_WINDOWS_H

#include "client/cli/verb.h"

extern const struct verb verb_windows;

#endif
