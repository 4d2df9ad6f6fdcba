/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the HTTP thread: one epoll loop over the HTTP library's own epoll sets, the writer's news, signals and
 * other file descriptors. The server never waits for a disk or a client. Answers leave
 * before the orders of the same commit, and every accepted change is answered before the server ends. */
#include "daemon/http/server.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utlist.h>

#include "daemon/blob/worker.h"
#include "daemon/http/api/ask.h"
#include "daemon/http/api/backups.h"
#include "daemon/http/api/retention.h"
#include "daemon/http/objects/recalls.h"
#include "daemon/objects/objects.h"
#include "daemon/http/audit/audit.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/blocks.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/waiters.h"
#include "daemon/http/events/event_ring.h"
#include "daemon/http/listener.h"
#include "daemon/http/logins.h"
#include "daemon/http/logs/log_searches.h"
#include "daemon/http/api/uploads.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/orders/outbox.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/orders/staging_board.h"
#include "daemon/http/request/connection.h"
#include "daemon/http/request/library.h"
#include "daemon/http/request/peers.h"
#include "daemon/http/request/pieces.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/senders.h"
#include "daemon/http/router.h"
#include "daemon/http/samples/samples.h"
#include "daemon/http/scrubbing.h"
#include "daemon/http/streams/streams.h"
#include "daemon/http/schedules/schedules.h"
#include "daemon/http/secrets/secrets.h"
#include "daemon/http/submit/batches.h"
#include "daemon/http/submit/images.h"
#include "daemon/http/usage/holders.h"
#include "daemon/http/usage/overview.h"
#include "daemon/http/queue/queue.h"
#include "daemon/http/queue/simulations.h"
#include "daemon/http/usage/usage.h"
#include "daemon/notify/notify.h"
#include "daemon/store/store.h"
#include "daemon/traces/exporter.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/limits_controller.h"

#define LOOP_EVENTS 32 /* more watches than there are */

/* --- ending --------------------------------------------------------------------------------------------- */

void server_stop(struct server *server, enum server_end end)
{
    if (server->ending) {
        return;
    }
    server->ending = true;
    server->end = end;
    server->end_ms = server->now_ms + CLOSE_LINGER_MS;
    bool for_good = end == SERVER_END_SHUTDOWN || end == SERVER_END_IDLE;
    server->refusing = for_good;
    server->telling = for_good && server->config.embedded;
    if (server->telling) {
        outbox_shut_down(server->outbox);
    } else {
        library_quiesce(server->library);
    }
    deadlines_run_all(server->deadlines);
    streams_stop(server);
}

/* A part of the server has found that the store cannot be trusted. */
static void stop_if_failed(struct server *server)
{
    if (server->failed) {
        server_stop(server, SERVER_END_FAILED);
    }
}

/* --- watches -------------------------------------------------------------------------------------------- */

static void take_answers(struct server *server, struct writer_request *list)
{
    while (list != NULL) {
        struct writer_request *next = list->next;
        ask_answered(server, list);
        list = next;
    }
}

static void trace_ends(const struct server *server, const struct writer_news *news)
{
    struct exporter *exporter = server->config.exporter;
    for (size_t i = 0; exporter != NULL && i < news->end_count; i++) {
        exporter_attempt_ended(exporter, news->ends[i].attempt_id);
    }
    for (size_t i = 0; exporter != NULL && i < news->touched_count; i++) {
        if (job_state_terminal(news->touched[i].state)) {
            exporter_job_ended(exporter, news->touched[i].key);
        }
    }
}

