/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps for each registered node its newest orders, its parked poll and the time of its last heartbeat. A
 * poll is answered as soon as the node's orders are newer than those that the poll has seen: with every
 * attempt id that should live on the node, the orders that changed since, and everything to stage; a poll
 * whose token was revoked meanwhile is refused. Only the newest poll of a node is parked. A restart loses
 * nothing, because orders are derived from the state. The core makes orders, and the writer sends them after
 * their commit. */
#include "daemon/http/orders/outbox.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/orders/staging_board.h"
#include "daemon/http/request/request.h"
#include "daemon/http/secrets/secrets.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/base/text/table.h"
#include "proto/limits.h"
#include "proto/trace_context.h"

/* The times at which an order last left, CLOCK_BOOTTIME; 0: not yet. */
struct sent {
    int64_t prepare_us, start_us;
};

/* A stream that the node is to open. */
struct waiting_stream {
    char id[ID_LENGTH + 1], job_id[ID_LENGTH + 1];
    uint64_t attempt_id;
    json_t *request;
    struct waiting_stream *prev, *next;
};

struct box {
    char *node;
    char *boot_id, *agent_id;   /* with which it has registered; NULL: not yet */
    struct node_orders *orders; /* NULL: it never had any */
    struct sent *sent;          /* as many as there are orders */
    struct request *parked;     /* NULL: none */
    uint64_t seen;              /* by the parked poll */
    struct waiting_stream *streams;
    int64_t heartbeat_ms; /* -1: none yet */
    bool told;            /* to shut down */
    UT_hash_handle hh;
};

struct outbox {
    struct server *server;
    struct box *boxes; /* by node */
    bool shutting_down;
};

struct outbox *outbox_create(struct server *server)
{
    struct outbox *outbox = xzalloc(sizeof *outbox);
    outbox->server = server;
    return outbox;
}

static void free_stream(struct box *box, struct waiting_stream *stream)
{
    DL_DELETE(box->streams, stream);
    json_decref(stream->request);
    free(stream);
}

static void free_streams(struct box *box)
{
    while (box->streams != NULL) {
        free_stream(box, box->streams);
    }
}

static void free_box(struct box *box)
{
    free_streams(box);
    node_orders_destroy(box->orders);
    free(box->sent);
    free(box->boot_id);
    free(box->agent_id);
    free(box->node);
    free(box);
}

void outbox_destroy(struct outbox *outbox)
{
    if (outbox == NULL) {
        return;
    }
    struct box *box, *next;
    HASH_ITER (hh, outbox->boxes, box, next) {
        HASH_DEL(outbox->boxes, box);
        free_box(box);
    }
    free(outbox);
}

static struct box *find(const struct outbox *outbox, const char *node)
{
    struct box *box;
    HASH_FIND_STR(outbox->boxes, node, box);
    return box;
}

/* Only of nodes that are registered: their number bounds the boxes. */
static struct box *find_or_make(struct outbox *outbox, const char *node)
{
    struct box *box = find(outbox, node);
    if (box == NULL) {
        box = xzalloc(sizeof *box);
        box->node = xstrdup(node);
        box->heartbeat_ms = -1;
        HASH_ADD_KEYPTR(hh, outbox->boxes, box->node, strlen(box->node), box);
    }
    return box;
}

static void keep(char **kept, const char *text)
{
    if (*kept == NULL || strcmp(*kept, text) != 0) {
        free(*kept);
        *kept = xstrdup(text);
    }
}

static void set_agent(struct box *box, const char *boot_id, const char *agent_id)
{
    keep(&box->boot_id, boot_id);
    keep(&box->agent_id, agent_id != NULL ? agent_id : "");
}

/* A node without orders has the first version of this incarnation: above 0, so that an agent which has just
 * started is answered at once, and below that of its first order. */
static uint64_t version_of(const struct outbox *outbox, const struct box *box)
{
    return box->orders != NULL ? box->orders->version : (uint64_t)outbox->server->config.incarnation << 32;
}

/* --- answers -------------------------------------------------------------------------------------------- */

/* What an order gets on its way out: the names of its ranks towards tracking and traces, and secrets. */
struct names {
    char token[RANK_TOKEN_BYTES];
    char run_id[TRACKING_RUN_ID_BYTES];
    char traceparent[TRACE_PARENT_BYTES];
    json_t *spec, *secrets; /* owned: as the order has them */
};

static void name_tracking(const struct server *server, struct order *order, struct names *names)
{
    rank_token_make(server->rank_key, order->attempt_id, names->token);
    rank_run_id(server->rank_key, order->attempt_id, names->run_id);
    order->tracking_token = names->token;
    order->tracking_run_id = names->run_id;
}

/* The span that those of the ranks are children of: the attempt's where the controller sends traces, else the
 * one that the job came with. */
