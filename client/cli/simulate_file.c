/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way between the files of traces and trace.h, which knows what stands in them. */
#include "client/cli/simulate_file.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/gzip.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/limits.h"

static bool load_packed(const char *path, struct trace *ret_trace, struct err *err)
{
    autotext struct text text = {0};
    text_append(&text, "");
    if (!gzip_read(path, CLIENT_TRACE_BYTES, &text, err)) {
        return false;
    }
    autofclose FILE *in = fmemopen(text.bytes, text.length, "r");
    return in != NULL ? trace_read(in, path, ret_trace, err) : err_errno(err, "cannot read %s", path);
}

bool simulate_load(const char *path, struct trace *ret_trace, struct err *err)
{
    if (strcmp(path, "-") == 0) {
        return trace_read(stdin, "standard input", ret_trace, err);
    }
    if (gzip_is_named(path)) {
        return load_packed(path, ret_trace, err);
    }
    autofclose FILE *in = fopen(path, "re");
    return in != NULL ? trace_read(in, path, ret_trace, err) : err_errno(err, "cannot open %s", path);
}

bool simulate_save(const char *path, const struct trace *trace, struct err *err)
{
    autotext struct text csv = {0}, packed = {0};
    trace_write(trace, &csv);
    if (csv.length > CLIENT_TRACE_BYTES) {
        return err_set(err, ERR_TOO_LARGE, "the trace would have more than %lld bytes",
                       (long long)CLIENT_TRACE_BYTES);
    }
    if (gzip_is_named(path)) {
        gzip_pack(csv.bytes, csv.length, &packed);
        return file_replace(path, packed.bytes, packed.length, 0644, err);
    }
    return file_replace(path, csv.bytes, csv.length, 0644, err);
}
