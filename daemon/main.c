/* SPDX-License-Identifier: Apache-2.0 */
/* gpuctld: opens its parts in order, serves, and closes them in reverse order. It writes the endpoint file
 * and holds the lock of the state folder. upkeep.c runs the actions instead of serving. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/admin_token.h"
#include "daemon/backup/restore.h"
#include "daemon/blob/blobs.h"
#include "daemon/blob/checkpoints/checkpoints.h"
#include "daemon/blob/logs.h"
#include "daemon/blob/worker.h"
#include "daemon/config.h"
#include "daemon/home.h"
#include "daemon/host_names.h"
#include "daemon/http/server.h"
#include "daemon/init.h"
#include "daemon/notify/notify.h"
#include "daemon/store/database/reserve_file.h"
#include "daemon/store/store.h"
#include "daemon/tls.h"
#include "daemon/traces/collector.h"
#include "daemon/traces/exporter.h"
#include "daemon/upkeep.h"
#include "daemon/writer/writer.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/base/notify.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

#define PEM_BYTES (1024 * 1024) /* a certificate chain */

/* All open parts, in the order of opening. */
struct daemon {
    struct config config;
    int lock;
    int signals;
    char *database;
    char *shelf;            /* folder of the backups */
    struct tls tls;         /* texts in PEM; NULL members: plain HTTP */
    struct host_list names; /* for the Host header */
    struct reserve_file *reserve_file;
    struct store *store;
    struct writer *writer;
    struct worker *worker;
    struct logs *logs;
    struct checkpoints *checkpoints;
    struct blobs *blobs;
    struct exporter *exporter; /* NULL: no traces are sent */
    char *page;                /* address of the web page */
    struct notify *notify;
    struct server *server;
};

/* Completes an interrupted restore before anything is opened. */
static bool take_state(struct daemon *daemon, struct err *err)
{
    const char *state = daemon->config.state;
    bool finished;
    daemon->lock = home_lock(state, err);
    daemon->database = xprintf("%s/" BACKUP_DATABASE, state);
    daemon->shelf = daemon->config.backup_folder != NULL ? xstrdup(daemon->config.backup_folder)
                                                         : xprintf("%s/backups", state);
    if (daemon->lock < 0 || !restore_finish(state, &finished, err)) {
        return false;
    }
    if (finished) {
        log_warning("restore finished", "state=%s reason=\"it was cut short\"", state);
    }
    return true;
}

/* --- opening and closing -------------------------------------------------------------------------------- */

static int open_signals(struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        err_errno(err, "cannot make a signalfd");
    }
    return fd;
}

static bool read_pem(const char *path, char **ret_text, struct err *err)
{
    return path == NULL || file_read(path, PEM_BYTES, ret_text, NULL, err);
}

/* Reports a missing folder that an earlier start made. The folder is made again, because a restored backup
 * does not contain it. */
static void note_missing(const struct daemon *daemon, const char *folder, const char *lost)
{
    bool first = store_incarnation(daemon->store) == 1;
    if (!first && access(folder, F_OK) != 0) {
        log_warning("folder missing",
                    "path=%s lost=\"%s\" remedy=\"put it back while the controller is down\"", folder, lost);
    }
}

/* Uses the configured certificate; else makes our own if the address is outside the loopback or gpuctld init
 * was run. */
static bool open_tls(struct daemon *daemon, struct err *err)
{
    const struct config *config = &daemon->config;
    struct host_list *names = &daemon->names;
    bool loopback = config_is_loopback(config->address);
    for (size_t i = 0; i < config->host_names.count; i++) {
        host_list_add(names, config->host_names.items[i]);
    }
    if (config->tls_certificate != NULL) {
        return read_pem(config->tls_certificate, &daemon->tls.certificate, err) &&
               read_pem(config->tls_key, &daemon->tls.key, err);
    }
    if (config->insecure_plain_http || (loopback && !tls_exists(config->state))) {
        return true;
    }
    if (names->count == 0 && !loopback) {
        host_list_find(names);
    }
    return tls_open(config->state, (const char *const *)names->items, names->count, clock_wall_ms(),
                    &daemon->tls, err);
}

