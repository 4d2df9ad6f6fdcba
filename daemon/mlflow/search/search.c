/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the searches for runs, experiments, logged models, registered models and their versions. Pages are cut
 * by position, by their bytes, and when half of the time is over. Rows made after the first page are not in
 * the later pages, so nothing is shown twice, and without changes nothing is left out. A page may have fewer
 * rows than requested: the token says whether there are more. */
#include "daemon/mlflow/call/endpoints.h"
#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/search/filter.h"
#include "daemon/mlflow/search/subjects.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_tracking.h"

/* A page continues at a position among the rows that existed at the first page. */
enum { TOKEN_POSITION, TOKEN_LAST, TOKEN_COUNT };

struct search {
    struct filter filter;
    const char *deleted; /* condition for the requested view */
    char *experiments;   /* owned: a JSON array of numbers */
    int64_t limit;
    int64_t token[TOKEN_COUNT]; /* last -1: this is the first page */
};

static void cleanup_search(struct search *search)
{
    filter_finish(&search->filter);
    free(search->experiments);
}
#define autosearch __attribute__((cleanup(cleanup_search)))

/* A search prepares its own statement, so it also frees it. */
static void cleanup_statement(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}
#define autofinalize __attribute__((cleanup(cleanup_statement)))

/* --- reading the request --- */

/* Returns the condition for the rows that the member asks for. */
static const char *read_view(struct call *call, const char *member)
{
    static const char *const words[] = {"ACTIVE_ONLY", "DELETED_ONLY", "ALL"};
    static const char *const conditions[] = {"deleted = 0", "deleted <> 0", "1"};
    return member != NULL ? conditions[field_word(call, member, words, 3, 0)] : "1";
}

/* Reads texts, or objects {field_name, ascending}. */
static void read_order(struct call *call, struct filter *filter)
{
    bool objects = filter->subject->orders_by_objects;
    autojson json_t *texts = objects ? NULL : field_texts(call, "order_by");
    const json_t *terms = objects ? field_objects(call, call->request.body, "order_by") : texts;
    size_t i;
    const json_t *term;
    json_array_foreach (terms, i, term) {
        bool descends = json_is_false(json_object_get(term, "ascending"));
        autofree char *text =
            objects ? xprintf("%s %s", field_need_text(call, term, "field_name"), descends ? "DESC" : "ASC")
                    : xstrdup(json_string_value(term));
        filter_parse_order(filter, text);
    }
}

/* Ids that are no numbers match no experiment. */
static char *read_experiments(struct call *call)
{
    autojson json_t *ids = field_texts(call, "experiment_ids");
    autojson json_t *numbers = json_array();
    size_t i;
    const json_t *id;
    json_array_foreach (ids, i, id) {
        int64_t number;
        if (text_to_int(json_string_value(id), 0, INT64_MAX, &number)) {
            json_array_append_new(numbers, json_integer(number));
        }
    }
    return json_text(numbers);
}

static void read_search(struct call *call, struct search *search)
{
    const struct subject *subject = search->filter.subject;
    filter_parse(&search->filter, field_text(call, call->request.body, "filter", ""));
    read_order(call, &search->filter);
    search->deleted = read_view(call, subject->view);
    search->limit = field_max_results(call, subject->standard_rows, subject->most_rows);
    search->token[TOKEN_LAST] = -1;
    field_page_token(call, search->token, TOKEN_COUNT);
    if (search->token[TOKEN_POSITION] < 0) {
        call_refuse(call, "Invalid page_token '%.100s'.",
                    field_text(call, call->request.body, "page_token", ""));
    }
    search->experiments = subject->experiment != NULL ? read_experiments(call) : NULL;
}

/* --- the statement --- */

/* Its rows are the key of a row and the last key of the first page; ?1 to ?4 are bound here, the others by
 * the filter. */
