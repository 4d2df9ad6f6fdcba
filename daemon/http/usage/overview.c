/* SPDX-License-Identifier: Apache-2.0 */
/* Serves GET /v1/overview: GPUs by type and pool, jobs by state, who holds GPUs, and what is wrong. It is
 * made in pieces from committed rows and from memory, never by the writer, and serves for OVERVIEW_FRESH_MS,
 * so that fifty people who look at it cost what one does. */
#include "daemon/http/usage/overview.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/usage/node_windows.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/pieces.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/usage/node_facts.h"
#include "daemon/store/store.h"
#include "daemon/writer/writer.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/table.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

/* GPUs of one type in one pool. */
struct supply {
    char *key; /* owned: type and pool */
    char *gpu_type, *pool;
    enum pool_kind kind;
    int64_t nodes, gpus, free_gpus, unavailable_gpus;
    UT_hash_handle hh;
};

/* Somebody who holds GPUs. */
struct holder {
    char *owner;
    int64_t gpus, jobs;
    UT_hash_handle hh;
};

struct picture {
    int64_t wall_ms, oldest_ms; /* when it was made; when the oldest waiting job came, 0: none waits */
    struct supply *supplies;
    struct holder *holders;
    int64_t nodes[NODE_STATE_COUNT];
    struct text problems; /* objects */
    int64_t problem_count;
};

struct overview {
    struct picture *picture; /* the last; NULL: none yet */
    int64_t made_ms;
};

/* A picture that is being made for a request. */
struct making {
    struct pieces pieces; /* first */
    struct picture *picture;
    char *last;                 /* the last node, owned */
    bool walked;                /* over all nodes */
    int64_t job_key, node_rank; /* of the last allocation */
    int64_t counted_key;        /* the last job that was counted */
};

/* --- pictures ------------------------------------------------------------------------------------------- */

static void picture_destroy(struct picture *picture)
{
    if (picture == NULL) {
        return;
    }
    struct supply *supply, *next_supply;
    struct holder *holder, *next_holder;
    HASH_ITER (hh, picture->supplies, supply, next_supply) {
        HASH_DEL(picture->supplies, supply);
        free(supply->key);
        free(supply->gpu_type);
        free(supply->pool);
        free(supply);
    }
    HASH_ITER (hh, picture->holders, holder, next_holder) {
        HASH_DEL(picture->holders, holder);
        free(holder->owner);
        free(holder);
    }
    text_finish(&picture->problems);
    free(picture);
}

static struct supply *need_supply(struct picture *picture, const struct node_row *row, const char *gpu_type)
{
    autofree char *key = xprintf("%s %s", gpu_type, row->pool);
    struct supply *supply;
    HASH_FIND_STR(picture->supplies, key, supply);
    if (supply == NULL) {
        supply = xzalloc(sizeof *supply);
        supply->key = give(key);
        supply->gpu_type = xstrdup(gpu_type);
        supply->pool = xstrdup(row->pool);
        supply->kind = row->pool_kind;
        HASH_ADD_KEYPTR(hh, picture->supplies, supply->key, strlen(supply->key), supply);
    }
    return supply;
}

/* A node that takes no work, or has GPUs that no job can get. */
static void note_problem(struct picture *picture, const struct node_row *row, const struct node_facts *facts)
{
    if (facts->state == NODE_READY && facts->unavailable_gpus == 0) {
        return;
    }
    if (++picture->problem_count > OVERVIEW_PROBLEMS) {
        return;
    }
    struct text *out = &picture->problems;
    text_append(out, picture->problem_count > 1 ? "," : "");
    member_write_text(out, "{\"node\":", row->name);
    member_write_text(out, ",\"state\":", node_state_text(facts->state));
    member_write_int(out, ",\"unavailable_gpus\":", facts->unavailable_gpus);
    member_write_text(out, ",\"reason\":", row->reason != NULL ? row->reason : facts->unavailable);
    text_append(out, "}");
}

/* GPUs of nodes that take no work are unavailable, but for those that somebody holds. */
static void count_node(struct picture *picture, const struct node_row *row, const struct node_facts *facts,
                       bool in_window)
{
    struct supply *supply = need_supply(picture, row, facts->gpu_type != NULL ? facts->gpu_type : "");
    bool takes_work = facts->state == NODE_READY && !in_window;
    supply->nodes++;
    supply->gpus += facts->gpus;
    supply->free_gpus += takes_work ? facts->free_gpus : 0;
    supply->unavailable_gpus += facts->unavailable_gpus + (takes_work ? 0 : facts->free_gpus);
    picture->nodes[facts->state]++;
    note_problem(picture, row, facts);
}

