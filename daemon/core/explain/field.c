/* SPDX-License-Identifier: Apache-2.0 */
/* Writes members of JSON objects into a text. The answers of this folder are all made of them. */
#include "daemon/core/explain/field.h"

#include <string.h>

#include "daemon/core/model/state.h"
#include "proto/base/clock.h"

void field_write_text(struct text *out, const char *key, const char *value)
{
    text_append(out, key);
    if (value != NULL) {
        text_json_string(out, value, strlen(value));
    } else {
        text_append(out, "null");
    }
}

void field_write_wall(struct text *out, const char *key, int64_t wall_ms)
{
    char at[32];
    clock_format_wall(wall_ms, at, sizeof at);
    text_printf(out, "%s\"%s\"", key, at);
}

void field_write_time(const struct core *core, struct text *out, const char *key, int64_t ms)
{
    field_write_wall(out, key, core->wall_ms + (ms - core->now_ms));
}

void field_write_seconds(struct text *out, const char *key, int64_t ms)
{
    int64_t size_ms = ms < 0 ? -ms : ms;
    text_printf(out, "%s%s%lld.%03d", key, ms < 0 ? "-" : "", (long long)(size_ms / 1000),
                (int)(size_ms % 1000));
}