static void writer_ready(struct watch *watch)
{
    struct server *server = watch->closure;
    struct writer_news news;
    writer_collect(server->config.writer, &news);
    if (news.touched_count > 0) {
        server->busy_ms = server->now_ms;
    }
    server->jobs_version += news.touched_count > 0 || news.jobs_gone;
    take_answers(server, news.answered);
    for (size_t i = 0; i < news.order_count; i++) {
        outbox_put(server->outbox, news.orders[i]);
    }
    for (size_t i = 0; i < news.touched_count; i++) {
        waiters_wake(server->waiters, news.touched[i].key, &news.touched[i]);
        job_runs_touched(server->mlflow->runs, news.touched[i].key, news.touched[i].id);
    }
    if (news.touched_count > 0) {
        event_ring_add(server->event_ring, news.touched, news.touched_count);
        waiters_wake(server->waiters, WAITERS_EVENTS, NULL);
    }
    for (size_t i = 0; i < news.end_count; i++) {
        recent_ends_add(&server->ends, &news.ends[i]);
    }
    trace_ends(server, &news);
    if (server->config.notify != NULL && news.figures.delivery_stamp != server->figures.delivery_stamp) {
        notify_wake(server->config.notify);
    }
    server->figures = news.figures;
    if (news.queue != NULL) {
        queue_snapshot_destroy(server->queue);
        server->queue = give(news.queue);
    }
    if (news.failed) {
        server->writer_failed = true;
        server_fail(server, &news.error);
    }
    writer_news_finish(&news);
}

static void signal_ready(struct watch *watch)
{
    struct server *server = watch->closure;
    struct signalfd_siginfo info;
    if (read(watch->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        log_info("signal take", "signal=%s", strsignal((int)info.ssi_signo));
        server_stop(server, SERVER_END_SIGNAL);
    }
}

static void worker_ready(struct watch *watch)
{
    const struct server *server = watch->closure;
    worker_collect(server->config.worker);
}

static bool is_busy(const struct server *server)
{
    return server->people_count > 0 || server->submits > 0 || writer_live_jobs(server->config.writer) > 0 ||
           schedules_wait(server);
}

static void idle_due(struct deadline *deadline)
{
    struct server *server = deadline->closure;
    if (is_busy(server)) {
        server->busy_ms = server->now_ms;
    }
    int64_t end_ms = server->busy_ms + server->config.idle_exit_ms;
    if (server->now_ms >= end_ms) {
        server_stop(server, SERVER_END_IDLE);
    } else {
        deadline_set(server->deadlines, deadline, end_ms);
    }
}

/* --- the loop ------------------------------------------------------------------------------------------- */

static void read_clock(struct server *server)
{
    server->now_ms = clock_boot_ms();
    server->wall_ms = clock_wall_ms();
}

/* How long nothing may happen: until the next deadline. */
static int patience(const struct server *server)
{
    bool at_once = library_has_work(server->library) || batches_wait(server->batches) || pieces_wait(server);
    int64_t left_ms = at_once ? server->now_ms : deadlines_next(server->deadlines);
    int64_t turn_ms = senders_due_ms(server->senders, server->now_ms);
    left_ms = turn_ms < left_ms ? turn_ms : left_ms;
    if (server->ending && server->end_ms < left_ms) {
        left_ms = server->end_ms;
    }
    if (left_ms != INT64_MAX) {
        left_ms -= server->now_ms;
        left_ms = left_ms > 0 ? left_ms : 0;
    }
    return left_ms > INT32_MAX ? -1 : (int)left_ms;
}

static void turn(struct server *server)
{
    struct epoll_event events[LOOP_EVENTS];
    int count = epoll_wait(server->loop_fd, events, LOOP_EVENTS, patience(server));
    read_clock(server);
    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        watch->ready(watch);
    }
    space_tend(server->space);
    senders_turn(server->senders, server->now_ms, count == 0 && !pieces_wait(server));
    deadlines_run(server->deadlines, server->now_ms);
    batches_turn(server->batches);
    pieces_turn(server);
    stop_if_failed(server);
    library_run(server->library);
    stop_if_failed(server);
}

static bool is_over(const struct server *server)
{
    bool quiet = server->request_count == 0 && server->asks == 0 && !streams_any(server);
    bool told = !server->telling || outbox_all_told(server->outbox, server->now_ms);
    return server->ending && ((quiet && told) || server->now_ms >= server->end_ms);
}

