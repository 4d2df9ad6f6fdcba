/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a node's devices, GPUs or CPU slots. Types get the names that people write in job specs.
 * Questions are answered from the last look, at once. devices_nvml.c finds and watches GPUs. */
#include "agent/devices/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

void devices_close(struct devices *devices)
{
    watcher_destroy(devices->watcher);
    for (size_t i = 0; i < devices->count; i++) {
        free((void *)(uintptr_t)devices->items[i].uuid);
        free((void *)(uintptr_t)devices->items[i].type);
    }
    free(devices->items);
    free(devices->sights);
    free(devices->seen_us);
    *devices = (struct devices){0};
}

/* No visible process ever uses a slot: slots exist only as a count. */
void devices_open_slots(int64_t count, const char *type, struct devices *ret_devices)
{
    struct devices devices = {.count = (size_t)count, .slots = true};
    devices.items = xzalloc((size_t)count * sizeof *devices.items);
    for (int64_t i = 0; i < count; i++) {
        devices.items[i] = (struct device){
            .index = i,
            .uuid = xprintf("slot-%lld", (long long)i),
            .type = xstrdup(type != NULL ? type : "cpu"),
            .group = -1,
        };
    }
    *ret_devices = devices;
}

static bool is_maker(const char *word)
{
    static const char *const makers[] = {"NVIDIA", "Tesla", "Quadro", "GeForce"};
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        if (strcasecmp(word, makers[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A series name means nothing without its number. */
static bool is_series(const char *word)
{
    return strcasecmp(word, "RTX") == 0 || strcasecmp(word, "GTX") == 0;
}

char *devices_short_name(const char *product)
{
    autotext struct text name = {0};
    autofree char *copy = xstrdup(product);
    char *rest = copy;
    for (char *word = strsep(&rest, " -"); word != NULL; word = strsep(&rest, " -")) {
        if (*word == '\0' || is_maker(word)) {
            continue;
        }
        text_append(&name, word);
        if (!is_series(word)) {
            break;
        }
    }
    return name.length > 0 ? text_take(&name) : xstrdup("GPU");
}

/* Drivers keep up to 7 % for themselves and for ECC, so the size is rounded up to the next one that is
 * sold. */
void devices_size(int64_t memory_bytes, char ret_size[DEVICES_SIZE_BYTES])
{
    static const int64_t sizes[] = {4,  6,  8,  10, 11, 12, 16,  20,  24,  32, 40,
                                    48, 64, 72, 80, 94, 96, 141, 180, 192, 288};
    int64_t size = (memory_bytes + GIB - 1) / GIB;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (memory_bytes <= sizes[i] * GIB) {
            size = sizes[i];
            break;
        }
    }
    snprintf(ret_size, DEVICES_SIZE_BYTES, "%lldGB", (long long)size);
}

bool devices_common_size(const struct devices *devices, char ret_size[DEVICES_SIZE_BYTES])
{
    bool any = false;
    for (size_t i = 0; i < devices->count && !devices->slots; i++) {
        char size[DEVICES_SIZE_BYTES];
        if (devices->items[i].memory_bytes <= 0) {
            continue;
        }
        devices_size(devices->items[i].memory_bytes, size);
        if (any && strcmp(size, ret_size) != 0) {
            return false;
        }
        memcpy(ret_size, size, sizeof size);
        any = true;
    }
    return any;
}

size_t devices_position(const struct devices *devices, int64_t index)
{
    size_t at = 0;
    while (at < devices->count && devices->items[at].index != index) {
        at++;
    }
    return at;
}

struct gpu_sample devices_use(const struct devices *devices, size_t position)
{
    bool seen = position < devices->count && devices->sights[position].state != DEVICE_BROKEN;
    return seen ? devices->sights[position].use : GPU_SAMPLE_UNKNOWN;
}

int64_t *devices_minors(const struct devices *devices, const int64_t *indices, size_t count,
                        size_t *ret_count)
{
    int64_t *minors = xalloc((count + 1) * sizeof *minors);
    *ret_count = 0;
    for (size_t i = 0; i < count && !devices->slots; i++) {
        size_t at = devices_position(devices, indices[i]);
        if (at < devices->count && devices->sights[at].state != DEVICE_BROKEN &&
            devices->sights[at].minor >= 0) {
            minors[(*ret_count)++] = devices->sights[at].minor;
        }
    }
    return minors;
}

bool devices_have_minors(const struct devices *devices)
{
    bool known = true;
    for (size_t i = 0; i < devices->count && !devices->slots; i++) {
        known = known && (devices->sights[i].state == DEVICE_BROKEN || devices->sights[i].minor >= 0);
    }
    return known;
}

const struct device_sight *devices_obstacle(const struct devices *devices, const int64_t *indices,
                                            size_t count, int64_t *ret_index)
{
    static const struct device_sight gone = {.state = DEVICE_BROKEN,
                                             .reason = "this node has no such device"};
    for (size_t i = 0; i < count && !devices->slots; i++) {
        size_t at = devices_position(devices, indices[i]);
        const struct device_sight *sight = at < devices->count ? &devices->sights[at] : &gone;
        if (sight->state != DEVICE_EMPTY) {
            *ret_index = indices[i];
            return sight;
        }
    }
    return NULL;
}

bool devices_settled(struct devices *devices, const int64_t *indices, size_t count, int64_t since_us)
{
    bool settled = true;
    for (size_t i = 0; i < count && !devices->slots; i++) {
        size_t at = devices_position(devices, indices[i]);
        if (at == devices->count || devices->sights[at].state == DEVICE_BROKEN) {
            continue;
        }
        if (devices->sights[at].state != DEVICE_EMPTY || devices->seen_us[at] < since_us) {
            watcher_want(devices->watcher, at, since_us);
            settled = false;
        }
    }
    return settled;
}

int64_t *devices_from_list(const struct devices *devices, const char *list, size_t *ret_count)
{
    autofree char *copy = xstrdup(list);
    char *rest = copy;
    size_t count = 0;
    int64_t *indices = xalloc((devices->count + strlen(list) + 1) * sizeof *indices);
    for (char *word = strsep(&rest, ","); word != NULL; word = strsep(&rest, ",")) {
        int64_t index;
        bool known = text_to_int(word, 0, INT64_MAX, &index);
        for (size_t i = 0; i < devices->count && !known; i++) {
            known = strcmp(devices->items[i].uuid, word) == 0;
            index = devices->items[i].index;
        }
        if (known) {
            indices[count++] = index;
        }
    }
    *ret_count = count;
    return indices;
}

#ifndef WITH_NVML
void devices_watch(struct devices *devices, struct loop *loop, void (*changed)(void *closure), void *closure)
{
}

void watcher_want(struct watcher *watcher, size_t at, int64_t since_us)
{
}

void watcher_destroy(struct watcher *watcher)
{
}
#endif
