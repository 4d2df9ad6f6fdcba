/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the reader that its files share. */
#ifndef STORE_READER_H
#define STORE_READER_H

#include "daemon/store/database/connection.h"
#include "daemon/store/query.h"
#include "daemon/store/store.h"

struct reader {
    struct connection connection;
};

/* The rows of a query whose parameters are bound. */
struct rows rows_open(struct reader *reader, const struct query *query, struct err *err);
/* The query at its row, whose columns are to be read. */
struct query rows_query(const struct rows *rows);
/* Goes to the next row; false: there is none, or the query has failed. */
bool rows_step(struct rows *rows, struct query *query);
/* All columns of the row were read; false: it cannot be understood, and the query has failed. */
bool rows_end(struct rows *rows, struct query *query);

#endif
