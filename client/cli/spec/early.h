/* SPDX-License-Identifier: Apache-2.0 */
/* The early signal of a job as people write it. */
#ifndef CLI_EARLY_H
#define CLI_EARLY_H

#include <jansson.h>

#include "proto/base/err.h"

/* "USR1@60", "SIGUSR1@2m", "USR1" as the field of a job spec. New reference; NULL with ERR_USAGE, which names
 * the option or the key that it was written under. */
json_t *early_read(const char *field, const char *text, struct err *err);

#endif
