/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of devices, as the rows hold them. */
#ifndef CORE_MODEL_DEVICE_H
#define CORE_MODEL_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node;
struct node_device;
struct text;

/* Appends the JSON array of {index, uuid, type, memory_bytes, group, unavailable} of the devices that the
 * node has. */
void device_list_encode(const struct node *node, struct text *out);
/* Devices from such an array, which the caller owns; a text that device_list_encode did not write aborts. */
struct node_device *device_list_decode(const char *json, size_t *ret_count);

/* Sorts devices by index; false when two have the same or one is negative. */
bool device_list_sort(struct node_device *devices, size_t count);
void device_list_free(struct node_device *devices, size_t count);

/* Indices from "0,1,5", which the caller owns; anything else aborts. */
int64_t *device_indices_decode(const char *text, size_t *ret_count);

#endif
