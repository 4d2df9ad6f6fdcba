/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the resource of a job's runs: where it tracks, so that a person finds what it logged. It shows a run
 * only when it is there, with its page under the name by which the sender reached this server; of one at
 * another server only what the job's own environment says. */
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/worker.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"
#include "proto/members.h"

/* A run that may be there. */
struct candidate {
    int64_t attempt; /* 0: the job's environment names it */
    char *run_id;    /* owned */
};

/* A question on its way to the store. It outlives its request when that goes away. */
struct inquiry {
    struct task task;        /* first */
    struct request *request; /* NULL: gone */
    struct tracking *tracking;
    char *page;              /* owned: the URL of this server's web page */
    struct candidate *items; /* owned */
    size_t count;
    bool working; /* on the worker's thread */
    bool ok;
    struct text out;
    struct tracking_error error;
};

static void inquiry_free(struct inquiry *inquiry)
{
    for (size_t i = 0; i < inquiry->count; i++) {
        free(inquiry->items[i].run_id);
    }
    free(inquiry->items);
    free(inquiry->page);
    text_finish(&inquiry->out);
    free(inquiry);
}

static void request_gone(void *state)
{
    struct inquiry *inquiry = state;
    inquiry->request = NULL;
    if (!inquiry->working) {
        inquiry_free(inquiry);
    }
}

static void add(struct inquiry *inquiry, int64_t attempt, const char *run_id)
{
    inquiry->items = xrealloc(inquiry->items, (inquiry->count + 1) * sizeof *inquiry->items);
    inquiry->items[inquiry->count++] = (struct candidate){attempt, xstrdup(run_id)};
}

/* --- runs that are here --------------------------------------------------------------------------------- */

static bool append_run(struct inquiry *inquiry, const struct candidate *item, bool *begun)
{
    struct text *out = &inquiry->out;
    size_t before = out->length;
    bool there;
    text_append(out, *begun ? ",{" : "{");
    member_write_int_or_null(out, "\"attempt\":", item->attempt, 0);
    text_append(out, ",");
    int64_t experiment;
    if (!tracking_run_summary(inquiry->tracking, item->run_id, out, &there, &experiment, &inquiry->error)) {
        return false;
    }
    if (there) {
        autofree char *url =
            xprintf("%s#/experiments/%lld/runs/%s", inquiry->page, (long long)experiment, item->run_id);
        text_append(out, ",\"tracking_uri\":null");
        member_write_text(out, ",\"url\":", url);
        text_append(out, "}");
        *begun = true;
    } else {
        out->length = before;
    }
    return true;
}

static void inquiry_work(struct task *task)
{
    struct inquiry *inquiry = (struct inquiry *)task;
    bool begun = false;
    inquiry->ok = true;
    text_append(&inquiry->out, "{\"runs\":[");
    for (size_t i = 0; inquiry->ok && i < inquiry->count; i++) {
        inquiry->ok = append_run(inquiry, &inquiry->items[i], &begun);
    }
    text_append(&inquiry->out, "]}");
}

static void inquiry_done(struct task *task)
{
    struct inquiry *inquiry = (struct inquiry *)task;
    inquiry->working = false;
    if (inquiry->request == NULL) {
        inquiry_free(inquiry);
    } else if (inquiry->ok) {
        request_reply_json(inquiry->request, 200, &inquiry->out);
    } else {
        request_fail_with(inquiry->request, ERR_UNAVAILABLE, "%s", inquiry->error.message);
    }
}

static bool add_attempts(struct inquiry *inquiry, const struct server *server, int64_t job_key,
                         struct err *err)
{
    autorows struct rows rows = reader_attempts(server->reader, job_key, err);
    struct attempt_row row;
    while (inquiry->count < LIMIT_LIST_ROWS && rows_attempt(&rows, &row)) {
        char run_id[TRACKING_RUN_ID_BYTES];
        rank_run_id(server->rank_key, row.attempt_id, run_id);
        add(inquiry, row.number, run_id);
    }
    return !rows.failed;
}

/* By the name in the request: it has passed the gate, and it leads the sender here. The caller frees it. */
static char *page_url(const struct request *request)
{
    bool tls = request->server->config.tls_certificate != NULL;
    return xprintf("%s://%s/", tls ? "https" : "http", request->headers.host);
}

static bool ask_store(struct request *request, int64_t job_key, const char *own_run, struct err *err)
{
    struct server *server = request->server;
    struct inquiry *inquiry = xzalloc(sizeof *inquiry);
    if (own_run != NULL) {
        add(inquiry, 0, own_run);
    } else if (!add_attempts(inquiry, server, job_key, err)) {
        inquiry_free(inquiry);
        return false;
    }
    inquiry->task = (struct task){.work = inquiry_work, .done = inquiry_done};
    inquiry->request = request;
    inquiry->tracking = server->mlflow->tracking;
    inquiry->page = page_url(request);
    inquiry->working = true;
    request->state = inquiry;
    request->state_finish = request_gone;
    worker_give(server->mlflow->worker, &inquiry->task);
    return request_wait(request);
}

/* --- runs at another server ----------------------------------------------------------------------------- */

/* The URI without a name and a password; the caller frees it. */
static char *public_uri(const char *uri)
{
    const char *scheme = strstr(uri, "://");
    const char *host = scheme != NULL ? scheme + 3 : uri;
    const char *at = memrchr(host, '@', strcspn(host, "/?#"));
    return at != NULL ? xprintf("%.*s%s", (int)(host - uri), uri, at + 1) : xstrdup(uri);
}

static char *url_of(const char *uri, const char *experiment, const char *run_id)
{
    size_t length = strlen(uri);
    bool web = strncmp(uri, "http://", 7) == 0 || strncmp(uri, "https://", 8) == 0;
    const char *slash = length > 0 && uri[length - 1] == '/' ? "" : "/";
    return web && *experiment != '\0'
               ? xprintf("%s%s#/experiments/%s/runs/%s", uri, slash, experiment, run_id)
               : NULL;
}

static bool tell_of_other(struct request *request, const char *uri, const char *experiment,
                          const char *run_id)
{
    autofree char *shown = public_uri(uri);
    autofree char *url = url_of(shown, experiment, run_id);
    struct text out = {0};
    text_append(&out, "{\"runs\":[");
    if (*run_id != '\0') {
        text_append(&out, "{\"attempt\":null");
        member_write_text(&out, ",\"run_id\":", run_id);
        member_write_text(&out, ",\"run_name\":", NULL);
        member_write_text(&out, ",\"experiment_id\":", *experiment != '\0' ? experiment : NULL);
        text_append(&out, ",\"experiment\":null,\"status\":null");
        member_write_text(&out, ",\"tracking_uri\":", shown);
        member_write_text(&out, ",\"url\":", url);
        text_append(&out, "}");
    }
    text_append(&out, "]}");
    return request_reply_json(request, 200, &out);
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

bool mlflow_runs_list(struct request *request, struct err *err)
{
    struct job_facts job;
    autojson json_t *spec = NULL;
    if (!job_find(request, &job, err) || (spec = specs_get(request->server->specs, job.key, err)) == NULL) {
        return false;
    }
    const char *uri = specs_variable(spec, "MLFLOW_TRACKING_URI");
    const char *run_id = specs_variable(spec, "MLFLOW_RUN_ID");
    return uri != NULL ? tell_of_other(request, uri, or_empty(specs_variable(spec, "MLFLOW_EXPERIMENT_ID")),
                                       or_empty(run_id))
                       : ask_store(request, job.key, run_id, err);
}
