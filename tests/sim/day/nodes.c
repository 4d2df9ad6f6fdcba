/* SPDX-License-Identifier: Apache-2.0 */
/* The machines of the day: they register, send heartbeats, are measured, stage environments, break, restart
 * and fall silent. pieces.c has what runs on them. */
#include "tests/sim/day/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/sample_ring.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/wire/protocol.h"
#include "tests/sim/day/nodes_parts.h"
#include "tests/sim/day/people.h"
#include "tests/sim/day/remains.h"

#define HOST_MEMORY (1024LL * GIB)
#define MOST_NODES  64

static const struct model models[] = {{"H100", 80 * GIB, 700}, {"A100", 80 * GIB, 400}, {"L4", 24 * GIB, 72}};

/* Groups of equal nodes. */
static const struct {
    size_t model;
    int64_t nodes, gpus;
    bool reserved;
} fleet[] = {{0, 12, 8, true}, {1, 10, 8, false}, {2, 16, 4, false}};

const char *node_name(const struct node *node)
{
    return node->name;
}

const struct model *node_model(const struct node *node)
{
    return node->model;
}

static struct node *node_named(struct cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->count; i++) {
        if (strcmp(cluster->nodes[i].name, name) == 0) {
            return &cluster->nodes[i];
        }
    }
    abort();
}

/* --- messages ------------------------------------------------------------------------------------------- */

static void boot_of(const struct node *node, char out[2 * NODE_NAME_BYTES])
{
    snprintf(out, 2 * NODE_NAME_BYTES, "%s-%lld", node->name, (long long)node->boots);
}

/* The newest boot id is what the controller knows, so one buffer does for all that is said. */
static const char *boot_now(const struct node *node)
{
    static char boot[2 * NODE_NAME_BYTES];
    boot_of(node, boot);
    return boot;
}

struct report_message node_report(const struct piece *piece, enum report_kind kind)
{
    return (struct report_message){.node = piece->node->name,
                                   .boot_id = boot_now(piece->node),
                                   .agent_id = piece->node->name,
                                   .attempt_id = piece->run->attempt_id,
                                   .kind = kind};
}

void node_say(const struct piece *piece, const struct report_message *report)
{
    if (!piece->node->deaf) {
        day_ask(piece->node->cluster->day, &(struct input){.kind = INPUT_REPORT, .report = report}, NULL,
                NULL);
    }
}

/* A node that is known already is given a nonce first, which it repeats. */
static void enter(struct node *node)
{
    char uuids[NODE_GPUS][48];
    struct device devices[NODE_GPUS];
    char *nonce = NULL;
    for (int64_t i = 0; i < node->gpus; i++) {
        snprintf(uuids[i], sizeof uuids[i], "GPU-da7a%04zx-0000-4000-8000-%012llx",
                 (size_t)(node - node->cluster->nodes), (unsigned long long)i);
        devices[i] = (struct device){.index = i,
                                     .uuid = uuids[i],
                                     .type = node->model->name,
                                     .memory_bytes = node->model->memory_bytes,
                                     .group = node->gpus > 4 ? i / 4 : 0};
    }
    struct register_message message = {.name = node->name,
                                       .boot_id = boot_now(node),
                                       .agent_id = node->name,
                                       .host_id = node->name,
                                       .version = GPUCTL_VERSION,
                                       .protocol = PROTOCOL,
                                       .address = node->address,
                                       .reserved = node->reserved,
                                       .isolation = ISOLATION_CGROUP2,
                                       .devices = devices,
                                       .device_count = (size_t)node->gpus,
                                       .has_nonce = true};
    const struct input input = {.kind = INPUT_REGISTER, .node_register = &message};
    bool ok = day_ask(node->cluster->day, &input, NULL, &nonce);
    if (ok && nonce != NULL) {
        message.nonce = strtoull(nonce, NULL, 10);
        ok = day_ask(node->cluster->day, &input, NULL, NULL);
    }
    free(nonce);
    day_must(ok, &(struct err){.text = "a node may not register"});
}

/* --- heartbeats and samples ----------------------------------------------------------------------------- */

static struct piece *holder_of(const struct node *node, int64_t device)
{
    for (struct piece *piece = node->pieces; piece != NULL; piece = piece->next) {
        for (int64_t i = 0; i < piece->local_ranks; i++) {
            if (piece->devices[i] == device && piece->begun && !piece->over) {
                return piece;
            }
        }
    }
    return NULL;
}

