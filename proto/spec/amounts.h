/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs and memory, of a node or of a job; and as people write them in JSON: 8 or 0.5 CPUs, and bytes or a
 * text such as "64G". */
#ifndef PROTO_AMOUNTS_H
#define PROTO_AMOUNTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct amount {
    int64_t millicpus; /* thousandths of CPUs */
    int64_t memory_bytes;
};

static inline struct amount amount_plus(struct amount a, struct amount b, int64_t times)
{
    return (struct amount){a.millicpus + times * b.millicpus, a.memory_bytes + times * b.memory_bytes};
}

static inline struct amount amount_least(struct amount a, struct amount b)
{
    return (struct amount){a.millicpus < b.millicpus ? a.millicpus : b.millicpus,
                           a.memory_bytes < b.memory_bytes ? a.memory_bytes : b.memory_bytes};
}

/* How often a part, of which 0 is nothing, fits into the whole; at most `most`. */
static inline int64_t amount_times(struct amount whole, struct amount part, int64_t most)
{
    if (part.millicpus > 0 && whole.millicpus / part.millicpus < most) {
        most = whole.millicpus > 0 ? whole.millicpus / part.millicpus : 0;
    }
    if (part.memory_bytes > 0 && whole.memory_bytes / part.memory_bytes < most) {
        most = whole.memory_bytes > 0 ? whole.memory_bytes / part.memory_bytes : 0;
    }
    return most;
}

/* --- JSON --- */

/* Read a value that is at least `least` thousandths of CPUs, or bytes. ERR_FIELD names the field. */
bool cpus_decode(const json_t *value, const char *field, int64_t least, int64_t *ret_millicpus,
                 struct err *err);
bool memory_decode(const json_t *value, const char *field, int64_t least, int64_t *ret_bytes,
                   struct err *err);

/* A whole number where it is one. New reference. */
json_t *cpus_encode(int64_t millicpus);

#endif
