/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a state folder or a backup, and prints for people all that it checked. */
#ifndef BACKUP_INSPECT_H
#define BACKUP_INSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/err.h"

/* Checks `path`: a state folder, which a controller may be using, a backup, or a single database file. Files
 * of payloads are looked up in the folder itself, else in `blobs`; NULL: nowhere else. Writes a line to out
 * for each checked object and each finding, then "ok" or the number of findings, which is *ret_findings.
 * False: the path could not be checked. */
bool inspect(const char *path, const char *blobs, FILE *out, int64_t *ret_findings, struct err *err);

#endif
