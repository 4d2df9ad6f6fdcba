/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of devices in the form of database rows. */
#ifndef CORE_MODEL_DEVICE_H
#define CORE_MODEL_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node;
struct node_device;
struct text;

/* Appends the JSON array of {index, uuid, type, memory_bytes, group, unavailable} of the node's devices. */
void device_list_encode(const struct node *node, struct text *out);
/* Decodes such an array, which the caller owns; aborts on a text that device_list_encode did not write. */
struct node_device *device_list_decode(const char *json, size_t *ret_count);

/* Sorts devices by index; false if two have the same index or one is negative. */
bool device_list_sort(struct node_device *devices, size_t count);
void device_list_free(struct node_device *devices, size_t count);

/* Decodes indices such as "0,1,5"; the caller owns them. Aborts on any other text. */
int64_t *device_indices_decode(const char *text, size_t *ret_count);

#endif
