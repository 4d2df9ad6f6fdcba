/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the life of a reader, and the small queries: tokens, joins, blobs, lost attempts. It promises to see
 * committed state only; every query is one statement, and so one read transaction. */
#include "daemon/store/reader.h"

#include <stdlib.h>

#include "daemon/store/query.h"
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
    autoquery struct query query = query_begin(&reader->connection, id == NULL ? SQL_TOKENS : SQL_TOKEN);
    if (id != NULL) {
        query_bind_text(&query, id);
    }
    struct token_row token;
    while (query_next(&query, TABLE_tokens, &token, err) && visit(&token, closure)) {
    }
    return !query.failed;
}

bool reader_join(struct reader *reader, const char *id,
                 void (*visit)(const struct join_row *row, void *closure), void *closure, bool *ret_found,
                 struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_JOIN);
    query_bind_text(&query, id);
    struct join_row join;
    *ret_found = query_next(&query, TABLE_joins, &join, err);
    if (*ret_found) {
        visit(&join, closure);
    }
    return !query.failed;
}

bool reader_blob(struct reader *reader, const uint8_t hash[32],
                 void (*visit)(const struct blob_row *row, void *closure), void *closure, bool *ret_found,
                 struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_BLOB);
    query_bind_digest(&query, hash);
    struct blob_row blob;
    *ret_found = query_next(&query, TABLE_blobs, &blob, err);
    if (*ret_found) {
        visit(&blob, closure);
    }
    return !query.failed;
}

bool reader_lost(struct reader *reader, int64_t after_key, int64_t limit,
                 bool (*visit)(int64_t key, const struct lost_row *row, void *closure), void *closure,
                 struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_LOST);
    query_bind_number(&query, after_key);
    query_bind_number(&query, limit);
    bool goes_on = true;
    while (goes_on && query_step(&query, err)) {
        struct lost_row lost;
        int64_t key = query_read_number(&query);
        query_read_row(&query, TABLE_lost, &lost);
        goes_on = query_read_end(&query, err) && visit(key, &lost, closure);
    }
    return !query.failed;
}
