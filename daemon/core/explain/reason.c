/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the reason why a job waits: exactly one, the first that alone would keep the job from its GPUs. The
 * order is the job's own state, the nodes, the queue, the free devices. The text has the numbers. forecast.c
 * predicts the end of the wait, advice.c suggests a change. */
#include "daemon/core/explain/reason.h"

#include <assert.h>

#include "daemon/core/explain/ahead.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/request.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/quota/mention.h"
#include "daemon/core/scheduler/admission.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/place.h"
#include "daemon/core/scheduler/prospect.h"
#include "proto/base/clock.h"

/* --- words ---------------------------------------------------------------------------------------------- */

static void say_cpus(int64_t millicpus, struct text *out)
{
    text_printf(out, "%.15g CPU%s", (double)millicpus / 1000, millicpus == 1000 ? "" : "s");
}

static void say_memory(int64_t bytes, struct text *out)
{
    text_printf(out, "%.1f GiB of memory", (double)bytes / (double)GIB);
}

void reason_say_gpus(const struct job *job, struct text *out)
{
    const struct resource_request *request = &job->job_class->request;
    const char *any = request->units == 1 ? "GPU" : "GPUs";
    const struct amount all = amount_plus((struct amount){0}, request->each, request->units);
    if (request->gpuless) {
        say_cpus(all.millicpus > 0 ? all.millicpus : 1000, out);
    } else {
        text_printf(out, "%lld %s", (long long)request->units,
                    request->gpu_type != NULL ? request->gpu_type : any);
    }
    if (!request->gpuless && all.millicpus > 0) {
        text_append(out, all.memory_bytes > 0 ? ", " : " and ");
        say_cpus(all.millicpus, out);
    }
    if (all.memory_bytes > 0) {
        text_append(out, " and ");
        say_memory(all.memory_bytes, out);
    }
}

static const char *are(int64_t count)
{
    return count == 1 ? "is" : "are";
}

static void say_duration(int64_t ms, struct text *out)
{
    char duration[32];
    text_from_duration_ms(ms > 0 ? ms : 0, duration, sizeof duration);
    text_append(out, duration);
}

/* --- counts --------------------------------------------------------------------------------------------- */

static bool fits(const struct search *search)
{
    struct fit fit;
    bool found = fit_find(search, &fit);
    free(fit.shares);
    return found;
}

static bool fits_in(struct core *core, const struct job *job, enum view view, enum readiness readiness)
{
    const struct search search = place_search(core, job, view, NULL, readiness);
    return fits(&search);
}

/* A search that ignores readiness. */
static struct search bare_search(struct core *core, const struct job *job, enum view view)
{
    return fit_search(core, &job->job_class->request, view, NULL);
}

/* The largest gang that the job could get in one partition. */
static int64_t most_in(struct core *core, const struct job *job, enum view view)
{
    const struct search search = bare_search(core, job, view);
    int64_t most = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        int64_t here = fit_allowed(&search, partition) ? fit_largest(&search, partition) : 0;
        most = here > most ? here : most;
    }
    return most;
}

static bool is_for(const struct search *search, const struct node *node, const struct capacity *capacity)
{
    return node_works(node) && request_allows_node(search->core, search->request, capacity);
}

static int64_t free_in(const struct search *search, const struct partition *partition)
{
    int64_t free = 0;
    for (size_t i = 0; i < partition->count; i++) {
        const struct capacity *capacity = partition->capacities[i];
        free += is_for(search, capacity->node, capacity) ? capacity->free : 0;
    }
    return free;
}

/* The free devices that the job may use, on all nodes that take work. */
static int64_t free_for(struct core *core, const struct job *job)
{
    struct search search = bare_search(core, job, VIEW_FREE);
    int64_t free = 0;
    search.job = job;
    search.borrow = true;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        free += fit_allowed(&search, partition) && fit_granted(&search, partition)
                    ? free_in(&search, partition)
                    : 0;
    }
    return free;
}

