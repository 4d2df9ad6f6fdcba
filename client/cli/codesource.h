/* SPDX-License-Identifier: Apache-2.0 */
/* A small folder of code that travels with a job, file by file: `code_source` of `air`. */
#ifndef CLI_CODESOURCE_H
#define CLI_CODESOURCE_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/notes.h"
#include "proto/base/err.h"

/* Adds an entry {path, source} to the spec's files for each file of the folder. value is the field's, folder
 * the one that it is named from. */
bool codesource_take(const char *folder, const char *field, const json_t *value, json_t *spec,
                     struct notes *notes, struct err *err);

#endif
