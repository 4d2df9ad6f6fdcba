/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file's lines into a list of jobs. A line that cannot be parsed is refused with its number and
 * field. Jobs that never ran, or asked for no GPUs, are left out and counted. trace_csv.c reads CSV and
 * SWF, trace_sacct.c the output of sacct; replay.c runs the jobs. */
#include "daemon/simulate/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/simulate/trace_parts.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

#define FIRST_ROOM          1024
#define LIMIT_PRIORITY_READ (1LL << 53) /* doubles are exact up to this */

/* --- the list ------------------------------------------------------------------------------------------- */

void trace_add(struct trace *trace, const struct trace_job *job)
{
    XGROW(trace->jobs, trace->count, trace->room, FIRST_ROOM);
    trace->jobs[trace->count++] = *job;
}

static int by_submission(const void *a, const void *b)
{
    const struct trace_job *left = a, *right = b;
    int order = (left->submit_ms > right->submit_ms) - (left->submit_ms < right->submit_ms);
    return order != 0 ? order : (left->line > right->line) - (left->line < right->line);
}

/* Slurm has priorities of up to 2^32. */
static void scale_priorities(struct trace *trace)
{
    int64_t largest = 0;
    for (size_t i = 0; i < trace->count; i++) {
        int64_t size = llabs(trace->jobs[i].priority);
        largest = size > largest ? size : largest;
    }
    for (size_t i = 0; largest > LIMIT_PRIORITY && i < trace->count; i++) {
        double share = (double)trace->jobs[i].priority / (double)largest;
        trace->jobs[i].priority = llround(share * LIMIT_PRIORITY);
    }
}

void trace_sort(struct trace *trace)
{
    if (trace->count > 0) {
        qsort(trace->jobs, trace->count, sizeof *trace->jobs, by_submission);
    }
    scale_priorities(trace);
}

void trace_finish(struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        free(trace->jobs[i].gpu_type);
        free(trace->jobs[i].project);
        free(trace->jobs[i].owner);
        free(trace->jobs[i].name);
    }
    free(trace->jobs);
    *trace = (struct trace){0};
}

/* --- shared by the readers ------------------------------------------------------------------------------ */

bool reading_refuse(const struct reading *reading, const char *field, const char *what)
{
    return err_field(reading->err, ERR_FIELD, field, NULL, "%s:%zu: %s %s", reading->name, reading->line,
                     field, what);
}

/* Removes the quotes of the field that begins at text; returns its end in the line. */
static char *unquote(char *text)
{
    char *to = text, *from = text + 1;
    while (*from != '\0' && (from[0] != '"' || from[1] == '"')) {
        from += *from == '"';
        *to++ = *from++;
    }
    char *end = *from == '"' ? from + 1 : from;
    *to = '\0';
    return end;
}

void reading_split(struct reading *reading, char *line)
{
    bool quotes = reading->separators[0] == ',', blanks = reading->separators[0] == ' ';
    reading->count = 0;
    for (char *at = line; at != NULL && reading->count < LIMIT_TRACE_COLUMNS;) {
        char *field = at;
        char *end = strpbrk(quotes && *at == '"' ? unquote(at) : at, reading->separators);
        at = end != NULL ? end + 1 : NULL;
        if (end != NULL) {
            *end = '\0';
        }
        if (!blanks || field[0] != '\0') {
            reading->fields[reading->count++] = field;
        }
    }
}

void reading_find(struct reading *reading, char *line, const struct column_name *names, size_t count)
{
    reading_split(reading, line);
    reading->width = reading->count;
    for (size_t i = 0; i < count; i++) {
        int *place = &reading->places[names[i].column];
        for (size_t j = 0; *place < 0 && j < reading->count; j++) {
            if (strcasecmp(reading->fields[j], names[i].name) == 0) {
                *place = (int)j;
                reading->titles[names[i].column] = names[i].name;
            }
        }
    }
}

bool reading_need(const struct reading *reading, bool there, const char *title, const char *hint)
{
    return there || err_field(reading->err, ERR_FIELD, title, hint, "%s:%zu: there is no column %s",
                              reading->name, reading->line, title);
}

