/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes traces as CSV. It can read everything that it writes, including quoted fields. Columns are
 * found by their names, in any order. A field contains no line end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/simulate/trace_parts.h"

/* --- reading -------------------------------------------------------------------------------------------- */

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

static void split(struct reading *reading, char *line)
{
    reading->count = 0;
    for (char *at = line; at != NULL && reading->count < LIMIT_TRACE_COLUMNS;) {
        reading->fields[reading->count++] = at;
        char *end = *at == '"' ? unquote(at) : at;
        char *comma = strchr(end, ',');
        if (comma != NULL) {
            *comma++ = '\0';
        }
        at = comma;
    }
}

static bool take(struct reading *reading, char *line)
{
    static const enum trace_column needed[] = {COLUMN_SUBMIT, COLUMN_DURATION, COLUMN_GPUS};
    double values[3] = {0}, limit_s = 0;
    split(reading, line);
    for (size_t i = 0; i < 3; i++) {
        if ((size_t)reading->places[needed[i]] >= reading->count) {
            return reading_refuse(reading, "line", "has too few fields");
        }
        if (reading_field(reading, needed[i]) == NULL) {
            return reading_refuse(reading, reading->titles[needed[i]], "is empty");
        }
        if (!reading_number(reading, needed[i], i < 2 ? LIMIT_TRACE_TIME_S : LIMIT_TRACE_GPUS, &values[i])) {
            return false;
        }
    }
    if (!reading_number(reading, COLUMN_LIMIT, LIMIT_TRACE_TIME_S, &limit_s)) {
        return false;
    }
    reading->trace.without_gpus += values[2] <= 0;
    reading->trace.not_run += values[2] > 0 && values[1] < 0;
    if (values[2] > 0 && values[1] >= 0) {
        trace_add(&reading->trace, &(struct trace_job){.line = reading->line,
                                                       .submit_ms = llround(values[0] * 1000),
                                                       .duration_ms = llround(values[1] * 1000),
                                                       .gpus = (int64_t)ceil(values[2]),
                                                       .limit_ms = limit_s > 0 ? llround(limit_s * 1000) : 0,
                                                       .priority = reading_priority(reading),
                                                       .gpu_type = reading_copy(reading, COLUMN_GPU_TYPE),
                                                       .project = reading_copy(reading, COLUMN_PROJECT),
                                                       .owner = reading_copy(reading, COLUMN_OWNER),
                                                       .name = reading_copy(reading, COLUMN_NAME)});
    }
    return true;
}

static bool need(const struct reading *reading, enum trace_column column, const char *title)
{
    return reading->places[column] >= 0 ||
           err_field(
               reading->err, ERR_FIELD, title,
               "a CSV file begins with the names of its columns: submit_s,duration_s,gpus; one of sacct "
               "with names between upright bars; an SWF file with a line of numbers, or a comment "
               "behind a semicolon",
               "%s:%zu: there is no column %s", reading->name, reading->line, title);
}

bool trace_csv_begin(struct reading *reading, char *line)
{
    static const struct column_name names[] = {
        {"submit_s", COLUMN_SUBMIT},   {"duration_s", COLUMN_DURATION}, {"gpus", COLUMN_GPUS},
        {"gpu_type", COLUMN_GPU_TYPE}, {"limit_s", COLUMN_LIMIT},       {"time_limit_s", COLUMN_LIMIT},
        {"priority", COLUMN_PRIORITY}, {"project", COLUMN_PROJECT},     {"vc_or_queue", COLUMN_PROJECT},
        {"vc", COLUMN_PROJECT},        {"queue", COLUMN_PROJECT},       {"owner", COLUMN_OWNER},
        {"user", COLUMN_OWNER},        {"name", COLUMN_NAME},           {"model", COLUMN_NAME},
    };
    split(reading, line);
    reading_find(reading, names, sizeof names / sizeof names[0]);
    reading->take = take;
    return need(reading, COLUMN_SUBMIT, "submit_s") && need(reading, COLUMN_DURATION, "duration_s") &&
           need(reading, COLUMN_GPUS, "gpus");
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* Writes as few decimals as necessary. */
static void write_seconds(int64_t ms, struct text *out)
{
    text_printf(out, "%s%lld", ms < 0 ? "-" : "", llabs(ms / 1000));
    int rest = (int)llabs(ms % 1000);
    if (rest != 0) {
        text_printf(out, ".%03d", rest);
        while (out->bytes[out->length - 1] == '0') {
            out->bytes[--out->length] = '\0';
        }
    }
}

/* Replaces control characters by blanks, because each line is a job. */
static void write_field(const char *field, struct text *out)
{
    text_append(out, ",");
    bool plain = field == NULL || field[strcspn(field, ",\"")] == '\0';
    text_append(out, plain ? "" : "\"");
    for (; field != NULL && *field != '\0'; field++) {
        text_append_bytes(out, (unsigned char)*field < ' ' ? " " : field, 1);
        text_append(out, *field == '"' ? "\"" : "");
    }
    text_append(out, plain ? "" : "\"");
}

static void write_job(const struct trace_job *job, struct text *out)
{
    write_seconds(job->submit_ms, out);
    text_append(out, ",");
    write_seconds(job->duration_ms, out);
    text_printf(out, ",%lld", (long long)job->gpus);
    write_field(job->gpu_type, out);
    write_field(job->owner, out);
    write_field(job->project, out);
    write_field(job->name, out);
    text_printf(out, ",%lld,", (long long)job->priority);
    if (job->limit_ms > 0) {
        write_seconds(job->limit_ms, out);
    }
    text_append(out, "\n");
}

void trace_write(const struct trace *trace, struct text *out)
{
    text_append(out, "submit_s,duration_s,gpus,gpu_type,owner,project,name,priority,limit_s\n");
    for (size_t i = 0; i < trace->count; i++) {
        write_job(&trace->jobs[i], out);
    }
}