/* Whether the job would fit on nodes that are on hold because they declined. */
static bool fits_after_hold(struct core *core, const struct job *job)
{
    const struct search search = place_search(core, job, VIEW_FUTURE, NULL, READINESS_READY);
    prospect_begin(&search);
    for (size_t i = 0; i < core->availability.stopping_count; i++) {
        prospect_release(core->availability.stopping[i], false); /* not free yet */
    }
    return fits(&search);
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void say_no_nodes(struct core *core, const struct job *job, struct text *out)
{
    int64_t most = most_in(core, job, VIEW_REGISTERED);
    text_append(out, "needs ");
    reason_say_gpus(job, out);
    text_printf(out, ", and the nodes that are registered have %lld together in what it may use",
                (long long)most);
    admission_say_failures(core, &job->job_class->request, out);
}

/* Appends "; 1 GPU is unavailable (node n1, GPU 3: memory held by process 1234 (python) of user ada)": of the
 * devices that the job might use on working nodes. */
static void say_unavailable(struct core *core, const struct job *job, struct text *out)
{
    const struct search search = bare_search(core, job, VIEW_REGISTERED);
    const struct node_device *first = NULL;
    const struct node *where = NULL;
    int64_t count = 0;
    for (size_t i = 0; i < core->node_count; i++) {
        const struct node *node = core->nodes[i];
        for (size_t j = 0; j < node->device_count; j++) {
            const struct node_device *device = &node->devices[j];
            if (device->unavailable != NULL && device->capacity != NULL &&
                fit_allowed(&search, device->capacity->partition) &&
                is_for(&search, node, device->capacity)) {
                where = first == NULL ? node : where;
                first = first == NULL ? device : first;
                count++;
            }
        }
    }
    if (first != NULL) {
        text_printf(out, "; %lld GPU%s %s unavailable (node %s, GPU %lld: %s%s)", (long long)count,
                    count == 1 ? "" : "s", are(count), where->name, (long long)first->index,
                    first->unavailable, count == 1 ? "" : "; and others");
    }
}

/* The working nodes have too few devices: other nodes take no work, or devices are unavailable. */
static enum wait_reason reason_of_lack(struct core *core, const struct job *job, struct text *out)
{
    const struct search search = bare_search(core, job, VIEW_REGISTERED);
    int64_t away = 0, nodes = 0;
    const struct node *first = NULL;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        for (size_t i = 0; i < partition->count && fit_allowed(&search, partition); i++) {
            const struct capacity *capacity = partition->capacities[i];
            if (!node_works(capacity->node) && request_allows_node(core, search.request, capacity)) {
                away += capacity->total;
                nodes++;
                first = first != NULL ? first : capacity->node;
            }
        }
    }
    text_append(out, "needs ");
    reason_say_gpus(job, out);
    text_printf(out, ", and the nodes that take work have %lld together",
                (long long)most_in(core, job, VIEW_WORKING));
    if (first != NULL) {
        text_printf(out, "; %lld %s on %s that take%s no new work (%s%s)", (long long)away, are(away),
                    nodes == 1 ? "a node" : "nodes", nodes == 1 ? "s" : "", first->name,
                    nodes == 1 ? "" : " and others");
    }
    say_unavailable(core, job, out);
    return first != NULL ? WAIT_DRAINED : WAIT_UNAVAILABLE;
}

static void say_staging(struct core *core, const struct job *job, struct text *out)
{
    const struct environment *environment = job->job_class->environment;
    const char *failure = staging_last_failure(core, environment);
    if (staging_is_coming(environment)) {
        text_append(out, "nodes are preparing its environment: ");
        staging_say_coming(environment, out);
    } else if (failure != NULL) {
        text_printf(out, "no node has its environment ready; %s", failure);
    } else {
        text_append(out, "no node has its environment ready; nodes prepare it when the job comes to the head "
                         "of the queue");
    }
}

/* Appends the end of the first hold after which the job may fit. */
static void say_held_off(struct core *core, const struct job *job, struct text *out)
{
    const struct search search = place_search(core, job, VIEW_FUTURE, NULL, READINESS_READY);
    const struct node *last = NULL;
    int64_t nodes = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        for (size_t i = 0; i < partition->count && fit_allowed(&search, partition); i++) {
            const struct node *node = partition->capacities[i]->node;
            if (node->hold_until_ms != 0 && partition->capacities[i]->free > 0) {
                last = last == NULL || node->hold_until_ms > last->hold_until_ms ? node : last;
                nodes++;
            }
        }
    }
    assert(last != NULL); /* without a hold the job would have fitted */
    text_append(out, "needs ");
    reason_say_gpus(job, out);
    text_printf(out, ", which are free, but %s%s declined to start a job and %s no work for another ",
                nodes == 1 ? "node " : "nodes like ", last->name, nodes == 1 ? "gets" : "get");
    say_duration(last->hold_until_ms - core->now_ms, out);
}

