/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the two texts that name devices in rows: the JSON array of a node and the indices of a
 * member. Written texts read back equal. Any other text is damage in the database, and aborts. */
#include "daemon/core/model/device.h"

#include <string.h>

#include "daemon/core/model/state.h"
#include "proto/base/text/json.h"

static void encode_device(const struct node_device *device, struct text *out)
{
    text_printf(out, "{\"index\":%lld,\"uuid\":", (long long)device->index);
    text_json_string(out, device->uuid, strlen(device->uuid));
    text_append(out, ",\"type\":");
    text_json_string(out, device->type, strlen(device->type));
    text_printf(out, ",\"memory_bytes\":%lld", (long long)device->memory_bytes);
    if (device->group >= 0) {
        text_printf(out, ",\"group\":%lld", (long long)device->group);
    }
    if (device->unavailable != NULL) {
        text_append(out, ",\"unavailable\":");
        text_json_string(out, device->unavailable, strlen(device->unavailable));
    }
    text_append(out, "}");
}

void device_list_encode(const struct node *node, struct text *out)
{
    const char *separator = "";
    text_append(out, "[");
    for (size_t i = 0; i < node->device_count; i++) {
        if (!node->devices[i].retired) {
            text_append(out, separator);
            encode_device(&node->devices[i], out);
            separator = ",";
        }
    }
    text_append(out, "]");
}

static int64_t decode_number(const json_t *object, const char *name)
{
    int64_t number = 0;
    bool read = json_need_int(object, name, 0, INT64_MAX, &number, NULL);
    assert(read);
    return number;
}

static char *decode_text(const json_t *object, const char *name)
{
    const char *text = NULL;
    bool read = json_need_text(object, name, &text, NULL);
    assert(read);
    return xstrdup(text);
}

static int64_t decode_group(const json_t *object)
{
    int64_t group = -1;
    bool read = json_read_int(object, "group", 0, INT64_MAX, &group, NULL);
    assert(read);
    return group;
}

static char *decode_unavailable(const json_t *object)
{
    const char *reason = NULL;
    bool read = json_read_text(object, "unavailable", &reason, NULL);
    assert(read);
    return copy_or_null(reason);
}

static struct node_device decode_device(const json_t *object)
{
    return (struct node_device){
        .index = decode_number(object, "index"),
        .uuid = decode_text(object, "uuid"),
        .type = decode_text(object, "type"),
        .memory_bytes = decode_number(object, "memory_bytes"),
        .group = decode_group(object),
        .unavailable = decode_unavailable(object),
    };
}

struct node_device *device_list_decode(const char *json, size_t *ret_count)
{
    autojson json_t *array = json_parse(json, strlen(json), NULL);
    assert(json_is_array(array));
    size_t count = json_array_size(array);
    struct node_device *devices = xalloc(count * sizeof *devices);
    for (size_t i = 0; i < count; i++) {
        devices[i] = decode_device(json_array_get(array, i));
    }
    bool sound = device_list_sort(devices, count);
    assert(sound);
    *ret_count = count;
    return devices;
}

static int by_index(const void *a, const void *b)
{
    const struct node_device *left = a, *right = b;
    return (left->index > right->index) - (left->index < right->index);
}

bool device_list_sort(struct node_device *devices, size_t count)
{
    qsort(devices, count, sizeof *devices, by_index);
    for (size_t i = 0; i < count; i++) {
        if (devices[i].index < 0 || (i > 0 && devices[i].index == devices[i - 1].index)) {
            return false;
        }
    }
    return true;
}

void device_list_free(struct node_device *devices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(devices[i].uuid);
        free(devices[i].type);
        row_free(&devices[i].unavailable);
    }
    free(devices);
}

int64_t *device_indices_decode(const char *text, size_t *ret_count)
{
    size_t count = 0;
    int64_t *indices = xalloc((strlen(text) / 2 + 1) * sizeof *indices);
    for (const char *at = text; *at != '\0';) {
        char number[24];
        size_t length = strcspn(at, ",");
        assert(length < sizeof number);
        memcpy(number, at, length);
        number[length] = '\0';
        bool whole = text_to_int(number, 0, INT64_MAX, &indices[count++]);
        assert(whole);
        at += length + (at[length] == ',');
    }
    *ret_count = count;
    return indices;
}
