/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of traces share: lines, fields, and the refusal that names both. */
#ifndef SIMULATE_TRACE_PARTS_H
#define SIMULATE_TRACE_PARTS_H

#include "daemon/simulate/trace.h"

#define LIMIT_TRACE_COLUMNS    256  /* sacct knows 120 */
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

/* A column by a name that people give it. Of several names of one column the first in the list counts. */
struct column_name {
    const char *name;
    enum trace_column column;
};

struct reading {
    const char *name;
    size_t line;
    bool (*take)(struct reading *reading, char *line); /* a job; NULL until the form is known */
    int places[COLUMN_COUNT];                          /* of the columns in a line; -1: not there */
    const char *titles[COLUMN_COUNT];                  /* as the form calls them; static */
    size_t width;                                      /* columns of the first line */
    char *fields[LIMIT_TRACE_COLUMNS];                 /* of this line */
    size_t count;
    struct trace trace;
    struct err *err;
};

/* The forms: each reads the first line, or takes it for what it is, and sets take. */
bool trace_csv_begin(struct reading *reading, char *line);
bool trace_swf_begin(struct reading *reading, char *line);
bool trace_sacct_begin(struct reading *reading, char *line);

/* Looks the names up in the fields of the first line; capitals do not matter. */
void reading_find(struct reading *reading, const struct column_name *names, size_t count);

/* The column in this line; NULL where there is none, or it is empty. */
const char *reading_field(const struct reading *reading, enum trace_column column);
/* The same in memory of its own. */
char *reading_copy(const struct reading *reading, enum trace_column column);

/* "FILE:LINE: FIELD WHAT"; false. */
bool reading_refuse(const struct reading *reading, const char *field, const char *what);

/* The column as a number; *ret_value stays as it is where there is none. */
bool reading_number(const struct reading *reading, enum trace_column column, double limit, double *ret_value);
/* The column as a whole number; any other word counts as 0. */
int64_t reading_priority(const struct reading *reading);

#endif
