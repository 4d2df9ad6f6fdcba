/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one request: a copy of the raw URI, the body while it arrives, the suspension while the request
 * waits, and the reply. Each request gets exactly one reply. The router admits requests and calls their
 * handlers. */
#include "daemon/http/request/request.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <utlist.h>

#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/blocks.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/http/base/waiters.h"
#include "daemon/http/request/connection.h"
#include "daemon/http/request/library.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/senders.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/wire/views.h"

/* --- replies -------------------------------------------------------------------------------------------- */

static void give_reply(struct request *request, unsigned status, const char *content_type,
                       struct MHD_Response *response)
{
    assert(request->response == NULL && request->phase != REQUEST_QUEUED);
    if (response == NULL) {
        out_of_memory();
    }
    request->status = status;
    request->response = response;
    if (content_type != NULL) {
        request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    }
    deadline_clear(request->server->deadlines, &request->deadline);
    waiters_remove(request->server->waiters, &request->waiter);
    if (request->phase == REQUEST_WAITING) {
        request_resume(request);
    }
}

bool request_reply(struct request *request, unsigned status, const char *content_type, char *text,
                   size_t length)
{
    give_reply(request, status, content_type,
               MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE));
    return true;
}

bool request_reply_json(struct request *request, unsigned status, struct text *json)
{
    size_t length = json->length;
    return request_reply(request, status, "application/json", text_take(json), length);
}

void request_reply_problem(struct request *request, unsigned status, struct text *problem)
{
    size_t length = problem->length;
    request_reply(request, status, "application/problem+json", text_take(problem), length);
}

bool request_reply_literal(struct request *request, unsigned status, const char *json)
{
    return request_reply(request, status, "application/json", xstrdup(json), strlen(json));
}

