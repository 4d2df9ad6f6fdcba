/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the standard workload format of the Parallel Workloads Archive: 18 numbers per line, -1 for unknown
 * values. */
#include <math.h>
#include <string.h>

#include "daemon/simulate/trace_parts.h"

/* The positions of the columns in the standard, from 0 on. */
static const struct {
    enum trace_column column;
    int place;
    const char *title;
} standard[] = {
    {COLUMN_SUBMIT, 1, "submit_s"},  {COLUMN_DURATION, 3, "duration_s"}, {COLUMN_GPUS, 4, "gpus"},
    {COLUMN_GPUS_ASKED, 7, "gpus"},  {COLUMN_LIMIT, 8, "limit_s"},       {COLUMN_OWNER, 11, "user"},
    {COLUMN_NAME, 13, "executable"}, {COLUMN_PROJECT, 14, "queue"},
};

#define NEEDED_FIELDS 5

/* Splits the line at runs of blanks. */
static void split(struct reading *reading, char *line)
{
    char *rest = line;
    reading->count = 0;
    for (char *field; reading->count < LIMIT_TRACE_COLUMNS && (field = strsep(&rest, " \t")) != NULL;) {
        if (field[0] != '\0') {
            reading->fields[reading->count++] = field;
        }
    }
}

static char *copy_known(const struct reading *reading, enum trace_column column)
{
    const char *field = reading_field(reading, column);
    return field != NULL && strcmp(field, "-1") != 0 ? xstrdup(field) : NULL;
}

static bool take(struct reading *reading, char *line)
{
    double submit_s = 0, duration_s = 0, gpus = 0, asked = 0, limit_s = 0;
    split(reading, line);
    if (reading->count < NEEDED_FIELDS) {
        return reading_refuse(reading, "line", "has too few fields");
    }
    if (!reading_number(reading, COLUMN_SUBMIT, LIMIT_TRACE_TIME_S, &submit_s) ||
        !reading_number(reading, COLUMN_DURATION, LIMIT_TRACE_TIME_S, &duration_s) ||
        !reading_number(reading, COLUMN_GPUS, LIMIT_TRACE_GPUS, &gpus) ||
        !reading_number(reading, COLUMN_GPUS_ASKED, LIMIT_TRACE_GPUS, &asked) ||
        !reading_number(reading, COLUMN_LIMIT, LIMIT_TRACE_TIME_S, &limit_s)) {
        return false;
    }
    gpus = gpus > 0 ? gpus : asked;
    reading->trace.without_gpus += gpus <= 0;
    reading->trace.not_run += gpus > 0 && duration_s < 0;
    if (gpus > 0 && duration_s >= 0) {
        trace_add(&reading->trace, &(struct trace_job){.line = reading->line,
                                                       .submit_ms = llround(submit_s * 1000),
                                                       .duration_ms = llround(duration_s * 1000),
                                                       .gpus = (int64_t)ceil(gpus),
                                                       .limit_ms = limit_s > 0 ? llround(limit_s * 1000) : 0,
                                                       .project = copy_known(reading, COLUMN_PROJECT),
                                                       .owner = copy_known(reading, COLUMN_OWNER),
                                                       .name = copy_known(reading, COLUMN_NAME)});
    }
    return true;
}

bool trace_swf_begin(struct reading *reading, char *line)
{
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++) {
        reading->places[standard[i].column] = standard[i].place;
        reading->titles[standard[i].column] = standard[i].title;
    }
    reading->take = take;
    return take(reading, line);
}
