/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the list of a node's devices, whatever drives them. It promises that names are those that people write
 * in a job. How devices are found and watched is left to devices_nvml.c and devices_slots.c. */
#include "agent/devices.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"

void devices_close(struct devices *devices)
{
    if (devices->driver != NULL) {
        devices->driver->close(devices->state);
    }
    for (size_t i = 0; i < devices->count; i++) {
        free((void *)(uintptr_t)devices->items[i].uuid);
        free((void *)(uintptr_t)devices->items[i].type);
    }
    free(devices->items);
    *devices = (struct devices){0};
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

/* A series name says nothing without its number. */
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

bool devices_in_use(const struct devices *devices, const int64_t *indices, size_t count, int64_t *ret_index,
                    int64_t *ret_pid)
{
    for (size_t i = 0; i < count; i++) {
        if (devices->driver->in_use(devices->state, indices[i], ret_pid)) {
            *ret_index = indices[i];
            return true;
        }
    }
    return false;
}
