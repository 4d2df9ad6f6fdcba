/* SPDX-License-Identifier: Apache-2.0 */
/* Renders errors below /api/ in MLflow's form, so that its client shows them. An error that cannot go away by
 * itself has no status after which the client tries again. */
#include <string.h>

#include "daemon/http/mlflow/mlflow.h"
#include "proto/base/text/text.h"

bool mlflow_has_path(const char *path)
{
    return strncmp(path, "/api/", 5) == 0;
}

static const char *code_of(enum err_code code, bool routed)
{
    switch (err_http(code)) {
    case 401:
        return "UNAUTHENTICATED";
    case 403:
        return "PERMISSION_DENIED";
    case 404:
        return routed ? "RESOURCE_DOES_NOT_EXIST" : "ENDPOINT_NOT_FOUND";
    case 405:
        return "ENDPOINT_NOT_FOUND";
    case 429:
        return "REQUEST_LIMIT_EXCEEDED";
    case 503:
        return "TEMPORARILY_UNAVAILABLE";
    case 507:
        return "RESOURCE_EXHAUSTED";
    case 0:
    case 500:
        return "INTERNAL_ERROR";
    default:
        return "INVALID_PARAMETER_VALUE";
    }
}

unsigned mlflow_error_render(const struct err *err, bool routed, struct text *out)
{
    int status = err_http(err->code);
    autotext struct text message = {0};
    text_append(&message, err->text);
    if (err->hint[0] != '\0') {
        text_printf(&message, "; %s", err->hint);
    }
    text_printf(out, "{\"error_code\":\"%s\",\"message\":", code_of(err->code, routed));
    text_json_string(out, message.bytes, message.length);
    text_append(out, "}");
    return status == 422 ? 400 : status != 0 ? (unsigned)status : 500;
}
