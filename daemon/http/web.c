/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the files of the web page to anyone, since they hold no data. A browser asks for the page again each
 * time, gets its bytes only when they have changed, and keeps the files that it names for good. The page
 * loads and reaches nothing but this server; its data comes from the API, with the token of its reader. */
#include "daemon/http/web.h"

#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "proto/base/crypto/hash.h"

#define ETAG_DIGITS 32

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {{".html", "text/html; charset=utf-8"},
                                           {".svg", "image/svg+xml"},
                                           {".css", "text/css; charset=utf-8"},
                                           {".js", "text/javascript; charset=utf-8"}};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (ending != NULL && strcmp(ending, types[i][0]) == 0) {
            return types[i][1];
        }
    }
    return "application/octet-stream";
}

/* Browsers write "gzip, deflate, br". A weight of 0 would refuse it: no browser sends one. */
static bool takes_packed(const struct request *request)
{
    return request->headers.accept_encoding != NULL &&
           strstr(request->headers.accept_encoding, "gzip") != NULL;
}

static bool reply(struct request *request, const struct web_file *file)
{
    bool pack = takes_packed(request);
    const struct web_bytes *sent = pack ? &file->packed : &file->plain;
    char digest[HASH_HEX + 1];
    char etag[ETAG_DIGITS + 3];
    hash_hex(sent->bytes, sent->length, digest);
    snprintf(etag, sizeof etag, "\"%.*s\"", ETAG_DIGITS, digest);
    if (request_has(request, etag)) {
        request_reply(request, 304, type_of(file->name), xstrdup(""), 0);
    } else {
        struct text body = {0};
        text_append_bytes(&body, (const char *)sent->bytes, sent->length);
        request_reply(request, 200, type_of(file->name), text_take(&body), sent->length);
    }
    if (pack) {
        request_header(request, "Content-Encoding", "gzip");
    }
    request_header(request, "Vary", "Accept-Encoding");
    request_header(request, "ETag", etag);
    request_header(request, "Cache-Control",
                   file->hashed ? "public, max-age=31536000, immutable" : "no-cache");
    request_header(request, "Content-Security-Policy", policy);
    request_header(request, "X-Content-Type-Options", "nosniff");
    request_header(request, "Referrer-Policy", "no-referrer");
    return true;
}

bool web_page(struct request *request, struct err *err)
{
    return reply(request, &web_files[0]);
}

bool web_show(struct request *request, struct err *err)
{
    for (const struct web_file *file = web_files; file->name != NULL; file++) {
        if (strcmp(file->name, request->argument) == 0) {
            return reply(request, file);
        }
    }
    return err_set(err, ERR_NOT_FOUND, "the web page has no file %s", request->argument);
}
