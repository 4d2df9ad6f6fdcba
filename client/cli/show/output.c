/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the output of many ranks into our stdout and stderr, in the order of arrival. It promises that with
 * a prefix every line is whole and of one rank, and that without one every byte passes unchanged, unless it
 * goes to a terminal. */
#include "client/cli/show/output.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/show/terminal.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_client.h"

/* stdout and stderr; the other streams of a rank are no output */
#define OUTPUT_FILES 2

/* Room for "2026-11-21T09:30:00.000Z". */
#define STAMP_BYTES 32

/* What one stream of one rank has begun and not ended. */
struct partial {
    int64_t rank;
    enum stream stream;
    char at[STAMP_BYTES]; /* when its first byte came in; "": not known */
    struct text line;
};

/* A line that a tail keeps. */
struct kept {
    struct text line;
    enum stream stream;
};

struct output {
    FILE *files[OUTPUT_FILES]; /* by stream */
    struct terminal terminals[OUTPUT_FILES];
    bool prefix, stamp;
    int64_t task; /* -1: none */
    struct partial *partials;
    size_t partial_count;
    struct kept *kept; /* a ring of `tail` lines */
    size_t tail, kept_count, kept_first;
    bool keeping;
};

struct output *output_create(FILE *out, FILE *errors, int64_t tail)
{
    struct output *output = xzalloc(sizeof *output);
    output->files[STREAM_STDOUT] = out;
    output->files[STREAM_STDERR] = errors;
    output->task = -1;
    output->keeping = tail >= 0;
    output->tail = tail > 0 ? (size_t)tail : 0;
    output->kept = xzalloc((output->tail + 1) * sizeof output->kept[0]);
    return output;
}

/* A failure stays with the file, and output_flush tells it. */
static void put(struct output *output, enum stream stream, const char *bytes, size_t length)
{
    terminal_write(&output->terminals[stream], output->files[stream], bytes, length);
}

void output_prefix(struct output *output)
{
    output->prefix = true;
}

void output_task(struct output *output, int64_t task)
{
    output->task = task;
}

void output_stamp(struct output *output)
{
    output->stamp = true;
}

/* --- lines --- */

static void keep_line(struct output *output, enum stream stream, const char *text, size_t length)
{
    if (output->tail == 0) {
        return;
    }
    size_t slot = (output->kept_first + output->kept_count) % output->tail;
    if (output->kept_count == output->tail) {
        output->kept_first = (output->kept_first + 1) % output->tail;
    } else {
        output->kept_count++;
    }
    text_clear(&output->kept[slot].line);
    text_append_bytes(&output->kept[slot].line, text, length);
    output->kept[slot].stream = stream;
}

static bool by_lines(const struct output *output)
{
    return output->prefix || output->stamp || output->task >= 0 || output->keeping;
}

/* "2026-11-21T09:30:00.000Z [7:0] ", as far as it was asked for. */
static void begin_line(const struct output *output, int64_t rank, const char *at, struct text *line)
{
    if (output->stamp) {
        text_printf(line, "%s ", at[0] != '\0' ? at : "-");
    }
    if (output->task >= 0 && output->prefix) {
        text_printf(line, "[%lld:%lld] ", (long long)output->task, (long long)rank);
    } else if (output->task >= 0 || output->prefix) {
        text_printf(line, "[%lld] ", (long long)(output->prefix ? rank : output->task));
    }
}

/* A whole line, or the start of one that got too long. */
static void show_line(struct output *output, int64_t rank, enum stream stream, const char *at,
                      const char *text, size_t length)
{
    autotext struct text line = {0};
    begin_line(output, rank, at, &line);
    text_append_bytes(&line, text, length);
    if (length == 0 || text[length - 1] != '\n') {
        text_append(&line, "\n");
    }
    if (output->keeping) {
        keep_line(output, stream, line.bytes, line.length);
    } else {
        put(output, stream, line.bytes, line.length);
    }
}

static struct partial *find_partial(struct output *output, int64_t rank, enum stream stream)
{
    for (size_t i = 0; i < output->partial_count; i++) {
        if (output->partials[i].rank == rank && output->partials[i].stream == stream) {
            return &output->partials[i];
        }
    }
    return NULL;
}

