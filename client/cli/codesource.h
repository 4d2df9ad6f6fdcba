/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of code that travels with a job: `code_source` of `air`. */
#ifndef CLI_CODESOURCE_H
#define CLI_CODESOURCE_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* Names the folder as the spec's bundle. value is the field's, folder the one that it is named from. */
bool codesource_take(const char *folder, const char *field, const json_t *value, json_t *spec,
                     struct err *err);

#endif
