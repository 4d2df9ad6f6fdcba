/* SPDX-License-Identifier: Apache-2.0 */
/* Formats trace lines: one line per call, without effect on any decision. */
#include "daemon/core/model/trace.h"

#include <stdarg.h>
#include <stdio.h>

#include "daemon/core/model/state.h"

#define LINE_BYTES 512 /* a gang's list of nodes is cut at this length */

void trace_line(const struct core *core, const char *format, ...)
{
    if (core->trace == NULL) {
        return;
    }
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_printf(core->trace, "[%5lld] %s\n", (long long)core->now_ms, line);
}

void trace_place(const struct member *member, struct text *out)
{
    text_printf(out, " %s:", member->node->name);
    for (size_t i = 0; i < member->device_count; i++) {
        text_printf(out, "%s%lld", i > 0 ? "," : "", (long long)member->devices[i]);
    }
}
