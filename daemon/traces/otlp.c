/* SPDX-License-Identifier: Apache-2.0 */
/* Writes spans in the JSON encoding of OTLP: ids in hex, enums as numbers, numbers of 64 bits as text. */
#include "daemon/traces/otlp.h"

#include "proto/members.h"

#define KIND_INTERNAL 1
#define STATUS_ERROR  2

/* --- attributes and events ------------------------------------------------------------------------------ */

static void separate(struct text *list)
{
    if (list->length > 0) {
        text_append(list, ",");
    }
}

void otlp_put_text(struct text *attributes, const char *key, const char *value)
{
    if (value != NULL) {
        separate(attributes);
        member_write_text(attributes, "{\"key\":", key);
        member_write_text(attributes, ",\"value\":{\"stringValue\":", value);
        text_append(attributes, "}}");
    }
}

void otlp_put_int(struct text *attributes, const char *key, int64_t value)
{
    separate(attributes);
    member_write_text(attributes, "{\"key\":", key);
    text_printf(attributes, ",\"value\":{\"intValue\":\"%lld\"}}", (long long)value);
}

static void write_time(struct text *out, const char *key, int64_t at_us)
{
    text_printf(out, "%s\"%lld000\"", key, (long long)at_us);
}

static void write_list(struct text *out, const char *key, const struct text *list)
{
    if (list->length > 0) {
        text_printf(out, "%s[", key);
        text_append_bytes(out, list->bytes, list->length);
        text_append(out, "]");
    }
}

void otlp_put_event(struct text *events, const char *name, int64_t at_us, const struct text *attributes)
{
    separate(events);
    member_write_text(events, "{\"name\":", name);
    write_time(events, ",\"timeUnixNano\":", at_us);
    write_list(events, ",\"attributes\":", attributes);
    text_append(events, "}");
}

/* --- spans ---------------------------------------------------------------------------------------------- */

static void write_span_id(struct text *out, const char *key, const uint8_t id[SPAN_ID_BYTES])
{
    char hex[2 * SPAN_ID_BYTES + 1];
    text_to_hex(id, SPAN_ID_BYTES, hex);
    text_printf(out, "%s\"%s\"", key, hex);
}

static bool has_parent(const struct otlp_span *span)
{
    uint8_t any = 0;
    for (size_t i = 0; i < SPAN_ID_BYTES; i++) {
        any |= span->parent[i];
    }
    return any != 0;
}

char *otlp_take_span(struct otlp_span *span)
{
    struct text out = {0};
    char trace[2 * TRACE_ID_BYTES + 1];
    text_to_hex(span->trace, TRACE_ID_BYTES, trace);
    text_printf(&out, "{\"traceId\":\"%s\"", trace);
    write_span_id(&out, ",\"spanId\":", span->id);
    if (span->state != NULL) {
        member_write_text(&out, ",\"traceState\":", span->state);
    }
    if (has_parent(span)) {
        write_span_id(&out, ",\"parentSpanId\":", span->parent);
    }
    member_write_text(&out, ",\"name\":", span->name);
    text_printf(&out, ",\"kind\":%d", KIND_INTERNAL);
    write_time(&out, ",\"startTimeUnixNano\":", span->start_us);
    write_time(&out, ",\"endTimeUnixNano\":", span->end_us);
    write_list(&out, ",\"attributes\":", &span->attributes);
    write_list(&out, ",\"events\":", &span->events);
    if (span->failed) {
        text_printf(&out, ",\"status\":{\"code\":%d", STATUS_ERROR);
        if (span->message != NULL) {
            member_write_text(&out, ",\"message\":", span->message);
        }
        text_append(&out, "}");
    }
    text_append(&out, "}");
    text_finish(&span->attributes);
    text_finish(&span->events);
    return text_take(&out);
}

void otlp_request(char *const *spans, size_t count, struct text *out)
{
    autotext struct text resource = {0};
    otlp_put_text(&resource, "service.name", "gpuctl");
    otlp_put_text(&resource, "service.version", GPUCTL_VERSION);
    text_append(out, "{\"resourceSpans\":[{\"resource\":{");
    write_list(out, "\"attributes\":", &resource);
    text_append(out, "},\"scopeSpans\":[{\"scope\":{\"name\":\"gpuctl\",\"version\":\"" GPUCTL_VERSION
                     "\"},\"spans\":[");
    for (size_t i = 0; i < count; i++) {
        text_append(out, i > 0 ? "," : "");
        text_append(out, spans[i]);
    }
    text_append(out, "]}]}]}");
}
