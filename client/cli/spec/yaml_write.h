/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON value as YAML for people. */
#ifndef CLI_YAML_WRITE_H
#define CLI_YAML_WRITE_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* Appends one document; yaml_parse gives the same value. */
bool yaml_write(const json_t *value, struct text *out, struct err *err);

#endif