static void say_fragmented(struct core *core, const struct job *job, int64_t free, struct text *out)
{
    const struct resource_request *request = &job->job_class->request;
    text_append(out, "needs ");
    reason_say_gpus(job, out);
    text_printf(out, ": %lld %s free, but %lld at most together ", (long long)free, are(free),
                (long long)most_in(core, job, VIEW_FREE));
    text_append(out, request->host_id != NULL
                         ? "on one node of the submitter's host"
                         : "in one pool and of one type, on nodes that reach each other");
}

/* --- running work --------------------------------------------------------------------------------------- */

/* Attempts that end before a moment, in one partition. */
struct ending {
    const struct attempt *first, *last; /* to end */
    int64_t first_ms, last_ms;
    int64_t jobs, gpus;
};

static int64_t devices_for(const struct search *search, const struct attempt *attempt)
{
    int64_t count = 0;
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        const struct capacity *capacity = node_member_capacity(member);
        bool counts = capacity != NULL && is_for(search, member->node, capacity);
        count += counts ? node_member_returns(member) : 0;
    }
    return count;
}

static struct ending ending_until(const struct search *search, const struct partition *partition,
                                  int64_t at_ms)
{
    const struct core *core = search->core;
    struct ending ending = {0};
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        int64_t end_ms = availability_end_ms(core, attempt);
        int64_t devices = availability_partition(attempt) == partition ? devices_for(search, attempt) : 0;
        if (devices == 0 || end_ms > at_ms) {
            continue;
        }
        ending.jobs++;
        ending.gpus += devices;
        if (ending.first == NULL || end_ms < ending.first_ms) {
            ending.first = attempt;
            ending.first_ms = end_ms;
        }
        if (ending.last == NULL || end_ms >= ending.last_ms) {
            ending.last = attempt;
            ending.last_ms = end_ms;
        }
    }
    return ending;
}

static void say_ending(const struct core *core, const struct job *job, const struct ending *ending,
                       struct text *out)
{
    char name[MENTION_BYTES];
    text_printf(out, ", %lld more when %s ", (long long)ending->gpus,
                mention_job(core, job, ending->last->job, name));
    if (ending->jobs > 1) {
        text_printf(out, "and %lld other%s end, the last of them in ", (long long)ending->jobs - 1,
                    ending->jobs == 2 ? "" : "s");
    } else {
        text_append(out, "ends, which ");
        if (ending->last->started_ms != 0 && availability_held_ms(core, ending->last) > 0) {
            text_append(out, "has run for ");
            say_duration(availability_held_ms(core, ending->last), out);
            text_append(out, " and ");
        }
        text_append(out, "is expected to end in ");
    }
    say_duration(ending->last_ms - core->now_ms, out);
}

static void say_busy(struct core *core, const struct job *job, struct text *out)
{
    const struct search search = place_search(core, job, VIEW_FUTURE, NULL, READINESS_READY);
    struct fit fit = {0};
    struct prospect prospect = {.fit = &fit};
    text_append(out, "waits for ");
    reason_say_gpus(job, out);
    if (!prospect_find(&search, &prospect)) {
        int64_t most = most_in(core, job, VIEW_FREE);
        text_printf(out, ": %lld %s free together", (long long)most, are(most));
        say_unavailable(core, job, out);
        return;
    }
    const struct partition *partition = fit.shares[0].capacity->partition;
    const struct ending ending = ending_until(&search, partition, prospect.at_ms);
    int64_t free_now = free_in(&search, partition);
    text_printf(out, ": %lld %s free", (long long)free_now, are(free_now));
    if (ending.jobs > 0) {
        say_ending(core, job, &ending, out);
    }
    say_unavailable(core, job, out);
    free(fit.shares);
}

/* --- queue entries -------------------------------------------------------------------------------------- */

