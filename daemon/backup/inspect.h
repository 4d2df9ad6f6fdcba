/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a state folder, or a backup, is what it should be: for people, who are told all that was looked at.
 */
#ifndef BACKUP_INSPECT_H
#define BACKUP_INSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/err.h"

/* Looks at `path`: a state folder, which a controller may be using, a backup, or a single database file.
 * Payloads that are files are looked for in the folder itself, else in `blobs`, or nowhere where that is
 * NULL. Writes a line to out for each thing looked at and each finding, then "ok" or how many findings there
 * are, which is *ret_findings. False: it could not be looked at. */
bool inspect(const char *path, const char *blobs, FILE *out, int64_t *ret_findings, struct err *err);

#endif