enum server_end server_run(struct server *server, struct err *err)
{
    read_clock(server);
    while (!is_over(server)) {
        turn(server);
    }
    if (server->failed) {
        *err = server->failure;
    }
    return server->end;
}

/* --- opening -------------------------------------------------------------------------------------------- */

/* The names of the configuration, and the listen address where it is one. */
static void open_names(struct server *server)
{
    const struct server_config *config = &server->config;
    bool any = strcmp(config->address, "0.0.0.0") == 0 || strcmp(config->address, "::") == 0;
    server->name_items = xzalloc((config->host_name_count + 1) * sizeof(char *));
    for (size_t i = 0; i < config->host_name_count; i++) {
        server->name_items[server->names.count++] = config->host_names[i];
    }
    if (!any) {
        server->listen_name = xprintf(strchr(config->address, ':') != NULL ? "[%s]" : "%s", config->address);
        server->name_items[server->names.count++] = server->listen_name;
    }
    server->names.items = server->name_items;
}

static bool open_library(struct server *server, struct err *err)
{
    const struct server_config *config = &server->config;
    unsigned connections = listener_connections(err);
    server->connection_limit = connections;
    server->peers = peers_create(config->per_address > 0 ? (size_t)config->per_address : connections / 2);
    int listener;
    if (connections == 0 ||
        (listener = listener_open(config->address, config->port, &server->port, err)) < 0) {
        return false;
    }
    server->library = library_open(server, router_call, listener, connections, err);
    return server->library != NULL;
}

static bool open_watch(struct server *server, struct watch *watch, int fd, void (*ready)(struct watch *),
                       struct err *err)
{
    *watch = (struct watch){.fd = fd, .ready = ready, .closure = server};
    return fd < 0 || server_watch(server, watch, err);
}

static bool open_loop(struct server *server, struct err *err)
{
    const struct server_config *config = &server->config;
    server->loop_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->loop_fd < 0) {
        return err_errno(err, "cannot make an epoll set");
    }
    int worker = config->worker != NULL ? worker_fd(config->worker) : -1;
    return open_watch(server, &server->writer, writer_fd(config->writer), writer_ready, err) &&
           open_watch(server, &server->signals, config->signal_fd, signal_ready, err) &&
           open_watch(server, &server->worker, worker, worker_ready, err);
}

static void open_parts(struct server *server)
{
    overview_open(server);
    queue_open(server);
    server->request_blocks.bytes = REQUEST_BLOCK_BYTES;
    server->ask_blocks.bytes = ASK_BLOCK_BYTES;
    server->auth = auth_create();
    server->deadlines = deadlines_create();
    server->waiters = waiters_create();
    server->event_ring = event_ring_create();
    connections_open(server);
    server->measures = router_measures();
    server->senders = senders_create(server->config.request_wait_ms);
    server->stagings = staging_board_create();
    server->outbox = outbox_create(server);
    server->batches = batches_create();
    server->specs = specs_create(server->reader);
    server->space = space_create(server);
    server->uploads = uploads_create(server->config.upload_quota);
    if (server->config.idle_exit_ms > 0) {
        server->idle = (struct deadline){.due = idle_due, .closure = server};
        deadline_set(server->deadlines, &server->idle, server->now_ms + server->config.idle_exit_ms);
    }
}

static void fill_defaults(struct server_config *config)
{
    config->address = config->address != NULL ? config->address : "127.0.0.1";
    config->heartbeat_ms = config->heartbeat_ms > 0 ? config->heartbeat_ms : HEARTBEAT_MS;
    config->log_limit = config->log_limit > 0 ? config->log_limit : LIMIT_STREAM_BYTES;
    config->upload_quota = config->upload_quota > 0 ? config->upload_quota : DEFAULT_UPLOAD_QUOTA_BYTES;
    config->patience_ms = config->patience_ms > 0 ? config->patience_ms : DEFAULT_PATIENCE_MS;
    config->lease_min_ms = config->lease_min_ms > 0 ? config->lease_min_ms : LIMIT_LEASE_MIN_MS;
}

