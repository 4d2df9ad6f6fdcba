/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the output of Slurm's `sacct --parsable2`. It reads jobs and skips their steps. A job's GPUs are the
 * allocated ones, else the requested ones. Jobs without GPUs, jobs that have not ended, and jobs that were
 * canceled before they ran are left out and counted. Times in the output have no UTC offset; they are read as
 * if there were no summer time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/simulate/trace_parts.h"
#include "proto/base/cleanup.h"

#define COMMAND                                                                                              \
    "sacct --allusers --parsable2 --format=JobID,User,Account,JobName,Submit,Start,ElapsedRaw,Timelimit,"    \
    "AllocTRES,ReqTRES,State,Priority"
#define LIMIT_SPAN_PART 1000000 /* days, hours, minutes or seconds */

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcasecmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

static bool refuse(const struct reading *reading, enum trace_column column, const char *what)
{
    return reading_refuse(reading, reading->titles[column], what);
}

/* --- times ---------------------------------------------------------------------------------------------- */

/* Reads "2026-11-21T09:30:00", or seconds since 1970. NAN where Slurm has no time. */
static bool read_moment(const struct reading *reading, enum trace_column column, double *ret_s)
{
    static const char *const unknown[] = {"Unknown", "None", "N/A", NULL};
    const char *text = reading_field(reading, column);
    *ret_s = (double)NAN;
    if (text == NULL || is_one_of(text, unknown)) {
        return true;
    }
    if (strchr(text, 'T') == NULL) {
        return reading_number(reading, column, LIMIT_TRACE_TIME_S, ret_s);
    }
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (end == NULL || *end != '\0') {
        return refuse(reading, column, "is neither a time like 2026-11-21T09:30:00 nor seconds since 1970");
    }
    *ret_s = (double)timegm(&tm);
    return true;
}

/* Reads "MM:SS", "HH:MM:SS", "D-HH:MM:SS". */
static bool to_span(const char *text, double *ret_s)
{
    autofree char *copy = xstrdup(text);
    char *rest = copy, *dash = strchr(copy, '-');
    int64_t days = 0, sum = 0, value = 0;
    int parts = 0;
    if (dash != NULL) {
        *dash = '\0';
        rest = dash + 1;
    }
    for (char *part; parts < 3 && (part = strsep(&rest, ":")) != NULL; parts++) {
        if (!text_to_int(part, 0, LIMIT_SPAN_PART, &value)) {
            return false;
        }
        sum = 60 * sum + value;
    }
    if (rest != NULL || parts < (dash != NULL ? 3 : 2) ||
        (dash != NULL && !text_to_int(copy, 0, LIMIT_SPAN_PART, &days))) {
        return false;
    }
    *ret_s = (double)(days * 24 * 3600 + sum);
    return true;
}

static bool read_span(const struct reading *reading, enum trace_column column, double *ret_s)
{
    const char *text = reading_field(reading, column);
    return text == NULL || to_span(text, ret_s) ||
           refuse(reading, column, "is not a span like 2-03:04:05, which is two days and some hours");
}

/* Reads the run time; NAN where no column has it. */
static bool read_duration(const struct reading *reading, double *ret_s)
{
    double start_s, end_s;
    *ret_s = (double)NAN;
    if (!read_moment(reading, COLUMN_START, &start_s) || !read_moment(reading, COLUMN_END, &end_s) ||
        !read_span(reading, COLUMN_DURATION_TEXT, ret_s) ||
        !reading_number(reading, COLUMN_DURATION, LIMIT_TRACE_TIME_S, ret_s)) {
        return false;
    }
    *ret_s = isnan(*ret_s) ? end_s - start_s : *ret_s;
    return true;
}

/* TimelimitRaw is in minutes. 0: no limit. */
static bool read_limit(const struct reading *reading, double *ret_s)
{
    static const char *const none[] = {"UNLIMITED", "Partition_Limit", "INVALID", NULL};
    const char *text = reading_field(reading, COLUMN_LIMIT_TEXT), *raw = reading_field(reading, COLUMN_LIMIT);
    double minutes = 0;
    *ret_s = 0;
    if (text != NULL) {
        return is_one_of(text, none) || read_span(reading, COLUMN_LIMIT_TEXT, ret_s);
    }
    if (raw == NULL || is_one_of(raw, none)) {
        return true;
    }
    bool good = reading_number(reading, COLUMN_LIMIT, LIMIT_TRACE_TIME_S / 60, &minutes);
    *ret_s = minutes > 0 ? 60 * minutes : 0;
    return good;
}

/* --- GPUs ----------------------------------------------------------------------------------------------- */

struct gpus {
    int64_t total, typed; /* Slurm gives the sum, the number of each type, or both */
    size_t types;
    char type[LIMIT_TRACE_TYPE_BYTES + 1];
};

/* Reads one of "cpu=32", "gres/gpu=4", "gres/gpu:a100=4", "gres/gpuutil=90". */
static bool take_resource(char *resource, struct gpus *gpus)
{
    static const char gpu[] = "gres/gpu";
    int64_t count;
    char *value = strchr(resource, '='), *rest = resource + strlen(gpu);
    if (strncmp(resource, gpu, strlen(gpu)) != 0 || (*rest != '=' && *rest != ':')) {
        return true;
    }
    if (value == NULL || !text_to_int(value + 1, 0, (int64_t)LIMIT_TRACE_GPUS, &count)) {
        return false;
    }
    *value = '\0';
    if (value == rest) {
        gpus->total = count;
    } else if (count > 0) {
        gpus->typed += count;
        gpus->types++;
        snprintf(gpus->type, sizeof gpus->type, "%s", rest + 1);
    }
    return true;
}

