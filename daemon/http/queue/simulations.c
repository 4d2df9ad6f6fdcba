/* SPDX-License-Identifier: Apache-2.0 */
/* Serves POST /v1/simulations. An answer is kept for some minutes and serves all who ask the same, so that
 * several open pages cost one run. A run whose clients have all left is ended. simulation_run.c has the run
 * itself. */
#include "daemon/http/queue/simulations.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/blob/worker.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/fair_queue.h"
#include "daemon/http/base/state.h"
#include "daemon/http/queue/audience.h"
#include "daemon/http/queue/simulation_run.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/base/text/table.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

/* One question, and its answer when it is there. */
struct simulation {
    struct task task; /* first */
    struct simulations *simulations;
    struct simulation_run run;
    char *key;               /* the question as text; owned */
    char *asker;             /* owned */
    struct fair_entry entry; /* waits or is served while there is no answer */
    bool working;            /* the thread has it */
    bool left;               /* and it is in no table any more: nobody waits for its answer */
    int64_t fresh_ms;        /* the answer serves until then; 0: there is none yet */
    struct audience audience;
    UT_hash_handle hh; /* in the order in which they were asked */
};

struct simulations {
    struct server *server;
    struct worker *worker;
    struct watch watch;
    struct fair_queue queue;
    struct simulation *by_key;
    struct deadline look; /* whether their clients are still there */
};

/* --- life of one ---------------------------------------------------------------------------------------- */

static void simulation_free(struct simulation *simulation)
{
    simulation_question_finish(&simulation->run.question);
    text_finish(&simulation->run.json);
    free(simulation->key);
    free(simulation->asker);
    free(simulation);
}

/* Takes it out of the table. One that the thread has ends soon, and is freed then. */
static void drop(struct simulation *simulation)
{
    HASH_DEL(simulation->simulations->by_key, simulation);
    if (simulation->working) {
        simulation->left = true;
        atomic_store(&simulation->run.stop, true);
    } else {
        fair_queue_remove(&simulation->simulations->queue, &simulation->entry);
        simulation_free(simulation);
    }
}

static bool reply(struct request *request, const struct simulation *simulation)
{
    struct text json = {0};
    text_append_bytes(&json, simulation->run.json.bytes, simulation->run.json.length);
    return request_reply_json(request, 200, &json);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

/* The thread gives way to all others, as far as it can. */
static void work(struct task *task)
{
    worker_give_way();
    setpriority(PRIO_PROCESS, 0, SIMULATION_NICE);
    simulation_run(&((struct simulation *)task)->run);
}

static void serve_next(struct simulations *simulations);

static void done(struct task *task)
{
    struct simulation *simulation = (struct simulation *)task;
    struct simulations *simulations = simulation->simulations;
    simulation->working = false;
    fair_queue_remove(&simulations->queue, &simulation->entry);
    serve_next(simulations);
    if (simulation->left) {
        simulation_free(simulation);
        return;
    }
    for (struct request *request; (request = audience_take(&simulation->audience)) != NULL;) {
        if (simulation->run.ok) {
            reply(request, simulation);
        } else {
            request_fail(request, &simulation->run.err);
        }
    }
    simulation->fresh_ms = simulations->server->now_ms + SIMULATION_FRESH_MS;
    if (!simulation->run.ok) {
        drop(simulation);
    }
}

static void serve_next(struct simulations *simulations)
{
    struct fair_entry *entry = fair_queue_serve(&simulations->queue);
    if (entry != NULL) {
        struct simulation *simulation =
            (struct simulation *)((char *)entry - offsetof(struct simulation, entry));
        simulation->working = true;
        simulation->task = (struct task){.work = work, .done = done};
        worker_give(simulations->worker, &simulation->task);
    }
}

/* --- clients that have left ----------------------------------------------------------------------------- */

static void look_later(struct simulations *simulations)
{
    if (simulations->queue.served != NULL && simulations->look.place == 0) {
        deadline_set(simulations->server->deadlines, &simulations->look,
                     simulations->server->now_ms + SIMULATION_LOOK_MS);
    }
}

static void look_at(struct simulation *simulation)
{
    struct audience *audience = &simulation->audience;
    bool ending = simulation->simulations->server->ending;
    for (struct request *request;
         (request = ending ? audience_take(audience) : audience_take_left(audience)) != NULL;) {
        request_fail_with(request, ERR_UNAVAILABLE,
                          ending ? "the controller is ending" : "the client has closed the connection");
    }
    if (audience->first == NULL) {
        log_debug("simulation ended", "owner=%s working=%d", simulation->asker, simulation->working);
        drop(simulation);
    }
}

static void look(struct deadline *deadline)
{
    struct simulations *simulations = deadline->closure;
    struct simulation *simulation, *next;
    HASH_ITER (hh, simulations->by_key, simulation, next) {
        if (simulation->fresh_ms == 0) {
            look_at(simulation);
        }
    }
    look_later(simulations);
}

/* --- what is asked for ---------------------------------------------------------------------------------- */

static bool refuse_policy(const char *word, struct err *err)
{
    autotext struct text names = {0};
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        text_printf(&names, "%s%s", policy > 0 ? ", " : "", policy_text((enum policy)policy));
    }
    err_field(err, ERR_FIELD, "policies", NULL, "policies has \"%.64s\", which is no policy", word);
    return err_hint(err, "there are %s", names.bytes);
}

