/* SPDX-License-Identifier: Apache-2.0 */
/* Runs runs/search, experiments/search, logged-models/search and the searches of the registry. Pages are cut
 * by position. Rows made after the first page are not in the later pages, so nothing is shown twice, and
 * without changes nothing is left out. A page may have fewer rows than requested: the token says whether
 * there are more. */
#include <assert.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/filter.h"
#include "daemon/mlflow/models.h"
#include "daemon/mlflow/registry.h"
#include "daemon/mlflow/show.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/json.h"
#include "proto/limits.h"

/* A page continues at a position among the rows that existed at the first page. */
enum { TOKEN_POSITION, TOKEN_LAST, TOKEN_COUNT };

struct search {
    struct filter filter;
    int64_t standard_rows, most_rows; /* per page; 0: as for runs */
    const char *deleted;              /* condition for the requested view */
    json_t *experiments;              /* owned; numbers */
    int64_t limit;
    int64_t token[TOKEN_COUNT];
};

static void cleanup_search(struct search *search)
{
    filter_finish(&search->filter);
    json_decref(search->experiments);
}
#define autosearch __attribute__((cleanup(cleanup_search)))

/* A search prepares its own statement, so it also frees it. */
static void cleanup_statement(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}
#define autofinalize __attribute__((cleanup(cleanup_statement)))

/* --- reading the request --- */

/* member NULL: deleted rows are never shown. */
static bool read_view(const json_t *body, const char *member, struct search *search,
                      struct tracking_error *error)
{
    if (member == NULL) {
        search->deleted = "1";
        return true;
    }
    static const char *const words[] = {"ACTIVE_ONLY", "DELETED_ONLY", "ALL"};
    static const char *const conditions[] = {"deleted = 0", "deleted <> 0", "1"};
    size_t index = 0;
    if (!field_word(body, member, words, 3, &index, error)) {
        return false;
    }
    search->deleted = conditions[index];
    return true;
}

/* Reads an array of {field_name, ascending}. */
static bool read_model_order(const json_t *body, struct filter *filter, struct tracking_error *error)
{
    const json_t *terms = NULL;
    if (!field_objects(body, "order_by", &terms, error)) {
        return false;
    }
    size_t i;
    const json_t *term;
    json_array_foreach (terms, i, term) {
        const char *name;
        if (!field_need_text(term, "field_name", &name, error)) {
            return false;
        }
        autofree char *text =
            xprintf("%s %s", name, json_is_false(json_object_get(term, "ascending")) ? "DESC" : "ASC");
        if (!filter_parse_order(filter, text, error)) {
            return false;
        }
    }
    return true;
}

static bool read_order(const json_t *body, struct filter *filter, struct tracking_error *error)
{
    autojson json_t *terms = NULL;
    if (!field_texts(body, "order_by", &terms, error)) {
        return false;
    }
    size_t i;
    const json_t *term;
    json_array_foreach (terms, i, term) {
        if (!filter_parse_order(filter, json_string_value(term), error)) {
            return false;
        }
    }
    return true;
}

/* Ids that are no numbers match no experiment. */
static bool read_experiments(const json_t *body, struct search *search, struct tracking_error *error)
{
    autojson json_t *ids = NULL;
    if (!field_texts(body, "experiment_ids", &ids, error)) {
        return false;
    }
    search->experiments = json_array();
    size_t i;
    const json_t *id;
    json_array_foreach (ids, i, id) {
        int64_t number;
        if (text_to_int(json_string_value(id), 0, INT64_MAX, &number)) {
            json_array_append_new(search->experiments, json_integer(number));
        }
    }
    return true;
}

static bool read_search(const json_t *body, const char *view, struct search *search,
                        struct tracking_error *error)
{
    const char *text = "";
    const char *page = "";
    search->token[TOKEN_LAST] = -1;
    if (!field_text(body, "filter", &text, error) || !filter_parse(&search->filter, text, error) ||
        !(search->filter.subject == FILTER_MODELS ? read_model_order : read_order)(body, &search->filter,
                                                                                   error) ||
        !read_view(body, view, search, error) ||
        !field_max_results(body, search->standard_rows != 0 ? search->standard_rows : DEFAULT_TRACKING_ROWS,
                           search->most_rows != 0 ? search->most_rows : LIMIT_TRACKING_ROWS, &search->limit,
                           error) ||
        !field_text(body, "page_token", &page, error) ||
        (page[0] != '\0' && !page_token_read(page, search->token, TOKEN_COUNT, error))) {
        return false;
    }
    return search->token[TOKEN_POSITION] >= 0 ||
           tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE, "Invalid page_token '%.100s'.", page);
}

