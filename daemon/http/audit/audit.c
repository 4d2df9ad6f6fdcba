/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what is noted, and says it in a row. Job specs, output and metrics are no part of it: jobs have a
 * history of their own. Refused requests are noted up to a rate, of people who are known apart from others,
 * so that nobody can fill the disk, or hide behind those who try. */
#include "daemon/http/audit/audit.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/writer/writer.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

/* Members of a question that do not say whose things it is about: of pages and pieces, and of time, which
 * moves on with each poll of a page that shows the last day. */
#define OF_PAGES "limit cursor after bytes rank stream attempt tail follow wait seq max_results page_token"
#define OF_TIME  "since until step"

enum { KNOWN, UNKNOWN, SENDERS };

/* Refused requests that may still be noted, and how many were not. */
struct allowance {
    int64_t left, at_ms, left_out;
};

struct look {
    uint64_t who_and_what; /* a hash; 0: none yet */
    int64_t at_ms;
};

struct audit {
    struct allowance refusals[SENDERS];
    struct look looks[LIMIT_AUDIT_LOOKS];
};

struct audit *audit_create(void)
{
    struct audit *audit = xzalloc(sizeof *audit);
    for (int i = 0; i < SENDERS; i++) {
        audit->refusals[i].left = LIMIT_AUDIT_REFUSALS;
    }
    return audit;
}

void audit_destroy(struct audit *audit)
{
    free(audit);
}

/* --- rows ----------------------------------------------------------------------------------------------- */

/* A row with what it points to, for as long as a request lives. */
struct audit_entry {
    struct audit_row row;
    char address[INET6_ADDRSTRLEN];
    char path[LIMIT_AUDIT_BYTES + 1];
    char detail[LIMIT_AUDIT_BYTES + 1];
};

