/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the files of traces, packed ones too. It promises to refuse a packed file that was cut
 * off or changed. trace.h knows their contents. */
#include "client/cli/simulate/simulate.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/limits_client.h"

/* --- gzip --- */

#define STEP_BYTES  (1 << 16)
#define GZIP_WINDOW (MAX_WBITS + 16) /* zlib's way to say: with the header of gzip */

static bool gzip_is_named(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

static bool refuse(gzFile file, const char *path, struct err *err)
{
    int code;
    const char *text = gzerror(file, &code);
    if (code == Z_ERRNO) {
        return err_errno(err, "cannot read %s", path);
    }
    return err_set(err, ERR_FIELD, "%s is no whole gzip file: %s", path, text);
}

static bool unpack(gzFile file, const char *path, size_t max, struct text *out, struct err *err)
{
    int got, code;
    do {
        text_reserve(out, STEP_BYTES);
        got = gzread(file, out->bytes + out->length, STEP_BYTES);
        out->length += got > 0 ? (size_t)got : 0;
        out->bytes[out->length] = '\0';
        if (out->length > max) {
            return err_set(err, ERR_TOO_LARGE, "%s holds more than %zu bytes", path, max);
        }
    } while (got > 0);
    gzerror(file, &code);
    return got == 0 && code == Z_OK ? true : refuse(file, path, err);
}

static bool gzip_read(const char *path, size_t max, struct text *out, struct err *err)
{
    gzFile file = gzopen(path, "rbe");
    if (file == NULL) {
        return err_errno(err, "cannot open %s", path);
    }
    bool good = unpack(file, path, max, out, err);
    gzclose_r(file);
    return good;
}

static void gzip_pack(const void *bytes, size_t length, struct text *out)
{
    z_stream stream = {.next_in = (z_const Bytef *)(uintptr_t)bytes, .avail_in = (uInt)length};
    int made = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY);
    assert(made == Z_OK && stream.avail_in == length); /* memory is not out: that aborts elsewhere, too */
    uLong room = deflateBound(&stream, length);
    text_reserve(out, room);
    stream.next_out = (Bytef *)out->bytes + out->length;
    stream.avail_out = (uInt)room;
    int done = deflate(&stream, Z_FINISH);
    assert(done == Z_STREAM_END);
    out->length += stream.total_out;
    deflateEnd(&stream);
}

/* --- traces --- */

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
