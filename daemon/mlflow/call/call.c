/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the errors of calls: MLflow's codes with their HTTP status, and the first error of each call. */
#include "daemon/mlflow/call/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int http;
} codes[] = {
#define AS_ROW(name, http) [TRACKING_##name] = {#name, (http)},
    TRACKING_CODES(AS_ROW)
#undef AS_ROW
};

const char *tracking_code_name(enum tracking_code code)
{
    return codes[code].name;
}

int tracking_code_http(enum tracking_code code)
{
    return codes[code].http;
}

bool tracking_fail(struct tracking_error *error, enum tracking_code code, const char *format, ...)
{
    error->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return false;
}

void tracking_error_render(const struct tracking_error *error, struct text *out)
{
    text_printf(out, "{\"error_code\": \"%s\", \"message\": ", tracking_code_name(error->code));
    text_json_string(out, error->message, strlen(error->message));
    text_append(out, "}");
}

void call_fail(struct call *call, enum tracking_code code, const char *format, ...)
{
    if (call->failed) {
        return;
    }
    call->failed = true;
    call->error->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(call->error->message, sizeof call->error->message, format, args);
    va_end(args);
}
