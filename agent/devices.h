/* SPDX-License-Identifier: Apache-2.0 */
/* What a node has to offer: GPUs, found through NVML, or CPU slots. A table of functions with these two back
 * ends. */
#ifndef AGENT_DEVICES_H
#define AGENT_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/messages.h"

struct device_driver {
    const char *name;
    /* One process that uses the device; false when there is none. The index is that of struct device. */
    bool (*in_use)(void *state, int64_t index, int64_t *ret_pid);
    void (*close)(void *state);
};

struct devices {
    const struct device_driver *driver;
    void *state;          /* the driver's */
    struct device *items; /* owned, with their strings */
    size_t count;
    bool slots;
    bool no_peer_access; /* cards that cannot talk to each other directly */
};

/* GPUs by NVML. library is normally DEVICES_NVML. list is "all", or indices and UUIDs separated by commas;
 * type, where not NULL, replaces the names that NVML gives. ERR_IO when there is no library, no GPU or no
 * such GPU. */
#define DEVICES_NVML "libnvidia-ml.so.1"
bool devices_open_nvml(const char *library, const char *list, const char *type, struct devices *ret_devices,
                       struct err *err);

/* count CPU slots of a type, "cpu" where it is NULL. */
void devices_open_slots(int64_t count, const char *type, struct devices *ret_devices);

void devices_close(struct devices *devices);

/* The name that people use for a GPU: "NVIDIA H100 80GB HBM3" is "H100", "NVIDIA GeForce RTX 4090" is
 * "RTX4090". The caller frees it. */
char *devices_short_name(const char *product);

/* Whether one of these devices is in use by some process; names it. */
bool devices_in_use(const struct devices *devices, const int64_t *indices, size_t count, int64_t *ret_index,
                    int64_t *ret_pid);

#endif