static struct partial *add_partial(struct output *output, int64_t rank, enum stream stream)
{
    output->partials = xrealloc(output->partials, (output->partial_count + 1) * sizeof output->partials[0]);
    struct partial *partial = &output->partials[output->partial_count++];
    *partial = (struct partial){.rank = rank, .stream = stream};
    return partial;
}

/* Shows the whole lines and keeps the rest; *partial may be NULL until there is a rest. */
static void write_lines(struct output *output, int64_t rank, enum stream stream, const char *at,
                        const char *text, size_t length)
{
    struct partial *partial = find_partial(output, rank, stream);
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t size = end != NULL ? (size_t)(end - text) + 1 : length;
        bool begun = partial != NULL && partial->line.length > 0;
        if (end != NULL && !begun) {
            show_line(output, rank, stream, at, text, size);
        } else {
            partial = partial != NULL ? partial : add_partial(output, rank, stream);
            if (!begun) {
                snprintf(partial->at, sizeof partial->at, "%s", at);
            }
            text_append_bytes(&partial->line, text, size);
        }
        if (partial != NULL && partial->line.length > 0 &&
            (end != NULL || partial->line.length >= CLIENT_LINE_BYTES)) {
            show_line(output, rank, stream, partial->at, partial->line.bytes, partial->line.length);
            text_clear(&partial->line);
        }
        text += size;
        length -= size;
    }
}

void output_write(struct output *output, int64_t rank, enum stream stream, const char *at, const char *text,
                  size_t length)
{
    if (by_lines(output)) {
        write_lines(output, rank, stream, at != NULL ? at : "", text, length);
    } else {
        put(output, stream, text, length);
    }
}

bool output_write_event(struct output *output, const char *data, size_t length, struct err *err)
{
    autojson json_t *event = json_parse(data, length, err);
    const char *stream_name = NULL;
    enum stream stream;
    int64_t rank = 0;
    if (event == NULL || !json_need_int(event, "rank", 0, LIMIT_GPUS, &rank, err) ||
        !json_need_text(event, "stream", &stream_name, err)) {
        return false;
    }
    const json_t *text = json_object_get(event, "text");
    if (!stream_from_text(stream_name, &stream) || !stream_is_output(stream) || !json_is_string(text)) {
        return err_set(err, ERR_MALFORMED, "the controller's log stream has an event without stream or text");
    }
    output_write(output, rank, stream, json_string_of(event, "at"), json_string_value(text),
                 json_string_length(text));
    return true;
}

/* --- the end --- */

static void show_partials(struct output *output)
{
    for (size_t i = 0; i < output->partial_count; i++) {
        struct partial *partial = &output->partials[i];
        if (partial->line.length > 0) {
            show_line(output, partial->rank, partial->stream, partial->at, partial->line.bytes,
                      partial->line.length);
            text_clear(&partial->line);
        }
    }
}

void output_release(struct output *output)
{
    if (!output->keeping) {
        return;
    }
    show_partials(output);
    output->keeping = false;
    for (size_t i = 0; i < output->kept_count; i++) {
        const struct kept *kept = &output->kept[(output->kept_first + i) % output->tail];
        put(output, kept->stream, kept->line.bytes, kept->line.length);
    }
    output->kept_count = 0;
}

bool output_flush(struct output *output, struct err *err)
{
    for (int i = 0; i < OUTPUT_FILES; i++) {
        if (fflush(output->files[i]) != 0 || ferror(output->files[i])) {
            return err_errno(err, "cannot write the job's output");
        }
    }
    return true;
}

void output_destroy(struct output *output)
{
    if (output == NULL) {
        return;
    }
    output_release(output);
    show_partials(output);
    for (int i = 0; i < OUTPUT_FILES; i++) {
        autotext struct text rest = {0};
        terminal_finish(&output->terminals[i], &rest);
        fwrite(rest.length > 0 ? rest.bytes : "", 1, rest.length, output->files[i]);
    }
    output_flush(output, NULL);
    for (size_t i = 0; i < output->partial_count; i++) {
        text_finish(&output->partials[i].line);
    }
    for (size_t i = 0; i < output->tail; i++) {
        text_finish(&output->kept[i].line);
    }
    free(output->partials);
    free(output->kept);
    free(output);
}