/* --- the statement --- */

/* Finds the key of the newest row, for the token of the first page. */
static bool find_last(struct tracking *tracking, const char *sql, int64_t *ret_last,
                      struct tracking_error *error)
{
    if (*ret_last >= 0) {
        return true;
    }
    autofinalize sqlite3_stmt *row = NULL;
    bool there = false;
    if (sqlite3_prepare_v2(tracking->db, sql, -1, &row, NULL) != SQLITE_OK) {
        return database_fail(tracking, error);
    }
    bool ok = database_step(tracking, row, &there, error);
    *ret_last = there ? sqlite3_column_int64(row, 0) : 0;
    return ok;
}

static void set_int(sqlite3_stmt *statement, int *at, int64_t value)
{
    int code = sqlite3_bind_int64(statement, (*at)++, value);
    assert(code == SQLITE_OK);
}

/* experiments NULL: a search of experiments. */
static sqlite3_stmt *prepare(struct tracking *tracking, const struct search *search, const char *select,
                             const char *key, const char *order, const char *experiments)
{
    autotext struct text sql = {0};
    const struct filter *filter = &search->filter;
    text_append(&sql, select);
    text_append_bytes(&sql, filter->joins.bytes, filter->joins.length);
    text_printf(&sql, " WHERE %s <= ? AND %s", key, search->deleted);
    if (experiments != NULL) {
        text_printf(&sql, " AND %s.experiment IN (SELECT value FROM json_each(?))",
                    filter->subject == FILTER_MODELS ? "models" : "runs");
    }
    text_append_bytes(&sql, filter->where.bytes, filter->where.length);
    text_append(&sql, " ORDER BY ");
    text_append_bytes(&sql, filter->order.bytes, filter->order.length);
    text_printf(&sql, "%s LIMIT ? OFFSET ?", order);
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(tracking->db, sql.bytes, -1, &statement, NULL) != SQLITE_OK) {
        return NULL;
    }
    int at = filter_bind(&filter->join_values, statement, 1);
    set_int(statement, &at, search->token[TOKEN_LAST]);
    if (experiments != NULL) {
        int code = sqlite3_bind_text(statement, at++, experiments, -1, SQLITE_STATIC);
        assert(code == SQLITE_OK);
    }
    at = filter_bind(&filter->where_values, statement, at);
    set_int(statement, &at, search->limit + 1);
    set_int(statement, &at, search->token[TOKEN_POSITION]);
    return statement;
}

/* --- the page --- */

typedef bool show_row(struct tracking *tracking, sqlite3_stmt *row, struct text *out,
                      struct tracking_error *error);

static bool show_rows(struct tracking *tracking, const struct search *search, sqlite3_stmt *row,
                      show_row *show, struct text *out, struct tracking_error *error)
{
    size_t start = out->length;
    int64_t count = 0;
    bool there, ok;
    text_append(out, "[");
    while ((ok = database_step(tracking, row, &there, error)) && there && count < search->limit &&
           out->length - start < LIMIT_TRACKING_PAGE_BYTES) {
        text_append(out, count > 0 ? ", " : "");
        if (!show(tracking, row, out, error)) {
            return false;
        }
        count++;
    }
    text_append(out, "]");
    if (ok && there) {
        int64_t next[TOKEN_COUNT] = {search->token[TOKEN_POSITION] + count, search->token[TOKEN_LAST]};
        show_page_token(out, next, TOKEN_COUNT);
    }
    return ok;
}

/* Finding rows may take long; showing them is bounded by the page. Only finding needs a time limit, but
 * SQLite does both in one. */
static bool run(struct tracking *tracking, const struct search *search, sqlite3_stmt *statement,
                show_row *show, struct text *out, struct tracking_error *error)
{
    if (statement == NULL) {
        return database_fail(tracking, error);
    }
    tracking->stop_ms = clock_boot_ms() + LIMIT_TRACKING_SEARCH_MS;
    bool ok = show_rows(tracking, search, statement, show, out, error);
    tracking->stop_ms = 0;
    text_append(out, "}");
    return ok;
}

