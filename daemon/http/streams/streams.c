/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the streams into running jobs, from the request of a client until both connections have ended. A
 * stream is in memory alone: it never passes through the writer, and a restart of the controller ends it. Its
 * id is random, and good for one connection of each side: of the person who asked for it, and of the node
 * that has the rank. Both wait until the other one is there, at most STREAM_JOIN_MS. A stream ends with the
 * token of the person. What the bytes mean is between client and node (proto/wire/frame.h). */
#include "daemon/http/streams/streams.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <utlist.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/state.h"
#include "daemon/http/orders/outbox.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/library.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/streams/pump.h"
#include "daemon/http/streams/tls_relay.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/base/text/table.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/messages.h"
#include "proto/wire/stream_request.h"

#define KEEPALIVE_S 30 /* of silence, until it is asked whether the other side is there */

enum { CLIENT, NODE, SIDES };

struct side {
    struct job_stream *stream;
    struct request *request; /* NULL: it has not come yet, or has ended, as it does with the upgrade */
    int socket;              /* -1: not upgraded */
    struct MHD_Connection *connection; /* once upgraded: */
    struct MHD_UpgradeResponseHandle *handle;
    struct tls_relay *relay; /* of a connection with TLS, which has the handle then; or NULL */
};

struct job_stream {
    struct server *server;
    char id[ID_LENGTH + 1];
    char job_id[ID_LENGTH + 1];
    const struct identity *who; /* who asked for it; then the same person's token that joined it */
    char *node;
    struct side sides[SIDES];
    struct deadline deadline; /* for both sides to come */
    bool joined;              /* both have been answered */
    UT_hash_handle hh;
};

struct streams {
    struct pump *pump;
    struct tls_relays *relays;
    struct watch watch;
    struct job_stream *all; /* by id */
    struct deadline look;
};

/* --- the end -------------------------------------------------------------------------------------------- */

static void stream_free(struct job_stream *stream)
{
    struct server *server = stream->server;
    outbox_drop_stream(server->outbox, stream->node, stream->id);
    deadline_clear(server->deadlines, &stream->deadline);
    HASH_DEL(server->streams->all, stream);
    free(stream->node);
    free(stream);
}

static bool is_upgraded(const struct job_stream *stream)
{
    return stream->sides[CLIENT].socket >= 0 && stream->sides[NODE].socket >= 0;
}

/* Gives the connections that were upgraded back to the library, which closes them. */
static void hang_up(struct job_stream *stream)
{
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &stream->sides[i];
        if (side->socket >= 0 && side->relay != NULL) {
            tls_relay_end(side->relay);
        } else if (side->socket >= 0) {
            library_end_upgrade(stream->server->library, side->connection, side->handle);
        }
        side->socket = -1;
    }
}

/* It is over, before or after its two sides were joined. Requests that wait get the error. */
static void stream_end(struct job_stream *stream, const struct err *err)
{
    struct request *waiting[SIDES] = {NULL, NULL};
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &stream->sides[i];
        if (side->request != NULL) {
            side->request->state = NULL;
            waiting[i] = stream->joined ? NULL : side->request;
            request_upgrade_forget(side->request);
        }
    }
    hang_up(stream);
    stream_free(stream);
    for (int i = 0; i < SIDES; i++) {
        if (waiting[i] != NULL) {
            request_fail(waiting[i], err);
        }
    }
}

static void side_gone(void *state)
{
    struct side *side = state;
    struct err err;
    if (side == NULL) {
        return;
    }
    side->request = NULL;
    err_set(&err, ERR_UNAVAILABLE, "the other side of the stream has gone");
    if (!is_upgraded(side->stream)) {
        stream_end(side->stream, &err);
    }
}

/* Called on the HTTP thread for a pair that the pump has given back. */
static void pair_ended(void *closure)
{
    struct err err;
    struct job_stream *stream = closure;
    log_debug("stream end", "id=%s job=%s", stream->id, stream->job_id);
    err_set(&err, ERR_UNAVAILABLE, "the stream has ended");
    stream_end(stream, &err);
}