const char *reading_field(const struct reading *reading, enum trace_column column)
{
    int place = reading->places[column];
    bool there = place >= 0 && (size_t)place < reading->count && reading->fields[place][0] != '\0';
    return there ? reading->fields[place] : NULL;
}

bool reading_number(const struct reading *reading, enum trace_column column, double limit, double *ret_value)
{
    const char *text = reading_field(reading, column);
    if (text == NULL && reading->needed[column]) {
        return (size_t)reading->places[column] >= reading->count
                   ? reading_refuse(reading, "line", "has too few fields")
                   : reading_refuse(reading, reading->titles[column], "is empty");
    }
    if (text == NULL) {
        return true;
    }
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(value) || fabs(value) > limit) {
        return reading_refuse(reading, reading->titles[column], "is not a number that makes sense");
    }
    *ret_value = value;
    return true;
}

/* A priority that is no whole number counts as 0. */
static int64_t read_priority(const struct reading *reading)
{
    const char *text = reading_field(reading, COLUMN_PRIORITY);
    int64_t priority = 0;
    bool whole = text != NULL && text_to_int(text, -LIMIT_PRIORITY_READ, LIMIT_PRIORITY_READ, &priority);
    return whole ? priority : 0;
}

static char *copy(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

void reading_add(struct reading *reading, const struct reading_job *job, const char *gpu_type)
{
    bool ran = job->duration_s >= 0;
    reading->trace.without_gpus += job->gpus <= 0;
    reading->trace.not_run += job->gpus > 0 && !ran;
    if (job->gpus > 0 && ran) {
        trace_add(&reading->trace,
                  &(struct trace_job){.line = reading->line,
                                      .submit_ms = llround(job->submit_s * 1000),
                                      .duration_ms = llround(job->duration_s * 1000),
                                      .gpus = (int64_t)ceil(job->gpus),
                                      .limit_ms = job->limit_s > 0 ? llround(job->limit_s * 1000) : 0,
                                      .priority = read_priority(reading),
                                      .gpu_type = copy(gpu_type),
                                      .project = copy(reading_field(reading, COLUMN_PROJECT)),
                                      .owner = copy(reading_field(reading, COLUMN_OWNER)),
                                      .name = copy(reading_field(reading, COLUMN_NAME))});
    }
}

/* --- lines ---------------------------------------------------------------------------------------------- */

/* The first line that is no comment shows the form of the file. */
static bool begin(struct reading *reading, char *line)
{
    if (strspn(line, "0123456789.-+ \t") == strlen(line)) {
        return trace_swf_begin(reading, line);
    }
    return strchr(line, '|') != NULL ? trace_sacct_begin(reading, line) : trace_csv_begin(reading, line);
}

static bool take(struct reading *reading, char *line)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some programs write it before UTF-8 */
    if (reading->line == 1 && strncmp(line, mark, strlen(mark)) == 0) {
        line += strlen(mark);
    }
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] == '\0' || line[0] == ';' || line[0] == '#') {
        return true;
    }
    return reading->take == NULL ? begin(reading, line) : reading->take(reading, line);
}

static bool explain_empty(const struct reading *reading)
{
    err_field(reading->err, ERR_FIELD, "trace", NULL, "%s has no job that ran", reading->name);
    if (reading->trace.without_gpus > 0) {
        err_hint(reading->err,
                 "%zu lines have no GPUs; in Slurm, AccountingStorageTRES must name gres/gpu for sacct to "
                 "tell them",
                 reading->trace.without_gpus);
    }
    return false;
}

bool trace_read(FILE *in, const char *name, struct trace *ret_trace, struct err *err)
{
    struct reading reading = {.name = name, .err = err};
    memset(reading.places, -1, sizeof reading.places);
    autofree char *line = NULL;
    size_t room = 0;
    bool good = true;
    while (good && getline(&line, &room, in) >= 0) {
        reading.line++;
        good = take(&reading, line);
    }
    if (good && ferror(in)) {
        good = err_errno(err, "cannot read %s", name);
    }
    if (good && reading.trace.count == 0) {
        good = explain_empty(&reading);
    }
    if (!good) {
        trace_finish(&reading.trace);
        return false;
    }
    trace_sort(&reading.trace);
    *ret_trace = reading.trace;
    return true;
}