static bool take_resources(const struct reading *reading, enum trace_column column, struct gpus *gpus)
{
    const char *text = reading_field(reading, column);
    autofree char *copy = text != NULL ? xstrdup(text) : NULL;
    char *rest = copy;
    for (char *resource; (resource = strsep(&rest, ",")) != NULL;) {
        if (!take_resource(resource, gpus)) {
            return refuse(reading, column, "does not say how many GPUs: they stand there like gres/gpu=4");
        }
    }
    return true;
}

/* Prefers allocated to requested GPUs. type is NULL if there is no type, or several. */
static bool read_gpus(const struct reading *reading, int64_t *ret_gpus, char **ret_type)
{
    static const enum trace_column columns[] = {COLUMN_GPUS, COLUMN_GPUS_ASKED};
    struct gpus gpus = {0};
    for (size_t i = 0; i < 2 && gpus.total == 0 && gpus.typed == 0; i++) {
        if (!take_resources(reading, columns[i], &gpus)) {
            return false;
        }
    }
    *ret_gpus = gpus.total > 0 ? gpus.total : gpus.typed;
    *ret_type = gpus.types == 1 ? xstrdup(gpus.type) : NULL;
    return true;
}

/* --- jobs ----------------------------------------------------------------------------------------------- */

/* Whether the job has run and ended. A job that was canceled while it waited has a run time of zero. */
static bool has_run(const struct reading *reading, double duration_s)
{
    static const char *const live[] = {"PENDING",     "RUNNING",    "SUSPENDED", "RESIZING",
                                       "CONFIGURING", "COMPLETING", NULL};
    static const char *const canceled[] = {"CANCELLED", NULL};
    const char *state = reading_field(reading, COLUMN_STATE);
    autofree char *word = state != NULL ? xstrndup(state, strcspn(state, " +")) : xstrdup("");
    return duration_s >= 0 && !is_one_of(word, live) && (duration_s > 0 || !is_one_of(word, canceled));
}

static bool take_job(struct reading *reading)
{
    struct reading_job job = {0};
    int64_t gpus = 0;
    autofree char *type = NULL;
    if (!read_moment(reading, COLUMN_SUBMIT, &job.submit_s) || !read_duration(reading, &job.duration_s) ||
        !read_limit(reading, &job.limit_s) || !read_gpus(reading, &gpus, &type)) {
        return false;
    }
    job.gpus = (double)gpus;
    job.duration_s = has_run(reading, job.duration_s) ? job.duration_s : -1;
    if (gpus > 0 && job.duration_s >= 0 && isnan(job.submit_s)) {
        return refuse(reading, COLUMN_SUBMIT, "is not known");
    }
    reading_add(reading, &job, type);
    return true;
}

/* "12", "12_3" and "12+1" are jobs: single, of an array, or of several parts. "12.batch" and "12_3.0" are
 * steps. */
static bool take(struct reading *reading, char *line)
{
    reading_split(reading, line);
    if (reading->count != reading->width) {
        return reading_refuse(reading, "line",
                              "has another number of fields than the first line: where names of jobs have "
                              "upright bars in them, leave JobName out");
    }
    const char *id = reading_field(reading, COLUMN_ID);
    if (id == NULL) {
        return refuse(reading, COLUMN_ID, "is empty");
    }
    return strchr(id, '.') != NULL || take_job(reading);
}

/* --- the first line ------------------------------------------------------------------------------------- */

static bool has(const struct reading *reading, enum trace_column column)
{
    return reading->places[column] >= 0;
}

bool trace_sacct_begin(struct reading *reading, char *line)
{
    static const struct column_name names[] = {
        {"JobID", COLUMN_ID},        {"Submit", COLUMN_SUBMIT},        {"Start", COLUMN_START},
        {"End", COLUMN_END},         {"ElapsedRaw", COLUMN_DURATION},  {"Elapsed", COLUMN_DURATION_TEXT},
        {"AllocTRES", COLUMN_GPUS},  {"ReqTRES", COLUMN_GPUS_ASKED},   {"TimelimitRaw", COLUMN_LIMIT},
        {"State", COLUMN_STATE},     {"Timelimit", COLUMN_LIMIT_TEXT}, {"Priority", COLUMN_PRIORITY},
        {"Account", COLUMN_PROJECT}, {"User", COLUMN_OWNER},           {"JobName", COLUMN_NAME},
    };
    reading->separators = "|";
    reading->take = take;
    reading_find(reading, line, names, sizeof names / sizeof names[0]);
    bool lasts = has(reading, COLUMN_DURATION) || has(reading, COLUMN_DURATION_TEXT) ||
                 (has(reading, COLUMN_START) && has(reading, COLUMN_END));
    return reading_need(reading, has(reading, COLUMN_ID), "JobID", COMMAND) &&
           reading_need(reading, has(reading, COLUMN_SUBMIT), "Submit", COMMAND) &&
           reading_need(reading, lasts, "Elapsed", COMMAND) &&
           reading_need(reading, has(reading, COLUMN_GPUS) || has(reading, COLUMN_GPUS_ASKED), "AllocTRES",
                        COMMAND);
}
