/* SPDX-License-Identifier: Apache-2.0 */
/* What a node has to offer: GPUs, found through NVML, or CPU slots. GPUs are looked at by a helper process
 * (devices_nvml.c); what is asked here is answered at once, from what it saw last. */
#ifndef AGENT_DEVICES_H
#define AGENT_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/loop.h"
#include "proto/base/err.h"
#include "proto/limits.h"
#include "proto/wire/messages.h"

enum device_state {
    DEVICE_EMPTY,    /* no process uses it */
    DEVICE_OCCUPIED, /* by a job of ours, or by a stranger */
    DEVICE_BROKEN,   /* it cannot be used, or nothing is known of it */
};

/* How a device was when it was last looked at. */
struct device_sight {
    enum device_state state;
    char reason[LIMIT_DEVICE_REASON + 1]; /* of all but EMPTY, for people */
    struct gpu_sample use;                /* of all but BROKEN */
};

struct watcher;

struct devices {
    struct device *items; /* owned, with their strings */
    size_t count;
    bool slots;
    bool no_peer_access; /* cards that cannot talk to each other directly */
    /* Of GPUs alone: */
    struct device_sight *sights; /* owned; by position among the items */
    int64_t *seen_us;            /* owned; CLOCK_BOOTTIME when the look was asked for that a sight is from */
    struct watcher *watcher;
};

/* GPUs by NVML; waits for the driver, but not for ever. library is normally DEVICES_NVML. list is "all", or
 * indices and UUIDs separated by commas; type, where not NULL, replaces the names that NVML gives. ERR_IO
 * when there is no library, no GPU or no such GPU, or the driver does not answer. */
#define DEVICES_NVML "libnvidia-ml.so.1"
bool devices_open_nvml(const char *library, const char *list, const char *type, struct devices *ret_devices,
                       struct err *err);
/* From now on GPUs are looked at again and again; changed is called after each look. The devices stay where
 * they are until they are closed. */
void devices_watch(struct devices *devices, struct loop *loop, void (*changed)(void *closure), void *closure);

/* count CPU slots of a type, "cpu" where it is NULL. */
void devices_open_slots(int64_t count, const char *type, struct devices *ret_devices);

void devices_close(struct devices *devices);

/* The name that people use for a GPU: "NVIDIA H100 80GB HBM3" is "H100", "NVIDIA GeForce RTX 4090" is
 * "RTX4090". The caller frees it. */
char *devices_short_name(const char *product);

/* The size that people know GPUs by: "80GB" is an A100 of 79.2 GiB. */
#define DEVICES_SIZE_BYTES 16
void devices_size(int64_t memory_bytes, char ret_size[DEVICES_SIZE_BYTES]);

/* The size of all GPUs of the node; false where they differ, or none can be read. */
bool devices_common_size(const struct devices *devices, char ret_size[DEVICES_SIZE_BYTES]);

/* Why a job cannot get one of these devices, which it names; NULL: it can. */
const struct device_sight *devices_obstacle(const struct devices *devices, const int64_t *indices,
                                            size_t count, int64_t *ret_index);

/* Whether each of them was seen empty by a look that was asked for at this moment, CLOCK_BOOTTIME, or later;
 * one that is broken goes to nobody, and is not waited for. Where that is not so yet, looks are made soon. */
bool devices_settled(struct devices *devices, const int64_t *indices, size_t count, int64_t since_us);

/* The position of a device among the items; devices->count when it is not here. */
size_t devices_position(const struct devices *devices, int64_t index);

/* Indices of what a variable like CUDA_VISIBLE_DEVICES lists, by UUID or index; the caller frees them. */
int64_t *devices_from_list(const struct devices *devices, const char *list, size_t *ret_count);

/* devices_nvml.c, for devices.c. */
void watcher_want(struct watcher *watcher, size_t at, int64_t since_us);
void watcher_destroy(struct watcher *watcher); /* NULL is allowed */

#endif