static void join_is_over(struct deadline *deadline)
{
    struct job_stream *stream = deadline->closure;
    struct err err;
    if (stream->server->ending) {
        err_set(&err, ERR_UNAVAILABLE, "the controller has ended");
        stream_end(stream, &err);
        return;
    }
    err_set(&err, ERR_UNAVAILABLE, "node %s did not open the connection to job %s within %d s", stream->node,
            stream->job_id, (int)(STREAM_JOIN_MS / 1000));
    err_hint(&err, "it is away, or its agent is of an earlier version: gpuctl nodes shows both");
    stream_end(stream, &err);
}

static void shut(struct job_stream *stream)
{
    for (int i = 0; i < SIDES && is_upgraded(stream); i++) {
        shutdown(stream->sides[i].socket, SHUT_RDWR); /* the pump sees it, and gives the pair back */
    }
}

/* Streams of people whose token was revoked, or has expired. */
static void look_due(struct deadline *deadline)
{
    struct server *server = deadline->closure;
    struct job_stream *stream, *next;
    HASH_ITER (hh, server->streams->all, stream, next) {
        if (!identity_stands(stream->who, server->wall_ms)) {
            shut(stream);
        }
    }
    if (server->streams->all != NULL) {
        deadline_set(server->deadlines, deadline, server->now_ms + STREAM_LOOK_MS);
    }
}

/* --- a new one ------------------------------------------------------------------------------------------ */

static bool check_room(const struct server *server, const char *owner, const struct job_facts *job,
                       struct err *err)
{
    size_t all = 0, own = 0, of_job = 0;
    const struct job_stream *stream, *next;
    HASH_ITER (hh, server->streams->all, stream, next) {
        all++;
        own += strcmp(identity_owner(stream->who), owner) == 0;
        of_job += strcmp(stream->job_id, job->id) == 0;
    }
    if (of_job >= LIMIT_ATTEMPT_STREAMS) {
        return err_set(err, ERR_TOO_MANY, "job %s has %d open streams, the most that a job may have", job->id,
                       LIMIT_ATTEMPT_STREAMS);
    }
    if (own >= LIMIT_STREAMS_OWNER) {
        return err_set(err, ERR_TOO_MANY, "%s has %d open streams, the most that one may have", owner,
                       LIMIT_STREAMS_OWNER);
    }
    return all < LIMIT_STREAMS || err_set(err, ERR_TOO_MANY,
                                          "the controller has %d open streams, and no room "
                                          "for more",
                                          LIMIT_STREAMS);
}

static bool check_runs(const struct job_facts *job, struct err *err)
{
    if (job->tasks > 0) {
        err_field(err, ERR_FIELD, "id", NULL, "job %s is an array of %lld tasks", job->id,
                  (long long)job->tasks);
        return err_hint(err, "name a task: %s.0 for instance", job->id);
    }
    if (job->state == JOB_RUNNING) {
        return true;
    }
    if (job_state_terminal(job->state)) {
        return err_set(err, ERR_CONFLICT, "job %s has ended: it is %s", job->id, job_state_text(job->state));
    }
    err_set(err, ERR_CONFLICT, "job %s does not run yet: it is %s", job->id, job_state_text(job->state));
    return err_hint(err, "gpuctl explain %s says why", job->id);
}

static bool has_rank(const struct member_row *row, bool by_node, int64_t rank)
{
    return by_node ? row->node_rank == rank
                   : row->first_rank <= rank && rank < row->first_rank + row->local_ranks;
}

