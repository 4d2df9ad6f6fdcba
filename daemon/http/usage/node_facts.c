/* SPDX-License-Identifier: Apache-2.0 */
/* Counts devices, and sees which nodes are silent. */
#include "daemon/http/usage/node_facts.h"

#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/orders/outbox.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* The one type of all devices, or "mixed"; borrowed from the array. NULL: no devices. */
static const char *type_of(const json_t *devices)
{
    const char *type = NULL;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *one = json_string_value(json_object_get(json_array_get(devices, i), "type"));
        if (type != NULL && one != NULL && strcmp(type, one) != 0) {
            return "mixed";
        }
        type = one;
    }
    return type;
}

/* How many devices no job can get, and why not the first of them; borrowed from the array. */
static int64_t count_unavailable(const json_t *devices, const char **ret_reason)
{
    int64_t count = 0;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *reason = json_string_value(json_object_get(json_array_get(devices, i), "unavailable"));
        *ret_reason = count == 0 ? reason : *ret_reason;
        count += reason != NULL;
    }
    return count;
}

/* One that somebody has may be unavailable, too: it counts once more than it is there. */
static int64_t count_free(int64_t gpus, int64_t used, int64_t unavailable)
{
    int64_t rest = gpus - used - unavailable;
    return rest > 0 ? rest : 0;
}

static enum node_state shown_state(const struct server *server, const struct node_row *row,
                                   int64_t heartbeat_ms)
{
    int64_t last_ms = heartbeat_ms >= 0 ? heartbeat_ms : server->opened_ms;
    bool silent = server->now_ms - last_ms > HEARTBEATS_MISSED * server->config.heartbeat_ms;
    return row->state == NODE_READY && silent ? NODE_SUSPECT : row->state;
}

void node_facts_read(const struct server *server, const struct node_row *row, const json_t *devices,
                     const struct node_used *used, struct node_facts *ret_facts)
{
    int64_t heartbeat_ms = outbox_last_heartbeat(server->outbox, row->name);
    int64_t gpus = (int64_t)json_array_size(devices);
    const char *unavailable = NULL;
    int64_t unavailable_gpus = count_unavailable(devices, &unavailable);
    *ret_facts = (struct node_facts){
        .state = shown_state(server, row, heartbeat_ms),
        .heartbeat_age_ms = heartbeat_ms >= 0 ? server->now_ms - heartbeat_ms : -1,
        .gpu_type = type_of(devices),
        .gpus = gpus,
        .free_gpus = count_free(gpus, used->gpus, unavailable_gpus),
        .unavailable_gpus = unavailable_gpus,
        .unavailable = unavailable,
    };
}
