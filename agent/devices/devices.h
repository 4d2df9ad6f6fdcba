/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that a node offers: GPUs, found through NVML, or CPU slots. A helper process looks at GPUs
 * (devices_nvml.c); the functions here answer at once, from its last look. */
#ifndef AGENT_DEVICES_H
#define AGENT_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/loop.h"
#include "proto/base/err.h"
#include "proto/limits_agent.h"
#include "proto/wire/messages.h"

enum device_state {
    DEVICE_EMPTY,    /* no process uses it */
    DEVICE_OCCUPIED, /* a job of this agent, or another program, uses it */
    DEVICE_BROKEN,   /* it cannot be used, or its state is not known */
};

/* The state of a device at the last look. */
struct device_sight {
    enum device_state state;
    char reason[LIMIT_DEVICE_REASON + 1]; /* for people; empty with DEVICE_EMPTY */
    struct gpu_sample use;                /* of all but BROKEN */
    int64_t minor; /* of all but BROKEN: the N of /dev/nvidiaN; -1: the driver does not say */
};

struct watcher;

struct devices {
    struct device *items; /* owned, with their strings */
    size_t count;
    bool slots;
    bool no_peer_access; /* the GPUs cannot access each other directly */
    /* For GPUs only: */
    struct device_sight *sights; /* owned; by position among the items */
    int64_t *seen_us;            /* owned; CLOCK_BOOTTIME when the look that gave the sight was requested */
    struct watcher *watcher;
};

/* Opens GPUs through NVML; waits for the driver, but not for ever. library is normally DEVICES_NVML. list is
 * "all", or indices and UUIDs separated by commas. type replaces NVML's names unless it is NULL. ERR_IO when
 * there is no library, no GPU or no such GPU, or the driver does not answer. */
#define DEVICES_NVML "libnvidia-ml.so.1"
bool devices_open_nvml(const char *library, const char *list, const char *type, struct devices *ret_devices,
                       struct err *err);
/* Looks at the GPUs repeatedly from now on, and calls changed after each look. *devices must not move until
 * it is closed. */
void devices_watch(struct devices *devices, struct loop *loop, void (*changed)(void *closure), void *closure);

/* Offers count CPU slots of a type; NULL: "cpu". */
void devices_open_slots(int64_t count, const char *type, struct devices *ret_devices);

void devices_close(struct devices *devices);

/* The usual name of a GPU: "NVIDIA H100 80GB HBM3" is "H100", "NVIDIA GeForce RTX 4090" is "RTX4090". The
 * caller frees it. */
char *devices_short_name(const char *product);

/* The nominal memory size of a GPU: "80GB" for an A100 with 79.2 GiB. */
#define DEVICES_SIZE_BYTES 16
void devices_size(int64_t memory_bytes, char ret_size[DEVICES_SIZE_BYTES]);

/* The common size of the node's GPUs; false if they differ, or no size is known. */
bool devices_common_size(const struct devices *devices, char ret_size[DEVICES_SIZE_BYTES]);

/* Why a job cannot get one of these devices, with its index in *ret_index; NULL: it can get them all. */
const struct device_sight *devices_obstacle(const struct devices *devices, const int64_t *indices,
                                            size_t count, int64_t *ret_index);

/* Whether a look requested at since_us (CLOCK_BOOTTIME) or later has seen each of them empty. A broken device
 * counts as settled, because no job gets it. Otherwise the function requests looks soon. */
bool devices_settled(struct devices *devices, const int64_t *indices, size_t count, int64_t since_us);

/* The position of a device among the items; devices->count when it is not here. */
size_t devices_position(const struct devices *devices, int64_t index);

/* What a GPU used at the last look; unknown of one that is broken, or not here. */
struct gpu_sample devices_use(const struct devices *devices, size_t position);

/* The minor numbers of the files of these GPUs, as far as they are known. The caller frees the array. */
int64_t *devices_minors(const struct devices *devices, const int64_t *indices, size_t count,
                        size_t *ret_count);
/* Whether those of all GPUs are known that are not broken. */
bool devices_have_minors(const struct devices *devices);

/* The indices of devices in a list of UUIDs or indices like CUDA_VISIBLE_DEVICES. The caller frees the
 * array. */
int64_t *devices_from_list(const struct devices *devices, const char *list, size_t *ret_count);

/* From devices_nvml.c, for devices.c. */
void watcher_want(struct watcher *watcher, size_t at, int64_t since_us);
void watcher_destroy(struct watcher *watcher); /* NULL is allowed */

#endif
