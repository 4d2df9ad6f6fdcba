/* SPDX-License-Identifier: Apache-2.0 */
/* Moves values into statements and out of their rows. Every column of a row is read, and words are values
 * of their lists. */
#include "daemon/store/query.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

struct query query_begin(struct connection *connection, enum sql sql)
{
    assert(connection->statements[sql] != NULL);
    struct query query;
    query.connection = connection;
    query.statement = connection->statements[sql];
    query.parameter = query.column = 0;
    query.unknown = NULL;
    query.failed = false;
    query.moments_used = 0;
    return query;
}

/* --- parameters ----------------------------------------------------------------------------------------- */

/* A parameter that is not there or a statement that is under way is a defect; memory that is out ends the
 * program. */
static inline void must(int code)
{
    if (code != SQLITE_OK) {
        assert(code == SQLITE_NOMEM);
        out_of_memory();
    }
}

static void bind_text(struct query *query, const char *text)
{
    must(sqlite3_bind_text(query->statement, query->parameter, text, -1, SQLITE_STATIC));
}

static void bind_blob(struct query *query, const void *bytes, size_t length)
{
    must(sqlite3_bind_blob64(query->statement, query->parameter, bytes, length, SQLITE_STATIC));
}

static void bind_number(struct query *query, int64_t value)
{
    must(sqlite3_bind_int64(query->statement, query->parameter, value));
}

/* Of one size from the first write on, so that no update moves a row. */
static void bind_moments(struct query *query, const int64_t *numbers, size_t size)
{
    uint8_t *packed = query->moments + query->moments_used;
    assert(query->moments_used + size <= sizeof query->moments);
    for (size_t i = 0; i < size / sizeof *numbers; i++) {
        const uint64_t number = htole64((uint64_t)numbers[i]);
        memcpy(packed + i * sizeof number, &number, sizeof number);
    }
    query->moments_used += size;
    bind_blob(query, packed, size);
}

static void bind_long_text(struct query *query, const char *text, size_t length)
{
    must(sqlite3_bind_text64(query->statement, query->parameter, text == NULL ? "" : text, length,
                             SQLITE_STATIC, SQLITE_UTF8));
}

#define WORD_CASE(type) case COLUMN_##type:

/* A field of a row, as it is bound. */
#define VALUE(type) (*(type const *)field)

static void bind_bytes(struct query *query, const void *bytes, int64_t length)
{
    bind_blob(query, bytes, bytes == NULL ? 0 : (size_t)length);
}

static void bind_column(struct query *query, const struct column *column, const char *row)
{
    const void *field = row + column->offset;
    switch (column->type) {
    case COLUMN_NUMBER:
    case COLUMN_KEY64:
    case COLUMN_TASK:
        bind_number(query, VALUE(int64_t));
        break;
    case COLUMN_REAL:
        must(sqlite3_bind_double(query->statement, query->parameter, VALUE(double)));
        break;
    case COLUMN_FLAG:
        bind_number(query, VALUE(bool));
        break;
    case COLUMN_TEXT:
        bind_text(query, VALUE(const char *));
        break;
    case COLUMN_NAME:
        bind_text(query, VALUE(const char *) != NULL ? VALUE(const char *) : "");
        break;
    case COLUMN_LONG_TEXT:
        bind_long_text(query, VALUE(const char *), *(const size_t *)(row + column->offset + sizeof(char *)));
        break;
    case COLUMN_DIGEST:
        bind_blob(query, field, column->size);
        break;
    case COLUMN_HASH:
        bind_blob(query, VALUE(const uint8_t *), VALUE(const uint8_t *) == NULL ? 0 : 32);
        break;
    case COLUMN_BYTES:
        bind_bytes(query, VALUE(const void *), *(const int64_t *)(row + column[-1].offset));
        break;
    case COLUMN_MOMENTS:
        bind_moments(query, field, column->size);
        break;
        TABLE_WORDS(WORD_CASE)
        bind_text(query, table_word(column->type, VALUE(unsigned)));
    }
}

void query_bind_row(struct query *query, enum table_id table, const void *row, unsigned roles)
{
    query_bind_next_row(query, table, 0, row, roles);
}

void query_bind_next_row(struct query *query, enum table_id table, int number, const void *row,
                         unsigned roles)
{
    const struct table *its = &tables[table];
    for (int i = 0; i < its->count; i++) {
        query->parameter = number * its->count + i + 1;
        if ((its->columns[i].role & roles) != 0) {
            bind_column(query, &its->columns[i], row);
        }
    }
}

void query_bind_number(struct query *query, int64_t value)
{
    query->parameter++;
    bind_number(query, value);
}

void query_bind_text(struct query *query, const char *text)
{
    query->parameter++;
    bind_text(query, text);
}

