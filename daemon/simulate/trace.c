/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of traces. It promises that a line which cannot be understood is refused by its number and
 * field, and that jobs which never ran, or asked for nothing, are left out. What becomes of the jobs is
 * replay.c's. */
#include "daemon/simulate/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define LIMIT_COLUMNS 64
#define LIMIT_TIME_S  1e12 /* 30,000 years */
#define LIMIT_GPUS    1e9

/* Where the values of a job stand in a line; -1: nowhere. */
struct columns {
    const char *separators;
    int submit, duration, gpus, gpus_asked, gpu_type;
};

struct reading {
    const char *name;
    size_t line;
    struct columns columns;
    struct trace trace;
    size_t room;
    struct err *err;
};

/* --- lines ------------------------------------------------------------------------------------------- */

static bool refuse(const struct reading *reading, const char *field, const char *what)
{
    return err_field(reading->err, ERR_FIELD, field, NULL, "%s:%zu: %s %s", reading->name, reading->line,
                     field, what);
}

/* Cuts a line into its fields: by single commas, or by any run of blanks. */
static size_t split(char *line, const char *separators, char **fields)
{
    size_t count = 0;
    bool blanks = separators[0] == ' ';
    char *rest = line;
    for (char *field; count < LIMIT_COLUMNS && (field = strsep(&rest, separators)) != NULL;) {
        if (!blanks || field[0] != '\0') {
            fields[count++] = field;
        }
    }
    return count;
}

static bool number(const struct reading *reading, const char *field, const char *text, double limit,
                   double *ret_value)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(value) || fabs(value) > limit) {
        return refuse(reading, field, "is not a number that makes sense");
    }
    *ret_value = value;
    return true;
}

/* --- what the columns are ---------------------------------------------------------------------------- */

static const struct columns swf = {
    .separators = " \t", .submit = 1, .duration = 3, .gpus = 4, .gpus_asked = 7, .gpu_type = -1};

static bool find_columns(struct reading *reading, char *line)
{
    char *fields[LIMIT_COLUMNS];
    struct columns columns = {
        .separators = ",", .submit = -1, .duration = -1, .gpus = -1, .gpus_asked = -1, .gpu_type = -1};
    const struct {
        const char *name;
        int *target;
        bool needed;
    } wanted[] = {{"submit_s", &columns.submit, true},
                  {"duration_s", &columns.duration, true},
                  {"gpus", &columns.gpus, true},
                  {"gpu_type", &columns.gpu_type, false}};
    size_t count = split(line, ",", fields);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        for (size_t j = 0; j < count; j++) {
            if (strcmp(fields[j], wanted[i].name) == 0) {
                *wanted[i].target = (int)j;
            }
        }
        if (wanted[i].needed && *wanted[i].target < 0) {
            return err_field(
                reading->err, ERR_FIELD, wanted[i].name,
                "a CSV file begins with the names of its columns: submit_s,duration_s,gpus; an SWF file "
                "with a line of numbers, or a comment behind a semicolon",
                "%s:%zu: there is no column %s", reading->name, reading->line, wanted[i].name);
        }
    }
    reading->columns = columns;
    return true;
}

/* --- jobs -------------------------------------------------------------------------------------------- */

static void add(struct reading *reading, const struct trace_job *job)
{
    struct trace *trace = &reading->trace;
    if (trace->count == reading->room) {
        reading->room = reading->room > 0 ? 2 * reading->room : 1024;
        trace->jobs = xrealloc(trace->jobs, reading->room * sizeof *trace->jobs);
    }
    trace->jobs[trace->count++] = *job;
}

static bool take_line(struct reading *reading, char *line)
{
    char *fields[LIMIT_COLUMNS];
    const struct columns *columns = &reading->columns;
    size_t count = split(line, columns->separators, fields);
    int last = columns->submit > columns->duration ? columns->submit : columns->duration;
    last = columns->gpus > last ? columns->gpus : last;
    if (count <= (size_t)last) {
        return refuse(reading, "line", "has too few fields");
    }
    double submit_s = 0, duration_s = 0, gpus = 0;
    if (!number(reading, "submit_s", fields[columns->submit], LIMIT_TIME_S, &submit_s) ||
        !number(reading, "duration_s", fields[columns->duration], LIMIT_TIME_S, &duration_s) ||
        !number(reading, "gpus", fields[columns->gpus], LIMIT_GPUS, &gpus)) {
        return false;
    }
    int asked = columns->gpus_asked;
    if (gpus <= 0 && asked >= 0 && (size_t)asked < count &&
        !number(reading, "gpus", fields[asked], LIMIT_GPUS, &gpus)) {
        return false;
    }
    if (gpus <= 0 || duration_s < 0) {
        return true; /* it never ran */
    }
    bool typed =
        columns->gpu_type >= 0 && (size_t)columns->gpu_type < count && fields[columns->gpu_type][0] != '\0';
    add(reading, &(struct trace_job){.line = reading->line,
                                     .submit_ms = llround(submit_s * 1000),
                                     .duration_ms = llround(duration_s * 1000),
                                     .gpus = (int64_t)ceil(gpus),
                                     .gpu_type = typed ? xstrdup(fields[columns->gpu_type]) : NULL});
    return true;
}

/* The first line that is no comment tells the form. */
static bool take(struct reading *reading, char *line)
{
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] == '\0' || line[0] == ';' || line[0] == '#') {
        return true;
    }
    if (reading->columns.separators == NULL) {
        if (strspn(line, "0123456789.-+ \t") != strlen(line)) {
            return find_columns(reading, line);
        }
        reading->columns = swf;
    }
    return take_line(reading, line);
}

/* --- the whole --------------------------------------------------------------------------------------- */

static int by_submission(const void *a, const void *b)
{
    const struct trace_job *left = a, *right = b;
    int order = (left->submit_ms > right->submit_ms) - (left->submit_ms < right->submit_ms);
    return order != 0 ? order : (left->line > right->line) - (left->line < right->line);
}

bool trace_read(FILE *in, const char *name, struct trace *ret_trace, struct err *err)
{
    struct reading reading = {.name = name, .err = err};
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
        good = err_field(err, ERR_FIELD, "trace", NULL, "%s has no job that ran", name);
    }
    if (!good) {
        trace_finish(&reading.trace);
        return false;
    }
    qsort(reading.trace.jobs, reading.trace.count, sizeof *reading.trace.jobs, by_submission);
    *ret_trace = reading.trace;
    return true;
}

void trace_finish(struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        free(trace->jobs[i].gpu_type);
    }
    free(trace->jobs);
    *trace = (struct trace){0};
}