static struct ring_gpu measure(struct world *world, const struct node *node, int64_t device)
{
    struct piece *piece = holder_of(node, device);
    const struct model *model = node->model;
    int64_t busy = 0, memory = 0;
    if (piece != NULL) {
        const struct kind *kind = piece->run->plan->kind;
        int64_t spread = kind->busy_percent < 10 ? 1 : 8;
        busy = kind->busy_percent + world_between(world, -spread, spread);
        busy = busy < 0 ? 0 : busy > 100 ? 100 : busy;
        memory = kind->memory_percent * model->memory_bytes / 100;
        piece->busy_percent = busy;
    }
    return (struct ring_gpu){.busy_percent = (uint8_t)busy,
                             .temperature_c = (uint8_t)(31 + busy * 42 / 100 + world_between(world, 0, 2)),
                             .power_w = (uint16_t)(model->watts / 8 + model->watts * busy * 7 / 800),
                             .memory_mib = (uint32_t)(memory / MIB)};
}

static void sample(struct node *node)
{
    struct ring_gpu gpus[NODE_GPUS];
    struct world *world = &node->cluster->day->world;
    int64_t busy = 0;
    for (int64_t i = 0; i < node->gpus; i++) {
        gpus[i] = measure(world, node, i);
        busy += gpus[i].busy_percent;
    }
    double cpu_percent = 2 + (double)(busy / node->gpus) / 3 + (double)world_between(world, 0, 30) / 10;
    remains_sample(node->cluster->day->remains, node->name, gpus, (size_t)node->gpus, cpu_percent,
                   HOST_MEMORY / 20 + HOST_MEMORY * busy / node->gpus / 250);
}

/* One of a node, with what it borrows. */
struct heartbeat {
    struct heartbeat_message message;
    char boot[2 * NODE_NAME_BYTES];
    struct node_attempt attempts[2 * NODE_GPUS];
    struct device_fault fault;
};

static void fill(struct node *node, struct heartbeat *heartbeat, struct input *input)
{
    struct world *world = &node->cluster->day->world;
    boot_of(node, heartbeat->boot);
    heartbeat->fault = (struct device_fault){2, "Xid 79: the GPU has fallen off the bus"};
    heartbeat->message = (struct heartbeat_message){.node = node->name,
                                                    .boot_id = heartbeat->boot,
                                                    .agent_id = node->name,
                                                    .seq = node->cluster->heartbeats,
                                                    .attempts = heartbeat->attempts};
    if (node->fault_ms != 0 && world->now_ms >= node->fault_ms) {
        heartbeat->message.faults =
            (struct device_faults){.told = true, .items = &heartbeat->fault, .count = 1};
    }
    for (const struct piece *piece = node->pieces; piece != NULL; piece = piece->next) {
        if (heartbeat->message.attempt_count < 2 * NODE_GPUS) {
            bool idle = piece->begun && piece->run->plan->kind->busy_percent < 5;
            heartbeat->attempts[heartbeat->message.attempt_count++] =
                (struct node_attempt){.attempt_id = piece->run->attempt_id,
                                      .state = piece->over    ? MEMBER_EXITED
                                               : piece->begun ? MEMBER_RUNNING
                                                              : MEMBER_PREPARED,
                                      .idle_ms = idle ? world->now_ms - piece->run->begun_ms : 0};
        }
    }
    *input = (struct input){
        .kind = INPUT_HEARTBEAT, .heartbeat = &heartbeat->message, .wall_ms = world_wall_ms(world)};
}

/* All nodes send a heartbeat at once, and are measured more often. */
static void send_heartbeats(void *closure)
{
    static struct heartbeat heartbeats[MOST_NODES];
    struct cluster *cluster = closure;
    struct world *world = &cluster->day->world;
    struct input inputs[MOST_NODES];
    size_t count = 0;
    bool due = world->now_ms % cluster->heartbeat_ms == 0;
    cluster->heartbeats += due;
    for (size_t i = 0; i < cluster->count; i++) {
        struct node *node = &cluster->nodes[i];
        if (!node->deaf) {
            sample(node);
        }
        if (!node->deaf && due) {
            fill(node, &heartbeats[count], &inputs[count]);
            count++;
        }
    }
    if (count > 0) {
        day_ask_all(cluster->day, inputs, count);
    }
    world_in(world, SAMPLE_RING_STEP_MS, send_heartbeats, cluster, NULL);
}

/* --- staging -------------------------------------------------------------------------------------------- */

/* An environment on a node. */
struct building {
    struct node *node;
    struct building *next;
    bool busy, done;
    char key[HASH_HEX + 1];
};

static void built(void *closure)
{
    struct building *building = closure;
    struct node *node = building->node;
    bool fails = people_key_is_broken(node->cluster->day->people, building->key);
    const struct staging_message message = {
        .node = node->name,
        .boot_id = boot_now(node),
        .key = building->key,
        .state = fails ? STAGING_FAILED : STAGING_READY,
        .by_user = true,
        .text = fails ? "ERROR: No matching distribution found for torhc==2.4.0" : NULL};
    building->busy = false;
    building->done = true;
    if (!node->deaf) {
        day_ask(node->cluster->day, &(struct input){.kind = INPUT_STAGING, .staging = &message}, NULL, NULL);
    }
}