void query_bind_digest(struct query *query, const uint8_t digest[32])
{
    query->parameter++;
    bind_blob(query, digest, 32);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

bool query_step(struct query *query, struct err *err)
{
    int code = sqlite3_step(query->statement);
    query->column = 0;
    query->failed = code != SQLITE_ROW && code != SQLITE_DONE;
    if (query->failed) {
        connection_fail(query->connection, err);
    }
    return code == SQLITE_ROW;
}

bool query_run(struct query *query, int *ret_changed, struct err *err)
{
    bool row = query_step(query, err);
    assert(!row);
    sqlite3_reset(query->statement);
    if (ret_changed != NULL) {
        *ret_changed = sqlite3_changes(query->connection->db);
    }
    return !query->failed;
}

/* --- columns -------------------------------------------------------------------------------------------- */

int64_t query_read_number(struct query *query)
{
    return sqlite3_column_int64(query->statement, query->column++);
}

static int64_t read_task(struct query *query)
{
    bool is_none = sqlite3_column_type(query->statement, query->column) == SQLITE_NULL;
    int64_t value = query_read_number(query);
    return is_none ? -1 : value;
}

const char *query_read_text(struct query *query)
{
    return connection_text(query->statement, query->column++);
}

static const char *read_name(struct query *query)
{
    const char *name = query_read_text(query);
    return name != NULL && name[0] != '\0' ? name : NULL;
}

static size_t size_of_last(const struct query *query)
{
    return (size_t)sqlite3_column_bytes(query->statement, query->column - 1);
}

const char *query_read_long_text(struct query *query, size_t *ret_length)
{
    const char *text = query_read_text(query);
    *ret_length = size_of_last(query);
    return text;
}

const void *query_read_bytes(struct query *query)
{
    int column = query->column++;
    const void *bytes = connection_blob(query->statement, column);
    bool empty = bytes == NULL && sqlite3_column_type(query->statement, column) == SQLITE_BLOB;
    return empty ? "" : bytes; /* SQLite gives no pointer to no bytes */
}

static const uint8_t *read_hash(struct query *query)
{
    const void *hash = query_read_bytes(query);
    if (hash != NULL && size_of_last(query) != 32) {
        query->unknown = "(a digest of another size)";
    }
    return hash;
}

const void *query_read_counted(struct query *query, int64_t length)
{
    const void *bytes = query_read_bytes(query);
    if (bytes != NULL && (int64_t)size_of_last(query) != length) {
        query->unknown = "(bytes of another number)";
    }
    return bytes;
}

void query_read_digest(struct query *query, uint8_t ret_digest[32])
{
    const uint8_t *hash = read_hash(query);
    if (hash == NULL) {
        query->unknown = "(no digest)";
    } else if (query->unknown == NULL) {
        memcpy(ret_digest, hash, 32);
    }
}

/* All are 0 for NULL. */
static void read_moments(struct query *query, int64_t *ret_numbers, size_t size)
{
    const uint8_t *packed = query_read_bytes(query);
    memset(ret_numbers, 0, size);
    if (packed != NULL && size_of_last(query) != size) {
        query->unknown = "(moments of another number)";
        return;
    }
    for (size_t i = 0; packed != NULL && i < size / sizeof *ret_numbers; i++) {
        uint64_t number;
        memcpy(&number, packed + i * sizeof number, sizeof number);
        ret_numbers[i] = (int64_t)le64toh(number);
    }
}

unsigned query_read_word(struct query *query, enum column_type type)
{
    unsigned value = 0;
    const char *word = query_read_text(query);
    if (word == NULL || !table_word_value(type, word, &value)) {
        query->unknown = word == NULL ? "(null)" : word;
    }
    return value;
}

/* The same, as it is read. */
#define FIELD(type) (*(type *)field)

static void read_column(struct query *query, const struct column *column, char *row)
{
    void *field = row + column->offset;
    switch (column->type) {
    case COLUMN_NUMBER:
    case COLUMN_KEY64:
        FIELD(int64_t) = query_read_number(query); /* 0 for NULL */
        break;
    case COLUMN_TASK:
        FIELD(int64_t) = read_task(query);
        break;
    case COLUMN_REAL:
        FIELD(double) = sqlite3_column_double(query->statement, query->column++);
        break;
    case COLUMN_FLAG:
        FIELD(bool) = query_read_number(query) != 0;
        break;
    case COLUMN_TEXT:
        FIELD(const char *) = query_read_text(query);
        break;
    case COLUMN_NAME:
        FIELD(const char *) = read_name(query);
        break;
    case COLUMN_LONG_TEXT:
        FIELD(const char *) =
            query_read_long_text(query, (size_t *)(row + column->offset + sizeof(const char *)));
        break;
    case COLUMN_DIGEST:
        query_read_digest(query, field);
        break;
    case COLUMN_HASH:
        FIELD(const uint8_t *) = read_hash(query);
        break;
    case COLUMN_BYTES:
        FIELD(const void *) = query_read_counted(query, *(const int64_t *)(row + column[-1].offset));
        break;
    case COLUMN_MOMENTS:
        read_moments(query, field, column->size);
        break;
        TABLE_WORDS(WORD_CASE)
        FIELD(unsigned) = query_read_word(query, column->type);
    }
}

void query_read_row(struct query *query, enum table_id table, void *ret_row)
{
    const struct table *its = &tables[table];
    for (int i = 0; i < its->count; i++) {
        read_column(query, &its->columns[i], ret_row);
    }
}

bool query_read_end(struct query *query, struct err *err)
{
    assert(query->column == sqlite3_column_count(query->statement));
    query->failed = query->unknown != NULL;
    return !query->failed ||
           err_set(err, ERR_INTERNAL, "the database holds \"%s\", which this program does not know",
                   query->unknown);
}

bool query_next(struct query *query, enum table_id table, void *ret_row, struct err *err)
{
    if (!query_step(query, err)) {
        return false;
    }
    query_read_row(query, table, ret_row);
    return query_read_end(query, err);
}