static struct holder *need_holder(struct picture *picture, const char *owner)
{
    struct holder *holder;
    HASH_FIND_STR(picture->holders, owner, holder);
    if (holder == NULL) {
        holder = xzalloc(sizeof *holder);
        holder->owner = xstrdup(owner);
        HASH_ADD_KEYPTR(hh, picture->holders, holder->owner, strlen(holder->owner), holder);
    }
    return holder;
}

/* --- pieces --------------------------------------------------------------------------------------------- */

static bool walk_nodes(struct making *making, struct err *err)
{
    const struct server *server = making->pieces.request->server;
    autowindows struct windows *windows = windows_read(server->reader, err);
    if (windows == NULL) {
        return false;
    }
    autorows struct rows rows =
        reader_nodes(server->reader, making->last != NULL ? making->last : "", OVERVIEW_PIECE_NODES, err);
    struct node_row row;
    struct node_used used;
    int count = 0;
    for (; rows_node(&rows, &row, &used); count++) {
        autojson json_t *devices = json_parse(row.devices, strlen(row.devices), NULL);
        struct node_facts facts;
        node_facts_read(server, &row, devices, &used, &facts);
        count_node(making->picture, &row, &facts, windows_keep_free(windows, &row, server->wall_ms));
        free(making->last);
        making->last = xstrdup(row.name);
    }
    making->walked = count < OVERVIEW_PIECE_NODES;
    return !rows.failed;
}

/* true when there are more. */
static bool walk_allocations(struct making *making, struct err *err)
{
    const struct server *server = making->pieces.request->server;
    autorows struct rows rows = reader_allocations(server->reader, making->job_key, making->node_rank,
                                                   OVERVIEW_PIECE_ALLOCATIONS, err);
    struct allocation allocation;
    int count = 0;
    for (; rows_allocation(&rows, &allocation); count++) {
        struct holder *holder = need_holder(making->picture, allocation.owner);
        holder->gpus += allocation.gpus;
        holder->jobs += allocation.job_key != making->counted_key;
        making->counted_key = making->job_key = allocation.job_key;
        making->node_rank = allocation.node_rank;
    }
    return count == OVERVIEW_PIECE_ALLOCATIONS && !rows.failed;
}

/* --- the answer ----------------------------------------------------------------------------------------- */

static int by_type_and_pool(const struct supply *a, const struct supply *b)
{
    return strcmp(a->key, b->key);
}

static int by_gpus(const struct holder *a, const struct holder *b)
{
    return a->gpus != b->gpus ? (a->gpus < b->gpus) - (a->gpus > b->gpus) : strcmp(a->owner, b->owner);
}

static void write_supplies(const struct picture *picture, struct text *out)
{
    text_append(out, ",\"gpus\":[");
    for (const struct supply *supply = picture->supplies; supply != NULL; supply = supply->hh.next) {
        member_separate(out);
        member_write_text(out, "{\"gpu_type\":", supply->gpu_type);
        member_write_text(out, ",\"pool\":", supply->pool);
        member_write_text(out, ",\"kind\":", pool_kind_text(supply->kind));
        member_write_int(out, ",\"nodes\":", supply->nodes);
        member_write_int(out, ",\"total\":", supply->gpus);
        member_write_int(out, ",\"free\":", supply->free_gpus);
        member_write_int(out, ",\"unavailable\":", supply->unavailable_gpus);
        text_append(out, "}");
    }
    text_append(out, "]");
}

static void write_holder(struct text *out, const char *owner, int64_t gpus, int64_t jobs)
{
    member_separate(out);
    member_write_text(out, "{\"owner\":", owner);
    member_write_int(out, ",\"gpus\":", gpus);
    member_write_int(out, ",\"jobs\":", jobs);
    text_append(out, "}");
}

