/* SPDX-License-Identifier: Apache-2.0 */
/* Reads job files with several jobs: splits them into YAML documents, and orders the jobs by their
 * dependencies. It promises to refuse a circle, a name that two jobs share and a job that does not exist
 * before anything is submitted. jobfile.c reads each job. */
#include "client/cli/spec/multi_document.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/spec/short_forms.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_client.h"

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
 * It may hold NULs, which jobfile.c refuses. */
static char *alone(const char *bytes, size_t begin, size_t length)
{
    char *text = xalloc(begin + length + 1);
    memcpy(text, bytes, begin + length);
    text[begin + length] = '\0';
    for (size_t i = 0; i < begin; i++) {
        text[i] = text[i] == '\n' ? '\n' : ' ';
    }
    return text;
}

static bool read_documents(const char *path, bool ignore, const char *bytes, size_t length,
                           struct multi_document *jobs, struct err *err)
{
    size_t at = 0, size;
    while (next_document(bytes, length, &at, &size) || jobs->count == 0) {
        if (jobs->count == LIMIT_FILE_JOBS) {
            return err_field(err, ERR_USAGE, NULL, "write the others into another file",
                             "%s describes more than %d jobs", path, LIMIT_FILE_JOBS);
        }
        autofree char *text = alone(bytes, at, size);
        jobs->files = xrealloc(jobs->files, (jobs->count + 1) * sizeof *jobs->files);
        if (!jobfile_parse(path, text, at + size, ignore, &jobs->files[jobs->count], err)) {
            return false;
        }
        jobs->count++;
        at += size;
    }
    return true;
}

static void make_room(struct multi_document *jobs)
{
    jobs->order = xzalloc(jobs->count * sizeof *jobs->order);
    jobs->ids = xzalloc(jobs->count * sizeof *jobs->ids);
}

void multi_document_single(struct multi_document *ret_jobs)
{
    *ret_jobs = (struct multi_document){.files = xzalloc(sizeof(struct jobfile)), .count = 1};
    make_room(ret_jobs);
}

bool multi_document_read(const char *path, bool ignore, struct multi_document *ret_jobs, struct err *err)
{
    autofree char *bytes = NULL;
    size_t length;
    *ret_jobs = (struct multi_document){0};
    if (!file_read(path, LIMIT_SUBMIT_BYTES, &bytes, &length, err) ||
        !read_documents(path, ignore, bytes, length, ret_jobs, err)) {
        return false;
    }
    make_room(ret_jobs);
    return true;
}

void multi_document_finish(struct multi_document *jobs)
{
    for (size_t i = 0; i < jobs->count; i++) {
        jobfile_finish(&jobs->files[i]);
    }
    free(jobs->files);
    free(jobs->order);
    free(jobs->ids);
    *jobs = (struct multi_document){0};
}

/* --- names ---------------------------------------------------------------------------------------------- */

static const char *name_of(const struct multi_document *jobs, size_t index)
{
    return json_string_of(jobs->files[index].spec, "name");
}

/* The first from there on that has the name. */
static size_t find(const struct multi_document *jobs, size_t from, const char *name)
{
    for (size_t i = from; name != NULL && i < jobs->count; i++) {
        const char *other = name_of(jobs, i);
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

static bool check_names(const struct multi_document *jobs, size_t index, struct err *err)
{
    const json_t *after = json_object_get(jobs->files[index].spec, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        const char *job = after_job(json_array_get(after, i));
        size_t first = find(jobs, 0, job);
        if (first != NOWHERE && find(jobs, first + 1, job) != NOWHERE) {
            autofree char *field = xprintf("after[%zu]", i);
            err_field(err, ERR_USAGE, field, "give each job of the file a name of its own",
                      "%s: two jobs of the file are named %s", field, job);
            return jobfile_place(&jobs->files[index], err);
        }
    }
    return true;
}

/* --- order ---------------------------------------------------------------------------------------------- */

/* One that this job follows and that has no place in the order yet. */
static size_t first_open(const struct multi_document *jobs, const bool *placed, size_t index)
{
    const json_t *after = json_object_get(jobs->files[index].spec, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        size_t on = find(jobs, 0, after_job(json_array_get(after, i)));
        if (on != NOWHERE && !placed[on]) {
            return on;
        }
    }
    return NOWHERE;
}

/* From any job that cannot be placed the way back comes to a circle. */
static bool refuse_circle(const struct multi_document *jobs, const bool *placed, size_t start,
                          struct err *err)
{
    autotext struct text names = {0};
    for (size_t i = 0; i < jobs->count; i++) {
        start = first_open(jobs, placed, start);
    }
    size_t at = start;
    do {
        text_printf(&names, "%s%s", names.length > 0 ? ", " : "", name_of(jobs, at));
        at = first_open(jobs, placed, at);
    } while (at != start);
    err_field(err, ERR_USAGE, "after", "let one of them follow none of the others",
              "jobs %s and %s follow each other", names.bytes, name_of(jobs, start));
    return jobfile_place(&jobs->files[start], err);
}

bool multi_document_sort(struct multi_document *jobs, struct err *err)
{
    autofree bool *placed = xzalloc(jobs->count * sizeof *placed);
    for (size_t i = 0; i < jobs->count; i++) {
        if (!check_names(jobs, i, err)) {
            return false;
        }
    }
    for (size_t count = 0; count < jobs->count;) {
        size_t before = count, stuck = 0;
        for (size_t i = 0; i < jobs->count; i++) {
            if (!placed[i] && first_open(jobs, placed, i) == NOWHERE) {
                placed[i] = true;
                jobs->order[count++] = i;
            }
            stuck = placed[i] ? stuck : i;
        }
        if (count == before) {
            return refuse_circle(jobs, placed, stuck, err);
        }
    }
    return true;
}

bool multi_document_resolve(struct multi_document *jobs, struct api *api, struct err *err)
{
    for (size_t i = 0; i < jobs->count; i++) {
        struct jobfile *file = &jobs->files[i];
        if (file->spec != NULL && !after_fill(api, file->spec, is_named, jobs, err)) {
            return jobfile_place(file, err);
        }
    }
    return true;
}

bool multi_document_waits(const struct multi_document *jobs, size_t index)
{
    const json_t *after = json_object_get(jobs->files[index].spec, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        size_t on = find(jobs, 0, after_job(json_array_get(after, i)));
        if (on != NOWHERE && jobs->ids[on][0] == '\0') {
            return true;
        }
    }
    return false;
}

void multi_document_name(struct multi_document *jobs, size_t index)
{
    const json_t *after = json_object_get(jobs->files[index].spec, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        json_t *item = json_array_get(after, i);
        size_t on = find(jobs, 0, after_job(item));
        if (on != NOWHERE) {
            json_object_set_new(item, "job", json_string(jobs->ids[on]));
        }
    }
}
