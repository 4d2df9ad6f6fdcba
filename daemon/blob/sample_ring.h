/* SPDX-License-Identifier: Apache-2.0 */
/* What a node used in the last 24 hours: a file of fixed size for each node, FOLDER/NODE, a record each 30 s.
 */
#ifndef BLOB_SAMPLE_RING_H
#define BLOB_SAMPLE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/limits_controller.h"

#define SAMPLE_RING_FOLDER "samples" /* in the state folder */

/* A GPU in a record, 8 bytes. UINT..._MAX: not known. */
struct ring_gpu {
    uint8_t busy_percent;
    uint8_t temperature_c;
    uint16_t power_w;
    uint32_t memory_mib;
};

/* A node at a moment; -1: not known. */
struct ring_record {
    int64_t at_ms; /* wall clock */
    double cpu_percent;
    int64_t memory_bytes;
};

/* Writes a record with its GPUs over the one that is 24 h older. A file that has another
 * number of GPUs, or is none of ours, is begun anew, which *ret_anew says. Nothing is synced. */
bool sample_ring_put(const char *folder, const char *node, const struct ring_record *record,
                     const struct ring_gpu *gpus, size_t gpu_count, bool *ret_anew, struct err *err);

/* The records of a span of at most 24 h, oldest first. gpus has gpu_count for each record. */
struct ring_span {
    struct ring_record *records;
    struct ring_gpu *gpus;
    size_t count, gpu_count;
};

/* Reads those of since_ms <= at_ms <= until_ms; none of a file that is missing or none of ours. */
bool sample_ring_read(const char *folder, const char *node, int64_t since_ms, int64_t until_ms,
                      struct ring_span *ret_span, struct err *err);
void ring_span_finish(struct ring_span *span);

/* Removes the file of a node; one that is missing is no error. */
bool sample_ring_remove(const char *folder, const char *node, struct err *err);

/* Removes the files that were last written more than 24 h before wall_ms; a folder that is missing has none.
 */
bool sample_ring_sweep(const char *folder, int64_t wall_ms, struct err *err);

#endif
