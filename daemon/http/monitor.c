/* SPDX-License-Identifier: Apache-2.0 */
/* Renders GET /metrics: what the controller has, how full its bounds are, how long its work
 * takes, and what nodes use. The figures of the controller name no job, user or node, so they are as many for
 * a large cluster as for a small one; they are kept anyway, and the disk is asked for two file sizes and its
 * free space. Only the parked requests are counted, 0.1 ms for 10,000 of them. The lines of nodes, GPUs and
 * allocations follow in pieces (gpu_metrics.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <utlist.h>

#include "daemon/http/api/retention.h"
#include "daemon/http/api/backups.h"
#include "daemon/http/base/exposition.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/request/library.h"
#include "daemon/http/request/pieces.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/request/senders.h"
#include "daemon/http/router.h"
#include "daemon/http/samples/gpu_metrics.h"
#include "daemon/http/samples/samples.h"
#include "daemon/traces/exporter.h"
#include "daemon/notify/notify.h"
#include "daemon/writer/writer.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/limits_tracking.h"
#include "proto/states.h"

#define LABELS_BYTES 128

/* --- jobs and nodes ------------------------------------------------------------------------------------- */

static void add_states(struct exposition *out, const char *name, const size_t *counts, bool ended)
{
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        char labels[LABELS_BYTES];
        snprintf(labels, sizeof labels, "state=\"%s\"", job_state_text((enum job_state)state));
        if (job_state_terminal((enum job_state)state) == ended) {
            exposition_sample(out, name, labels, (int64_t)counts[state]);
        }
    }
}

static void add_jobs(const struct core_figures *figures, struct exposition *out)
{
    exposition_metric(out, "gpuctl_jobs", "gauge", "Jobs that have not ended, by state");
    add_states(out, "gpuctl_jobs", figures->jobs, false);
    exposition_metric(out, "gpuctl_jobs_ended_total", "counter",
                      "Jobs that have ended since the controller started, by state");
    add_states(out, "gpuctl_jobs_ended_total", figures->jobs, true);
    exposition_metric(out, "gpuctl_jobs_submitted_total", "counter",
                      "Jobs and tasks that were taken since the controller started");
    exposition_sample(out, "gpuctl_jobs_submitted_total", "", (int64_t)figures->submit_count);
}

/* SUSPECT is no state of its own here: it follows from heartbeats. */
static void add_nodes(const struct server *server, struct exposition *out)
{
    const struct core_figures *figures = &server->figures;
    exposition_metric(out, "gpuctl_nodes", "gauge",
                      "Nodes by state; one that misses heartbeats keeps its state");
    for (int state = 0; state < NODE_STATE_COUNT; state++) {
        char labels[LABELS_BYTES];
        snprintf(labels, sizeof labels, "state=\"%s\"", node_state_text((enum node_state)state));
        if (state != NODE_SUSPECT) {
            exposition_sample(out, "gpuctl_nodes", labels, (int64_t)figures->nodes[state]);
        }
    }
    exposition_metric(out, "gpuctl_nodes_silent", "gauge", "Nodes that miss heartbeats and are not LOST yet");
    exposition_sample(out, "gpuctl_nodes_silent", "", (int64_t)figures->silent_count);
    exposition_metric(out, "gpuctl_attempts", "gauge", "Attempts that hold a lease on their GPUs");
    exposition_sample(out, "gpuctl_attempts", "", (int64_t)figures->attempt_count);
    exposition_metric(out, "gpuctl_leases_held", "gauge",
                      "1 while so many nodes are silent that no lease expires; else 0");
    exposition_sample(out, "gpuctl_leases_held", "", writer_holds_leases(server->config.writer));
}

