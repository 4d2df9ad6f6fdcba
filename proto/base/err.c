/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the error table at run time and fills errors. Texts are always terminated, and the caller's errno
 * survives. */
#include "proto/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct err_row {
    const char *slug;
    const char *title;
    int http;
    int exit_code;
    bool retryable;
};

static const struct err_row rows[ERR_COUNT] = {
#define X(code, slug_, http_, exit_, retryable_, title_) [code] = {slug_, title_, http_, exit_, retryable_},
    ERROR_TABLE(X)
#undef X
};

static const struct err_row *row_of(enum err_code code)
{
    if ((unsigned)code >= ERR_COUNT) {
        abort();
    }
    return &rows[code];
}

static void fill(struct err *err, enum err_code code, const char *field, const char *hint, const char *format,
                 va_list args)
{
    if (err == NULL) {
        return;
    }
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, args);
    snprintf(err->field, sizeof err->field, "%s", field ? field : "");
    snprintf(err->hint, sizeof err->hint, "%s", hint ? hint : "");
}

bool err_set(struct err *err, enum err_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, NULL, NULL, format, args);
    va_end(args);
    return false;
}

bool err_field(struct err *err, enum err_code code, const char *field, const char *hint, const char *format,
               ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, field, hint, format, args);
    va_end(args);
    return false;
}

bool err_errno(struct err *err, const char *format, ...)
{
    int saved = errno;
    bool full = saved == ENOSPC || saved == EDQUOT;
    va_list args;
    va_start(args, format);
    fill(err, full ? ERR_DISK_FULL : ERR_IO, NULL,
         full ? "free space on the disk that holds it, then try again" : NULL, format, args);
    va_end(args);
    if (err != NULL) {
        size_t used = strlen(err->text);
        snprintf(err->text + used, sizeof err->text - used, ": %s", strerror(saved));
    }
    errno = saved;
    return false;
}

bool err_hint(struct err *err, const char *format, ...)
{
    if (err == NULL) {
        return false;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(err->hint, sizeof err->hint, format, args);
    va_end(args);
    return false;
}

const char *err_slug(enum err_code code)
{
    return row_of(code)->slug;
}

const char *err_title(enum err_code code)
{
    return row_of(code)->title;
}

int err_http(enum err_code code)
{
    return row_of(code)->http;
}

int err_exit(enum err_code code)
{
    return row_of(code)->exit_code;
}

bool err_retryable(enum err_code code)
{
    return row_of(code)->retryable;
}

enum err_code err_from_slug(const char *slug)
{
    for (int code = 0; code < ERR_COUNT; code++) {
        if (strcmp(rows[code].slug, slug) == 0) {
            return (enum err_code)code;
        }
    }
    return ERR_INTERNAL;
}