static void write_address(const struct request *request, char out[INET6_ADDRSTRLEN])
{
    const struct sockaddr *address =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    const void *bytes = address->sa_family == AF_INET6
                            ? (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr
                            : &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    if (inet_ntop(address->sa_family, bytes, out, INET6_ADDRSTRLEN) == NULL) {
        stpcpy(out, "local");
    }
}

/* The bodies of changes of the cluster, and of a job that is there: none has a secret, but variables may. */
static bool shows_body(const struct route *route)
{
    return route->access == ACCESS_OPERATOR || route->access == ACCESS_ADMIN ||
           (route->access == ACCESS_USER && strncmp(route->path, "/v1/jobs/", strlen("/v1/jobs/")) == 0 &&
            strcmp(route->path, "/v1/jobs/{id}/clone") != 0);
}

static void write_detail(const struct request *request, char out[LIMIT_AUDIT_BYTES + 1])
{
    out[0] = '\0';
    if (request->ranks_attempt_id != 0) {
        snprintf(out, LIMIT_AUDIT_BYTES, "{\"attempt_id\":\"%llu\"}",
                 (unsigned long long)request->ranks_attempt_id);
    } else if (request->json != NULL && shows_body(request->route)) {
        autofree char *body = json_text(request->json);
        int length = snprintf(out, LIMIT_AUDIT_BYTES + 1, "%s", body);
        if (length > LIMIT_AUDIT_BYTES) {
            snprintf(out, LIMIT_AUDIT_BYTES, "{\"bytes\":%d}", length);
        }
    }
}

static bool is_known(const struct request *request)
{
    return request->who != NULL && request->ranks_attempt_id == 0;
}

static void fill(const struct request *request, struct audit_entry *entry)
{
    bool known = is_known(request);
    write_address(request, entry->address);
    write_detail(request, entry->detail);
    snprintf(entry->path, sizeof entry->path, "%s", request->path);
    entry->row = (struct audit_row){.at_ms = request->server->wall_ms,
                                    .owner = known ? identity_owner(request->who) : request->signs_in,
                                    .role = known ? identity_role(request->who) : ROLE_NONE,
                                    .token = known ? identity_id(request->who) : NULL,
                                    .address = entry->address,
                                    .method = route_method(request),
                                    .path = entry->path,
                                    .detail = entry->detail[0] != '\0' ? entry->detail : NULL};
}

/* --- by the writer -------------------------------------------------------------------------------------- */

/* Agents report what becomes of orders, which is no act of a person. Noted is a node that joins, and a token
 * that it makes. */
static bool is_of_people(const struct route *route)
{
    return route->body != BODY_STREAM && route->access != ACCESS_NODE && route->access != ACCESS_TRACKING &&
           route->access != ACCESS_TRACKING_CHANGE;
}

const struct audit_row *audit_of_change(struct request *request, const char *subject, const char *detail)
{
    if (!is_of_people(request->route) && subject == NULL) {
        return NULL;
    }
    struct audit_entry *entry = xalloc(sizeof *entry);
    fill(request, entry);
    entry->row.subject = subject;
    entry->row.detail = detail != NULL ? detail : entry->row.detail;
    free(request->audit);
    request->audit = entry;
    return &entry->row;
}

/* --- beside the writer ---------------------------------------------------------------------------------- */

/* A row that outlives its request. */
struct note {
    struct writer_request writer;
    struct audit_entry entry;
    char owner[LIMIT_NAME_BYTES + 1], token[TOKEN_ID_LENGTH + 1];
};

int audit_render_nothing(const struct writer_request *writer, const struct step *step, struct text *out)
{
    return 200;
}

void audit_note_done(struct writer_request *writer)
{
    text_finish(&writer->answer);
    free(writer);
}

static const char *copy(char *out, size_t room, const char *text)
{
    snprintf(out, room, "%s", text != NULL ? text : "");
    return text != NULL ? out : NULL;
}

/* detail, or what else there is to say, is borrowed; NULL: nothing. */
static bool append(const struct request *request, const char *detail)
{
    struct note *note = xzalloc(sizeof *note);
    struct audit_row *row = &note->entry.row;
    fill(request, &note->entry);
    row->owner = copy(note->owner, sizeof note->owner, row->owner);
    row->token = copy(note->token, sizeof note->token, row->token);
    row->status = request->status;
    row->code = request->failed ? err_slug(request->failure) : NULL;
    if (detail != NULL) {
        row->detail = copy(note->entry.detail, sizeof note->entry.detail, detail);
    }
    note->writer = (struct writer_request){.kind = WRITER_RECORD,
                                           .render = audit_render_nothing,
                                           .audit = row,
                                           .arrived_ms = request->server->now_ms,
                                           .input.wall_ms = request->server->wall_ms,
                                           .done = audit_note_done};
    bool taken = writer_ask(request->server->config.writer, &note->writer);
    if (!taken) {
        free(note);
    }
    return taken;
}

static void refill(struct allowance *allowance, int64_t now_ms)
{
    int64_t more = (now_ms - allowance->at_ms) / AUDIT_REFUSAL_MS;
    if (more > 0) {
        allowance->left += more;
        allowance->left = allowance->left < LIMIT_AUDIT_REFUSALS ? allowance->left : LIMIT_AUDIT_REFUSALS;
        allowance->at_ms = now_ms;
    }
}

static void note_refusal(const struct request *request)
{
    const struct server *server = request->server;
    struct allowance *allowance = &server->audit->refusals[is_known(request) ? KNOWN : UNKNOWN];
    refill(allowance, server->now_ms);
    autofree char *left_out =
        allowance->left_out > 0 ? xprintf("{\"left_out\":%lld}", (long long)allowance->left_out) : NULL;
    if (allowance->left > 0 && append(request, left_out)) {
        allowance->left--;
        allowance->left_out = 0;
    } else {
        allowance->left_out++;
    }
}

/* What was asked for, by the query of the request or by its body, but for members that `without` lists. */
static json_t *asked_for(const struct request *request, const char *without)
{
    const char *name;
    json_t *value, *asked = json_object();
    json_object_foreach (request->json, name, value) {
        if (!query_lists(without, name)) {
            json_object_set(asked, name, value);
        }
    }
    for (size_t i = 0; request->json == NULL && request->query != NULL && i < request->query->count; i++) {
        name = request->query->items[i].name;
        const char *before = json_string_value(json_object_get(asked, name));
        autofree char *text = xprintf("%s%s%s", before != NULL ? before : "", before != NULL ? "," : "",
                                      request->query->items[i].value);
        if (!query_lists(without, name)) {
            json_object_set_new(asked, name, json_string(text));
        }
    }
    return asked;
}

static bool is_first_look(const struct request *request)
{
    struct audit *audit = request->server->audit;
    uint8_t hash[HASH_BYTES];
    uint64_t key;
    autojson json_t *asked = asked_for(request, OF_PAGES " " OF_TIME);
    autofree char *filter = json_text(asked);
    autofree char *what = xprintf("%s %s %s", identity_id(request->who), request->path, filter);
    hash_bytes(what, strlen(what), hash);
    memcpy(&key, hash, sizeof key);
    struct look *look = &audit->looks[key % LIMIT_AUDIT_LOOKS];
    if (look->who_and_what == key && request->server->now_ms - look->at_ms < AUDIT_LOOK_MS) {
        return false;
    }
    *look = (struct look){key, request->server->now_ms};
    return true;
}

/* {"asked": {...}, "others": N}; each of them where there is one. */
static void note_look(const struct request *request)
{
    json_t *asked = asked_for(request, OF_PAGES);
    autojson json_t *detail = json_object();
    autofree char *filter = json_text(asked);
    if (strlen(filter) > LIMIT_AUDIT_BYTES / 2) {
        json_decref(asked);
        asked = json_pack("{s:I}", "bytes", (json_int_t)strlen(filter));
    }
    if (json_object_size(asked) > 0) {
        json_object_set(detail, "asked", asked);
    }
    if (request->others != 0) {
        json_object_set_new(detail, "others",
                            request->others > 0 ? json_integer(request->others) : json_true());
    }
    json_decref(asked);
    autofree char *text = json_object_size(detail) > 0 ? json_text(detail) : NULL;
    append(request, text);
}

/* Calls of MLflow's also look by POST. */
static bool is_look(const struct request *request)
{
    return request->looks_beyond &&
           (request->route->method == METHOD_GET || request->route->access == ACCESS_TRACKING);
}

/* Who sends no token is sent away, and did not try anything. To whom something is hidden it is not there. */
static bool is_refused(const struct request *request)
{
    const struct route *route = request->route;
    switch (request->status) {
    case 401:
        return request->headers.authorization != NULL || request->headers.session_proof != NULL ||
               route->access == ACCESS_OPEN;
    case 403:
        return true;
    case 404:
        return route->method != METHOD_GET && is_of_people(route);
    }
    return false;
}

void audit_replied(struct request *request)
{
    if (request->route == NULL) {
        return;
    }
    if (is_refused(request)) {
        note_refusal(request);
    } else if (request->status < 400 && request->changes_more) {
        append(request, NULL);
    } else if (request->status < 400 && is_look(request) && is_first_look(request)) {
        note_look(request);
    }
}