static void name_trace(const struct server *server, struct order *order, struct names *names)
{
    struct trace_parent parent;
    bool given = trace_parent_of_spec(order->spec, &parent);
    if (!given && server->config.exporter == NULL) {
        return;
    }
    if (!given) {
        trace_id_of_job(order->array_id != NULL ? order->array_id : order->job_id, parent.trace);
        parent.sampled = true;
    }
    if (server->config.exporter != NULL) {
        trace_span_id(order->job_id, TRACE_KIND_ATTEMPT, order->attempt, 0, parent.span);
    }
    trace_parent_write(&parent, names->traceparent);
    order->traceparent = names->traceparent;
    order->tracestate = given ? json_string_of(order->spec, "tracestate") : NULL;
}

/* The spec without the members that agents of earlier versions refuse: those for people and the controller
 * alone, and those that the order itself has. What names a folder on a volume stays: such agents have no such
 * folder. New reference. */
static json_t *spec_for_node(json_t *spec)
{
    static const char *const left_out[] = {"checkpoint_of", "after",       "not_before",
                                           "retry_of",      "traceparent", "tracestate"};
    json_t *rest = NULL;
    const size_t first = json_string_of(spec, "checkpoint_volume") != NULL ? 1 : 0;
    for (size_t i = first; i < sizeof left_out / sizeof left_out[0]; i++) {
        if (json_object_get(spec, left_out[i]) != NULL) {
            rest = rest != NULL ? rest : json_copy(spec);
            json_object_del(rest, left_out[i]);
        }
    }
    json_t *array = json_object_get(spec, "array");
    if (json_object_get(array, "only") != NULL) {
        rest = rest != NULL ? rest : json_copy(spec);
        array = json_copy(array);
        json_object_del(array, "only");
        json_object_set_new(rest, "array", array);
    }
    return rest != NULL ? rest : json_incref(spec);
}

/* Fills the orders of the reply, with specs for those that start something. The caller releases the specs. */
static bool fill_orders(const struct outbox *outbox, const struct box *box, uint64_t seen,
                        struct poll_reply *reply, json_t **specs, struct names *names, struct err *err)
{
    for (size_t i = 0; box->orders != NULL && i < box->orders->count; i++) {
        const struct node_order *item = &box->orders->items[i];
        reply->live[reply->live_count++] = item->order.attempt_id;
        if (item->version <= seen) {
            continue;
        }
        struct order *order = &reply->orders[reply->order_count];
        *order = item->order;
        if (order->phase != ORDER_STOP) {
            order->spec = specs[reply->order_count] = specs_get(outbox->server->specs, item->spec_key, err);
            if (order->spec == NULL) {
                return false;
            }
            order->restore = order->attempt > 1 || json_string_of(order->spec, "checkpoint_of") != NULL;
            name_tracking(outbox->server, order, &names[reply->order_count]);
            name_trace(outbox->server, order, &names[reply->order_count]);
            order->secrets = names[reply->order_count].secrets =
                secrets_for_order(outbox->server, order, order->spec);
            order->spec = names[reply->order_count].spec = spec_for_node(order->spec);
        }
        reply->order_count++;
    }
    return true;
}

/* Fills everything that the node should stage. The texts come from the core, which made them of JSON. */
static bool fill_stagings(const struct outbox *outbox, const struct box *box, struct poll_reply *reply,
                          struct err *err)
{
    for (size_t i = 0; box->orders != NULL && i < box->orders->staging_count; i++) {
        const char *text = box->orders->stagings[i].text;
        json_t *json = json_parse(text, strlen(text), err);
        if (json == NULL) {
            return false;
        }
        secrets_for_staging(outbox->server, json);
        reply->stagings[reply->staging_count++].json = json;
    }
    return true;
}

static void note_sent(struct box *box, uint64_t seen)
{
    int64_t now_us = clock_boot_us();
    for (size_t i = 0; box->orders != NULL && i < box->orders->count; i++) {
        const struct node_order *item = &box->orders->items[i];
        if (item->version <= seen) {
            continue;
        }
        switch (item->order.phase) {
        case ORDER_PREPARE:
            box->sent[i].prepare_us = now_us;
            break;
        case ORDER_START:
        case ORDER_RUN:
            box->sent[i].start_us = now_us;
            break;
        case ORDER_STOP:
        case ORDER_PHASE_COUNT:
            break;
        }
    }
}

/* As many as a message takes; the caller frees the list. */
static struct stream_order *list_streams(const struct box *box, size_t *ret_count)
{
    struct stream_order *streams = xzalloc(LIMIT_NODE_STREAMS * sizeof *streams);
    const struct waiting_stream *stream;
    *ret_count = 0;
    DL_FOREACH (box->streams, stream) {
        if (*ret_count < LIMIT_NODE_STREAMS) {
            streams[(*ret_count)++] = (struct stream_order){.id = stream->id,
                                                            .job_id = stream->job_id,
                                                            .attempt_id = stream->attempt_id,
                                                            .request = stream->request};
        }
    }
    return streams;
}

