/* SPDX-License-Identifier: Apache-2.0 */
/* Runs libmicrohttpd. Several of its daemons share one listening socket and the HTTP thread. A daemon that
 * resumes a connection walks the list of all its suspended connections. With 10,000 nodes, each with a
 * suspended poll, that took half of the thread's time. Therefore a daemon serves at most
 * LIBRARY_SHARD_CONNECTIONS, and another one starts when all are full. A daemon runs only when it has work.
 *
 * No daemon has a thread: such a thread can sleep for ever on exact multiples of 128 ready connections. */
#include "daemon/http/request/library.h"

#include <assert.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/connection.h"
#include "daemon/http/request/request.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

#define RUNS       3 /* a resumed request is called, sent and read again in three runs */
#define SHARDS_MAX (LIMIT_CONNECTIONS / LIBRARY_SHARD_CONNECTIONS + 1)

struct shard {
    struct MHD_Daemon *daemon;
    struct watch watch;
    size_t limit; /* of connections */
    bool full;
    bool has_work;
};

struct library {
    struct server *server;
    MHD_AccessHandlerCallback call;
    int listener;       /* -1: no more connections are accepted */
    size_t connections; /* at most, of all */
    struct shard shards[SHARDS_MAX];
    size_t count;
};

/* --- opening -------------------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 0)))
log_library(void *closure, const char *format, va_list arguments)
{
    char text[256];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    log_debug("http note", "text=\"%s\"", text);
}

static struct MHD_Daemon *start(const struct library *library, int listener, size_t connections)
{
    struct server *server = library->server;
    const struct server_config *config = &server->config;
    bool tls = config->tls_certificate != NULL;
    const struct MHD_OptionItem options[] = {
        {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)log_library, NULL},
        {MHD_OPTION_LISTEN_SOCKET, listener, NULL},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)request_open, server},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)request_close, server},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)connection_notify, server},
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)connections, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, LIMIT_CONNECTION_MEMORY, NULL},
        {MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL},
        {tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, (void *)(uintptr_t)config->tls_certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)config->tls_key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "SECURE192:+SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL},
    };
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG |
                     (tls ? MHD_USE_TLS : 0);
    return MHD_start_daemon(flags, server->port, connection_accept, server, library->call, server,
                            MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

static void shard_ready(struct watch *watch)
{
    ((struct shard *)watch->closure)->has_work = true;
}

/* The daemon owns its descriptor of the listening socket. */
static bool open_shard(struct library *library, size_t connections, struct err *err)
{
    assert(library->count < SHARDS_MAX);
    struct shard *shard = &library->shards[library->count];
    autoclose int listener = fcntl(library->listener, F_DUPFD_CLOEXEC, 0);
    if (listener < 0) {
        return err_errno(err, "cannot duplicate the listening socket");
    }
    struct MHD_Daemon *daemon = start(library, listener, connections);
    if (daemon == NULL) {
        bool tls = library->server->config.tls_certificate != NULL;
        return err_set(err, ERR_IO, "the HTTP library cannot start%s",
                       tls ? ": see that certificate and key are PEM and belong together" : "");
    }
    give_fd(&listener);
    int fd = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    *shard = (struct shard){.daemon = daemon, .limit = connections};
    shard->watch = (struct watch){.fd = fd, .ready = shard_ready, .closure = shard};
    if (!server_watch(library->server, &shard->watch, err)) {
        MHD_stop_daemon(daemon);
        return false;
    }
    library->count++;
    return true;
}

static size_t limits(const struct library *library)
{
    size_t sum = 0;
    for (size_t i = 0; i < library->count; i++) {
        sum += library->shards[i].limit;
    }
    return sum;
}

/* Starts another daemon, unless the limit of connections is reached. Beyond it clients wait in the queue of
 * the listening socket. */
static bool grow(struct library *library, struct err *err)
{
    size_t left = library->connections - limits(library);
    size_t connections = left < LIBRARY_SHARD_CONNECTIONS ? left : LIBRARY_SHARD_CONNECTIONS;
    return connections == 0 || open_shard(library, connections, err);
}

struct library *library_open(struct server *server, MHD_AccessHandlerCallback call, int listener,
                             size_t connections, struct err *err)
{
    struct library *library = xzalloc(sizeof *library);
    library->server = server;
    library->call = call;
    library->listener = listener;
    library->connections = connections;
    if (!grow(library, err)) {
        library_close(library);
        return NULL;
    }
    return library;
}

void library_close(struct library *library)
{
    if (library == NULL) {
        return;
    }
    for (size_t i = 0; i < library->count; i++) {
        MHD_stop_daemon(library->shards[i].daemon);
    }
    cleanup_close(&library->listener);
    free(library);
}

/* --- running -------------------------------------------------------------------------------------------- */

static size_t connections_of(const struct shard *shard)
{
    return MHD_get_daemon_info(shard->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
}

/* A daemon stops listening when it is full, and listens again when it has room: at the beginning of its next
 * run, which therefore follows at once. */
static void run_shard(struct shard *shard)
{
    MHD_UNSIGNED_LONG_LONG left_ms;
    shard->has_work = false;
    MHD_run(shard->daemon);
    bool full = connections_of(shard) >= shard->limit;
    bool more = MHD_get_timeout(shard->daemon, &left_ms) == MHD_YES && left_ms == 0;
    shard->has_work = shard->has_work || more || full != shard->full;
    shard->full = full;
}

static bool all_full(const struct library *library)
{
    for (size_t i = 0; i < library->count; i++) {
        if (!library->shards[i].full) {
            return false;
        }
    }
    return true;
}

bool library_has_work(const struct library *library)
{
    for (size_t i = 0; i < library->count; i++) {
        if (library->shards[i].has_work) {
            return true;
        }
    }
    return false;
}

void library_run(struct library *library)
{
    struct err err;
    for (int run = 0; run < RUNS && library_has_work(library); run++) {
        for (size_t i = 0; i < library->count; i++) {
            if (library->shards[i].has_work) {
                run_shard(&library->shards[i]);
            }
        }
    }
    if (library->listener >= 0 && all_full(library) && !grow(library, &err)) {
        log_warning("connections limited", "limit=%zu problem=\"%s\"", limits(library), err.text);
        library->connections = limits(library);
    }
}

/* The daemon of the connection has work for which no event comes. */
static void rouse(struct library *library, struct MHD_Connection *connection)
{
    const struct MHD_Daemon *daemon = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_DAEMON)->daemon;
    size_t at = 0;
    while (library->shards[at].daemon != daemon) {
        at++;
    }
    library->shards[at].has_work = true;
}

void library_resume(struct library *library, struct MHD_Connection *connection)
{
    rouse(library, connection);
    MHD_resume_connection(connection);
}

void library_end_upgrade(struct library *library, struct MHD_Connection *connection,
                         struct MHD_UpgradeResponseHandle *handle)
{
    rouse(library, connection);
    MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

void library_quiesce(struct library *library)
{
    for (size_t i = 0; i < library->count && library->listener >= 0; i++) {
        int fd = MHD_quiesce_daemon(library->shards[i].daemon);
        cleanup_close(&fd);
    }
    cleanup_close(&library->listener);
    library->listener = -1;
}

size_t library_connections(const struct library *library)
{
    size_t sum = 0;
    for (size_t i = 0; i < library->count; i++) {
        sum += connections_of(&library->shards[i]);
    }
    return sum;
}