static bool open_files(struct daemon *daemon, struct err *err)
{
    autofree char *logs = xprintf("%s/logs", daemon->config.state);
    autofree char *kept = xprintf("%s/files", daemon->config.state);
    autofree char *checkpoints = xprintf("%s/checkpoints", daemon->config.state);
    autofree char *blobs = xprintf("%s/blobs", daemon->config.state);
    note_missing(daemon, logs, "output of jobs that have ended");
    note_missing(daemon, blobs, "payloads and results above 64 KiB");
    return (daemon->worker = worker_open(err)) != NULL &&
           (daemon->logs = logs_open(logs, kept, daemon->config.log_limit_mib * MIB, daemon->worker, err)) !=
               NULL &&
           (daemon->checkpoints =
                checkpoints_open(checkpoints, daemon->config.checkpoint_limit_gib * GIB, err)) != NULL &&
           (daemon->blobs = blobs_open(blobs, err)) != NULL;
}

static bool read_headers(const struct config *config, char **ret_text, struct err *err)
{
    const char *path = config->otlp_headers;
    return path == NULL || (file_read(path, LIMIT_TRACE_HEADERS_BYTES, ret_text, NULL, err) &&
                            collector_check_headers(*ret_text, err));
}

static bool open_exporter(struct daemon *daemon, struct err *err)
{
    const struct config *config = &daemon->config;
    autofree char *headers = NULL;
    if (config->otlp_endpoint == NULL) {
        return true;
    }
    if (!read_headers(config, &headers, err)) {
        return false;
    }
    daemon->exporter = exporter_open(config->otlp_endpoint, headers, daemon->database, err);
    return daemon->exporter != NULL;
}

static bool open_server(struct daemon *daemon, struct err *err)
{
    const struct config *config = &daemon->config;
    const struct server_config server = {.address = config->address,
                                         .port = config->port,
                                         .writer = daemon->writer,
                                         .logs = daemon->logs,
                                         .checkpoints = daemon->checkpoints,
                                         .blobs = daemon->blobs,
                                         .worker = daemon->worker,
                                         .notify = daemon->notify,
                                         .issuer = config->oidc.rules.issuer != NULL ? &config->oidc : NULL,
                                         .webhook_networks = &config->networks,
                                         .image_registries =
                                             (const char *const *)config->image_registries.items,
                                         .image_registry_count = config->image_registries.count,
                                         .store_path = daemon->database,
                                         .state_directory = config->state,
                                         .min_free_bytes = config->min_free_bytes,
                                         .reserve_file = daemon->reserve_file,
                                         .tls_certificate = daemon->tls.certificate,
                                         .tls_key = daemon->tls.key,
                                         .tls_authority = daemon->tls.authority,
                                         .host_names = (const char *const *)daemon->names.items,
                                         .host_name_count = daemon->names.count,
                                         .incarnation = store_incarnation(daemon->store),
                                         .heartbeat_ms = config->heartbeat_ms,
                                         .lease_min_ms = config->lease_min_ms,
                                         .patience_ms = config->patience_ms,
                                         .object_store = config->object_store,
                                         .object_credentials = config->object_credentials,
                                         .object_after_ms = config->object_after_ms,
                                         .object_spool_bytes = config->object_spool_bytes,
                                         .log_limit = config->log_limit_mib * MIB,
                                         .upload_quota = config->upload_quota_mib * MIB,
                                         .per_address = config->per_address,
                                         .request_wait_ms = config->request_wait_ms,
                                         .policy = config->policy,
                                         .idle_exit_ms = config->idle_exit_ms,
                                         .embedded = config->embedded,
                                         .ages = {.jobs_ms = config->keep_jobs_ms,
                                                  .logs_ms = config->keep_logs_ms,
                                                  .runs_ms = config->keep_runs_ms},
                                         .keep_nodes_ms = config->keep_nodes_ms,
                                         .keep_usage_ms = config->keep_usage_ms,
                                         .keep_audit_ms = config->keep_audit_ms,
                                         .prices = config->prices,
                                         .currency = config->currency,
                                         .exporter = daemon->exporter,
                                         .logs_share_percent = config->logs_share_percent,
                                         .backup_shelf = daemon->shelf,
                                         .backup_interval_ms = config->backup_interval_ms,
                                         .backup_keep = config->backup_keep,
                                         .restored_ms = store_restored(daemon->store).at_ms,
                                         .restored_from_ms = store_restored(daemon->store).from_ms,
                                         .signal_fd = daemon->signals};
    return (daemon->server = server_open(&server, err)) != NULL;
}