static void add_webhooks(const struct server *server, struct exposition *out)
{
    exposition_metric(out, "gpuctl_webhook_deliveries_pending", "gauge",
                      "Deliveries of webhooks that wait for their first try or another");
    exposition_sample(out, "gpuctl_webhook_deliveries_pending", "",
                      (int64_t)server->figures.pending_deliveries);
    if (server->config.notify != NULL) {
        const struct notify_figures tries = notify_figures(server->config.notify);
        exposition_metric(
            out, "gpuctl_webhook_tries_total", "counter",
            "Requests to receivers of webhooks since the start: answered with 2xx, with another "
            "status, or not");
        exposition_sample(out, "gpuctl_webhook_tries_total", "outcome=\"delivered\"",
                          (int64_t)tries.delivered);
        exposition_sample(out, "gpuctl_webhook_tries_total", "outcome=\"refused\"", (int64_t)tries.refused);
        exposition_sample(out, "gpuctl_webhook_tries_total", "outcome=\"failed\"", (int64_t)tries.failed);
    }
}

/* --- bounds --------------------------------------------------------------------------------------------- */

static int64_t file_bytes(const char *path, const char *ending)
{
    struct stat status;
    autofree char *name = xprintf("%s%s", path, ending);
    return stat(name, &status) == 0 ? status.st_size : 0;
}

/* Zeros where no traces are sent. */
static struct exporter_figures traces_of(const struct server *server)
{
    struct exporter *exporter = server->config.exporter;
    return exporter != NULL ? exporter_figures(exporter) : (struct exporter_figures){0};
}

static void add_bounds(const struct server *server, struct exposition *out)
{
    const struct {
        const char *labels;
        int64_t used, limit;
    } bounds[] = {
        {"of=\"connections\"", (int64_t)library_connections(server->library), server->connection_limit},
        {"of=\"writer_queue\"", (int64_t)writer_waiting(server->config.writer), LIMIT_WRITER_QUEUE},
        {"of=\"questions\"", (int64_t)writer_questions(server->config.writer), LIMIT_QUESTIONS},
        {"of=\"live_jobs\"", (int64_t)writer_live_jobs(server->config.writer), LIMIT_LIVE_JOBS},
        {"of=\"large_body_bytes\"", server->body_bytes, LIMIT_BODIES_BYTES},
        {"of=\"tracking_calls\"", (int64_t)server->mlflow->waiting, LIMIT_MLFLOW_WAITING},
        {"of=\"tracking_searches\"", (int64_t)fair_queue_waiting(&server->mlflow->searches.queue),
         LIMIT_MLFLOW_SEARCHES},
        {"of=\"tracking_samples\"", (int64_t)server->mlflow->samples, LIMIT_SAMPLES_WAITING},
        {"of=\"node_samples\"", (int64_t)samples_waiting(server), LIMIT_RINGS_WAITING},
        {"of=\"limited_accounts\"", (int64_t)server->figures.limited_count, LIMIT_ACCOUNTS_LIMITED},
        {"of=\"webhooks\"", (int64_t)server->figures.webhook_count, LIMIT_WEBHOOKS},
        {"of=\"windows\"", (int64_t)server->figures.window_count, LIMIT_WINDOWS},
        {"of=\"pools\"", (int64_t)server->figures.pool_count, LIMIT_POOLS},
        {"of=\"gpu_types\"", (int64_t)server->figures.type_count, LIMIT_GPU_TYPES},
        {"of=\"trace_ends\"", traces_of(server).waiting, LIMIT_TRACE_ENDS},
        {"of=\"database_log_bytes\"", file_bytes(server->config.store_path, "-wal"), WAL_FORCED_BYTES},
    };
    exposition_metric(out, "gpuctl_used", "gauge", "How much of something bounded is in use");
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        exposition_sample(out, "gpuctl_used", bounds[i].labels, bounds[i].used);
    }
    exposition_metric(out, "gpuctl_limit", "gauge", "Its bound");
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        exposition_sample(out, "gpuctl_limit", bounds[i].labels, bounds[i].limit);
    }
}

static void add_kept(const struct server *server, struct exposition *out)
{
    const struct retention_sizes sizes = retention_sizes(server);
    exposition_metric(out, "gpuctl_log_bytes", "gauge",
                      "Output and metrics of jobs on the disk, as of the last count");
    if (sizes.log_bytes >= 0) {
        exposition_sample(out, "gpuctl_log_bytes", "", sizes.log_bytes);
    }
    exposition_metric(
        out, "gpuctl_log_share_bytes", "gauge",
        "Above this, on a disk that is full to the same degree, the oldest output goes; 0: never");
    exposition_sample(out, "gpuctl_log_share_bytes", "", sizes.log_share_bytes);
    exposition_metric(out, "gpuctl_blob_bytes", "gauge", "Files of blobs on the disk, as of the last count");
    if (sizes.blob_bytes >= 0) {
        exposition_sample(out, "gpuctl_blob_bytes", "", sizes.blob_bytes);
    }
}