bool work_runs_search(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                      struct tracking_error *error)
{
    autosearch struct search search = {.filter = {.subject = FILTER_RUNS}};
    if (!read_search(request->body, "run_view_type", &search, error) ||
        !read_experiments(request->body, &search, error) ||
        !find_last(tracking, "SELECT max(key) FROM runs", &search.token[TOKEN_LAST], error)) {
        return false;
    }
    autofree char *experiments = json_text(search.experiments);
    autofinalize sqlite3_stmt *statement = prepare(tracking, &search, "SELECT " COLUMNS_RUN " FROM runs",
                                                   "runs.key", "runs.start_ms DESC, runs.id", experiments);
    text_append(out, "{\"runs\": ");
    return run(tracking, &search, statement, show_run, out, error);
}

bool work_experiments_search(struct tracking *tracking, const struct tracking_request *request,
                             struct text *out, struct tracking_error *error)
{
    autosearch struct search search = {.filter = {.subject = FILTER_EXPERIMENTS}};
    if (!read_search(request->body, "view_type", &search, error) ||
        !find_last(tracking, "SELECT max(id) FROM experiments", &search.token[TOKEN_LAST], error)) {
        return false;
    }
    autofinalize sqlite3_stmt *statement =
        prepare(tracking, &search, "SELECT " COLUMNS_EXPERIMENT " FROM experiments", "experiments.id",
                "experiments.created_ms DESC, experiments.id DESC", NULL);
    text_append(out, "{\"experiments\": ");
    return run(tracking, &search, statement, show_experiment, out, error);
}

bool work_models_search(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                        struct tracking_error *error)
{
    autosearch struct search search = {.filter = {.subject = FILTER_MODELS}};
    if (!read_search(request->body, "view_type", &search, error) ||
        !read_experiments(request->body, &search, error) ||
        !find_last(tracking, "SELECT max(key) FROM models", &search.token[TOKEN_LAST], error)) {
        return false;
    }
    autofree char *experiments = json_text(search.experiments);
    autofinalize sqlite3_stmt *statement =
        prepare(tracking, &search, "SELECT " COLUMNS_MODEL " FROM models", "models.key",
                "models.created_ms DESC, models.key DESC", experiments);
    text_append(out, "{\"models\": ");
    return run(tracking, &search, statement, show_model, out, error);
}

bool work_registry_search(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    autosearch struct search search = {.filter = {.subject = FILTER_REGISTRY},
                                       .standard_rows = DEFAULT_REGISTRY_MODEL_ROWS,
                                       .most_rows = LIMIT_REGISTRY_MODEL_ROWS};
    if (!read_search(request->body, NULL, &search, error) ||
        !find_last(tracking, "SELECT max(key) FROM registered_models", &search.token[TOKEN_LAST], error)) {
        return false;
    }
    autofinalize sqlite3_stmt *statement =
        prepare(tracking, &search, "SELECT " COLUMNS_REGISTERED " FROM registered_models",
                "registered_models.key", "registered_models.name", NULL);
    text_append(out, "{\"registered_models\": ");
    return run(tracking, &search, statement, show_registered, out, error);
}

/* By default the versions that changed last come first. */
bool work_versions_search(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    autosearch struct search search = {.filter = {.subject = FILTER_VERSIONS},
                                       .standard_rows = LIMIT_REGISTRY_VERSION_ROWS,
                                       .most_rows = LIMIT_REGISTRY_VERSION_ROWS};
    if (!read_search(request->body, NULL, &search, error) ||
        !find_last(tracking, "SELECT max(key) FROM model_versions", &search.token[TOKEN_LAST], error)) {
        return false;
    }
    autofinalize sqlite3_stmt *statement =
        prepare(tracking, &search, "SELECT " COLUMNS_VERSION " FROM " TABLES_VERSION, "model_versions.key",
                search.filter.order_terms == 0
                    ? "model_versions.updated_ms DESC, registered_models.name, model_versions.number DESC"
                    : "registered_models.name, model_versions.number DESC",
                NULL);
    text_append(out, "{\"model_versions\": ");
    return run(tracking, &search, statement, show_version, out, error);
}
