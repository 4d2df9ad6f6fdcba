/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the reservations of waiting jobs: of all GPUs that a job could use, or of its earliest start. A
 * reservation is where the availability profile finds it. Longer jobs may take only the devices that it
 * leaves. A reservation that was put off for an hour becomes firm. place.c decides which jobs get
 * reservations. */
#include "daemon/core/scheduler/reservation.h"

#include <string.h>

#include "daemon/core/fleet/pool.h"
#include "daemon/core/fleet/request.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/prospect.h"

/* A reservation that was put off by this much becomes firm. */
#define FIRM_MS (3600LL * 1000)

/* --- searches ------------------------------------------------------------------------------------------- */

/* Sets how long the job may run. */
static void expect(struct search *search, const struct job *job)
{
    fit_expect(search, job->time_limit_ms > 0 ? job->time_limit_ms : NEVER, job->grace_ms);
}

/* The search for a job, on nodes of at least this readiness. */
struct search reservation_search(struct core *core, const struct job *job, enum view view,
                                 const struct reservations *reservations, enum readiness readiness)
{
    struct search search = fit_search(core, &job->job_class->request, view, reservations);
    search.environment = job->job_class->environment;
    search.readiness = readiness;
    search.end_ms = search.sure_ms = NEVER;
    expect(&search, job);
    return search;
}

struct search reservation_search_until(struct core *core, const struct job *job, int64_t estimate_ms,
                                       enum view view, const struct reservations *reservations,
                                       enum readiness readiness)
{
    struct search search = reservation_search(core, job, view, reservations, readiness);
    search.job = job;
    search.borrow = reservations == NULL || reservations->borrow;
    search.end_ms = core->now_ms + estimate_ms;
    search.sure_ms = job->time_limit_ms > 0 ? core->now_ms + job->time_limit_ms : NEVER;
    return search;
}

/* --- reservations --------------------------------------------------------------------------------------- */

void reservations_begin(struct reservations *reservations, const struct core *core)
{
    size_t partitions = core->partitions != NULL ? core->partitions->prev->index + 1 : 0;
    size_t words = partitions * (sizeof *reservations->until_ms + sizeof *reservations->whose);
    *reservations = (struct reservations){.until_ms = xzalloc(words + 2 * partitions + core->node_count + 1)};
    reservations->whose = (const struct job **)(reservations->until_ms + partitions);
    reservations->partitions = (uint8_t *)(reservations->whose + partitions);
    reservations->firm = reservations->partitions + partitions;
    reservations->nodes = reservations->firm + partitions;
}

void reservations_forget_jobs(struct reservations *reservations, const struct core *core)
{
    size_t partitions = core->partitions != NULL ? core->partitions->prev->index + 1 : 0;
    memset(reservations->whose, 0, partitions * sizeof *reservations->whose);
}

void reservations_end(struct reservations *reservations)
{
    free(reservations->until_ms);
}

static void reserve_nodes(struct reservations *reservations, const struct search *search,
                          const struct partition *partition)
{
    const struct resource_request *request = search->request;
    for (size_t i = 0; i < partition->count; i++) {
        const struct capacity *capacity = partition->capacities[i];
        bool alone = request->host_id == NULL || capacity->total >= request->units;
        if (request_allows_node(search->core, request, capacity) && alone &&
            fit_lasts(search, capacity->node) &&
            staging_allows(search->environment, capacity->node, search->readiness)) {
            reservations->nodes[capacity->node->index] |= NODE_RESERVED;
        }
    }
}

/* Whether some nodes of a partition are unsuitable. */
static bool by_node(const struct core *core, const struct search *search)
{
    const struct resource_request *request = search->request;
    return request->host_id != NULL || request->terms != NULL || search->environment != NULL ||
           core->gpuless_count > 0 || core->departing_count > 0;
}

/* Keeps jobs behind a waiting job off the nodes that it could use. Nodes that take no work now, or are not
 * ready for the job, do not let it start: while it waits for them, it holds up no other job. */
void reserve_all(struct reservations *reservations, struct core *core, const struct job *job)
{
    struct search search = reservation_search(core, job, VIEW_WORKING, NULL, READINESS_READY);
    search.job = job;
    search.borrow = reservations->borrow;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        bool open = partition->free > 0 &&
                    !reservations->partitions[partition->index]; /* else no other job can take it */
        if (!open || !fit_could_hold(&search, partition) || !fit_granted(&search, partition)) {
            continue;
        }
        reservations->whose[partition->index] = job;
        if (by_node(core, &search)) {
            reserve_nodes(reservations, &search, partition);
        } else {
            reservations->partitions[partition->index] = 1;
        }
    }
}

/* --- reservations --------------------------------------------------------------------------------------- */