static void add_disk(const struct server *server, struct exposition *out)
{
    add_kept(server, out);
    exposition_metric(out, "gpuctl_database_bytes", "gauge", "Size of the database without its log");
    exposition_sample(out, "gpuctl_database_bytes", "", file_bytes(server->config.store_path, ""));
    exposition_metric(out, "gpuctl_disk_free_bytes", "gauge", "Free space on the disk of the state folder");
    exposition_sample(out, "gpuctl_disk_free_bytes", "", space_free(server->space));
    exposition_metric(out, "gpuctl_disk_margin_bytes", "gauge",
                      "With less free space submissions are refused (--min-free)");
    exposition_sample(out, "gpuctl_disk_margin_bytes", "", space_margin(server->space));
    if (server->backups != NULL) {
        exposition_metric(out, "gpuctl_backup_newest_timestamp_seconds", "gauge",
                          "When the newest backup was made, since 1970; 0: there is none");
        exposition_sample(out, "gpuctl_backup_newest_timestamp_seconds", "",
                          backups_newest_ms(server) / 1000);
    }
    exposition_metric(out, "gpuctl_disk_full", "gauge",
                      "1 after the disk was full, until there is room again; else 0");
    exposition_sample(out, "gpuctl_disk_full", "", space_is_full(server->space));
}

/* --- work ----------------------------------------------------------------------------------------------- */

static void add_writer(const struct server *server, struct exposition *out)
{
    const struct writer_measures *measures = writer_measures(server->config.writer);
    exposition_metric(out, "gpuctl_commit_seconds", "histogram",
                      "Time of transactions until they are on disk");
    exposition_histogram(out, "gpuctl_commit_seconds", "", &measures->commits);
    exposition_metric(out, "gpuctl_scheduling_seconds", "histogram",
                      "Time of inputs that had scheduling passes, with their changes of rows");
    exposition_histogram(out, "gpuctl_scheduling_seconds", "", &measures->passes);
}

/* The labels of a route, or of requests that have none. */
static void name_route(const struct route *route, char out[LABELS_BYTES])
{
    bool known = route->path != NULL;
    snprintf(out, LABELS_BYTES, "method=\"%s\",route=\"%s\"", known ? method_text(route->method) : "none",
             known ? route->path : "none");
}

static void add_replies(const struct route *route, const struct route_measures *measures,
                        struct exposition *out)
{
    char route_labels[LABELS_BYTES];
    name_route(route, route_labels);
    for (int class = 0; class < STATUS_CLASSES; class ++) {
        autofree char *labels = xprintf("%s,class=\"%dxx\"", route_labels, class);
        if (measures->replies[class] > 0) {
            exposition_sample(out, "gpuctl_http_requests_total", labels, (int64_t)measures->replies[class]);
        }
    }
}

static void add_times(const struct route *route, const struct route_measures *measures,
                      struct exposition *out)
{
    char labels[LABELS_BYTES];
    name_route(route, labels);
    for (int class = 0; class < STATUS_CLASSES; class ++) {
        if (measures->replies[class] > 0) {
            exposition_histogram(out, "gpuctl_http_request_seconds", labels, &measures->took);
            return;
        }
    }
}

static void each_route(const struct server *server, struct exposition *out,
                       void (*add)(const struct route *route, const struct route_measures *measures,
                                   struct exposition *out))
{
    const struct route *route = routes;
    const struct route_measures *measures = server->measures;
    for (; route->path != NULL; route++, measures++) {
        add(route, measures, out);
    }
    add(route, measures, out);
}

/* Their answer comes when something happens, and nothing of ours is at work on it. */
static int64_t count_parked(const struct server *server)
{
    const struct request *request;
    int64_t count = 0;
    DL_FOREACH (server->requests, request) {
        count += request->suspended && !request->share.in_line && !request->share.handed_on;
    }
    return count;
}

