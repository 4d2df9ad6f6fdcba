/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of daemon/core/model/rows.h as data, and the SQL that follows from them. */
#ifndef STORE_TABLES_H
#define STORE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/rows.h"
#include "proto/base/text/text.h"

/* The lists of proto/states.h whose words stand in columns. */
#define TABLE_WORDS(X)                                                                                       \
    X(job_state)                                                                                             \
    X(attempt_state)                                                                                         \
    X(member_state)                                                                                          \
    X(node_state)                                                                                            \
    X(cause)                                                                                                 \
    X(event_kind)                                                                                            \
    X(pool_kind)                                                                                             \
    X(isolation)                                                                                             \
    X(role)                                                                                                  \
    X(result_kind)                                                                                           \
    X(claim)                                                                                                 \
    X(account_kind)                                                                                          \
    X(dependency)                                                                                            \
    X(webhook_scope)                                                                                         \
    X(delivery_state)                                                                                        \
    X(schedule_overlap)                                                                                      \
    X(schedule_missed)                                                                                       \
    X(schedule_outcome)

enum column_type {
#define TABLE_WORD_TYPE(type) COLUMN_##type,
    TABLE_WORDS(TABLE_WORD_TYPE) /* first: they index the words */
#undef TABLE_WORD_TYPE
    COLUMN_NUMBER,
    COLUMN_KEY64,
    COLUMN_TASK,
    COLUMN_REAL,
    COLUMN_FLAG,
    COLUMN_TEXT,
    COLUMN_NAME,
    COLUMN_LONG_TEXT,
    COLUMN_DIGEST,
    COLUMN_HASH,
    COLUMN_BYTES,
    COLUMN_MOMENTS,
};

enum column_role {
    ROLE_KEY = 1,
    ROLE_LIFE = 2,
    ROLE_ONCE = 4,
    ROLE_TASK = 8,
    ROLE_SHARED = 16,
    ROLE_ALL = 31,
};

/* One field of a row. */
struct column {
    const char *name;
    enum column_type type;
    enum column_role role;
    uint16_t offset, size;
};

struct table {
    const char *name;
    const struct column *columns;
    int count;
};

enum table_id {
    TABLE_jobs,
#define TABLE_ID(table, ...) TABLE_##table,
    ROW_TABLES(TABLE_ID)
#undef TABLE_ID
        TABLE_COUNT
};
extern const struct table tables[TABLE_COUNT];

/* The spelling of the value of a column of words, and back; false: there is no such word. */
const char *table_word(enum column_type type, unsigned value);
bool table_word_value(enum column_type type, const char *word, unsigned *ret_value);

/* Appends a statement's text, with columns of a table in the place of
 *   {TABLE}                     all, as TABLE.COLUMN
 *   {columns TABLE}             all
 *   {values TABLE}              as many parameters
 *   {rows TABLE}                the same for STORE_INSERT_ROWS rows, each in parentheses
 *   {keys TABLE}                the key
 *   {where TABLE}               the condition that it is equal to its parameters
 *   {set TABLE}                 the assignment of parameters to what changes
 *   {replace TABLE}             the same in ON CONFLICT
 *   {own columns TABLE}, {own values TABLE}, {shared columns TABLE}   of rows that share columns
 * The number of a column's parameter is its place in its list, behind those of the rows before. */
void table_sql(const char *text, struct text *out);

#endif