struct server *server_open(const struct server_config *config, struct err *err)
{
    struct server *server = xzalloc(sizeof *server);
    server->config = *config;
    server->loop_fd = -1;
    fill_defaults(&server->config);
    read_clock(server);
    server->opened_ms = server->busy_ms = server->now_ms;
    signal(SIGPIPE, SIG_IGN);
    server->reader = reader_open(config->store_path, err);
    open_parts(server);
    open_names(server);
    if (server->reader == NULL || !auth_load(server->auth, server->reader, err) ||
        (server->projects = projects_load(server->reader, err)) == NULL || !secrets_open(server, err) ||
        !uploads_load(server->uploads, server->reader, server->wall_ms, server->now_ms, err) ||
        !open_loop(server, err) || !open_library(server, err) || !mlflow_open(server, err) ||
        !recalls_open(server, server->mlflow->artifacts, err) || !log_searches_open(server, err) ||
        !simulations_open(server, err) || !logins_open(server, err) || !samples_open(server, err) ||
        !usage_open(server, err) || !backups_open(server, err) || !retention_open(server, err) ||
        !scrubbing_open(server, err) || !streams_open(server, err)) {
        server_close(server);
        return NULL;
    }
    server->sessions = sessions_create(server->rank_key);
    server->audit = audit_create();
    schedules_open(server);
    return server;
}

uint16_t server_port(const struct server *server)
{
    return server->port;
}

/* --- closing -------------------------------------------------------------------------------------------- */

/* Changes that are with the writer borrow from requests; after a failure the writer holds nothing any more.
 */
static void await_asks(struct server *server)
{
    while (server->asks > 0 && !server->writer_failed) {
        struct pollfd writer = {.fd = server->writer.fd, .events = POLLIN};
        if (poll(&writer, 1, -1) > 0) {
            writer_ready(&server->writer);
        }
    }
}

/* The library must not be stopped while it holds suspended connections. */
static void resume_all(struct server *server)
{
    struct request *request, *next;
    DL_FOREACH_SAFE (server->requests, request, next) {
        if (request->phase == REQUEST_WAITING && request->response == NULL) {
            request_fail_with(request, ERR_UNAVAILABLE, "the controller has ended");
        } else if (request->suspended) {
            request_resume(request);
        }
    }
}

void server_close(struct server *server)
{
    if (server == NULL) {
        return;
    }
    server->ending = true;
    if (server->library != NULL) {
        await_asks(server);
        streams_close(server);
        resume_all(server);
        library_close(server->library);
        assert(server->request_count == 0 && server->people_count == 0 && server->body_bytes == 0);
    }
    schedules_close(server);
    recalls_close(server);
    scrubbing_close(server);
    retention_close(server);
    backups_close(server);
    objects_close(server->objects);
    mlflow_close(server);
    samples_close(server);
    log_searches_close(server);
    simulations_close(server);
    logins_close(server);
    images_close(server->images);
    usage_close(server);
    overview_close(server);
    queue_close(server);
    holders_destroy(server->holders);
    cleanup_close(&server->loop_fd);
    blocks_finish(&server->request_blocks);
    blocks_finish(&server->ask_blocks);
    specs_destroy(server->specs);
    outbox_destroy(server->outbox);
    batches_destroy(server->batches);
    recent_ends_finish(&server->ends);
    queue_snapshot_destroy(server->queue);
    staging_board_destroy(server->stagings);
    waiters_destroy(server->waiters);
    event_ring_destroy(server->event_ring);
    peers_destroy(server->peers);
    senders_destroy(server->senders);
    free(server->measures);
    deadlines_destroy(server->deadlines);
    sessions_destroy(server->sessions);
    audit_destroy(server->audit);
    auth_destroy(server->auth);
    projects_release(server->projects);
    secrets_close(server->secrets);
    space_destroy(server->space);
    uploads_destroy(server->uploads);
    reader_close(server->reader);
    free(server->listen_name);
    free(server->name_items);
    free(server);
}
