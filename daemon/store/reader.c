/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the life of a reader, and the small queries: tokens, joins, blobs, lost attempts. It promises to see
 * committed state only; every query is one statement, and so one read transaction. */
#include "daemon/store/reader.h"

#include <stdlib.h>

#include "daemon/store/columns.h"
#include "proto/base/text.h"

struct reader *reader_open(const char *path, struct err *err)
{
    struct reader *reader = xzalloc(sizeof *reader);
    if (!connection_open(&reader->connection, path, CONNECTION_READER, NULL, err)) {
        reader_close(reader);
        return NULL;
    }
    reader->connection.serving = true;
    return reader;
}

void reader_close(struct reader *reader)
{
    if (reader != NULL) {
        connection_close(&reader->connection);
        free(reader);
    }
}

bool reader_tokens(struct reader *reader, const char *id,
                   bool (*visit)(const struct token_row *row, void *closure), void *closure, struct err *err)
{
    struct binder to = binder_begin(&reader->connection, id == NULL ? SQL_TOKENS : SQL_TOKEN);
    if (id != NULL) {
        bind_text(&to, id);
    }
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct token_row token;
        if (!columns_token(statement, &token, err)) {
            return false;
        }
        if (!visit(&token, closure)) {
            return true;
        }
    }
    return ok;
}

bool reader_join(struct reader *reader, const char *id,
                 void (*visit)(const struct join_row *row, void *closure), void *closure, bool *ret_found,
                 struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_JOIN);
    bind_text(&to, id);
    autoreset sqlite3_stmt *statement = to.statement;
    struct join_row join;
    if (!connection_step(&reader->connection, statement, ret_found, err) ||
        (*ret_found && !columns_join(statement, &join, err))) {
        return false;
    }
    if (*ret_found) {
        visit(&join, closure);
    }
    return true;
}

bool reader_blob(struct reader *reader, const uint8_t hash[32],
                 void (*visit)(const struct blob_row *row, void *closure), void *closure, bool *ret_found,
                 struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_BLOB);
    bind_blob(&to, hash, 32);
    autoreset sqlite3_stmt *statement = to.statement;
    struct blob_row blob;
    if (!connection_step(&reader->connection, statement, ret_found, err) ||
        (*ret_found && !columns_blob(statement, &blob, err))) {
        return false;
    }
    if (*ret_found) {
        visit(&blob, closure);
    }
    return true;
}

bool reader_lost(struct reader *reader, int64_t after_key, int64_t limit,
                 bool (*visit)(int64_t key, const struct lost_row *row, void *closure), void *closure,
                 struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_LOST);
    bind_int(&to, after_key);
    bind_int(&to, limit);
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct lost_row lost;
        int64_t key;
        if (!columns_lost(statement, &key, &lost, err)) {
            return false;
        }
        if (!visit(key, &lost, closure)) {
            return true;
        }
    }
    return ok;
}
