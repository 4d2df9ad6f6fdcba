/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library. Any call into it may hang for ever: only the helper (devices_helper.c) calls
 * it, in a separate process. */
#ifndef AGENT_NVML_H
#define AGENT_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/devices/devices.h"
#include "proto/base/err.h"

#define NVML_TEXT_BYTES 96
#define NVML_UNREADABLE "unreadable-" /* prefix of the made-up UUID of a GPU that cannot be read */

/* One GPU in the driver's current numbering. A plain value, because it goes between processes. */
struct nvml_gpu {
    int64_t index;
    char uuid[NVML_TEXT_BYTES];
    char name[NVML_TEXT_BYTES]; /* empty: the GPU cannot be read, and its UUID is made up */
    int64_t memory_bytes;
    int64_t group;               /* GPUs joined by NVLink, else those of one NUMA node; -1: unknown */
    struct device_sight problem; /* of a GPU that cannot be read */
};

struct nvml;

/* Loads the library and starts it; NULL with an error that names the remedy. */
struct nvml *nvml_open(const char *library, struct err *err);
void nvml_close(struct nvml *nvml);

/* Lists all GPUs without a look at their state, at most LIMIT_NODE_DEVICES; the caller frees the array. NULL
 * with an error. */
struct nvml_gpu *nvml_list(struct nvml *nvml, size_t *ret_count, struct err *err);

/* Looks at the state of a GPU. After an error it restarts the library from time to time, so that a repaired
 * GPU comes back. */
void nvml_look(struct nvml *nvml, const char *uuid, struct device_sight *ret_sight);

#endif
