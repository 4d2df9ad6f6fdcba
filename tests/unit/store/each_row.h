/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that only look at rows: each row of a query is shown to a visitor; one that returns false ends
 * the query. false: the query has failed. */
#ifndef TESTS_EACH_ROW_H
#define TESTS_EACH_ROW_H

#include "daemon/store/store.h"

#define EACH_ROW(name, kind, type)                                                                           \
    static inline bool each_##name(struct rows asked, bool (*visit)(const struct type *row, void *closure),  \
                                   void *closure)                                                            \
    {                                                                                                        \
        autorows struct rows rows = asked;                                                                   \
        struct type row;                                                                                     \
        while (rows_##kind(&rows, &row) && visit(&row, closure)) {                                           \
        }                                                                                                    \
        return !rows.failed;                                                                                 \
    }
EACH_ROW(job, job, job_record)
EACH_ROW(event, event, event_row)
EACH_ROW(dependency, dependency_with_job, dependency_record)
EACH_ROW(attempt, attempt, attempt_row)
EACH_ROW(member, member, member_row)
EACH_ROW(rank, rank, rank_row)
EACH_ROW(window, window, window_row)
EACH_ROW(token, token, token_row)

static inline bool each_node(struct rows asked,
                             bool (*visit)(const struct node_row *row, const struct node_used *used,
                                           void *closure),
                             void *closure)
{
    autorows struct rows rows = asked;
    struct node_row row;
    struct node_used used;
    while (rows_node(&rows, &row, &used) && visit(&row, &used, closure)) {
    }
    return !rows.failed;
}

static inline bool each_result(struct rows asked,
                               bool (*visit)(const struct result_row *row, const void *bytes, void *closure),
                               void *closure)
{
    autorows struct rows rows = asked;
    struct result_row row;
    const void *bytes;
    while (rows_result(&rows, &row, &bytes) && visit(&row, bytes, closure)) {
    }
    return !rows.failed;
}

/* The same with a query of one row at most. */
#define ONE_ROW(name, type)                                                                                  \
    static inline bool one_##name(struct rows asked, void (*visit)(const struct type *row, void *closure),   \
                                  void *closure, bool *ret_found)                                            \
    {                                                                                                        \
        autorows struct rows rows = asked;                                                                   \
        struct type row;                                                                                     \
        *ret_found = rows_##name(&rows, &row);                                                               \
        if (*ret_found) {                                                                                    \
            visit(&row, closure);                                                                            \
        }                                                                                                    \
        return !rows.failed;                                                                                 \
    }
ONE_ROW(job, job_record)
ONE_ROW(join, join_row)
ONE_ROW(blob, blob_row)

#endif
