/* SPDX-License-Identifier: Apache-2.0 */
/* The values of plain scalars by the core schema of YAML 1.2. */
#ifndef CLI_YAML_SCALAR_H
#define CLI_YAML_SCALAR_H

#include <jansson.h>

/* *ret_value is a new reference: null, true, false, a number, else text. Returns NULL, or what is wrong with
 * the word, which JSON cannot carry; *ret_value is left as it is then. */
const char *yaml_plain(const char *word, json_t **ret_value);

#endif
