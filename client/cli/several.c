/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the jobs of a file that has several: its YAML documents, and which of them follows which. It promises
 * that a circle, a name that two jobs share and a job that does not exist are refused before anything is
 * submitted. One job of them is jobfile.c's. */
#include "client/cli/several.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/after.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/json.h"
#include "proto/limits.h"

#define NOWHERE SIZE_MAX

/* --- documents ------------------------------------------------------------------------------------------ */

/* A line "---": no text of YAML may hold one at its beginning. */
static bool is_separator(const char *line, size_t length)
{
    return length >= 3 && strncmp(line, "---", 3) == 0 && (length == 3 || strchr(" \t\r", line[3]) != NULL);
}

static bool says_something(const char *line, size_t length)
{
    size_t at = 0;
    while (at < length && strchr(" \t\r", line[at]) != NULL) {
        at++;
    }
    return at < length && line[at] != '#';
}

/* The next document begins at *at; *ret_length is that of it. false: there is none. */
static bool next_document(const char *bytes, size_t length, size_t *at, size_t *ret_length)
{
    size_t begin = *at, end = begin;
    bool full = false;
    while (end < length) {
        const char *newline = memchr(bytes + end, '\n', length - end);
        size_t line = newline != NULL ? (size_t)(newline - (bytes + end)) : length - end;
        if (is_separator(bytes + end, line)) {
            if (full) {
                break;
            }
            full = line > 3 && says_something(bytes + end + 3, line - 3);
        } else {
            full = full || says_something(bytes + end, line);
        }
        end += line + (newline != NULL);
    }
    *ret_length = end - begin;
    return full;
}

/* The text up to the end of a document, with nothing but line ends before it: so errors name the right line.
 */
static char *alone(const char *bytes, size_t begin, size_t length)
{
    char *text = xstrndup(bytes, begin + length);
    for (size_t i = 0; i < begin; i++) {
        text[i] = text[i] == '\n' ? '\n' : ' ';
    }
    return text;
}

static bool read_documents(const char *path, bool ignore, const char *bytes, size_t length,
                           struct several *several, struct err *err)
{
    size_t at = 0, size;
    while (next_document(bytes, length, &at, &size) || several->count == 0) {
        if (several->count == LIMIT_FILE_JOBS) {
            return err_field(err, ERR_USAGE, NULL, "write the others into another file",
                             "%s describes more than %d jobs", path, LIMIT_FILE_JOBS);
        }
        autofree char *text = alone(bytes, at, size);
        several->files = xrealloc(several->files, (several->count + 1) * sizeof *several->files);
        if (!jobfile_parse(path, text, at + size, ignore, &several->files[several->count], err)) {
            return false;
        }
        several->count++;
        at += size;
    }
    return true;
}

static void make_room(struct several *several)
{
    several->order = xzalloc(several->count * sizeof *several->order);
    several->ids = xzalloc(several->count * sizeof *several->ids);
}

void several_single(struct several *ret_several)
{
    *ret_several = (struct several){.files = xzalloc(sizeof(struct jobfile)), .count = 1};
    make_room(ret_several);
}

bool several_read(const char *path, bool ignore, struct several *ret_several, struct err *err)
{
    autofree char *bytes = NULL;
    size_t length;
    *ret_several = (struct several){0};
    if (!file_read(path, LIMIT_SUBMIT_BYTES, &bytes, &length, err) ||
        !read_documents(path, ignore, bytes, length, ret_several, err)) {
        return false;
    }
    make_room(ret_several);
    return true;
}

void several_finish(struct several *several)
{
    for (size_t i = 0; i < several->count; i++) {
        jobfile_finish(&several->files[i]);
    }
    free(several->files);
    free(several->order);
    free(several->ids);
    *several = (struct several){0};
}

/* --- names ---------------------------------------------------------------------------------------------- */

static const char *name_of(const struct several *several, size_t index)
{
    return json_string_of(several->files[index].spec, "name");
}

/* The first from there on that has the name. */
static size_t find(const struct several *several, size_t from, const char *name)
{
    for (size_t i = from; name != NULL && i < several->count; i++) {
        const char *other = name_of(several, i);
        if (other != NULL && strcmp(other, name) == 0) {
            return i;
        }
    }
    return NOWHERE;
}

static bool is_named(const char *job, const void *closure)
{
    return find(closure, 0, job) != NOWHERE;
}

static bool check_names(const struct several *several, size_t index, struct err *err)
{
    const json_t *after = json_object_get(several->files[index].spec, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        const char *job = after_job(json_array_get(after, i));
        size_t first = find(several, 0, job);
        if (first != NOWHERE && find(several, first + 1, job) != NOWHERE) {
            autofree char *field = xprintf("after[%zu]", i);
            err_field(err, ERR_USAGE, field, "give each job of the file a name of its own",
                      "%s: two jobs of the file are named %s", field, job);
            return jobfile_place(&several->files[index], err);
        }
    }
    return true;
}

/* --- order ---------------------------------------------------------------------------------------------- */

/* One that this job follows and that has no place in the order yet. */
static size_t first_open(const struct several *several, const bool *placed, size_t index)
{
    const json_t *after = json_object_get(several->files[index].spec, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        size_t on = find(several, 0, after_job(json_array_get(after, i)));
        if (on != NOWHERE && !placed[on]) {
            return on;
        }
    }
    return NOWHERE;
}

/* From any job that cannot be placed the way back comes to a circle. */
static bool refuse_circle(const struct several *several, const bool *placed, size_t start, struct err *err)
{
    autotext struct text names = {0};
    for (size_t i = 0; i < several->count; i++) {
        start = first_open(several, placed, start);
    }
    size_t at = start;
    do {
        text_printf(&names, "%s%s", names.length > 0 ? ", " : "", name_of(several, at));
        at = first_open(several, placed, at);
    } while (at != start);
    err_field(err, ERR_USAGE, "after", "let one of them follow none of the others",
              "jobs %s and %s follow each other", names.bytes, name_of(several, start));
    return jobfile_place(&several->files[start], err);
}

bool several_sort(struct several *several, struct err *err)
{
    autofree bool *placed = xzalloc(several->count * sizeof *placed);
    for (size_t i = 0; i < several->count; i++) {
        if (!check_names(several, i, err)) {
            return false;
        }
    }
    for (size_t count = 0; count < several->count;) {
        size_t before = count, stuck = 0;
        for (size_t i = 0; i < several->count; i++) {
            if (!placed[i] && first_open(several, placed, i) == NOWHERE) {
                placed[i] = true;
                several->order[count++] = i;
            }
            stuck = placed[i] ? stuck : i;
        }
        if (count == before) {
            return refuse_circle(several, placed, stuck, err);
        }
    }
    return true;
}

bool several_resolve(struct several *several, struct api *api, struct err *err)
{
    for (size_t i = 0; i < several->count; i++) {
        struct jobfile *file = &several->files[i];
        if (file->spec != NULL && !after_fill(api, file->spec, is_named, several, err)) {
            return jobfile_place(file, err);
        }
    }
    return true;
}

void several_name(struct several *several, size_t index)
{
    const json_t *after = json_object_get(several->files[index].spec, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        json_t *item = json_array_get(after, i);
        size_t on = find(several, 0, after_job(item));
        if (on != NOWHERE) {
            json_object_set_new(item, "job", json_string(several->ids[on]));
        }
    }
}
