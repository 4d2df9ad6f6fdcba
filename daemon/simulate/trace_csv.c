/* SPDX-License-Identifier: Apache-2.0 */
/* Reads traces as CSV and in the standard workload format, and writes CSV. CSV has its columns in any order,
 * found by their names; a field contains no line end. The standard workload format of the Parallel Workloads
 * Archive has 18 numbers per line, -1 for unknown values. The reader can read everything that the writer
 * writes, including quoted fields. */
#include <stdlib.h>
#include <string.h>

#include "daemon/simulate/trace_parts.h"

#define HINT                                                                                                 \
    "a CSV file begins with the names of its columns: submit_s,duration_s,gpus; one of sacct with names "    \
    "between upright bars; an SWF file with a line of numbers, or a comment behind a semicolon"
#define NEEDED_FIELDS 5 /* of the standard workload format */

static bool take_numbers(struct reading *reading)
{
    struct reading_job job = {0};
    double asked = 0;
    if (!reading_number(reading, COLUMN_SUBMIT, LIMIT_TRACE_TIME_S, &job.submit_s) ||
        !reading_number(reading, COLUMN_DURATION, LIMIT_TRACE_TIME_S, &job.duration_s) ||
        !reading_number(reading, COLUMN_GPUS, LIMIT_TRACE_GPUS, &job.gpus) ||
        !reading_number(reading, COLUMN_GPUS_ASKED, LIMIT_TRACE_GPUS, &asked) ||
        !reading_number(reading, COLUMN_LIMIT, LIMIT_TRACE_TIME_S, &job.limit_s)) {
        return false;
    }
    job.gpus = job.gpus > 0 ? job.gpus : asked;
    reading_add(reading, &job, reading_field(reading, COLUMN_GPU_TYPE));
    return true;
}

/* --- CSV ------------------------------------------------------------------------------------------------ */

static bool take_csv(struct reading *reading, char *line)
{
    reading_split(reading, line);
    return take_numbers(reading);
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
    static const enum trace_column needed[] = {COLUMN_SUBMIT, COLUMN_DURATION, COLUMN_GPUS};
    bool good = true;
    reading->separators = ",";
    reading->take = take_csv;
    reading_find(reading, line, names, sizeof names / sizeof names[0]);
    for (size_t i = 0; good && i < 3; i++) {
        reading->needed[needed[i]] = true;
        good = reading_need(reading, reading->places[needed[i]] >= 0, names[i].name, HINT);
    }
    return good;
}

/* --- the standard workload format ----------------------------------------------------------------------- */

static bool take_swf(struct reading *reading, char *line)
{
    static const enum trace_column texts[] = {COLUMN_OWNER, COLUMN_NAME, COLUMN_PROJECT};
    reading_split(reading, line);
    if (reading->count < NEEDED_FIELDS) {
        return reading_refuse(reading, "line", "has too few fields");
    }
    for (size_t i = 0; i < 3; i++) {
        size_t place = (size_t)reading->places[texts[i]];
        if (place < reading->count && strcmp(reading->fields[place], "-1") == 0) {
            reading->fields[place][0] = '\0';
        }
    }
    return take_numbers(reading);
}

bool trace_swf_begin(struct reading *reading, char *line)
{
    static const struct {
        enum trace_column column;
        int place; /* from 0 on */
        const char *title;
    } standard[] = {
        {COLUMN_SUBMIT, 1, "submit_s"},  {COLUMN_DURATION, 3, "duration_s"}, {COLUMN_GPUS, 4, "gpus"},
        {COLUMN_GPUS_ASKED, 7, "gpus"},  {COLUMN_LIMIT, 8, "limit_s"},       {COLUMN_OWNER, 11, "user"},
        {COLUMN_NAME, 13, "executable"}, {COLUMN_PROJECT, 14, "queue"},
    };
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++) {
        reading->places[standard[i].column] = standard[i].place;
        reading->titles[standard[i].column] = standard[i].title;
    }
    reading->separators = " \t";
    reading->take = take_swf;
    return take_swf(reading, line);
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