/* The node that has the rank; the caller frees it. With launch_mode=node a rank is a node's. */
static char *find_node(struct request *request, const struct job_facts *job, int64_t rank,
                       uint64_t *ret_attempt_id, struct err *err)
{
    struct server *server = request->server;
    autojson json_t *spec = specs_get(server->specs, job->key, err);
    if (spec == NULL || !job_attempt_id(server->reader, job->key, job->attempt, ret_attempt_id, err)) {
        return NULL;
    }
    const char *mode = json_string_of(spec, "launch_mode");
    bool by_node = mode != NULL && strcmp(mode, launch_mode_text(LAUNCH_NODE)) == 0;
    autorows struct rows rows = reader_members(server->reader, *ret_attempt_id, err);
    struct member_row row;
    int64_t count = 0;
    while (rows_member(&rows, &row)) {
        if (has_rank(&row, by_node, rank)) {
            return xstrdup(row.node);
        }
        count += by_node ? 1 : row.local_ranks;
    }
    if (!rows.failed) {
        err_field(err, ERR_FIELD, "rank", NULL, "job %s has no rank %lld: its ranks are 0 to %lld", job->id,
                  (long long)rank, (long long)(count > 0 ? count - 1 : 0));
    }
    return NULL;
}

static struct job_stream *stream_create(const struct request *request, const struct job_facts *job,
                                        char *node)
{
    struct server *server = request->server;
    struct job_stream *stream = xzalloc(sizeof *stream);
    stream->server = server;
    random_id(stream->id);
    memcpy(stream->job_id, job->id, sizeof stream->job_id);
    stream->who = request->who;
    stream->node = node;
    for (int i = 0; i < SIDES; i++) {
        stream->sides[i] = (struct side){.stream = stream, .socket = -1};
    }
    stream->deadline = (struct deadline){.due = join_is_over, .closure = stream};
    deadline_set(server->deadlines, &stream->deadline, server->now_ms + STREAM_JOIN_MS);
    HASH_ADD_STR(server->streams->all, id, stream);
    if (server->streams->look.place == 0) {
        deadline_set(server->deadlines, &server->streams->look, server->now_ms + STREAM_LOOK_MS);
    }
    return stream;
}

/* What is noted of it: of a command the first word, because others may be secret. So nothing is noted of the
 * body of a request that was refused. */
static void note(struct request *request, const struct job_stream *stream,
                 const struct stream_request *wanted)
{
    autojson json_t *detail = json_object();
    member_put_text(detail, "stream", stream->id);
    member_put_text(detail, "job", stream->job_id);
    member_put_int(detail, "rank", wanted->rank);
    if (wanted->kind == STREAM_KIND_EXEC) {
        member_put_text(detail, "exec", json_string_value(json_array_get(wanted->command, 0)));
        member_put_bool(detail, "terminal", wanted->terminal);
    } else {
        member_put_int(detail, "forward", wanted->port);
    }
    request->json = json_incref(detail);
    request->changes_more = true;
}

bool streams_make(struct request *request, struct err *err)
{
    struct server *server = request->server;
    struct job_facts job;
    struct stream_request wanted;
    uint64_t attempt_id;
    autojson json_t *body = give(request->json);
    if (!job_find_to_enter(request, &job, err) ||
        !request_only_fields(body, "kind rank command input terminal port", err) ||
        !stream_request_decode(body, &wanted, err) || !check_runs(&job, err) ||
        !check_room(server, identity_owner(request->who), &job, err)) {
        return false;
    }
    char *node = find_node(request, &job, wanted.rank, &attempt_id, err);
    if (node == NULL) {
        return false;
    }
    const struct job_stream *stream = stream_create(request, &job, node);
    const struct stream_order order = {
        .id = stream->id, .job_id = stream->job_id, .attempt_id = attempt_id, .request = body};
    outbox_put_stream(server->outbox, node, &order);
    struct text answer = {0};
    member_write_text(&answer, "{\"id\":", stream->id);
    member_write_text(&answer, ",\"job\":", stream->job_id);
    member_write_text(&answer, ",\"node\":", stream->node);
    member_write_int(&answer, ",\"rank\":", wanted.rank);
    text_append(&answer, "}");
    note(request, stream, &wanted);
    return request_reply_json(request, 201, &answer);
}

/* --- joining -------------------------------------------------------------------------------------------- */

/* Both are connections that may be silent for days, and then have something to say at once. */
static void set_options(struct MHD_Connection *connection)
{
    const int on = 1, idle = KEEPALIVE_S;
    int socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
}

