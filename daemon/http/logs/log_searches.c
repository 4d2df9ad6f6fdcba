/* SPDX-License-Identifier: Apache-2.0 */
/* Serves GET /v1/jobs/{id}/logs/search: lines of a job's output, a page at a time. It promises that a page is
 * a bounded piece of work on the thread of searches, and that the pages of a search have each line once. The
 * search itself is daemon/blob/log_search.c. */
#include "daemon/http/logs/log_searches.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/blob/log_search.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/fair_queue.h"
#include "daemon/http/base/state.h"
#include "daemon/http/logs/logs.h"
#include "daemon/http/objects/recalls.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

struct log_searches {
    struct worker *worker;
    struct watch watch;
    struct fair_queue queue;
};

/* One page. */
struct page {
    struct request_work work; /* first */
    struct log_searches *searches;
    struct fair_entry entry;
    struct log_search search; /* its pattern is owned */
    char job_id[ID_LENGTH + 1];
    char *owner; /* of the request, which it may outlive */
    int64_t limit, count;
    struct text json; /* of the matches */
    struct log_search_end end;
    bool ok;
    struct err err;
};

/* --- on the thread of searches -------------------------------------------------------------------------- */

static bool take(void *closure, const struct log_match *match)
{
    struct page *page = closure;
    struct text *out = &page->json;
    member_separate(out);
    member_write_int(out, "{\"rank\":", match->rank);
    member_write_text(out, ",\"stream\":", stream_text(match->stream));
    member_write_int(out, ",\"attempt\":", page->search.attempt);
    member_write_int(out, ",\"offset\":", match->offset);
    member_write_text(out, ",\"id\":", match->id);
    member_write_time(out, ",\"at\":", match->at_ms);
    text_append(out, ",\"text\":");
    text_json_string(out, match->line, match->length);
    member_write_bool(out, ",\"cut\":", match->cut);
    text_append(out, "}");
    return ++page->count < page->limit && out->length < LIMIT_SEARCH_ANSWER_BYTES;
}

