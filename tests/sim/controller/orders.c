/* SPDX-License-Identifier: Apache-2.0 */
/* The newest orders and the parked poll of each node, in place of daemon/http/orders/outbox.c, with the same
 * guarantees. */
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "tests/unit/store/each_row.h"
#include "tests/sim/controller/controller_parts.h"
#include "tests/sim/node/host.h"
#include "tests/sim/people.h"

struct box {
    struct controller *controller;
    char *node, *boot_id;
    struct node_orders *orders;
    uint64_t ticket; /* of the parked poll; 0: none */
    uint64_t seen;
    lifetime parked; /* counts parked polls */
    UT_hash_handle hh;
};

static struct box *find_or_make(struct controller *controller, const char *node)
{
    struct box *box;
    HASH_FIND_STR(controller->boxes, node, box);
    if (box == NULL) {
        box = xzalloc(sizeof *box);
        box->controller = controller;
        box->node = xstrdup(node);
        HASH_ADD_KEYPTR(hh, controller->boxes, box->node, strlen(box->node), box);
    }
    return box;
}

void orders_drop(struct controller *controller)
{
    struct box *box, *next;
    HASH_ITER (hh, controller->boxes, box, next) {
        HASH_DEL(controller->boxes, box);
        node_orders_destroy(box->orders);
        free(box->node);
        free(box->boot_id);
        free(box);
    }
}

static uint64_t version_of(const struct box *box)
{
    return box->orders != NULL ? box->orders->version
                               : (uint64_t)store_incarnation(box->controller->store) << 32;
}

static void parse_spec(const struct job_record *job, void *closure)
{
    *(json_t **)closure = json_parse(job->birth.spec, job->birth.spec_length, NULL);
}

static json_t *spec_of(const struct box *box, int64_t key)
{
    json_t *spec = NULL;
    bool found = false;
    struct err err;
    bool ok = one_job(reader_job_by_key(box->controller->reader, key, &err), parse_spec, &spec, &found);
    world_check(&box->controller->sim->world, ok && found && spec != NULL, "I3",
                "an order of %s names a job that is not in the store", box->node);
    return spec;
}

static void answer(struct box *box, uint64_t ticket, uint64_t seen)
{
    size_t room = box->orders != NULL ? box->orders->count + 1 : 1;
    size_t staging_room = box->orders != NULL ? box->orders->staging_count + 1 : 1;
    autofree uint64_t *live = xzalloc(room * sizeof *live);
    autofree struct order *changed = xzalloc(room * sizeof *changed);
    autofree struct staging *stagings = xzalloc(staging_room * sizeof *stagings);
    struct poll_reply reply = {
        .version = version_of(box), .live = live, .orders = changed, .stagings = stagings};
    for (size_t i = 0; box->orders != NULL && i < box->orders->count; i++) {
        const struct node_order *item = &box->orders->items[i];
        reply.live[reply.live_count++] = item->order.attempt_id;
        if (item->version > seen) {
            struct order *order = &reply.orders[reply.order_count++];
            *order = item->order;
            order->spec = order->phase != ORDER_STOP ? spec_of(box, item->spec_key) : NULL;
        }
    }
    for (size_t i = 0; box->orders != NULL && i < box->orders->staging_count; i++) {
        const char *text = box->orders->stagings[i].text;
        reply.stagings[reply.staging_count++].json = json_parse(text, strlen(text), NULL);
    }
    autojson json_t *json = poll_reply_encode(&reply);
    autofree char *text = json_text(json);
    wire_reply(box->controller->sim->wire, ticket, 200, text);
    for (size_t i = 0; i < reply.order_count; i++) {
        json_decref(changed[i].spec);
    }
    for (size_t i = 0; i < reply.staging_count; i++) {
        json_decref(stagings[i].json);
    }
}

static void answer_parked(struct box *box)
{
    uint64_t ticket = box->ticket;
    if (ticket != 0) {
        box->ticket = 0;
        box->parked++;
        answer(box, ticket, box->seen);
    }
}

/* A parked poll; its box is found by name, because boxes go with the controller. */
struct parking {
    struct controller *controller;
    const char *node;
    lifetime parked, lived;
};

static void park_is_over(void *closure)
{
    struct parking *parking = closure;
    struct box *box = NULL;
    if (parking->controller->life == parking->lived) {
        HASH_FIND_STR(parking->controller->boxes, parking->node, box);
    }
    if (box != NULL && box->parked == parking->parked) {
        answer_parked(box);
    }
}

void orders_poll(struct controller *controller, const struct poll_message *message, uint64_t ticket)
{
    struct box *box;
    HASH_FIND_STR(controller->boxes, message->node, box);
    if (box == NULL || box->boot_id == NULL || strcmp(box->boot_id, message->boot_id) != 0) {
        wire_reply(controller->sim->wire, ticket, 404, NULL);
        return;
    }
    answer_parked(box);
    uint64_t seen = message->version <= version_of(box) ? message->version : 0;
    if (seen < version_of(box)) {
        answer(box, ticket, seen);
        return;
    }
    box->ticket = ticket;
    box->seen = seen;
    box->parked++;
    struct world *world = &controller->sim->world;
    size_t size = strlen(box->node) + 1;
    struct parking *parking = world_keep(world, sizeof *parking + size);
    *parking =
        (struct parking){controller, memcpy(parking + 1, box->node, size), box->parked, controller->life};
    world_in(world, POLL_PARK_MS, park_is_over, parking, NULL);
}

static void set_boot(struct box *box, const char *boot_id)
{
    if (box->boot_id == NULL || strcmp(box->boot_id, boot_id) != 0) {
        free(box->boot_id);
        box->boot_id = xstrdup(boot_id);
    }
}

static bool has_type(const struct box *box, const char *type)
{
    const struct sim *sim = box->controller->sim;
    for (size_t i = 0; i < sim->host_count; i++) {
        if (strcmp(host_name(sim->hosts[i]), box->node) == 0) {
            return strcmp(host_type(sim->hosts[i]), type) == 0;
        }
    }
    return false;
}

int64_t orders_held(const struct controller *controller, const char *project, const char *type)
{
    int64_t held = 0;
    for (const struct box *box = controller->boxes; box != NULL; box = box->hh.next) {
        for (size_t i = 0; has_type(box, type) && box->orders != NULL && i < box->orders->count; i++) {
            const struct order *order = &box->orders->items[i].order;
            const struct submission *submission =
                people_submission_of(controller->sim->people, order->job_id);
            held += submission != NULL && strcmp(submission->project, project) == 0
                        ? (int64_t)order->device_count
                        : 0;
        }
    }
    return held;
}

void orders_registered(struct controller *controller, const char *node, const char *boot_id)
{
    set_boot(find_or_make(controller, node), boot_id);
}

void orders_put(struct controller *controller, struct node_orders *orders)
{
    struct box *box = find_or_make(controller, orders->node);
    node_orders_destroy(box->orders);
    box->orders = orders;
    set_boot(box, orders->boot_id);
    if (box->ticket != 0 && orders->version > box->seen) {
        answer_parked(box);
    }
}
