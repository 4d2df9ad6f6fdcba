/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the list of a job's runs: where it tracks, so that a person finds what it logged. It shows a run
 * only when it is there, with its page under the name by which the sender reached this server. Of a run at
 * another server it says only what the job's own environment says. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"

/* A question on its way to the store. */
struct inquiry {
    struct request_work work; /* first */
    struct tracking *tracking;
    char *page;    /* owned: the URL of this server's web page */
    json_t *asked; /* owned: the runs that may be there, {attempt, run_id} */
    bool ok;
    struct text out;
    struct tracking_error error;
};

static void inquiry_free(struct request_work *work)
{
    struct inquiry *inquiry = (struct inquiry *)work;
    json_decref(inquiry->asked);
    free(inquiry->page);
    text_finish(&inquiry->out);
    free(inquiry);
}

/* --- runs that are here --------------------------------------------------------------------------------- */

static void inquiry_work(struct task *task)
{
    struct inquiry *inquiry = (struct inquiry *)task;
    autofree char *asked = json_text(inquiry->asked);
    inquiry->ok = tracking_job_runs(inquiry->tracking, asked, inquiry->page, &inquiry->out, &inquiry->error);
}

static void inquiry_reply(struct request_work *work)
{
    struct inquiry *inquiry = (struct inquiry *)work;
    if (inquiry->ok) {
        request_reply_json(work->request, 200, &inquiry->out);
    } else {
        request_fail_with(work->request, ERR_UNAVAILABLE, "%s", inquiry->error.message);
    }
}

static bool add_attempts(json_t *asked, const struct server *server, int64_t job_key, struct err *err)
{
    autorows struct rows rows = reader_attempts(server->reader, job_key, ALL_ATTEMPTS, err);
    struct attempt_row row;
    while (json_array_size(asked) < LIMIT_LIST_ROWS && rows_attempt(&rows, &row)) {
        char run_id[TRACKING_RUN_ID_BYTES];
        rank_run_id(server->rank_key, row.attempt_id, run_id);
        json_array_append_new(asked,
                              json_pack("{s:I, s:s}", "attempt", (json_int_t)row.number, "run_id", run_id));
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
    request_work_begin(&inquiry->work, request, inquiry_free);
    inquiry->tracking = server->mlflow->tracking;
    inquiry->page = page_url(request);
    inquiry->asked = own_run != NULL ? json_pack("[{s:n, s:s}]", "attempt", "run_id", own_run) : json_array();
    if (own_run == NULL && !add_attempts(inquiry->asked, server, job_key, err)) {
        return false;
    }
    return request_work_give(&inquiry->work, server->mlflow->worker, inquiry_work, inquiry_reply);
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
