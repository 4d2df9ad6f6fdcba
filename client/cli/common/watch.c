/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a list again whenever it changes, for --watch. The verbs make the list. */
#include "client/cli/common/watch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/transport/api.h"
#include "proto/limits_client.h"

#define CLEAR_SCREEN "\033[H\033[2J"

/* Is the line, with its end, somewhere in the text? */
static bool has_line(const struct text *text, const char *line, size_t length)
{
    for (size_t at = 0; at < text->length;) {
        size_t size = strcspn(text->bytes + at, "\n") + 1;
        if (size == length && memcmp(text->bytes + at, line, length) == 0) {
            return true;
        }
        at += size;
    }
    return false;
}

static void append_new_lines(const struct text *now, const struct text *before, struct text *out)
{
    for (size_t at = 0; at < now->length;) {
        size_t size = strcspn(now->bytes + at, "\n") + 1;
        if (!has_line(before, now->bytes + at, size)) {
            text_append_bytes(out, now->bytes + at, size);
        }
        at += size;
    }
}

static bool same(const struct text *a, const struct text *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

static bool show_change(const struct call *call, const struct text *now, const struct text *before,
                        struct err *err)
{
    autotext struct text out = {0};
    if (same(now, before)) {
        return true;
    }
    if (call->format == FORMAT_JSONL) {
        append_new_lines(now, before, &out);
    } else {
        fputs(isatty(STDOUT_FILENO) ? CLEAR_SCREEN : before->length > 0 ? "\n" : "", stdout);
        text_append_bytes(&out, now->bytes, now->length);
    }
    return print_out(&out, err);
}

static bool watch_on(const struct call *call,
                     bool (*show)(const struct call *call, struct text *out, bool *ret_last, struct err *err),
                     struct err *err)
{
    struct api *api = call->api;
    autotext struct text before = {0};
    autotext struct text now = {0};
    for (bool last = false; !last;) {
        text_clear(&now);
        if (show(call, &now, &last, err)) {
            api_found(api);
            if (!show_change(call, &now, &before, err)) {
                return false;
            }
            text_clear(&before);
            text_append_bytes(&before, now.bytes != NULL ? now.bytes : "", now.length);
        } else if (err_retryable(err->code)) {
            api_lost(api, err);
        } else {
            return false;
        }
        if (!last) {
            api_pause(api, CLIENT_WATCH_MS);
        }
    }
    return true;
}

bool watch_run(const struct call *call,
               bool (*show)(const struct call *call, struct text *out, bool *ret_last, struct err *err),
               struct err *err)
{
    if (call->common->watch && call->format == FORMAT_JSON) {
        return err_field(err, ERR_USAGE, "output", "use -o jsonl",
                         "-o json is one document and cannot be watched");
    }
    if (call->common->watch) {
        return watch_on(call, show, err);
    }
    autotext struct text out = {0};
    bool last;
    return show(call, &out, &last, err) && print_out(&out, err);
}