static bool read_policies(const json_t *json, struct simulation_question *question, struct err *err)
{
    json_t *list = NULL, *item;
    bool named[POLICY_COUNT] = {false};
    size_t i;
    if (!member_read_array(json, "policies", POLICY_COUNT, &list, err)) {
        return false;
    }
    json_array_foreach (list, i, item) {
        const char *word = json_is_string(item) ? json_string_value(item) : "";
        enum policy policy;
        if (!policy_from_text(word, &policy)) {
            return refuse_policy(word, err);
        }
        if (!named[policy]) {
            question->policies[question->policy_count++] = policy;
        }
        named[policy] = true;
    }
    return question->policy_count > 0 ||
           err_field(err, ERR_FIELD, "policies", "for example [\"default\", \"fifo\"]",
                     "policies must name at least one policy");
}

static bool read_since(const json_t *json, struct simulation_question *question, struct err *err)
{
    const char *since = NULL;
    if (!json_read_text(json, "since", &since, err)) {
        return false;
    }
    return since == NULL || (text_to_duration_ms(since, &question->span_ms) && question->span_ms > 0) ||
           err_field(err, ERR_FIELD, "since", "for example 7d: jobs submitted so long ago at most",
                     "since must be a duration above 0");
}

static bool read_limits(const json_t *json, struct simulation_question *question, struct err *err)
{
    const char *limits = NULL;
    if (!json_read_text(json, "limits", &limits, err)) {
        return false;
    }
    return limits == NULL || limits_from_text(limits, &question->limits) ||
           err_field(err, ERR_FIELD, "limits", NULL, "limits must be trace, exact or none");
}

static bool read_nodes(const json_t *json, struct simulation_question *question, struct err *err)
{
    const char *nodes = NULL;
    if (!json_read_text(json, "nodes", &nodes, err)) {
        return false;
    }
    if (nodes != NULL && !fleet_parse(nodes, &question->fleet, err)) {
        err->code = ERR_FIELD; /* the same as an option is a wrong use */
        return false;
    }
    return simulation_fleet_fits(&question->fleet, err);
}

static char *key_of(const struct simulation_question *question)
{
    struct text key = {0};
    fleet_write(&question->fleet, &key);
    text_printf(&key, "\t%lld\t%d\t%s", (long long)question->span_ms, (int)question->limits,
                question->owner != NULL ? question->owner : "");
    for (size_t i = 0; i < question->policy_count; i++) {
        text_printf(&key, "\t%d", (int)question->policies[i]);
    }
    return text_take(&key);
}

