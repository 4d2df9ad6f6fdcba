/* SPDX-License-Identifier: Apache-2.0 */
/* Serves GET /v1/gpus: a row for each GPU or CPU slot of all nodes, by the node's name and the index. It is
 * made in pieces from committed rows and from memory, never by the writer. A user sees that a device is held,
 * and of its own jobs also by which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/usage/node_windows.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/pieces.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/samples/samples.h"
#include "daemon/http/usage/holders.h"
#include "daemon/http/usage/node_facts.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

#define NODE_DONE INT64_MAX /* all devices of the node were looked at */

struct filter {
    const char *node, *pool, *gpu_type, *owner; /* NULL: any */
    uint32_t states;                            /* bit (1 << enum gpu_state); 0: any */
};

/* A page that is being made. */
struct listing {
    struct pieces pieces; /* first */
    struct filter filter;
    struct holders *collection;      /* being made; NULL: the server's is fresh */
    char node[LIMIT_NAME_BYTES + 1]; /* the last GPU that was looked at; "": none */
    int64_t index;
    int64_t left;                  /* rows */
    int64_t others;                /* rows that show a job of others by the sender's role alone */
    int nodes;                     /* that were looked at */
    const struct windows *windows; /* of the piece */
    bool full, over;
    struct text json;
};

/* A device of a node and all that is known of it. */
struct gpu {
    const struct server *server;
    const struct node_row *row;
    enum node_state node_state;
    bool in_window; /* its node is */
    enum gpu_state state;
    int64_t index;
    const char *uuid, *type, *unavailable;
    const struct holding *holding; /* NULL: nobody holds it */
};

/* --- the query ------------------------------------------------------------------------------------------ */

static bool refuse_state(const char *word, struct err *err)
{
    autotext struct text states = {0};
    for (int state = 0; state < GPU_STATE_COUNT; state++) {
        text_printf(&states, " %s", gpu_state_text((enum gpu_state)state));
    }
    err_field(err, ERR_FIELD, "state", NULL, "there is no state \"%s\" of a GPU", word);
    return err_hint(err, "states:%s", states.bytes);
}

/* A state, or several separated by commas. */
static bool read_states(const char *list, uint32_t *ret_states, struct err *err)
{
    autofree char *copy = list != NULL ? xstrdup(list) : NULL;
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        enum gpu_state state;
        if (!gpu_state_from_text(word, &state)) {
            return refuse_state(word, err);
        }
        *ret_states |= 1U << state;
    }
    return true;
}

/* A cursor is "NODE:INDEX", the last GPU on the page (-1: none of the node's is), or "NODE" when all of the
 * node's were looked at. */
static void write_cursor(const struct listing *listing, struct text *out)
{
    text_append(out, listing->node);
    if (listing->index != NODE_DONE) {
        text_append(out, ":");
        text_append_int(out, listing->index);
    }
}

static bool read_cursor(const char *text, struct listing *listing, struct err *err)
{
    if (text == NULL) {
        return true;
    }
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    listing->index = NODE_DONE;
    bool sound = length <= LIMIT_NAME_BYTES;
    if (sound) {
        memcpy(listing->node, text, length);
        listing->node[length] = '\0';
        sound = text_is_name(listing->node, LIMIT_NAME_BYTES) &&
                (colon == NULL || text_to_int(colon + 1, -1, INT32_MAX, &listing->index));
    }
    return sound || err_field(err, ERR_FIELD, "cursor", "take it from \"next\" of the page before",
                              "the cursor is not one of ours");
}

static bool read_query(const struct request *request, struct listing *listing, struct err *err)
{
    const struct query *query = request->query;
    struct filter *filter = &listing->filter;
    return query_name(query, "node", &filter->node, err) && query_name(query, "pool", &filter->pool, err) &&
           query_name(query, "gpu_type", &filter->gpu_type, err) && query_owner(query, &filter->owner, err) &&
           read_states(query_text(query, "state"), &filter->states, err) &&
           query_int(query, "limit", 1, LIMIT_GPU_ROWS, &listing->left, err) &&
           read_cursor(query_text(query, "cursor"), listing, err);
}

/* --- a row ---------------------------------------------------------------------------------------------- */

static enum gpu_state state_of(const struct gpu *gpu)
{
    if (gpu->holding != NULL || gpu->unavailable != NULL) {
        return gpu->holding != NULL ? GPU_ALLOCATED : GPU_UNAVAILABLE;
    }
    switch (gpu->node_state) {
    case NODE_SUSPECT:
    case NODE_LOST:
        return GPU_SILENT;
    case NODE_DRAINING:
    case NODE_DRAINED:
        return GPU_DRAINED;
    case NODE_READY:
    case NODE_STATE_COUNT:
        break;
    }
    return gpu->in_window ? GPU_DRAINED : GPU_FREE;
}