static void add_http(const struct server *server, struct exposition *out)
{
    exposition_metric(out, "gpuctl_http_requests_total", "counter",
                      "Requests that were answered, by route and class of the status");
    each_route(server, out, add_replies);
    exposition_metric(out, "gpuctl_http_request_seconds", "histogram",
                      "Time from the end of a request to the beginning of its answer, by route");
    each_route(server, out, add_times);
    exposition_metric(out, "gpuctl_http_requests_open", "gauge",
                      "Requests that have come and are not answered to the end");
    exposition_sample(out, "gpuctl_http_requests_open", "", (int64_t)server->request_count);
    exposition_metric(
        out, "gpuctl_http_requests_parked", "gauge",
        "Of these, those that wait for something to happen: polls of agents, ?wait=, event streams");
    exposition_sample(out, "gpuctl_http_requests_parked", "", count_parked(server));
    exposition_metric(out, "gpuctl_http_requests_in_line", "gauge",
                      "Requests that wait because their sender has used its share");
    exposition_sample(out, "gpuctl_http_requests_in_line", "", (int64_t)senders_lined(server->senders));
    exposition_metric(out, "gpuctl_http_requests_refused_total", "counter",
                      "Requests that were refused after they had waited for --request-wait");
    exposition_sample(out, "gpuctl_http_requests_refused_total", "",
                      (int64_t)senders_refused(server->senders));
}

static void add_traces(const struct server *server, struct exposition *out)
{
    const struct exporter_figures figures = traces_of(server);
    exposition_metric(out, "gpuctl_traces_spans_total", "counter",
                      "Spans that the collector took or rejected, or that were dropped, by outcome");
    exposition_sample(out, "gpuctl_traces_spans_total", "outcome=\"sent\"", figures.sent);
    exposition_sample(out, "gpuctl_traces_spans_total", "outcome=\"rejected\"", figures.rejected);
    exposition_sample(out, "gpuctl_traces_spans_total", "outcome=\"dropped\"", figures.dropped);
    exposition_metric(out, "gpuctl_traces_ends_missed_total", "counter",
                      "Ends of jobs and attempts whose spans were never made");
    exposition_sample(out, "gpuctl_traces_ends_missed_total", "", figures.ends_missed);
}

static void add_build(struct exposition *out)
{
    exposition_metric(out, "gpuctl_build_info", "gauge", "Always 1; the label is the version of gpuctld");
    exposition_sample(out, "gpuctl_build_info", "version=\"" GPUCTL_VERSION "\"", 1);
}

/* A page that is being made. */
struct page {
    struct pieces pieces; /* first */
    struct exposition out;
    struct gpu_metrics *gpus;
};

static void page_free(struct pieces *pieces)
{
    struct page *page = (struct page *)pieces;
    gpu_metrics_destroy(page->gpus);
    text_finish(&page->out.text);
    free(page);
}

static enum pieces_state page_work(struct pieces *pieces, struct err *err)
{
    struct page *page = (struct page *)pieces;
    enum pieces_state state = gpu_metrics_step(page->gpus, err);
    if (state == PIECES_DONE) {
        gpu_metrics_write(page->gpus, &page->out);
        exposition_end(&page->out);
        size_t length = page->out.text.length;
        request_reply(pieces->request, 200, exposition_type(&page->out), text_take(&page->out.text), length);
    }
    return state;
}

bool monitor_show(struct request *request, struct err *err)
{
    const struct server *server = request->server;
    const char *accept = request->headers.accept;
    struct page *page = xzalloc(sizeof *page);
    struct exposition *out = &page->out;
    page->pieces = (struct pieces){.work = page_work, .free = page_free};
    out->open_metrics = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    add_build(out);
    add_jobs(&server->figures, out);
    add_nodes(server, out);
    add_webhooks(server, out);
    add_bounds(server, out);
    add_disk(server, out);
    add_writer(server, out);
    add_http(server, out);
    add_traces(server, out);
    page->gpus = gpu_metrics_create(request, out->open_metrics);
    return pieces_begin(request, &page->pieces, err);
}
