/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the readers of traces: lines, fields, and errors that name both. */
#ifndef SIMULATE_TRACE_PARTS_H
#define SIMULATE_TRACE_PARTS_H

#include "daemon/simulate/trace.h"

#define LIMIT_TRACE_COLUMNS    256  /* sacct has 120 */
#define LIMIT_TRACE_TIME_S     1e12 /* 30,000 years */
#define LIMIT_TRACE_GPUS       1e9
#define LIMIT_TRACE_TYPE_BYTES 63

enum trace_column {
    COLUMN_ID,
    COLUMN_SUBMIT,
    COLUMN_START,
    COLUMN_END,
    COLUMN_DURATION,
    COLUMN_DURATION_TEXT,
    COLUMN_GPUS,
    COLUMN_GPUS_ASKED,
    COLUMN_GPU_TYPE,
    COLUMN_LIMIT,
    COLUMN_LIMIT_TEXT,
    COLUMN_STATE,
    COLUMN_PRIORITY,
    COLUMN_PROJECT,
    COLUMN_OWNER,
    COLUMN_NAME,
    COLUMN_COUNT
};

/* A name of a column. If a file has several names of one column, the first in the list counts. */
struct column_name {
    const char *name;
    enum trace_column column;
};

struct reading {
    const char *name;
    size_t line;
    bool (*take)(struct reading *reading, char *line); /* reads a job; NULL until the form is known */
    int places[COLUMN_COUNT];                          /* index of each column in a line; -1: missing */
    const char *titles[COLUMN_COUNT];                  /* names of the columns in the form; static */
    size_t width;                                      /* number of columns in the first line */
    char *fields[LIMIT_TRACE_COLUMNS];                 /* of the current line */
    size_t count;
    struct trace trace;
    struct err *err;
};

/* The forms: each reads the first line if it is in its form, and then sets take. */
bool trace_csv_begin(struct reading *reading, char *line);
bool trace_swf_begin(struct reading *reading, char *line);
bool trace_sacct_begin(struct reading *reading, char *line);

/* Looks up the names in the fields of the first line, ignoring case. */
void reading_find(struct reading *reading, const struct column_name *names, size_t count);

/* The column in this line; NULL if it is missing or empty. */
const char *reading_field(const struct reading *reading, enum trace_column column);
/* Like reading_field, as a copy that the caller frees. */
char *reading_copy(const struct reading *reading, enum trace_column column);

/* Fails with "FILE:LINE: FIELD WHAT"; returns false. */
bool reading_refuse(const struct reading *reading, const char *field, const char *what);

/* Reads the column as a number; *ret_value stays unchanged if there is none. */
bool reading_number(const struct reading *reading, enum trace_column column, double limit, double *ret_value);
/* Reads the column as a whole number; any other text counts as 0. */
int64_t reading_priority(const struct reading *reading);

#endif