static struct gpu gpu_of(const struct listing *listing, const struct node_row *row,
                         enum node_state node_state, const json_t *device)
{
    const struct server *server = listing->pieces.request->server;
    struct gpu gpu = {.server = server,
                      .row = row,
                      .node_state = node_state,
                      .in_window = windows_keep_free(listing->windows, row, server->wall_ms),
                      .index = json_integer_value(json_object_get(device, "index")),
                      .uuid = json_string_of(device, "uuid"),
                      .type = json_string_of(device, "type"),
                      .unavailable = json_string_of(device, "unavailable")};
    gpu.holding = holders_find(server, row->name, gpu.index);
    gpu.state = state_of(&gpu);
    return gpu;
}

/* Who holds it is told to those alone who may see the job. */
static bool shows_holder(const struct request *request, const struct gpu *gpu)
{
    return gpu->holding != NULL && request_may_see(request, gpu->holding->owner, gpu->holding->project);
}

static bool fits(const struct request *request, const struct filter *filter, const struct gpu *gpu)
{
    return (filter->states == 0 || (filter->states >> gpu->state & 1) != 0) &&
           (filter->gpu_type == NULL || (gpu->type != NULL && strcmp(filter->gpu_type, gpu->type) == 0)) &&
           (filter->owner == NULL ||
            (shows_holder(request, gpu) && strcmp(filter->owner, gpu->holding->owner) == 0));
}

static void write_holder(const struct request *request, const struct gpu *gpu, struct text *out)
{
    const struct holding *holding = gpu->holding;
    text_append(out, ",\"holder\":");
    if (!shows_holder(request, gpu)) {
        text_append(out, "null");
        return;
    }
    member_write_text(out, "{\"job\":", holding->job_id);
    member_write_text(out, ",\"name\":", holding->job_name);
    member_write_text(out, ",\"owner\":", holding->owner);
    member_write_text(out, ",\"project\":", holding->project);
    member_write_int_or_null(out, ",\"rank\":", holding_rank(holding, gpu->index), -1);
    member_write_time(out, ",\"since\":", holding->since_ms);
    text_append(out, "}");
}

static const struct gpu_sample *sample_of(const struct node_sample *sample, int64_t index)
{
    for (size_t i = 0; i < sample->gpu_count; i++) {
        if (sample->gpus[i].index == index) {
            return &sample->gpus[i].use;
        }
    }
    return NULL;
}

static void write_sample(const struct gpu *gpu, struct text *out)
{
    const struct node_sample *sample = samples_find(gpu->server, gpu->row->name);
    bool fresh = sample != NULL && !gpu->row->slots && samples_fresh(gpu->server, sample);
    const struct gpu_sample *use = fresh ? sample_of(sample, gpu->index) : NULL;
    text_append(out, ",\"sample\":");
    if (use == NULL) {
        text_append(out, "null");
        return;
    }
    member_write_int(out, "{\"age_s\":", (gpu->server->now_ms - sample->heard_ms) / 1000);
    member_write_int_or_null(out, ",\"utilization_percent\":", use->busy_percent, -1);
    member_write_int_or_null(out, ",\"memory_bytes\":", use->memory_bytes, -1);
    member_write_int_or_null(out, ",\"memory_total_bytes\":", use->memory_total_bytes, -1);
    member_write_int_or_null(out, ",\"power_w\":", use->power_mw < 0 ? -1 : (use->power_mw + 500) / 1000, -1);
    member_write_int_or_null(out, ",\"temperature_c\":", use->temperature_c, -1);
    text_append(out, "}");
}

static void write_gpu(const struct request *request, const struct gpu *gpu, struct text *out)
{
    member_separate(out);
    member_write_text(out, "{\"node\":", gpu->row->name);
    member_write_int(out, ",\"index\":", gpu->index);
    member_write_text(out, ",\"uuid\":", gpu->uuid);
    member_write_text(out, ",\"gpu_type\":", gpu->type);
    member_write_bool(out, ",\"slot\":", gpu->row->slots);
    member_write_text(out, ",\"pool\":", gpu->row->pool);
    member_write_text(out, ",\"pool_kind\":", pool_kind_text(gpu->row->pool_kind));
    member_write_text(out, ",\"node_state\":", node_state_text(gpu->node_state));
    member_write_text(out, ",\"state\":", gpu_state_text(gpu->state));
    member_write_text(out, ",\"unavailable\":", gpu->unavailable);
    write_holder(request, gpu, out);
    write_sample(gpu, out);
    text_append(out, "}");
}

/* --- pieces --------------------------------------------------------------------------------------------- */

static int by_index(const void *a, const void *b)
{
    const json_t *const *left = a, *const *right = b;
    int64_t difference = json_integer_value(json_object_get(*left, "index")) -
                         json_integer_value(json_object_get(*right, "index"));
    return (difference > 0) - (difference < 0);
}