static void answer(const struct outbox *outbox, struct box *box, struct request *request, uint64_t seen)
{
    size_t room = box->orders != NULL ? box->orders->count + 1 : 1;
    size_t staging_room = box->orders != NULL ? box->orders->staging_count + 1 : 1;
    autofree uint64_t *live = xzalloc(room * sizeof *live);
    autofree struct order *changed = xzalloc(room * sizeof *changed);
    autofree json_t **specs = xzalloc(room * sizeof(json_t *));
    autofree struct names *names = xzalloc(room * sizeof *names);
    autofree struct staging *stagings = xzalloc(staging_room * sizeof *stagings);
    struct poll_reply reply = {.version = version_of(outbox, box),
                               .shutdown = outbox->shutting_down,
                               .restored_ms = outbox->server->config.restored_ms,
                               .journal_since_ms = outbox->server->config.restored_from_ms,
                               .live = live,
                               .orders = changed,
                               .stagings = stagings};
    autofree struct stream_order *streams =
        box->streams != NULL ? list_streams(box, &reply.stream_count) : NULL;
    reply.streams = streams;
    struct err err;
    if (fill_orders(outbox, box, seen, &reply, specs, names, &err) &&
        fill_stagings(outbox, box, &reply, &err)) {
        autojson json_t *json = poll_reply_encode(&reply);
        char *text = json_text(json);
        note_sent(box, seen);
        free_streams(box);
        request_reply(request, 200, "application/json", text, strlen(text));
        box->told = outbox->shutting_down;
    } else {
        log_error("orders unreadable", "node=%s text=\"%s\"", box->node, err.text);
        request_fail(request, &err);
    }
    for (size_t i = 0; i < room; i++) {
        json_decref(specs[i]);
        json_decref(names[i].spec);
        json_decref(names[i].secrets);
    }
    for (size_t i = 0; i < reply.staging_count; i++) {
        json_decref(stagings[i].json);
    }
}

static void answer_parked(const struct outbox *outbox, struct box *box)
{
    struct request *request = box->parked;
    struct err err;
    if (request == NULL) {
        return;
    }
    box->parked = NULL;
    if (request_stands(request, &err)) {
        answer(outbox, box, request, box->seen);
    } else {
        request_fail(request, &err);
    }
}

static void park_is_over(struct deadline *deadline)
{
    struct box *box = deadline->closure;
    answer_parked(box->parked->server->outbox, box);
}

/* --- from outside --------------------------------------------------------------------------------------- */

/* Both are in order of attempt id. */
static struct sent *carry_sent(const struct box *box, const struct node_orders *orders)
{
    struct sent *sent = xzalloc((orders->count + 1) * sizeof *sent);
    size_t old = 0, old_count = box->orders != NULL ? box->orders->count : 0;
    for (size_t i = 0; i < orders->count; i++) {
        uint64_t attempt_id = orders->items[i].order.attempt_id;
        while (old < old_count && box->orders->items[old].order.attempt_id < attempt_id) {
            old++;
        }
        if (old < old_count && box->orders->items[old].order.attempt_id == attempt_id) {
            sent[i] = box->sent[old];
        }
    }
    return sent;
}

void outbox_put(struct outbox *outbox, struct node_orders *orders)
{
    struct box *box = find_or_make(outbox, orders->node);
    struct sent *sent = carry_sent(box, orders);
    free(box->sent);
    box->sent = sent;
    node_orders_destroy(box->orders);
    box->orders = orders;
    set_agent(box, orders->boot_id, orders->agent_id);
    staging_board_told(outbox->server->stagings, orders, outbox->server->now_ms);
    if (box->parked != NULL && orders->version > box->seen) {
        answer_parked(outbox, box);
    }
}

bool outbox_knows(const struct outbox *outbox, const char *node, const char *boot_id, const char *agent_id)
{
    const struct box *box = find(outbox, node);
    return box != NULL && box->boot_id != NULL && strcmp(box->boot_id, boot_id) == 0 &&
           (agent_id == NULL || box->agent_id[0] == '\0' || strcmp(box->agent_id, agent_id) == 0);
}

int64_t *outbox_specs(const struct outbox *outbox, const char *node, size_t *ret_count)
{
    const struct box *box = find(outbox, node);
    const struct node_orders *orders = box != NULL ? box->orders : NULL;
    *ret_count = orders != NULL ? orders->count : 0;
    int64_t *keys = xalloc((*ret_count + 1) * sizeof *keys);
    for (size_t i = 0; i < *ret_count; i++) {
        keys[i] = orders->items[i].spec_key;
    }
    return keys;
}

