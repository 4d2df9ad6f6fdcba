/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs and memory as people write them in JSON: 8 or 0.5 CPUs, and bytes or a text such as "64G". */
#ifndef PROTO_AMOUNTS_H
#define PROTO_AMOUNTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* Read a value that is at least `least` thousandths of CPUs, or bytes. ERR_FIELD names the field. */
bool cpus_decode(const json_t *value, const char *field, int64_t least, int64_t *ret_millicpus,
                 struct err *err);
bool memory_decode(const json_t *value, const char *field, int64_t least, int64_t *ret_bytes,
                   struct err *err);

/* A whole number where it is one. New reference. */
json_t *cpus_encode(int64_t millicpus);

#endif
