/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes an error for HTTP and decodes it again. Our own errors arrive unchanged; any other answer becomes
 * an error that names its HTTP status. The table in errors.h has the statuses. */
#include "proto/wire/views.h"

#include "proto/base/text/json.h"
#include "proto/members.h"

static const char *text_or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

void problem_encode(const struct err *err, struct text *out)
{
    int status = err_http(err->code);
    text_printf(out, "{\"type\":\"urn:gpuctl:problem:%s\"", err_slug(err->code));
    member_write_text(out, ",\"title\":", err_title(err->code));
    /* An error without an HTTP status of its own is a server error over HTTP. */
    member_write_int(out, ",\"status\":", status != 0 ? status : err_http(ERR_INTERNAL));
    member_write_text(out, ",\"detail\":", err->text);
    member_write_text(out, ",\"code\":", err_slug(err->code));
    member_write_text(out, ",\"field\":", text_or_null(err->field));
    member_write_text(out, ",\"hint\":", text_or_null(err->hint));
    member_write_bool(out, ",\"retryable\":", err_retryable(err->code));
    text_append(out, "}");
}

/* The error code for an HTTP status that does not come from our server, but for example from a proxy. */
static enum err_code code_of_status(int http_status)
{
    switch (http_status) {
    case 400:
        return ERR_MALFORMED;
    case 401:
        return ERR_UNAUTHENTICATED;
    case 403:
        return ERR_FORBIDDEN;
    case 404:
        return ERR_NOT_FOUND;
    case 413:
        return ERR_TOO_LARGE;
    case 429:
        return ERR_TOO_MANY;
    case 502:
    case 503:
    case 504:
        return ERR_UNAVAILABLE;
    default:
        return ERR_INTERNAL;
    }
}

static bool decode_members(const json_t *json, struct err *ret_problem)
{
    const char *code = NULL;
    const char *detail = NULL;
    const char *field = NULL;
    const char *hint = NULL;
    if (!json_need_text(json, "code", &code, NULL) || !json_need_text(json, "detail", &detail, NULL) ||
        !json_read_text(json, "field", &field, NULL) || !json_read_text(json, "hint", &hint, NULL)) {
        return false;
    }
    err_field(ret_problem, err_from_slug(code), field, hint, "%s", detail);
    return true;
}

void problem_decode(const char *body, size_t length, int http_status, struct err *ret_problem)
{
    autojson json_t *json = json_parse(body, length, NULL);
    if (!decode_members(json, ret_problem) || ret_problem->text[0] == '\0') {
        err_set(ret_problem, code_of_status(http_status), "the server answered HTTP %d without saying why",
                http_status);
    }
}