/* One row more than the page has tells whether there is a next one. */
static void list_devices(struct listing *listing, const struct node_row *row, enum node_state state,
                         const json_t *const *devices, size_t count)
{
    const struct request *request = listing->pieces.request;
    for (size_t i = 0; i < count && !listing->full; i++) {
        const struct gpu gpu = gpu_of(listing, row, state, devices[i]);
        bool wanted = gpu.index > listing->index && fits(request, &listing->filter, &gpu);
        listing->full = wanted && listing->left == 0;
        if (wanted && !listing->full) {
            write_gpu(request, &gpu, &listing->json);
            listing->others += gpu.holding != NULL &&
                               request_sees_by_role(request, gpu.holding->owner, gpu.holding->project);
            listing->left--;
            listing->index = gpu.index;
        }
    }
}

/* How many devices it has. */
static size_t list_node(struct listing *listing, const struct node_row *row)
{
    autojson json_t *parsed = json_parse(row->devices, strlen(row->devices), NULL);
    const json_t *devices[LIMIT_NODE_DEVICES];
    struct node_facts facts;
    size_t count = json_array_size(parsed);
    count = count < LIMIT_NODE_DEVICES ? count : LIMIT_NODE_DEVICES;
    for (size_t i = 0; i < count; i++) {
        devices[i] = json_array_get(parsed, i);
    }
    /* cppcheck-suppress uninitvar ; of an empty array qsort reads nothing */
    qsort(devices, count, sizeof devices[0], by_index);
    node_facts_read(listing->pieces.request->server, row, parsed, &(struct node_used){0}, &facts);
    list_devices(listing, row, facts.state, devices, count);
    return count;
}

static void enter_node(struct listing *listing, const char *name)
{
    if (strcmp(listing->node, name) != 0) {
        snprintf(listing->node, sizeof listing->node, "%s", name);
        listing->index = -1;
    }
    listing->nodes++;
}

/* The rows of some nodes; full: the page ends at the last GPU that was listed. */
static bool list_nodes(struct listing *listing, struct err *err)
{
    const struct filter *filter = &listing->filter;
    autowindows struct windows *windows = windows_read(listing->pieces.request->server->reader, err);
    listing->windows = windows;
    if (windows == NULL) {
        return false;
    }
    autorows struct rows rows = reader_nodes_from(listing->pieces.request->server->reader, listing->node,
                                                  listing->index != NODE_DONE, GPUS_PIECE_NODES, err);
    struct node_row row;
    struct node_used used;
    int nodes = 0;
    for (size_t gpus = 0; gpus < GPUS_PIECE && !listing->full; nodes++) {
        if (!rows_node(&rows, &row, &used)) {
            listing->over = nodes < GPUS_PIECE_NODES;
            break;
        }
        listing->over = filter->node != NULL && strcmp(row.name, filter->node) != 0;
        if (listing->over) {
            break;
        }
        enter_node(listing, row.name);
        gpus += filter->pool == NULL || strcmp(filter->pool, row.pool) == 0 ? list_node(listing, &row) : 1;
        listing->index = listing->full ? listing->index : NODE_DONE;
    }
    return !rows.failed;
}

static enum pieces_state end_page(struct listing *listing)
{
    autotext struct text cursor = {0};
    write_cursor(listing, &cursor);
    member_write_text(&listing->json, "],\"next\":", listing->over ? NULL : cursor.bytes);
    text_append(&listing->json, "}");
    request_shows_others(listing->pieces.request, listing->others);
    request_reply_json(listing->pieces.request, 200, &listing->json);
    return PIECES_DONE;
}

static enum pieces_state work(struct pieces *pieces, struct err *err)
{
    struct listing *listing = (struct listing *)pieces;
    if (listing->collection != NULL) {
        enum pieces_state state = holders_step(pieces->request->server, &listing->collection, err);
        return state == PIECES_DONE ? PIECES_MORE : state;
    }
    if (!list_nodes(listing, err)) {
        return PIECES_FAILED;
    }
    bool ends = listing->full || listing->over || listing->nodes >= LIMIT_GPU_NODES;
    return ends ? end_page(listing) : PIECES_MORE;
}

static void listing_free(struct pieces *pieces)
{
    struct listing *listing = (struct listing *)pieces;
    holders_destroy(listing->collection);
    text_finish(&listing->json);
    free(listing);
}

bool gpus_list(struct request *request, struct err *err)
{
    struct listing page = {.index = -1, .left = LIMIT_GPU_ROWS};
    if (!read_query(request, &page, err)) {
        return false;
    }
    if (page.filter.node != NULL && strcmp(page.node, page.filter.node) < 0) {
        snprintf(page.node, sizeof page.node, "%s", page.filter.node);
        page.index = -1;
    }
    struct listing *listing = xzalloc(sizeof *listing);
    *listing = page;
    listing->pieces = (struct pieces){.work = work, .free = listing_free};
    listing->collection = holders_fresh(request->server) ? NULL : holders_begin();
    text_append(&listing->json, "{\"gpus\":[");
    return pieces_begin(request, &listing->pieces, err);
}