static void work(struct task *task)
{
    struct page *page = (struct page *)task;
    page->ok = log_search_run(&page->search, take, page, &page->end, &page->err);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static struct page *page_of(struct fair_entry *entry)
{
    return (struct page *)((char *)entry - offsetof(struct page, entry));
}

static void reply(struct request_work *work)
{
    struct page *page = (struct page *)work;
    const struct log_piece piece = {
        .attempt = page->search.attempt, .record = page->end.record, .offset = page->end.offset};
    struct text out = {0};
    char next[LOG_ID_BYTES];
    if (!page->ok) {
        request_fail(work->request, &page->err);
        return;
    }
    log_piece_id(&piece, 0, next);
    member_write_int(&out, "{\"attempt\":", page->search.attempt);
    text_append(&out, ",\"matches\":[");
    text_append_bytes(&out, page->json.bytes, page->json.length);
    member_write_int(&out, "],\"scanned\":", page->end.scanned);
    member_write_text(&out, ",\"next\":", page->end.more ? next : NULL);
    text_append(&out, "}");
    request_reply_json(work->request, 200, &out);
}

static void serve_next(struct log_searches *searches);

static void returned(struct request_work *work)
{
    struct page *page = (struct page *)work;
    fair_queue_remove(&page->searches->queue, &page->entry);
    serve_next(page->searches);
}

static void serve_next(struct log_searches *searches)
{
    struct fair_entry *entry = fair_queue_serve(&searches->queue);
    if (entry != NULL) {
        struct page *page = page_of(entry);
        page->work.returned = returned;
        request_work_give(&page->work, searches->worker, work, reply);
    }
}

/* Frees also a page whose turn has not come: its client has left. */
static void page_free(struct request_work *work)
{
    struct page *page = (struct page *)work;
    fair_queue_remove(&page->searches->queue, &page->entry);
    log_pattern_destroy(page->search.pattern);
    text_finish(&page->json);
    free(page->owner);
    free(page);
}

/* --- what is asked for ---------------------------------------------------------------------------------- */

static struct log_pattern *read_pattern(const struct query *query, struct err *err)
{
    int64_t regex = 0, with_case = 1, errors = 0;
    const char *text = query_text(query, "q");
    if (!query_int(query, "regex", 0, 1, &regex, err) || !query_int(query, "case", 0, 1, &with_case, err) ||
        !query_int(query, "errors", 0, 1, &errors, err)) {
        return NULL;
    }
    if ((text != NULL) == (errors == 1)) {
        err_field(err, ERR_FIELD, "q", "give q=TEXT, or errors=1 for lines that look like an error",
                  text != NULL ? "q and errors exclude each other" : "q is missing");
        return NULL;
    }
    return errors == 1 ? log_pattern_errors() : log_pattern_create(text, regex == 1, with_case == 0, err);
}

/* The attempt of the cursor goes before the newest one. */
static bool read_cursor(const struct query *query, struct log_search *search, int64_t attempt,
                        struct err *err)
{
    const char *cursor = query_text(query, "cursor");
    if (cursor == NULL) {
        return true;
    }
    return (log_id_parse(cursor, &search->attempt, &search->record, &search->offset) &&
            (attempt <= 0 || search->attempt == attempt)) ||
           err_field(err, ERR_FIELD, "cursor", "take it from \"next\" of the page before",
                     "the cursor is not one of this search");
}

static bool read_page(struct page *page, struct request *request, const struct log_query *wanted,
                      struct err *err)
{
    struct log_search *search = &page->search;
    page->limit = LIMIT_LIST_DEFAULT_ROWS;
    if (!query_int(request->query, "limit", 1, LIMIT_LIST_ROWS, &page->limit, err)) {
        return false;
    }
    snprintf(page->job_id, sizeof page->job_id, "%s", wanted->job.id);
    int64_t newest = wanted->job.attempt > 0 ? wanted->job.attempt : 1;
    *search = (struct log_search){.logs = request->server->config.logs,
                                  .job_id = page->job_id,
                                  .attempt = wanted->attempt > 0 ? wanted->attempt : newest,
                                  .rank = wanted->rank,
                                  .stream = wanted->stream,
                                  .since_ms = wanted->since_ms};
    search->pattern = read_pattern(request->query, err);
    return search->pattern != NULL && read_cursor(request->query, search, wanted->attempt, err);
}

bool log_searches_show(struct request *request, struct err *err)
{
    struct log_searches *searches = request->server->log_searches;
    struct log_query wanted;
    if (!logs_read_query(request, &wanted, err)) {
        return false;
    }
    if (recall_needs(request->server, wanted.job.id, JOB_OUTPUT)) {
        return recall_job(request, wanted.job.id, JOB_OUTPUT, log_searches_show, err);
    }
    struct page *page = xzalloc(sizeof *page);
    page->searches = searches;
    page->owner = xstrdup(identity_owner(request->who));
    request_work_begin(&page->work, request, page_free);
    if (!read_page(page, request, &wanted, err)) {
        return false;
    }
    page->search.records = log_search_records(page->search.logs, page->job_id, page->search.attempt);
    if (!fair_queue_add(&searches->queue, &page->entry, page->owner)) {
        err_set(err, ERR_TOO_MANY, "too many searches of output wait");
        return err_hint(err, "at most %d wait of one user, and %d in all", LIMIT_LOG_SEARCHES_OWNER,
                        LIMIT_LOG_SEARCHES);
    }
    serve_next(searches);
    return request_wait(request);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

bool log_searches_open(struct server *server, struct err *err)
{
    struct log_searches *searches = server->log_searches = xzalloc(sizeof *searches);
    searches->queue.limit = LIMIT_LOG_SEARCHES;
    searches->queue.owner_limit = LIMIT_LOG_SEARCHES_OWNER;
    searches->worker = worker_open(err);
    if (searches->worker == NULL) {
        return false;
    }
    searches->watch =
        (struct watch){.fd = worker_fd(searches->worker), .ready = worker_ready, .closure = searches->worker};
    return server_watch(server, &searches->watch, err);
}

void log_searches_close(struct server *server)
{
    if (server->log_searches != NULL) {
        worker_close(server->log_searches->worker);
        free(server->log_searches);
        server->log_searches = NULL;
    }
}