void request_fail_for(struct request *request, const struct err *err, int64_t pause_ms)
{
    struct text problem = {0};
    unsigned status = (unsigned)err_http(err->code);
    request->failed = true;
    request->failure = err->code;
    if (err->code == ERR_DAMAGED) { /* everything else that it reads may be wrong, too */
        server_fail(request->server, err);
    }
    if (request->render_error != NULL) {
        status = request->render_error(err, request->route != NULL, &problem);
        request_reply_json(request, status, &problem);
    } else {
        problem_encode(err, &problem);
        request_reply_problem(request, status != 0 ? status : 500, &problem);
    }
    if (status == 401) {
        request_header(request, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    }
    if (err_retryable(err->code)) {
        char seconds[24];
        snprintf(seconds, sizeof seconds, "%lld", (long long)(pause_ms + 999) / 1000);
        request_header(request, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
}

void request_fail(struct request *request, const struct err *err)
{
    request_fail_for(request, err, RETRY_AFTER_MS);
}

void request_fail_with(struct request *request, enum err_code code, const char *format, ...)
{
    struct err err;
    char text[sizeof err.text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    err_set(&err, code, "%s", text);
    request_fail(request, &err);
}

bool request_reply_file(struct request *request, unsigned status, const char *content_type, int fd,
                        uint64_t offset, uint64_t length)
{
    give_reply(request, status, content_type, MHD_create_response_from_fd_at_offset64(length, fd, offset));
    request_header(request, "X-Content-Type-Options", "nosniff");
    return true;
}

static ssize_t read_stream(void *closure, uint64_t position, char *buffer, size_t room)
{
    struct request *request = closure;
    return request->stream_read(request->stream, position, buffer, room);
}

bool request_reply_stream(struct request *request, unsigned status, const char *content_type,
                          ssize_t (*read)(void *closure, uint64_t position, char *buffer, size_t room),
                          void (*finish)(void *closure), void *closure)
{
    request->stream_read = read;
    request->stream_finish = finish;
    request->stream = closure;
    give_reply(request, status, content_type,
               MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, LIMIT_STREAM_BLOCK_BYTES, read_stream,
                                                 request, NULL));
    request_header(request, "X-Content-Type-Options", "nosniff");
    return true;
}

/* --- upgrades ------------------------------------------------------------------------------------------- */

/* A list of words, of which the protocol is one. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    while (list != NULL && *list != '\0') {
        list += strspn(list, " \t,");
        if (strncasecmp(list, word, length) == 0 && strchr(" \t,", list[length]) != NULL) {
            return true;
        }
        list += strcspn(list, ",");
    }
    return false;
}

bool request_wants_upgrade(const struct request *request, const char *protocol)
{
    return has_word(
               MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONNECTION),
               "Upgrade") &&
           has_word(
               MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_UPGRADE),
               protocol);
}

/* A client that sends bytes of the other protocol before it has the reply breaks the rules of upgrades. The
 * request is over, and its memory is not held for the days that the connection may last. */
static void upgraded(void *closure, struct MHD_Connection *connection, void *slot, const char *early,
                     size_t early_length, MHD_socket socket, struct MHD_UpgradeResponseHandle *handle)
{
    struct request *request = closure;
    struct connection *link = request->link;
    if (request->upgrade_take == NULL || early_length > 0) {
        library_end_upgrade(request->server->library, connection, handle);
    } else {
        request->upgrade_take(request->upgrade_closure, connection, socket, handle);
    }
    request_drop(request);
    connection_enter(link, CONNECTION_OURS);
}

bool request_upgrade(struct request *request, const char *protocol,
                     void (*take)(void *closure, struct MHD_Connection *connection, int socket,
                                  struct MHD_UpgradeResponseHandle *handle),
                     void *closure)
{
    request->upgrade_take = take;
    request->upgrade_closure = closure;
    give_reply(request, MHD_HTTP_SWITCHING_PROTOCOLS, NULL,
               MHD_create_response_for_upgrade(upgraded, request));
    request_header(request, MHD_HTTP_HEADER_UPGRADE, protocol);
    return true;
}

void request_upgrade_forget(struct request *request)
{
    request->upgrade_take = NULL;
}

void request_header(struct request *request, const char *name, const char *value)
{
    assert(request->response != NULL);
    if (MHD_add_response_header(request->response, name, value) == MHD_NO) {
        out_of_memory(); /* all our names and values are headers */
    }
}

bool request_has(const struct request *request, const char *tag)
{
    const char *theirs = request->headers.if_none_match;
    return theirs != NULL && strcmp(strncmp(theirs, "W/", 2) == 0 ? theirs + 2 : theirs, tag) == 0;
}

enum MHD_Result request_queue_reply(struct request *request)
{
    bool upgrades = request->status == MHD_HTTP_SWITCHING_PROTOCOLS;
    if ((request->closing || request->server->ending) && !upgrades) {
        request_header(request, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    request->phase = REQUEST_QUEUED;
    connection_enter(request->link, CONNECTION_REPLY);
    enum MHD_Result queued = MHD_queue_response(request->connection, request->status, request->response);
    MHD_destroy_response(request->response);
    request->response = NULL;
    return queued;
}

/* --- waiting -------------------------------------------------------------------------------------------- */

bool request_wait(struct request *request)
{
    request->awaited = true;
    return true;
}

/* Bodies up to LIMIT_JSON_BYTES are not counted: a heartbeat or a cancel is let in whatever else comes. */
static int64_t counted(size_t room)
{
    return room > LIMIT_JSON_BYTES ? (int64_t)room : 0;
}

void request_drop_body(struct request *request)
{
    free(give(request->body));
    request->server->body_bytes -= counted(request->body_room);
    request->body_length = 0;
    request->body_room = 0;
}

void request_suspend(struct request *request)
{
    assert(!request->suspended);
    request->suspended = true;
    MHD_suspend_connection(request->connection);
}

void request_resume(struct request *request)
{
    assert(request->suspended);
    request->suspended = false;
    library_resume(request->server->library, request->connection);
}

/* --- the body ------------------------------------------------------------------------------------------- */

static bool body_reserve(struct request *request, size_t needed)
{
    if (needed < request->body_room) {
        return true;
    }
    size_t room = 2 * request->body_room;
    if (request->headers.content_length > 0) {
        room = (size_t)request->headers.content_length + 1;
    }
    room = room > needed ? room : needed + 1;
    int64_t *sum = &request->server->body_bytes;
    int64_t more = counted(room) - counted(request->body_room);
    if (more > 0 && *sum + more > LIMIT_BODIES_BYTES) {
        return false;
    }
    *sum += more;
    request->body_room = room;
    request->body = xrealloc(request->body, room);
    return true;
}

static void gather(struct request *request, const char *data, size_t size)
{
    if (!body_reserve(request, request->body_length + size)) {
        request_drop_body(request);
        request_fail_with(request, ERR_UNAVAILABLE, "too many large bodies are under way");
        return;
    }
    memcpy(request->body + request->body_length, data, size);
    request->body_length += size;
    request->body[request->body_length] = '\0';
}

enum MHD_Result request_take_body(struct request *request, const char *data, size_t *size)
{
    const struct route *route = request->route;
    if (request->response == NULL && request->body_seen + *size > (uint64_t)route->body_limit) {
        request_fail_with(request, ERR_TOO_LARGE, "the body is longer than %lld bytes",
                          (long long)route->body_limit);
    }
    if (request->response != NULL) {
        request->drained += *size;
        bool endless = request->drained > LIMIT_DRAIN_BYTES;
        *size = 0;
        return endless ? MHD_NO : MHD_YES;
    }
    size_t taken = *size;
    if (route->sink != NULL) {
        taken = route->sink->piece(request, data, *size);
        assert(taken == *size || request->suspended);
    } else {
        gather(request, data, *size);
    }
    request->body_seen += taken;
    *size -= taken;
    return MHD_YES;
}

/* --- life ----------------------------------------------------------------------------------------------- */

/* The library would list the arguments in the memory of the connection, although nobody asks for the list.
 * Some 130 arguments fill that memory, and then the library closes without an answer. A NUL behind the '?'
 * leaves no arguments. The buffer is the library's own, which it cuts in place as well; our copy was taken
 * before. */
static void hide_arguments(const char *uri)
{
    char *mark = strchr((char *)(uintptr_t)uri, '?');
    if (mark != NULL) {
        mark[1] = '\0'; /* a URI that ends with '?' has it already */
    }
}

void *request_open(void *closure, const char *uri, struct MHD_Connection *connection)
{
    struct server *server = closure;
    size_t length = strnlen(uri, LIMIT_URI_BYTES + 1);
    struct request *request = blocks_take(&server->request_blocks, sizeof *request + length + 1);
    memcpy(request->uri, uri, length);
    hide_arguments(uri);
    request->raw_uri = uri;
    request->uri_length = length;
    request->size = sizeof *request + length + 1;
    request->server = server;
    request->connection = connection;
    request->link = connection_of(connection);
    connection_serve(request->link, request);
    request->path = request->uri;
    request->headers.content_length = -1;
    request->arrived_ms = server->now_ms;
    DL_APPEND(server->requests, request);
    server->request_count++;
    return request;
}

void request_drop(struct request *request)
{
    if (request == NULL) {
        return;
    }
    struct server *server = request->server;
    log_debug("request done", "path=%s status=%u owner=%s ms=%lld", request->path, request->status,
              request->who != NULL ? identity_owner(request->who) : "-",
              (long long)(server->now_ms - request->arrived_ms));
    if (request->stream_finish != NULL) {
        request->stream_finish(request->stream);
    }
    if (request->response != NULL) {
        MHD_destroy_response(request->response);
    }
    if (request->state_finish != NULL) {
        request->state_finish(request->state);
    }
    deadline_clear(server->deadlines, &request->deadline);
    waiters_remove(server->waiters, &request->waiter);
    senders_leave(server->senders, request);
    DL_DELETE(server->requests, request);
    server->request_count--;
    server->people_count -= request->person;
    json_decref(request->json);
    free(request->audit);
    free(request->query_owned);
    request_drop_body(request);
    connection_serve(request->link, NULL);
    blocks_give(&server->request_blocks, request, request->size);
}

void request_close(void *closure, struct MHD_Connection *connection, void **slot,
                   enum MHD_RequestTerminationCode code)
{
    *slot = NULL;
    request_drop(connection_request(connection_of(connection))); /* unless an upgrade has ended it */
}

/* --- helpers of handlers -------------------------------------------------------------------------------- */

bool request_only_fields(const json_t *object, const char *known, struct err *err)
{
    /* iteration does not change the object, though the library's type says that it may */
    json_t *iterated = (json_t *)(uintptr_t)object;
    const char *name;
    json_t *value;
    json_object_foreach (iterated, name, value) {
        if (!query_lists(known, name)) {
            err_field(err, ERR_UNKNOWN_FIELD, name, NULL, "there is no field \"%s\" here", name);
            return *known == '\0' ? false : err_hint(err, "it may have: %s", known);
        }
    }
    return true;
}

struct submitter request_submitter(const struct request *request)
{
    return (struct submitter){request->server, request->who, &request->headers};
}

const char *request_owner_scope(const struct request *request)
{
    return authorize_sees_all(request->who) ? NULL : identity_owner(request->who);
}

const char *request_scope_in(const struct request *request, const char *project)
{
    bool all = project != NULL && authorize_see_project(request->server->projects, request->who, project);
    return all ? NULL : request_owner_scope(request);
}

const struct identity *request_session(const struct request *request, struct session *ret_session,
                                       struct err *err)
{
    const struct server *server = request->server;
    const struct session_headers headers = {.cookie = request->headers.cookie,
                                            .proof = request->headers.session_proof};
    return session_check(server->sessions, server->auth, &headers, server->wall_ms, ret_session, err);
}

bool request_stands(const struct request *request, struct err *err)
{
    return identity_stands(request->who, request->server->wall_ms) || auth_refuse(err);
}

bool request_may_see(const struct request *request, const char *owner, const char *project)
{
    return authorize_see(request->server->projects, request->who, owner, project);
}

bool request_sees_by_role(const struct request *request, const char *owner, const char *project)
{
    return authorize_see_by_role(request->server->projects, request->who, owner, project);
}

void request_shows_others(struct request *request, int64_t count)
{
    request->looks_beyond |= count != 0;
    request->others = count;
}

void request_shows_all_of(struct request *request, const char *owner, const char *project)
{
    bool beyond = request_sees_by_role(request, owner != NULL ? owner : "", project != NULL ? project : "");
    request_shows_others(request, beyond ? OTHERS_SOME : 0);
}

bool request_may_change(const struct request *request, const char *owner, const char *project,
                        struct err *err)
{
    return authorize_change(request->server->projects, request->who, owner, project, err);
}

bool request_wants_events(const struct request *request)
{
    return request->headers.accept != NULL && strstr(request->headers.accept, "text/event-stream") != NULL;
}
