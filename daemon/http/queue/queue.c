/* SPDX-License-Identifier: Apache-2.0 */
/* Serves GET /v1/queue. A copy of the writer answers, which knows the order and the reasons; the names of the
 * jobs are put in here. An answer serves for some seconds all who ask the same, longer where it took long,
 * and those who come while it is being made wait for it, so that fifty open pages cost one question. */
#include "daemon/http/queue/queue.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/base/state.h"
#include "daemon/http/queue/audience.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/table.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* The newest answer to one question. */
struct answer {
    char *key;                    /* the question as text; owned */
    char *pool, *project, *owner; /* owned, or NULL: any */
    int64_t limit;
    bool asked; /* the next answer is being made */
    struct text json;
    int64_t fresh_ms;         /* it serves until then; 0: there is none yet */
    struct audience audience; /* those who ask while it is being made, but for the first */
    UT_hash_handle hh;        /* in the order of the first questions */
};

struct queue {
    struct answer *answers;
};

struct queue_ask {
    struct ask ask;
    struct answer *answer;
};

/* --- answers that are kept ------------------------------------------------------------------------------ */

static char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static void drop(struct queue *queue, struct answer *answer)
{
    HASH_DEL(queue->answers, answer);
    free(answer->key);
    free(answer->pool);
    free(answer->project);
    free(answer->owner);
    text_finish(&answer->json);
    free(answer);
}

static bool is_fresh(const struct answer *answer, int64_t now_ms)
{
    return now_ms < answer->fresh_ms;
}

/* Makes room for one more. false: as many different questions are being asked. */
static bool make_room(struct queue *queue, int64_t now_ms)
{
    struct answer *answer, *next;
    HASH_ITER (hh, queue->answers, answer, next) {
        if (!answer->asked &&
            (!is_fresh(answer, now_ms) || HASH_COUNT(queue->answers) >= LIMIT_QUEUE_ANSWERS)) {
            drop(queue, answer);
        }
    }
    return HASH_COUNT(queue->answers) < LIMIT_QUEUE_ANSWERS;
}

static struct answer *need_answer(struct queue *queue, int64_t now_ms, const char *pool, const char *project,
                                  const char *owner, int64_t limit)
{
    autofree char *key = xprintf("%s\t%s\t%s\t%lld", pool != NULL ? pool : "", project != NULL ? project : "",
                                 owner != NULL ? owner : "", (long long)limit); /* names have no tabs */
    struct answer *answer;
    HASH_FIND_STR(queue->answers, key, answer);
    if (answer != NULL || !make_room(queue, now_ms)) {
        return answer;
    }
    answer = xzalloc(sizeof *answer);
    answer->key = give(key);
    answer->pool = copy_or_null(pool);
    answer->project = copy_or_null(project);
    answer->owner = copy_or_null(owner);
    answer->limit = limit;
    HASH_ADD_KEYPTR(hh, queue->answers, answer->key, strlen(answer->key), answer);
    return answer;
}

/* --- names ---------------------------------------------------------------------------------------------- */

#define NO_NAME ",\"name\":null"

/* Puts the names of jobs behind their ids. Within a text of JSON a quote has a backslash, so nothing else
 * looks like NO_NAME. */
static void put_names(const struct server *server, const char *json, struct text *out)
{
    for (const char *at; (at = strstr(json, NO_NAME)) != NULL; json = at + strlen(NO_NAME)) {
        char id[ID_LENGTH + 1] = "";
        autofree char *name = NULL;
        struct err err;
        text_append_bytes(out, json, (size_t)(at - json));
        if (at - json > ID_LENGTH) {
            memcpy(id, at - ID_LENGTH - 1, ID_LENGTH);
        }
        if (reader_job_name(server->reader, id, &name, &err) && name != NULL) {
            text_append(out, ",\"name\":");
            text_json_string(out, name, strlen(name));
        } else {
            text_append(out, NO_NAME);
        }
    }
    text_append(out, json);
}

/* --- answering ------------------------------------------------------------------------------------------ */

static bool reply(struct request *request, const struct answer *answer)
{
    struct text json = {0};
    text_append_bytes(&json, answer->json.bytes, answer->json.length);
    return request_reply_json(request, 200, &json);
}

static void committed(struct ask *ask)
{
    struct answer *answer = ((struct queue_ask *)ask)->answer;
    const struct server *server = ask->request->server;
    answer->asked = false;
    answer->fresh_ms = server->now_ms + QUEUE_FRESH_MS + ask->writer.took_us * QUEUE_PACE / 1000;
    answer->json.length = 0;
    put_names(server, ask->writer.answer.bytes, &answer->json);
    ask->writer.answer.length = 0;
    text_append_bytes(&ask->writer.answer, answer->json.bytes, answer->json.length);
    for (struct request *request; (request = audience_take(&answer->audience)) != NULL;) {
        reply(request, answer);
    }
}

static bool refused(struct ask *ask)
{
    struct answer *answer = ((struct queue_ask *)ask)->answer;
    answer->asked = false;
    for (struct request *request; (request = audience_take(&answer->audience)) != NULL;) {
        request_fail(request, &ask->writer.error);
    }
    return false;
}

static bool ask(struct request *request, struct answer *answer, struct err *err)
{
    struct queue_ask *asked = ask_create(request, sizeof *asked, NULL);
    struct input *input = &asked->ask.writer.input;
    asked->answer = answer;
    asked->ask.committed = committed;
    asked->ask.refused = refused;
    input->kind = INPUT_ASK;
    input->ask.kind = ASK_QUEUE;
    input->ask.pool = answer->pool;
    input->ask.project = answer->project;
    input->ask.owner = answer->owner;
    input->ask.limit = answer->limit;
    answer->asked = ask_writer(asked, err);
    return answer->asked;
}

bool queue_show(struct request *request, struct err *err)
{
    const struct query *query = request->query;
    struct queue *queue = request->server->queue_answers;
    const char *pool = NULL, *project = NULL, *owner = NULL;
    int64_t limit = QUEUE_ROWS, now_ms = request->server->now_ms;
    if (!query_name(query, "pool", &pool, err) || !query_name(query, "project", &project, err) ||
        !query_owner(query, &owner, err) || !query_int(query, "limit", 1, LIMIT_QUEUE_ROWS, &limit, err)) {
        return false;
    }
    const char *scope = request_scope_in(request, project);
    if (scope != NULL && owner != NULL && strcmp(scope, owner) != 0) {
        return err_field(err, ERR_FORBIDDEN, "owner",
                         "leave owner away; operators see everybody's, members of a project its",
                         "you see only your own jobs");
    }
    request_shows_all_of(request, scope != NULL ? scope : owner, project);
    struct answer *answer = need_answer(queue, now_ms, pool, project, scope != NULL ? scope : owner, limit);
    if (answer == NULL) {
        return err_set(err, ERR_UNAVAILABLE, "too many questions about the queue are being answered");
    }
    if (is_fresh(answer, now_ms)) {
        return reply(request, answer);
    }
    return answer->asked ? audience_wait(&answer->audience, request) : ask(request, answer, err);
}

/* --- life ----------------------------------------------------------------------------------------------- */

void queue_open(struct server *server)
{
    server->queue_answers = xzalloc(sizeof *server->queue_answers);
}

void queue_close(struct server *server)
{
    struct answer *answer, *next;
    if (server->queue_answers != NULL) {
        HASH_ITER (hh, server->queue_answers->answers, answer, next) {
            drop(server->queue_answers, answer);
        }
        free(server->queue_answers);
        server->queue_answers = NULL;
    }
}
