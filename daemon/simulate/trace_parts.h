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
    const char *separators;                            /* of fields; runs of blanks are one */
    bool needed[COLUMN_COUNT];                         /* columns that each line must have */
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

/* Splits the line into fields at each of the separators. */
void reading_split(struct reading *reading, char *line);
/* Splits the first line and looks up the names in its fields, ignoring case. */
void reading_find(struct reading *reading, char *line, const struct column_name *names, size_t count);
/* Refuses the first line if a column is not there. */
bool reading_need(const struct reading *reading, bool there, const char *title, const char *hint);

/* The column in this line; NULL if it is missing or empty. */
const char *reading_field(const struct reading *reading, enum trace_column column);

/* Fails with "FILE:LINE: FIELD WHAT"; returns false. */
bool reading_refuse(const struct reading *reading, const char *field, const char *what);

/* Reads the column as a number; *ret_value stays unchanged if there is none, unless the column is a needed
 * one. */
bool reading_number(const struct reading *reading, enum trace_column column, double limit, double *ret_value);

/* The numbers of a job. */
struct reading_job {
    double submit_s, duration_s; /* duration_s below 0, or NAN: it never ran, or has not ended */
    double gpus;
    double limit_s; /* 0 or less: none */
};
/* Adds the job of this line with its texts, or counts it as left out. */
void reading_add(struct reading *reading, const struct reading_job *job, const char *gpu_type);

#endif
