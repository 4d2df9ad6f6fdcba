/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the reservations of waiting jobs by a pass without effect, and for each job with one the nodes that a
 * pass would reserve when it comes to the job. */
#include "daemon/core/explain/reserved_nodes.h"

#include "daemon/core/explain/field.h"
#include "daemon/core/model/state.h"
#include "daemon/core/scheduler/place.h"
#include "daemon/core/scheduler/prospect.h"
#include "daemon/core/scheduler/reservation.h"

/* The nodes of a reservation of the earliest start. Those that others are leaving are not looked for. */
static void find_shares(struct core *core, struct reserved_gpus *reserved)
{
    struct outlook outlook;
    struct fit fit = {0};
    struct prospect prospect = {.fit = &fit};
    place_consider(core, reserved->job, &outlook);
    struct search search =
        reservation_search(core, reserved->job, VIEW_FUTURE, &outlook.reservations, READINESS_READY);
    search.job = reserved->job;
    search.borrow = outlook.reservations.borrow;
    if (outlook.move == MOVE_NONE && prospect_find(&search, &prospect) &&
        fit.shares[0].capacity->partition == reserved->partition) {
        reserved->fit = fit;
    } else {
        free(fit.shares);
    }
    outlook_finish(&outlook);
}

static bool reserves_nodes(const struct reservations *reservations, const struct partition *partition)
{
    for (size_t i = 0; i < partition->count; i++) {
        if (reservations->nodes[partition->capacities[i]->node->index] & NODE_RESERVED) {
            return true;
        }
    }
    return reservations->partitions[partition->index] != 0;
}

static void add(struct core *core, const struct reservations *reservations, const struct partition *partition,
                struct reserved_nodes *nodes)
{
    int64_t until_ms = reservations->until_ms[partition->index];
    struct reserved_gpus *reserved = &nodes->items[nodes->count];
    *reserved = (struct reserved_gpus){.job = reservations->whose[partition->index],
                                       .partition = partition,
                                       .from_ms = until_ms != 0 ? until_ms : core->now_ms,
                                       .firm = reservations->firm[partition->index],
                                       .all = until_ms == 0};
    if (reserved->job == NULL || (until_ms == 0 && !reserves_nodes(reservations, partition))) {
        return;
    }
    nodes->count++;
    if (!reserved->all) {
        find_shares(core, reserved);
    }
}

void reserved_nodes_find(struct core *core, struct reserved_nodes *ret_nodes)
{
    struct reservations reservations;
    size_t partitions = core->partitions != NULL ? core->partitions->prev->index + 1 : 0;
    *ret_nodes = (struct reserved_nodes){.items = xalloc((partitions + 1) * sizeof *ret_nodes->items)};
    place_reserve(core, &reservations);
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        add(core, &reservations, partition, ret_nodes);
    }
    reservations_end(&reservations);
}

void reserved_nodes_finish(struct reserved_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        free(nodes->items[i].fit.shares);
    }
    free(nodes->items);
    *nodes = (struct reserved_nodes){0};
}

/* --- the answer ----------------------------------------------------------------------------------------- */

static void write_one(const struct core *core, const struct reserved_gpus *reserved, struct text *out)
{
    const struct fit *fit = &reserved->fit;
    field_write_text(out, "{\"pool\":", reserved->partition->pool);
    field_write_text(out, ",\"gpu_type\":", reserved->partition->type);
    field_write_time(core, out, ",\"from\":", reserved->from_ms);
    text_printf(out, ",\"firm\":%s,\"all\":%s,\"nodes\":[", reserved->firm ? "true" : "false",
                reserved->all ? "true" : "false");
    for (size_t i = 0; i < fit->count && fit->shares != NULL; i++) {
        field_write_text(out, i > 0 ? ",{\"node\":" : "{\"node\":", fit->shares[i].capacity->node->name);
        text_printf(out, ",\"gpus\":%lld}", (long long)fit->shares[i].count);
    }
    text_append(out, "]}");
}

void reserved_nodes_write(const struct core *core, const struct reserved_nodes *nodes, const struct job *job,
                          struct text *out)
{
    bool any = false;
    text_append(out, "[");
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->items[i].job == job) {
            text_append(out, any ? "," : "");
            write_one(core, &nodes->items[i], out);
            any = true;
        }
    }
    text_append(out, "]");
}