static struct building *building_of(struct node *node, const char *key)
{
    struct building *building = node->buildings;
    while (building != NULL && strcmp(building->key, key) != 0) {
        building = building->next;
    }
    if (building == NULL) {
        building = world_keep(&node->cluster->day->world, sizeof *building);
        *building = (struct building){.node = node, .next = node->buildings};
        snprintf(building->key, sizeof building->key, "%s", key);
        node->buildings = building;
    }
    return building;
}

/* What is there already is ready at once. */
static void stage(struct node *node, const char *key)
{
    struct world *world = &node->cluster->day->world;
    struct building *building = building_of(node, key);
    if (!node->deaf && !building->busy) {
        building->busy = true;
        int64_t takes_ms = world_between(world, 25 * SECOND_MS, 140 * SECOND_MS);
        world_in(world, building->done ? SECOND_MS : takes_ms, built, building, NULL);
    }
}

/* --- what happens to nodes ------------------------------------------------------------------------------ */

static void comes_back(void *closure)
{
    struct node *node = closure;
    node->deaf = false;
    enter(node);
}

static void restarts(void *closure)
{
    struct node *node = closure;
    node->deaf = true;
    node->boots++;
    pieces_vanish(node);
    world_in(&node->cluster->day->world, 6 * MINUTE_MS, comes_back, node, NULL);
}

static void falls_silent(void *closure)
{
    struct node *node = closure;
    node->deaf = true;
}

void nodes_ordered(struct cluster *cluster, const struct node_orders *orders)
{
    struct node *node = node_named(cluster, orders->node);
    pieces_ordered(node, orders);
    for (size_t i = 0; i < orders->staging_count; i++) {
        stage(node, orders->stagings[i].key);
    }
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static void add_nodes(struct cluster *cluster)
{
    cluster->nodes = xzalloc(MOST_NODES * sizeof *cluster->nodes);
    for (size_t i = 0; i < sizeof fleet / sizeof *fleet; i++) {
        for (int64_t j = 1; j <= fleet[i].nodes; j++) {
            struct node *node = &cluster->nodes[cluster->count++];
            const struct model *model = &models[fleet[i].model];
            *node = (struct node){.cluster = cluster,
                                  .model = model,
                                  .gpus = fleet[i].gpus,
                                  .boots = 1,
                                  .reserved = fleet[i].reserved};
            snprintf(node->name, sizeof node->name, "%c%s-%02lld", model->name[0] | 0x20, model->name + 1,
                     (long long)j);
            snprintf(node->address, sizeof node->address, "10.0.%zu.%lld", i, (long long)j);
        }
    }
}

struct cluster *nodes_create(struct day *day, int64_t heartbeat_ms)
{
    struct world *world = &day->world;
    struct cluster *cluster = xzalloc(sizeof *cluster);
    cluster->day = day;
    cluster->heartbeat_ms = heartbeat_ms;
    cluster->held = json_pack("{s{},s{},s{}}", "owners", "projects", "types");
    day->cluster = cluster; /* registrations have orders */
    add_nodes(cluster);
    for (size_t i = 0; i < cluster->count; i++) {
        enter(&cluster->nodes[i]);
    }
    node_named(cluster, "l4-05")->fault_ms = 10 * DAY_HOUR;
    world_in(world, 17 * DAY_HOUR, restarts, node_named(cluster, "h100-03"), NULL);
    world_in(world, DAY_MS - 40 * MINUTE_MS, falls_silent, node_named(cluster, "a100-04"), NULL);
    world_in(world, 0, send_heartbeats, cluster, NULL);
    return cluster;
}

void nodes_destroy(struct cluster *cluster)
{
    pieces_free(cluster);
    json_decref(cluster->held);
    free(cluster->nodes);
    free(cluster);
}

json_t *nodes_tell(const struct cluster *cluster)
{
    json_t *told = json_array();
    for (size_t i = 0; i < cluster->count; i++) {
        const struct node *node = &cluster->nodes[i];
        json_t *busy = json_array();
        for (int64_t j = 0; j < node->gpus; j++) {
            const struct piece *piece = holder_of(node, j);
            json_array_append_new(busy, json_integer(piece != NULL ? piece->busy_percent : 0));
        }
        json_array_append_new(told,
                              json_pack("{ss,ss,ss,sb,so}", "name", node->name, "boot_id", boot_now(node),
                                        "agent_id", node->name, "silent", node->deaf, "busy", busy));
    }
    return json_pack("{so,sO}", "nodes", told, "held", cluster->held);
}
