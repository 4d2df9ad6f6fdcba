/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the query for maintenance windows. */
#include "daemon/store/columns.h"
#include "daemon/store/reader.h"

bool reader_windows(struct reader *reader, bool (*visit)(const struct window_row *row, void *closure),
                    void *closure, struct err *err)
{
    autoreset sqlite3_stmt *statement = reader->connection.statements[SQL_WINDOWS];
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct window_row window;
        if (!columns_window(statement, &window, err)) {
            return false;
        }
        if (!visit(&window, closure)) {
            return true;
        }
    }
    return ok;
}