bool outbox_stages(const struct outbox *outbox, const char *node, const char *text)
{
    const struct box *box = find(outbox, node);
    const struct node_orders *orders = box != NULL ? box->orders : NULL;
    for (size_t i = 0; orders != NULL && i < orders->staging_count; i++) {
        if (strstr(orders->stagings[i].text, text) != NULL) {
            return true;
        }
    }
    return false;
}

bool outbox_poll(struct outbox *outbox, struct request *request, const struct poll_message *message,
                 struct err *err)
{
    struct box *box = find(outbox, message->node);
    if (!outbox_knows(outbox, message->node, message->boot_id, message->agent_id)) {
        return err_set(err, ERR_NOT_FOUND, "node %s is not registered with this agent", message->node);
    }
    answer_parked(outbox, box);
    /* A version from the future is from before a restore of the store: it has seen nothing of this history.
     */
    uint64_t seen = message->version <= version_of(outbox, box) ? message->version : 0;
    bool news = seen < version_of(outbox, box) || box->streams != NULL;
    if (news || outbox->shutting_down || outbox->server->ending) {
        answer(outbox, box, request, seen);
        return true;
    }
    box->parked = request;
    box->seen = seen;
    request->deadline.due = park_is_over;
    request->deadline.closure = box;
    deadline_set(outbox->server->deadlines, &request->deadline, outbox->server->now_ms + POLL_PARK_MS);
    return request_wait(request);
}

void outbox_put_stream(struct outbox *outbox, const char *node, const struct stream_order *order)
{
    struct box *box = find(outbox, node);
    if (box == NULL) {
        return; /* the node has not registered since the controller started */
    }
    struct waiting_stream *stream = xzalloc(sizeof *stream);
    memcpy(stream->id, order->id, ID_LENGTH + 1);
    memcpy(stream->job_id, order->job_id, ID_LENGTH + 1);
    stream->attempt_id = order->attempt_id;
    stream->request = json_incref(order->request);
    DL_APPEND(box->streams, stream);
    answer_parked(outbox, box);
}

void outbox_drop_stream(struct outbox *outbox, const char *node, const char *id)
{
    struct box *box = find(outbox, node);
    struct waiting_stream *stream = NULL, *next;
    if (box == NULL) {
        return;
    }
    DL_FOREACH_SAFE (box->streams, stream, next) {
        if (strcmp(stream->id, id) == 0) {
            free_stream(box, stream);
        }
    }
}

void outbox_sent(const struct outbox *outbox, const char *node, uint64_t attempt_id, int64_t *ret_prepare_us,
                 int64_t *ret_start_us)
{
    const struct box *box = find(outbox, node);
    *ret_prepare_us = *ret_start_us = 0;
    for (size_t i = 0; box != NULL && box->orders != NULL && i < box->orders->count; i++) {
        if (box->orders->items[i].order.attempt_id == attempt_id) {
            *ret_prepare_us = box->sent[i].prepare_us;
            *ret_start_us = box->sent[i].start_us;
        }
    }
}

void outbox_register(struct outbox *outbox, const char *node, const char *boot_id, const char *agent_id,
                     int64_t now_ms)
{
    struct box *box = find_or_make(outbox, node);
    set_agent(box, boot_id, agent_id);
    box->heartbeat_ms = now_ms;
}

void outbox_forget(struct outbox *outbox, const char *node)
{
    struct box *box = find(outbox, node);
    if (box == NULL) {
        return;
    }
    struct request *parked = box->parked;
    box->parked = NULL;
    if (parked != NULL) {
        request_fail_with(parked, ERR_NOT_FOUND, "node %s was removed", node);
    }
    HASH_DEL(outbox->boxes, box);
    free_box(box);
}

void outbox_heartbeat(struct outbox *outbox, const char *node, int64_t now_ms)
{
    find_or_make(outbox, node)->heartbeat_ms = now_ms;
}

int64_t outbox_last_heartbeat(const struct outbox *outbox, const char *node)
{
    const struct box *box = find(outbox, node);
    return box != NULL ? box->heartbeat_ms : -1;
}

void outbox_shut_down(struct outbox *outbox)
{
    outbox->shutting_down = true;
    struct box *box, *next;
    HASH_ITER (hh, outbox->boxes, box, next) {
        answer_parked(outbox, box);
    }
}

bool outbox_all_told(const struct outbox *outbox, int64_t now_ms)
{
    const int64_t alive_ms = HEARTBEATS_MISSED * outbox->server->config.heartbeat_ms;
    struct box *box, *next;
    HASH_ITER (hh, outbox->boxes, box, next) {
        if (!box->told && box->heartbeat_ms >= 0 && now_ms - box->heartbeat_ms <= alive_ms) {
            return false;
        }
    }
    return true;
}
