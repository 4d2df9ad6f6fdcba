/* SPDX-License-Identifier: Apache-2.0 */
/* Puts events into words. It promises to show every detail, also those of newer controllers. */
#include "client/cli/show/event.h"

#include <jansson.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"

static void append_value(struct text *out, const json_t *value)
{
    if (json_is_string(value)) {
        text_append(out, json_string_value(value));
        return;
    }
    autofree char *plain = json_text(value);
    text_append(out, plain);
}

static void append_list(struct text *out, const json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item) {
        text_append(out, i > 0 ? " " : "");
        append_value(out, item);
    }
}

void event_members(const json_t *members, struct text *out)
{
    const char *name;
    json_t *value;
    bool first = true;
    json_object_foreach ((json_t *)(uintptr_t)members, name, value) {
        text_printf(out, "%s%s ", first ? "" : ", ", name);
        first = false;
        if (json_is_array(value)) {
            append_list(out, value);
        } else {
            append_value(out, value);
        }
    }
}

void event_detail(const char *detail, struct text *out)
{
    autojson json_t *members = detail != NULL ? json_parse(detail, strlen(detail), NULL) : NULL;
    event_members(members, out);
}

bool event_is_last(enum event_kind kind)
{
    switch (kind) {
    case EVENT_SUCCEEDED:
    case EVENT_FAILED:
    case EVENT_CANCELED:
    case EVENT_TIMED_OUT:
        return true;
    case EVENT_SUBMITTED:
    case EVENT_HELD:
    case EVENT_RELEASED:
    case EVENT_BLOCKED:
    case EVENT_READY:
    case EVENT_CHANGED:
    case EVENT_STAGING:
    case EVENT_STAGED:
    case EVENT_PLACED:
    case EVENT_STARTED:
    case EVENT_RUNNING:
    case EVENT_WARNED:
    case EVENT_CANCEL_ASKED:
    case EVENT_STOPPING:
    case EVENT_REQUEUED:
    case EVENT_LOGS_CUT:
    case EVENT_KIND_COUNT:
        break;
    }
    return false;
}