static bool read_question(const struct request *request, struct simulation_question *question,
                          struct err *err)
{
    const json_t *json = request->json;
    const char *scope = request_owner_scope(request);
    question->owner = scope != NULL ? xstrdup(scope) : NULL;
    return request_only_fields(json, "policies since nodes limits", err) &&
           read_policies(json, question, err) && read_since(json, question, err) &&
           read_limits(json, question, err) && read_nodes(json, question, err);
}

/* --- asking --------------------------------------------------------------------------------------------- */

/* Forgets answers that are old, and the oldest if there are too many. */
static void make_room(struct simulations *simulations)
{
    struct simulation *simulation, *next;
    HASH_ITER (hh, simulations->by_key, simulation, next) {
        bool old = simulation->fresh_ms <= simulations->server->now_ms ||
                   HASH_COUNT(simulations->by_key) >= LIMIT_SIMULATIONS_KEPT;
        if (simulation->fresh_ms != 0 && old) {
            drop(simulation);
        }
    }
}

static bool refuse_busy(struct err *err)
{
    err_set(err, ERR_TOO_MANY, "the controller is busy with other simulations");
    return err_hint(err, "ask again in a minute: one runs at a time, and %d wait, of one user %d",
                    LIMIT_SIMULATIONS, LIMIT_SIMULATIONS_OWNER);
}

static bool begin(struct simulations *simulations, struct simulation *simulation, struct request *request,
                  struct err *err)
{
    simulation->simulations = simulations;
    simulation->asker = xstrdup(identity_owner(request->who));
    simulation->run.store_path = request->server->config.store_path;
    simulation->run.wall_ms = request->server->wall_ms;
    simulation->run.limit_ms = LIMIT_SIMULATION_MS;
    if (!fair_queue_add(&simulations->queue, &simulation->entry, simulation->asker)) {
        simulation_free(simulation);
        return refuse_busy(err);
    }
    HASH_ADD_KEYPTR(hh, simulations->by_key, simulation->key, strlen(simulation->key), simulation);
    audience_wait(&simulation->audience, request);
    serve_next(simulations);
    look_later(simulations);
    return true;
}

bool simulations_make(struct request *request, struct err *err)
{
    struct simulations *simulations = request->server->simulations;
    struct simulation *asked = xzalloc(sizeof *asked), *found;
    if (!read_question(request, &asked->run.question, err)) {
        simulation_free(asked);
        return false;
    }
    asked->key = key_of(&asked->run.question);
    make_room(simulations);
    HASH_FIND_STR(simulations->by_key, asked->key, found);
    if (found == NULL) {
        return begin(simulations, asked, request, err);
    }
    simulation_free(asked);
    return found->fresh_ms != 0 ? reply(request, found) : audience_wait(&found->audience, request);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

bool simulations_open(struct server *server, struct err *err)
{
    struct simulations *simulations = server->simulations = xzalloc(sizeof *simulations);
    simulations->server = server;
    simulations->queue.limit = LIMIT_SIMULATIONS;
    simulations->queue.owner_limit = LIMIT_SIMULATIONS_OWNER;
    simulations->look = (struct deadline){.due = look, .closure = simulations};
    simulations->worker = worker_open(err);
    if (simulations->worker == NULL) {
        return false;
    }
    simulations->watch = (struct watch){
        .fd = worker_fd(simulations->worker), .ready = worker_ready, .closure = simulations->worker};
    return server_watch(server, &simulations->watch, err);
}

void simulations_close(struct server *server)
{
    struct simulations *simulations = server->simulations;
    struct simulation *simulation, *next;
    if (simulations == NULL) {
        return;
    }
    HASH_ITER (hh, simulations->by_key, simulation, next) {
        drop(simulation);
    }
    worker_close(simulations->worker);
    deadline_clear(server->deadlines, &simulations->look);
    free(simulations);
    server->simulations = NULL;
}