/* Those with the most GPUs, and the others together without a name. A user has only its own name. */
static void write_holders(const struct picture *picture, const char *scope, struct text *out)
{
    struct holder rest = {0};
    int count = 0;
    text_append(out, ",\"users\":[");
    for (const struct holder *holder = picture->holders; holder != NULL; holder = holder->hh.next) {
        bool named = scope == NULL ? count < OVERVIEW_USERS : strcmp(scope, holder->owner) == 0;
        if (named) {
            write_holder(out, holder->owner, holder->gpus, holder->jobs);
            count++;
        } else {
            rest.gpus += holder->gpus;
            rest.jobs += holder->jobs;
        }
    }
    if (rest.jobs > 0) {
        write_holder(out, NULL, rest.gpus, rest.jobs);
    }
    text_append(out, "]");
}

static void write_jobs(const struct server *server, struct text *out)
{
    const char *separator = "";
    text_append(out, ",\"jobs\":{");
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        if (!job_state_terminal((enum job_state)state)) {
            text_printf(out, "%s\"%s\":%zu", separator, job_state_text((enum job_state)state),
                        server->figures.jobs[state]);
            separator = ",";
        }
    }
    text_append(out, "}");
}

static void write_nodes(const struct picture *picture, struct text *out)
{
    const char *separator = "";
    text_append(out, ",\"nodes\":{");
    for (int state = 0; state < NODE_STATE_COUNT; state++) {
        text_printf(out, "%s\"%s\":%lld", separator, node_state_text((enum node_state)state),
                    (long long)picture->nodes[state]);
        separator = ",";
    }
    text_append(out, "}");
}

static bool reply(struct request *request, const struct picture *picture)
{
    const struct server *server = request->server;
    struct text json = {0};
    member_write_time(&json, "{\"at\":", picture->wall_ms);
    write_supplies(picture, &json);
    write_nodes(picture, &json);
    write_jobs(server, &json);
    member_write_time(&json, ",\"oldest_waiting_at\":", picture->oldest_ms);
    write_holders(picture, request_owner_scope(request), &json);
    request_shows_all_of(request, request_owner_scope(request), NULL);
    text_printf(&json, ",\"problems\":[%s]", picture->problems.length > 0 ? picture->problems.bytes : "");
    member_write_int(&json, ",\"problem_count\":", picture->problem_count);
    member_write_bool(&json, ",\"leases_held\":", writer_holds_leases(server->config.writer));
    member_write_bool(&json, ",\"disk_full\":", space_is_full(server->space));
    text_append(&json, "}");
    return request_reply_json(request, 200, &json);
}

static void finish(struct making *making)
{
    struct overview *overview = making->pieces.request->server->overview;
    picture_destroy(overview->picture);
    overview->picture = give(making->picture);
    overview->made_ms = making->pieces.request->server->now_ms;
    HASH_SORT(overview->picture->supplies, by_type_and_pool);
    HASH_SORT(overview->picture->holders, by_gpus);
    reply(making->pieces.request, overview->picture);
}

static enum pieces_state work(struct pieces *pieces, struct err *err)
{
    struct making *making = (struct making *)pieces;
    err->code = ERR_NONE;
    if (!making->walked) {
        return walk_nodes(making, err) ? PIECES_MORE : PIECES_FAILED;
    }
    if (walk_allocations(making, err)) {
        return PIECES_MORE;
    }
    if (err->code != ERR_NONE ||
        !reader_oldest_waiting(pieces->request->server->reader, &making->picture->oldest_ms, err)) {
        return PIECES_FAILED;
    }
    finish(making);
    return PIECES_DONE;
}

static void making_free(struct pieces *pieces)
{
    struct making *making = (struct making *)pieces;
    picture_destroy(making->picture);
    free(making->last);
    free(making);
}

bool overview_show(struct request *request, struct err *err)
{
    const struct server *server = request->server;
    const struct overview *overview = server->overview;
    if (overview->picture != NULL && server->now_ms - overview->made_ms < OVERVIEW_FRESH_MS) {
        return reply(request, overview->picture);
    }
    struct making *making = xzalloc(sizeof *making);
    making->pieces = (struct pieces){.work = work, .free = making_free};
    making->picture = xzalloc(sizeof *making->picture);
    making->picture->wall_ms = server->wall_ms;
    making->node_rank = -1;
    return pieces_begin(request, &making->pieces, err);
}

void overview_open(struct server *server)
{
    server->overview = xzalloc(sizeof *server->overview);
}

void overview_close(struct server *server)
{
    if (server->overview != NULL) {
        picture_destroy(server->overview->picture);
        free(server->overview);
        server->overview = NULL;
    }
}
