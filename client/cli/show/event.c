/* SPDX-License-Identifier: Apache-2.0 */
/* Puts events into words. It promises to show every detail, also those of newer controllers. */
#include "client/cli/show/event.h"

#include <jansson.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

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
    return kind >= EVENT_SUCCEEDED;
}