static bool open_writer(struct daemon *daemon, struct err *err)
{
    const struct writer_config config = {.heartbeat_ms = daemon->config.heartbeat_ms,
                                         .share_half_life_ms = daemon->config.share_half_life_ms,
                                         .idle_after_ms = daemon->config.idle_after_ms,
                                         .webhook_pause_ms = daemon->config.webhook_pause_ms,
                                         .policy = daemon->config.policy};
    const struct moment now = {.boot_ms = clock_boot_ms(), .wall_ms = clock_wall_ms()};
    daemon->writer = writer_open(daemon->store, &config, now, err);
    return daemon->writer != NULL && writer_start(daemon->writer, err);
}

static char *page_of(const struct daemon *daemon)
{
    const struct config *config = &daemon->config;
    if (config->public_url != NULL) {
        return xstrdup(config->public_url);
    }
    const char *scheme = daemon->tls.certificate != NULL ? "https" : "http";
    const char *name = daemon->names.count > 0 ? daemon->names.items[0] : config->address;
    const char *form = strchr(name, ':') != NULL ? "%s://[%s]:%u" : "%s://%s:%u";
    return config->port != 0 ? xprintf(form, scheme, name, config->port) : NULL;
}

static bool open_notify(struct daemon *daemon, struct err *err)
{
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    daemon->page = page_of(daemon);
    const struct notify_config config = {.writer = daemon->writer,
                                         .store_path = daemon->database,
                                         .allowed = &daemon->config.networks,
                                         .page = daemon->page};
    return (daemon->notify = notify_open(&config, err)) != NULL;
}

static bool daemon_open(struct daemon *daemon, struct err *err)
{
    return take_state(daemon, err) && (daemon->signals = open_signals(err)) >= 0 && open_tls(daemon, err) &&
           (daemon->reserve_file = reserve_file_open(daemon->database)) != NULL &&
           (daemon->store = store_open_with(daemon->database, daemon->reserve_file, err)) != NULL &&
           admin_token_first(daemon->store, daemon->config.state, err) && open_writer(daemon, err) &&
           open_files(daemon, err) && open_exporter(daemon, err) && open_notify(daemon, err) &&
           open_server(daemon, err);
}

static void daemon_close(struct daemon *daemon)
{
    server_close(daemon->server);
    exporter_close(daemon->exporter);
    notify_stop(daemon->notify);
    worker_close(daemon->worker); /* it may still be working on blobs and logs */
    blobs_close(daemon->blobs);
    logs_close(daemon->logs);
    checkpoints_close(daemon->checkpoints);
    writer_close(daemon->writer);
    notify_destroy(daemon->notify);
    curl_global_cleanup();
    free(daemon->page);
    store_close(daemon->store);
    reserve_file_close(daemon->reserve_file);
    tls_finish(&daemon->tls);
    host_list_finish(&daemon->names);
    free(daemon->database);
    free(daemon->shelf);
    config_finish(&daemon->config);
    if (daemon->signals >= 0) {
        close(daemon->signals);
    }
    if (daemon->lock >= 0) {
        close(daemon->lock);
    }
}