/* Says why another job comes earlier in the queue. */
static void say_why_earlier(struct core *core, const struct job *job, const struct job *other,
                            struct text *out)
{
    const struct queue_entry own = queue_entry_of(core, job), earlier = queue_entry_of(core, other);
    if (earlier.priority != own.priority) {
        text_printf(out, "its priority is %lld, this one's %lld", (long long)earlier.priority,
                    (long long)own.priority);
    } else if (earlier.sort_key == own.sort_key) {
        text_append(out, "it came first");
    } else if (queue_due_ms(core, &own) != 0) {
        text_append(out, "it is due ");
        say_duration(own.sort_key - earlier.sort_key, out);
        text_append(out, " earlier");
    } else {
        text_append(out, "it is shorter");
    }
}

static void say_behind(struct core *core, const struct job *job, const struct job *other,
                       const struct ahead *ahead, struct text *out)
{
    text_append(out, "it is queued behind ");
    if (ahead->before_count > 1) {
        text_printf(out, "%zu%s jobs, the last of them ", ahead->before_count, ahead->more ? " or more" : "");
    }
    char name[MENTION_BYTES];
    text_printf(out, "%s (", mention_job(core, job, other, name));
    say_why_earlier(core, job, other, out);
    text_append(out, "); this one needs ");
    reason_say_gpus(job, out);
    int64_t most = most_in(core, job, VIEW_FREE);
    text_printf(out, ", and %lld %s free", (long long)most, are(most));
}

/* The partition with a reservation that the job is too long for. */
static const struct partition *reserved_partition(struct core *core, const struct job *job,
                                                  const struct reservations *reservations)
{
    const struct search search = place_search(core, job, VIEW_FREE, reservations, READINESS_READY);
    const struct partition *found = NULL;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        int64_t until_ms = reservations->until_ms[partition->index];
        bool in_the_way = until_ms != 0 && partition->free >= search.request->units &&
                          fit_allowed(&search, partition) && fit_outlasts(&search, partition);
        if (in_the_way && (found == NULL || until_ms > reservations->until_ms[found->index])) {
            found = partition;
        }
    }
    return found;
}

static void say_reserved(struct core *core, const struct job *job, const struct reservations *reservations,
                         const struct partition *partition, struct text *out)
{
    const struct search search = place_search(core, job, VIEW_FREE, reservations, READINESS_READY);
    bool firm = reservations->firm[partition->index];
    int64_t end_ms = firm ? search.sure_ms : search.end_ms;
    text_append(out, "needs ");
    reason_say_gpus(job, out);
    char name[MENTION_BYTES];
    text_printf(out, ", which are free, but reserved for %s, which is to start in ",
                mention_job(core, job, reservations->whose[partition->index], name));
    say_duration(reservations->until_ms[partition->index] - core->now_ms, out);
    if (end_ms == NEVER) {
        text_append(out, "; this one has no time limit");
        return;
    }
    text_append(out, firm ? "; this one may run for " : "; this one is estimated to run for ");
    say_duration(end_ms - core->now_ms, out);
}

/* --- the reason ----------------------------------------------------------------------------------------- */

/* Enough devices are free, but reserved for others. */
static enum wait_reason reason_of_entry(struct core *core, const struct job *job,
                                        const struct outlook *outlook, const struct ahead *ahead,
                                        struct text *out)
{
    const struct reservations *reservations = &outlook->reservations;
    if (ahead->count == 0 || (outlook->reached && outlook->move == MOVE_PLACE)) {
        text_append(out, "it fits, and is placed by the next change");
        return WAIT_DUE;
    }
    const struct partition *partition = reserved_partition(core, job, reservations);
    if (partition != NULL) {
        say_reserved(core, job, reservations, partition, out);
        return WAIT_RESERVED;
    }
    say_behind(core, job, ahead->nearest, ahead, out);
    return WAIT_BEHIND;
}

/* Whether the free GPUs would do if the nodes had CPUs and memory without end. */
static bool lacks_amount(struct core *core, const struct job *job)
{
    struct search search = place_search(core, job, VIEW_FREE, NULL, READINESS_READY);
    search.boundless = true;
    return fits(&search);
}

