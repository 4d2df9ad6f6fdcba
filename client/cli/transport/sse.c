/* SPDX-License-Identifier: Apache-2.0 */
/* Parses event streams. It promises to hand out each event once and whole, however the bytes were cut, and
 * to move the id on only with the event that carries it. feed.c keeps the connections. */
#include "client/cli/transport/sse.h"

#include <string.h>

void sse_finish(struct sse *sse)
{
    text_finish(&sse->pending);
    text_finish(&sse->name);
    text_finish(&sse->data);
    text_finish(&sse->id);
    text_finish(&sse->next_id);
}

void sse_feed(struct sse *sse, const char *bytes, size_t length)
{
    if (sse->at > 0 &&
        sse->at >= sse->pending.length / 2) { /* a byte is moved once for every byte that is done with */
        sse->pending.length -= sse->at;
        memmove(sse->pending.bytes, sse->pending.bytes + sse->at, sse->pending.length);
        sse->at = 0;
    }
    text_append_bytes(&sse->pending, bytes, length);
}

size_t sse_waiting(const struct sse *sse)
{
    return sse->pending.length - sse->at;
}

static void begin(struct sse *sse)
{
    text_clear(&sse->name);
    text_clear(&sse->data);
    sse->has_data = false;
    sse->handed = false;
}

void sse_restart(struct sse *sse)
{
    text_clear(&sse->pending);
    text_clear(&sse->next_id);
    sse->at = 0;
    begin(sse);
}

/* The value of "field: value" when the line is of that field; *ret_length without the line's end. */
static const char *field_value(const char *line, size_t length, const char *field, size_t *ret_length)
{
    size_t name = strlen(field);
    if (length < name || memcmp(line, field, name) != 0 || (length > name && line[name] != ':')) {
        return NULL;
    }
    size_t start = length > name ? name + 1 : name;
    start += start < length && line[start] == ' ';
    *ret_length = length - start;
    return line + start;
}

static void take_line(struct sse *sse, const char *line, size_t length)
{
    size_t size;
    const char *value;
    if ((value = field_value(line, length, "data", &size)) != NULL) {
        if (sse->has_data) {
            text_append(&sse->data, "\n");
        }
        sse->has_data = true;
        text_append_bytes(&sse->data, value, size);
    } else if ((value = field_value(line, length, "event", &size)) != NULL) {
        text_clear(&sse->name);
        text_append_bytes(&sse->name, value, size);
    } else if ((value = field_value(line, length, "id", &size)) != NULL &&
               memchr(value, '\0', size) == NULL) {
        text_clear(&sse->next_id);
        text_append_bytes(&sse->next_id, value, size);
    }
}

/* An empty line: the fields since the last one are an event, if there was data. */
static bool hand_out(struct sse *sse, struct sse_event *ret_event)
{
    if (sse->next_id.length > 0) {
        text_clear(&sse->id);
        text_append_bytes(&sse->id, sse->next_id.bytes, sse->next_id.length);
        text_clear(&sse->next_id);
    }
    if (!sse->has_data) {
        begin(sse);
        return false;
    }
    sse->handed = true;
    ret_event->name = sse->name.length > 0 ? sse->name.bytes : "message";
    ret_event->data = sse->data.length > 0 ? sse->data.bytes : "";
    ret_event->data_length = sse->data.length;
    return true;
}

bool sse_next(struct sse *sse, struct sse_event *ret_event)
{
    if (sse->handed) {
        begin(sse);
    }
    while (sse->at < sse->pending.length) {
        const char *line = sse->pending.bytes + sse->at;
        const char *end = memchr(line, '\n', sse->pending.length - sse->at);
        if (end == NULL) {
            return false;
        }
        size_t length = (size_t)(end - line);
        sse->at += length + 1;
        length -= length > 0 && line[length - 1] == '\r';
        if (length > 0) {
            take_line(sse, line, length);
        } else if (hand_out(sse, ret_event)) {
            return true;
        }
    }
    return false;
}