static void spend(const struct partition *partition, const struct fit *fit)
{
    for (size_t i = 0; i < fit->count; i++) {
        pool_capacity(partition, fit->shares[i].capacity->node)->spare -= fit->shares[i].count;
    }
}

static bool is_counted_on(const struct reservations *reservations, const struct node *node)
{
    return (reservations->nodes[node->index] & NODE_COUNTED_ON) != 0;
}

static void spend_amount(const struct resource_request *request, const struct share *share)
{
    struct node *node = share->capacity->node;
    node->spare = amount_plus(node->spare, request_each(request, node), -share->count);
}

/* Jobs may hold what the fit leaves of the CPUs and the memory of its nodes beyond at_ms. A node that an
 * earlier reservation counts on, too, keeps the earlier start and the smaller rest. */
static void count_on_nodes(struct reservations *reservations, const struct resource_request *request,
                           const struct fit *fit, int64_t at_ms)
{
    for (size_t i = 0; i < fit->count; i++) {
        struct node *node = fit->shares[i].capacity->node;
        bool again = is_counted_on(reservations, node);
        node->spare = again ? amount_least(node->spare, node->left_then) : node->left_then;
        node->spare_until_ms = again && node->spare_until_ms < at_ms ? node->spare_until_ms : at_ms;
        reservations->nodes[node->index] |= NODE_COUNTED_ON;
        spend_amount(request, &fit->shares[i]);
    }
}

/* Jobs may hold the devices that the fit leaves in its partition, as of capacity->free_then, beyond at_ms. */
void reserve_fit(struct reservations *reservations, const struct job *job, const struct fit *fit,
                 int64_t at_ms, bool firm)
{
    const struct partition *partition = fit->shares[0].capacity->partition;
    reservations->whose[partition->index] = job;
    reservations->until_ms[partition->index] = at_ms > 0 ? at_ms : 1; /* 0 means none */
    reservations->firm[partition->index] = firm;
    for (size_t i = 0; i < partition->count; i++) {
        partition->capacities[i]->spare = partition->capacities[i]->free_then;
    }
    spend(partition, fit);
    count_on_nodes(reservations, &job->job_class->request, fit, at_ms);
}

/* Compares with the first start that the job was promised. */
static bool was_put_off(const struct core *core, const struct reservations *reservations,
                        struct job_class *job_class, const struct job *job, int64_t start_ms)
{
    if (job_class->promised_key != job->key && reservations->trial) {
        return false;
    }
    if (job_class->promised_key != job->key) {
        job_class->promised_key = job->key;
        job_class->promised_ms = start_ms;
    }
    return core->now_ms > job_class->promised_ms + FIRM_MS;
}

/* Whether the job could take devices from a partition without a reservation. */
static bool is_open(const struct search *search)
{
    for (const struct partition *partition = search->core->partitions; partition != NULL;
         partition = partition->next) {
        if (partition->free > 0 && fit_open(search, partition)) {
            return true;
        }
    }
    return false;
}

/* Finds the earliest start of a waiting job, in partitions without a reservation. Returns when another look
 * is due, because an attempt should have ended by then. */
int64_t reserve_start(struct core *core, const struct queue_entry *entry, struct reservations *reservations)
{
    const struct job *job = queue_first(entry);
    struct search search = reservation_search(core, job, VIEW_FUTURE, reservations, READINESS_READY);
    search.job = job;
    search.borrow = reservations->borrow;
    struct fit fit = {0};
    struct prospect prospect = {.change_ms = NEVER, .fit = &fit};
    if (!is_open(&search)) {
        return NEVER;
    }
    if (prospect_find(&search, &prospect)) {
        reserve_fit(reservations, job, &fit, prospect.at_ms,
                    was_put_off(core, reservations, job->job_class, job, prospect.at_ms));
        free(fit.shares);
    }
    return prospect.change_ms;
}

/* The gang was placed beside a reservation and outlasts its start. */
void reservation_spend(const struct search *search, const struct fit *fit)
{
    const struct partition *partition = fit->shares[0].capacity->partition;
    if (fit_outlasts(search, partition)) {
        spend(partition, fit);
    }
    for (size_t i = 0; search->reservations != NULL && i < fit->count; i++) {
        const struct node *node = fit->shares[i].capacity->node;
        if (is_counted_on(search->reservations, node) && search->end_ms > node->spare_until_ms) {
            spend_amount(search->request, &fit->shares[i]);
        }
    }
}

/* How long a gang may run before reservations in the partitions that it could use. */
int64_t reservation_gap_ms(const struct core *core, const struct search *search,
                           const struct reservations *reservations)
{
    int64_t longest_ms = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        int64_t until_ms = reservations->until_ms[partition->index];
        if (until_ms - core->now_ms > longest_ms && partition->free >= search->request->units &&
            fit_allowed(search, partition)) {
            longest_ms = until_ms - core->now_ms;
        }
    }
    return longest_ms;
}
