/* SPDX-License-Identifier: Apache-2.0 */
/* CPU slots: devices that exist only as a count. No visible process ever uses one. */
#include "agent/devices/devices.h"
#include "proto/base/text.h"

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