/* Appends what is left on the node that has the most CPUs left beside a free GPU. */
static void say_lack_of_amount(struct core *core, const struct job *job, struct text *out)
{
    const struct search search = bare_search(core, job, VIEW_FREE);
    const struct node *most = NULL;
    for (size_t i = 0; i < core->node_count; i++) {
        const struct node *node = core->nodes[i];
        for (const struct capacity *each = node->capacities; each != NULL; each = each->next) {
            bool counts =
                each->free > 0 && fit_allowed(&search, each->partition) && is_for(&search, node, each);
            bool more = most == NULL || node_left(node).millicpus > node_left(most).millicpus;
            most = counts && more ? node : most;
        }
    }
    text_append(out, "waits for ");
    reason_say_gpus(job, out);
    if (most != NULL) {
        const struct amount left = node_left(most), each = request_each(&job->job_class->request, most);
        text_printf(out, ": of the nodes with a free %s, %s has most left, ",
                    job->job_class->request.gpuless ? "place" : "GPU", most->name);
        say_cpus(left.millicpus > 0 ? left.millicpus : 0, out);
        text_append(out, " and ");
        say_memory(left.memory_bytes > 0 ? left.memory_bytes : 0, out);
        if (!job->job_class->request.gpuless) {
            text_append(out, "; a GPU there comes with ");
            say_cpus(each.millicpus, out);
            text_append(out, " and ");
            say_memory(each.memory_bytes, out);
        }
    }
}

/* Not enough devices are free. */
static enum wait_reason reason_of_nodes(struct core *core, const struct job *job, const struct ahead *ahead,
                                        struct text *out)
{
    int64_t free = free_for(core, job);
    if (ahead->before != NULL) {
        say_behind(core, job, ahead->before, ahead, out);
        return WAIT_BEHIND;
    }
    if (fits_after_hold(core, job)) {
        say_held_off(core, job, out);
        return WAIT_HELD_OFF;
    }
    if (lacks_amount(core, job)) {
        say_lack_of_amount(core, job, out);
        return WAIT_CPU_MEMORY;
    }
    if (free >= job->job_class->request.units) {
        say_fragmented(core, job, free, out);
        return WAIT_FRAGMENTED;
    }
    say_busy(core, job, out);
    return WAIT_NODES_BUSY;
}

/* Whether the job waits for staging: no node is ready, or ready nodes are busy while free ones are
 * staging. */
static bool waits_for_staging(struct core *core, const struct job *job, const struct outlook *outlook)
{
    if (job->job_class->environment == NULL) {
        return false;
    }
    if (!fits_in(core, job, VIEW_WORKING, READINESS_READY) || outlook->move == MOVE_STAGE) {
        return true;
    }
    return !fits_in(core, job, VIEW_FREE, READINESS_READY) && fits_in(core, job, VIEW_FREE, READINESS_COMING);
}

static enum wait_reason reason_of_waiting(struct core *core, const struct job *job,
                                          const struct outlook *outlook, const struct ahead *ahead,
                                          struct text *out)
{
    const struct search registered = bare_search(core, job, VIEW_REGISTERED);
    const struct search working = bare_search(core, job, VIEW_WORKING);
    if (!fits(&registered)) {
        say_no_nodes(core, job, out);
        return WAIT_NO_NODES;
    }
    struct account_limit limit;
    if (place_is_limited(core, job, &limit)) {
        account_limit_text(&limit, out);
        return WAIT_LIMIT;
    }
    if (!fits(&working)) {
        return reason_of_lack(core, job, out);
    }
    if (!fits_in(core, job, VIEW_WORKING, READINESS_EVER)) {
        text_append(out, "needs ");
        reason_say_gpus(job, out);
        text_append(out, ", and the nodes that could hold it go away before it would have ended");
        return WAIT_LEAVING;
    }
    if (waits_for_staging(core, job, outlook)) {
        say_staging(core, job, out);
        return WAIT_STAGING;
    }
    return fits_in(core, job, VIEW_FREE, READINESS_READY) ? reason_of_entry(core, job, outlook, ahead, out)
                                                          : reason_of_nodes(core, job, ahead, out);
}

enum wait_reason reason_of(struct core *core, const struct job *job, const struct outlook *outlook,
                           const struct ahead *ahead, struct text *text)
{
    if (job->state == JOB_HELD) {
        text_append(text, "it is held until a person releases it");
        return WAIT_HELD;
    }
    if (job->state == JOB_BLOCKED) {
        if (job->not_before_ms != 0) {
            char until[32];
            clock_format_wall(job->not_before_ms, until, sizeof until);
            text_printf(text, "it is not to begin before %s", until);
        } else {
            text_append(text, "it waits for the jobs that it depends on");
        }
        return WAIT_BLOCKED;
    }
    return reason_of_waiting(core, job, outlook, ahead, text);
}