static void append_statement(const struct search *search, struct text *sql)
{
    const struct filter *filter = &search->filter;
    const struct subject *subject = filter->subject;
    autofree char *last = xprintf("ifnull(?1, (SELECT max(%s) FROM %s))", subject->key, subject->table);
    text_printf(sql, "SELECT %s, %s FROM %s", subject->key, last, subject->table);
    text_append(sql, subject->join != NULL ? subject->join : "");
    text_append_bytes(sql, filter->joins.bytes, filter->joins.length);
    text_printf(sql, " WHERE %s <= %s AND %s AND %s", subject->key, last, search->deleted, subject->seen);
    if (subject->experiment != NULL) {
        text_printf(sql, " AND %s IN (SELECT value FROM json_each(?2))", subject->experiment);
    }
    text_append_bytes(sql, filter->where.bytes, filter->where.length);
    text_append(sql, " ORDER BY ");
    text_append(sql, filter->order_terms == 0 && subject->newest != NULL ? subject->newest : "");
    text_append_bytes(sql, filter->order.bytes, filter->order.length);
    text_printf(sql, "%s LIMIT ?3 OFFSET ?4", subject->order);
}

static sqlite3_stmt *prepare(struct call *call, const struct search *search)
{
    autotext struct text sql = {0};
    sqlite3_stmt *statement = NULL;
    if (call->failed) {
        return NULL;
    }
    append_statement(search, &sql);
    if (sqlite3_prepare_v2(call->tracking->db, sql.bytes, -1, &statement, NULL) != SQLITE_OK) {
        database_fail(call);
        return NULL;
    }
    if (search->token[TOKEN_LAST] >= 0) {
        sqlite3_bind_int64(statement, 1, search->token[TOKEN_LAST]);
    }
    if (search->experiments != NULL) {
        sqlite3_bind_text(statement, 2, search->experiments, -1, SQLITE_STATIC);
    }
    sqlite3_bind_int64(statement, 3, search->limit + 1);
    sqlite3_bind_int64(statement, 4, search->token[TOKEN_POSITION]);
    filter_bind(&search->filter, statement);
    return statement;
}

/* --- the page --- */

/* Each page has at least one row, so that the next one is behind it. */
static bool is_full(const struct call *call, const struct search *search, int64_t count, size_t bytes)
{
    return count == search->limit ||
           (count > 0 && (bytes >= LIMIT_TRACKING_PAGE_BYTES || database_is_late(call)));
}

static void show_rows(struct call *call, struct search *search, sqlite3_stmt *row)
{
    const struct subject *subject = search->filter.subject;
    size_t start = call->out->length;
    int64_t count = 0;
    bool there;
    while ((there = database_next(call, row)) && !is_full(call, search, count, call->out->length - start)) {
        text_append(call->out, count > 0 ? "," : "");
        database_append(call, subject->show, "i", sqlite3_column_int64(row, 0));
        count++;
    }
    text_append(call->out, "]");
    if (there) {
        search->token[TOKEN_POSITION] += count;
        search->token[TOKEN_LAST] = sqlite3_column_int64(row, 1);
        page_token_append(call->out, search->token, TOKEN_COUNT);
    }
}

static void search(struct call *call, const struct subject *subject)
{
    autosearch struct search search = {.filter = {.call = call, .subject = subject}};
    read_search(call, &search);
    autofinalize sqlite3_stmt *statement = prepare(call, &search);
    text_printf(call->out, "{\"%s\":[", subject->member);
    show_rows(call, &search, statement);
    text_append(call->out, "}");
}

void work_runs_search(struct call *call)
{
    search(call, &subject_runs);
}

void work_experiments_search(struct call *call)
{
    search(call, &subject_experiments);
}

void work_models_search(struct call *call)
{
    search(call, &subject_models);
}

void work_registry_search(struct call *call)
{
    search(call, &subject_registry);
}

void work_versions_search(struct call *call)
{
    search(call, &subject_versions);
}