/* --- serving -------------------------------------------------------------------------------------------- */

static char *url_of(const struct daemon *daemon)
{
    const char *scheme = daemon->tls.certificate != NULL ? "https" : "http";
    const char *address = daemon->config.address;
    const char *form = strchr(address, ':') != NULL ? "%s://[%s]:%u" : "%s://%s:%u";
    return xprintf(form, scheme, address, server_port(daemon->server));
}

static bool write_endpoint(const struct daemon *daemon, const char *url, struct err *err)
{
    if (daemon->config.endpoint_file == NULL) {
        return true;
    }
    autofree char *text = xprintf("{\"url\": \"%s\", \"pid\": %ld}\n", url, (long)getpid());
    return file_replace(daemon->config.endpoint_file, text, strlen(text), 0600, err);
}

static const char *end_text(enum server_end end)
{
    switch (end) {
    case SERVER_END_SIGNAL:
        return "signal";
    case SERVER_END_SHUTDOWN:
        return "shutdown";
    case SERVER_END_IDLE:
        return "idle";
    case SERVER_END_FAILED:
        return "failed";
    }
    abort();
}

static bool serve(struct daemon *daemon, struct err *err)
{
    autofree char *url = url_of(daemon);
    if (!write_endpoint(daemon, url, err)) {
        return false;
    }
    if (daemon->tls.certificate == NULL && !config_is_loopback(daemon->config.address)) {
        log_warning("controller exposed", "reason=insecure-plain-http url=%s", url);
    }
    log_info("controller serve", "url=%s version=%s policy=%s incarnation=%u live_jobs=%zu", url,
             GPUCTL_VERSION, policy_text(daemon->config.policy), store_incarnation(daemon->store),
             writer_live_jobs(daemon->writer));
    notify_ready();
    enum server_end end = server_run(daemon->server, err);
    if (daemon->config.endpoint_file != NULL) {
        unlink(daemon->config.endpoint_file);
    }
    log_info("controller end", "reason=%s", end_text(end));
    if (end == SERVER_END_FAILED) {
        store_distrust(daemon->store);
    }
    return end != SERVER_END_FAILED;
}

/* --check-config: checks the files that the configuration names, in addition to the checks of the command
 * line. */
static bool check_files(const struct config *config, struct err *err)
{
    autofree char *certificate = NULL, *key = NULL, *headers = NULL;
    autotext struct text files = {0};
    if (!read_pem(config->tls_certificate, &certificate, err) || !read_pem(config->tls_key, &key, err) ||
        !read_headers(config, &headers, err)) {
        return false;
    }
    settings_name_files(config->settings, &files);
    printf("ok: the settings are sound (%s)\n", files.bytes);
    return true;
}

static int report(const struct err *err)
{
    log_failure("gpuctld", err);
    return err_exit(err->code);
}

int main(int argc, char **argv)
{
    struct daemon daemon = {.lock = -1, .signals = -1};
    struct err err = {0};
    json_begin();
    umask(0077);
    prctl(PR_SET_DUMPABLE, 0);
    if (argc > 1 && strcmp(argv[1], "init") == 0) {
        return init_run(argc - 1, argv + 1, &err) ? 0 : report(&err);
    }
    bool ok = config_parse(argc, argv, &daemon.config, &err);
    if (ok && daemon.config.help) {
        config_help();
    } else if (ok && daemon.config.version) {
        printf("gpuctld %s\n", GPUCTL_VERSION);
    } else if (ok && daemon.config.check_config) {
        ok = check_files(&daemon.config, &err);
    } else if (ok && upkeep_wanted(&daemon.config)) {
        ok = upkeep_run(&daemon.config, &err);
    } else {
        ok = ok && daemon_open(&daemon, &err) && serve(&daemon, &err);
    }
    int code = ok ? 0 : report(&err);
    daemon_close(&daemon);
    return code;
}