static void upgraded(void *closure, struct MHD_Connection *connection, int socket,
                     struct MHD_UpgradeResponseHandle *handle)
{
    struct side *side = closure;
    struct job_stream *stream = side->stream;
    side->request->state = NULL;
    side->request = NULL;
    side->socket = socket;
    side->connection = connection;
    side->handle = handle;
    side->relay = tls_relay_begin(stream->server->streams->relays, connection, handle, &side->socket);
    set_options(connection);
    if (is_upgraded(stream)) {
        const int sockets[] = {stream->sides[CLIENT].socket, stream->sides[NODE].socket};
        pump_join(stream->server->streams->pump, sockets, stream);
        log_debug("stream begin", "id=%s job=%s node=%s", stream->id, stream->job_id, stream->node);
    }
}

static struct job_stream *find(const struct request *request, int number, struct err *err)
{
    struct job_stream *stream;
    HASH_FIND_STR(request->server->streams->all, request->argument, stream);
    bool own = stream != NULL && stream->sides[number].request == NULL && !stream->joined &&
               (number == NODE ? identity_acts_for(request->who, stream->node, NULL)
                               : strcmp(identity_owner(stream->who), identity_owner(request->who)) == 0);
    if (!own) {
        err_set(err, ERR_NOT_FOUND, "there is no such stream, or it was used");
        return NULL;
    }
    return stream;
}

static bool join(struct request *request, int number, struct err *err)
{
    if (!request_wants_upgrade(request, STREAM_UPGRADE)) {
        return err_set(
            err, ERR_MALFORMED,
            "a stream is joined with the headers Connection: Upgrade and Upgrade: " STREAM_UPGRADE);
    }
    struct job_stream *stream = find(request, number, err);
    if (stream == NULL) {
        return false;
    }
    stream->sides[number].request = request;
    stream->who = number == CLIENT ? request->who : stream->who;
    request->state = &stream->sides[number];
    request->state_finish = side_gone;
    if (stream->sides[!number].request == NULL) {
        return request_wait(request);
    }
    stream->joined = true;
    deadline_clear(request->server->deadlines, &stream->deadline);
    for (int i = 0; i < SIDES; i++) {
        request_upgrade(stream->sides[i].request, STREAM_UPGRADE, upgraded, &stream->sides[i]);
    }
    return true;
}

bool streams_join(struct request *request, struct err *err)
{
    return join(request, CLIENT, err);
}

bool streams_join_node(struct request *request, struct err *err)
{
    return join(request, NODE, err);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void pump_ready(struct watch *watch)
{
    const struct streams *streams = watch->closure;
    pump_collect(streams->pump);
}

bool streams_open(struct server *server, struct err *err)
{
    struct streams *streams = server->streams = xzalloc(sizeof *streams);
    streams->look = (struct deadline){.due = look_due, .closure = server};
    streams->pump = pump_open(pair_ended, err);
    streams->relays = streams->pump != NULL ? tls_relays_open(server, err) : NULL;
    if (streams->relays == NULL) {
        return false;
    }
    streams->watch = (struct watch){.fd = pump_fd(streams->pump), .ready = pump_ready, .closure = streams};
    return server_watch(server, &streams->watch, err);
}

bool streams_any(const struct server *server)
{
    const struct job_stream *stream, *next;
    HASH_ITER (hh, server->streams->all, stream, next) {
        if (stream->sides[CLIENT].socket >= 0 || stream->sides[NODE].socket >= 0) {
            return true;
        }
    }
    return tls_relays_any(server->streams->relays);
}

void streams_stop(struct server *server)
{
    struct job_stream *stream, *next;
    HASH_ITER (hh, server->streams->all, stream, next) {
        shut(stream);
    }
}

void streams_close(struct server *server)
{
    struct job_stream *stream, *next;
    struct err err;
    if (server->streams == NULL) {
        return;
    }
    pump_close(server->streams->pump);
    err_set(&err, ERR_UNAVAILABLE, "the controller has ended");
    HASH_ITER (hh, server->streams->all, stream, next) {
        stream_end(stream, &err);
    }
    tls_relays_close(server->streams->relays);
    deadline_clear(server->deadlines, &server->streams->look);
    free(server->streams);
    server->streams = NULL;
}
