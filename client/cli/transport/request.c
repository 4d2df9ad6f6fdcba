/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests and reads their replies, as JSON, and repeats them. It promises to repeat a POST only under
 * its own Idempotency-Key. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

static bool send_once(struct api *api, const struct request *request, struct text *ret_body,
                      int64_t *ret_again_ms, struct err *err)
{
    struct transfer *transfer = transfer_start(api, request, NULL, NULL);
    while (!transfer_done(transfer) && api_interrupts(api) < 2) {
        api_turn(api, CLIENT_REPLY_MS);
    }
    bool sent = transfer_done(transfer)
                    ? transfer_result(transfer, err)
                    : err_set(err, ERR_UNKNOWN_OUTCOME, "interrupted before the controller answered");
    if (sent && ret_body != NULL) {
        const struct text *body = transfer_body(transfer);
        text_append_bytes(ret_body, body->bytes != NULL ? body->bytes : "", body->length);
    }
    if (request->ret_content_range != NULL) {
        free(*request->ret_content_range);
        *request->ret_content_range = transfer_content_range(transfer);
    }
    *ret_again_ms = transfer_again_ms(transfer);
    transfer_destroy(transfer);
    return sent;
}

bool api_send(struct api *api, const struct request *request, struct text *ret_body, struct err *err)
{
    int64_t deadline = clock_boot_ms() + CLIENT_RETRY_MS;
    int interrupts = api_interrupts(api);
    for (int64_t pause = CLIENT_BACKOFF_MS;; pause = api_next_pause(pause)) {
        int64_t again_ms;
        if (send_once(api, request, ret_body, &again_ms, err)) {
            api_found(api);
            return true;
        }
        bool again = again_ms > 0 || (request->retry && err_retryable(err->code));
        int64_t wait_ms = again_ms > pause ? again_ms : pause;
        if (!again || api_interrupts(api) > interrupts || clock_boot_ms() + wait_ms > deadline) {
            return false;
        }
        api_lost(api, err);
        api_pause(api, wait_ms);
        if (request->upload != NULL) {
            rewind(request->upload);
        }
    }
}

json_t *api_send_json(struct api *api, const struct request *request, struct err *err)
{
    autotext struct text body = {0};
    return api_send(api, request, &body, err) ? json_parse(body.bytes, body.length, err) : NULL;
}

json_t *api_read(struct api *api, const char *path, struct err *err)
{
    return api_send_json(api, &(struct request){.method = "GET", .path = path}, err);
}

/* Repeating a PUT or DELETE changes nothing; any other method needs a key for that. */
static json_t *send_change(struct api *api, const char *method, const char *path, const json_t *body,
                           const char *key, bool traced, struct err *err)
{
    bool keyed = strcmp(method, "PUT") != 0 && strcmp(method, "DELETE") != 0;
    autofree char *text = body != NULL ? json_text(body) : keyed ? xstrdup("{}") : NULL;
    char drawn[ID_LENGTH + 1];
    random_id(drawn);
    return api_send_json(api,
                         &(struct request){.method = method,
                                           .path = path,
                                           .body = text,
                                           .length = text != NULL ? strlen(text) : 0,
                                           .content_type = text != NULL ? "application/json" : NULL,
                                           .key = key != NULL ? key
                                                  : keyed     ? drawn
                                                              : NULL,
                                           .traced = traced,
                                           .retry = true},
                         err);
}

json_t *api_submit(struct api *api, const json_t *spec, const char *key, struct err *err)
{
    return send_change(api, "POST", "/v1/jobs", spec, key, true, err);
}

json_t *api_clone(struct api *api, const char *id, const json_t *changes, const char *key, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s/clone", id);
    return send_change(api, "POST", path, changes, key, false, err);
}

json_t *api_submit_batch(struct api *api, const struct text *lines, const char *key, struct err *err)
{
    char drawn[ID_LENGTH + 1];
    random_id(drawn);
    return api_send_json(api,
                         &(struct request){.method = "POST",
                                           .path = "/v1/jobs:batch",
                                           .body = lines->bytes,
                                           .length = lines->length,
                                           .content_type = "application/x-ndjson",
                                           .key = key != NULL ? key : drawn,
                                           .traced = true,
                                           .retry = true},
                         err);
}

void api_part(struct text *path, const char *part)
{
    for (; *part != '\0'; part++) {
        bool plain = (*part >= 'a' && *part <= 'z') || (*part >= 'A' && *part <= 'Z') ||
                     (*part >= '0' && *part <= '9') || strchr("-._~", *part) != NULL;
        if (plain) {
            text_append_bytes(path, part, 1);
        } else {
            text_printf(path, "%%%02X", (unsigned)(unsigned char)*part);
        }
    }
}

void api_query(struct text *path, const char *name, const char *value)
{
    if (value != NULL) {
        text_printf(path, "%s%s=", strchr(path->bytes, '?') != NULL ? "&" : "?", name);
        api_part(path, value);
    }
}

/* The format, in which each %s stands for one part of a path. */
static char *path_of(const char *format, va_list parts)
{
    struct text path = {0};
    for (const char *at = format; *at != '\0'; at++) {
        if (at[0] == '%' && at[1] == 's') {
            api_part(&path, va_arg(parts, const char *));
            at++;
        } else {
            text_append_bytes(&path, at, 1);
        }
    }
    return text_take(&path);
}

json_t *api_get(struct api *api, struct err *err, const char *format, ...)
{
    va_list parts;
    va_start(parts, format);
    autofree char *path = path_of(format, parts);
    va_end(parts);
    return api_read(api, path, err);
}

json_t *api_ask(struct api *api, const char *method, const json_t *body, struct err *err, const char *format,
                ...)
{
    va_list parts;
    va_start(parts, format);
    autofree char *path = path_of(format, parts);
    va_end(parts);
    return send_change(api, method, path, body, NULL, false, err);
}
