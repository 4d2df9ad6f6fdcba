/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which nodes are unsuitable for a job. Every registered node is counted once, as usable or under the
 * first test that it fails: properties of the node, then its state, then its work. A single node that passes
 * all tests may still be too small. */
#include "daemon/core/explain/node_filter.h"

#include <string.h>

#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/request.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/model/state.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/place.h"
#include "proto/limits.h"

struct count {
    int64_t nodes;
    struct text names; /* an open JSON array; owned */
    int64_t named;
};

/* --- the tests ------------------------------------------------------------------------------------------ */

/* Whether the resource request would allow one of the node's partitions if pools did not matter. */
static bool has_type(const struct search *search, const struct node *node)
{
    struct resource_request request = *search->request;
    request.pool = NULL;
    request.use_reserved = node->pool_kind == POOL_RESERVED ? USE_RESERVED_TRUE : USE_RESERVED_FALSE;
    struct search anywhere = *search;
    anywhere.request = &request;
    for (const struct capacity *capacity = node->capacities; capacity != NULL; capacity = capacity->next) {
        if (fit_allowed(&anywhere, capacity->partition)) {
            return true;
        }
    }
    return false;
}

/* The capacity of the node from which the job could get most devices. */
static const struct capacity *capacity_of(const struct search *search, const struct node *node)
{
    const struct capacity *best = NULL;
    for (const struct capacity *capacity = node->capacities; capacity != NULL; capacity = capacity->next) {
        if (fit_allowed(search, capacity->partition) && (best == NULL || capacity->free > best->free)) {
            best = capacity;
        }
    }
    return best;
}

static bool is_reserved(const struct search *search, const struct reservations *reservations,
                        const struct capacity *capacity)
{
    if (reservations == NULL) {
        return false;
    }
    return reservations->partitions[capacity->partition->index] ||
           (reservations->nodes[capacity->node->index] & NODE_RESERVED) != 0 ||
           (fit_outlasts(search, capacity->partition) && capacity->spare < capacity->free);
}

/* The tests of the node's own properties. */
static enum node_test fails_itself(const struct search *search, const struct node *node,
                                   const struct capacity *capacity)
{
    if (capacity == NULL) {
        return has_type(search, node)     ? NODE_TEST_POOL
               : search->request->gpuless ? NODE_TEST_CPU_MEMORY
                                          : NODE_TEST_GPU_TYPE;
    }
    const struct resource_request *request = search->request;
    if (request->host_id != NULL && strcmp(request->host_id, node->host_id) != 0) {
        return NODE_TEST_HOST;
    }
    return request_allows_node(search->core, request, capacity) ? NODE_TEST_COUNT : NODE_TEST_LABELS;
}

/* The first test that a node fails; NODE_TEST_COUNT: none. */
static enum node_test fails(const struct search *search, const struct reservations *reservations,
                            const struct node *node)
{
    const struct capacity *capacity = capacity_of(search, node);
    enum node_test itself = fails_itself(search, node, capacity);
    if (itself != NODE_TEST_COUNT) {
        return itself;
    }
    if (node->state != NODE_READY) {
        return NODE_TEST_DRAINING;
    }
    if (node->contact == CONTACT_SILENT) {
        return NODE_TEST_SILENT;
    }
    if (node->hold_until_ms != 0) {
        return NODE_TEST_ON_HOLD;
    }
    if (node->away || !fit_lasts(search, node)) {
        return NODE_TEST_LEAVING;
    }
    int64_t nodes = search->request->nodes > 0 ? search->request->nodes : 1,
            each = search->request->units / nodes;
    int64_t wanted = each < capacity->total ? each : capacity->total;
    if (capacity->free < wanted) {
        return NODE_TEST_BUSY;
    }
    if (amount_times(node_left(node), request_each(search->request, node), wanted) < wanted) {
        return NODE_TEST_CPU_MEMORY;
    }
    if (!staging_allows(search->environment, node, READINESS_READY)) {
        return NODE_TEST_NOT_READY;
    }
    return is_reserved(search, reservations, capacity) ? NODE_TEST_RESERVED : NODE_TEST_COUNT;
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void add(struct count *count, const struct node *node)
{
    count->nodes++;
    if (count->named < LIMIT_NODES_NAMED) {
        text_append(&count->names, count->named > 0 ? "," : "");
        text_json_string(&count->names, node->name, strlen(node->name));
        count->named++;
    }
}

static void write_counts(struct count counts[NODE_TEST_COUNT], struct text *out)
{
    bool any = false;
    for (int i = 0; i < NODE_TEST_COUNT; i++) {
        if (counts[i].nodes > 0) {
            text_printf(out, "%s{\"test\":\"%s\",\"nodes\":%lld,\"names\":[%s]}", any ? "," : "",
                        node_test_text((enum node_test)i), (long long)counts[i].nodes, counts[i].names.bytes);
            any = true;
        }
        text_finish(&counts[i].names);
    }
}

void node_filter_write(struct core *core, const struct job *job, const struct reservations *reservations,
                       struct text *out)
{
    struct count counts[NODE_TEST_COUNT] = {0};
    const struct search search = place_search(core, job, VIEW_FREE, reservations, READINESS_READY);
    int64_t total = 0, usable = 0;
    for (size_t i = 0; i < core->node_count; i++) {
        const struct node *node = core->nodes[i];
        if (node->state == NODE_LOST) {
            continue;
        }
        enum node_test test = fails(&search, reservations, node);
        total++;
        usable += test == NODE_TEST_COUNT;
        if (test != NODE_TEST_COUNT) {
            add(&counts[test], node);
        }
    }
    text_printf(out, "{\"total\":%lld,\"usable\":%lld,\"failed\":[", (long long)total, (long long)usable);
    write_counts(counts, out);
    text_append(out, "]}");
}
