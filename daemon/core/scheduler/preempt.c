/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the work to preempt. Equal states give equal victims: those with the least loss first, and none
 * that could be spared. No two jobs ever yield to each other, so jobs do not preempt each other in turn.
 * attempt.c stops the gangs. */
#include "daemon/core/scheduler/preempt.h"

#include <string.h>

#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/quota/mention.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/prospect.h"

/* A running gang that may be preempted. */
struct candidate {
    struct attempt *attempt;
    int64_t loss; /* the smallest is preempted first */
};

void victims_finish(struct victims *victims)
{
    free(victims->items);
    *victims = (struct victims){0};
}

/* --- victims -------------------------------------------------------------------------------------------- */

static int64_t gpus_of(const struct attempt *attempt)
{
    return attempt->job->job_class->request.units;
}

static int64_t remaining_ms(const struct core *core, const struct attempt *attempt)
{
    int64_t remaining_ms = attempt->estimate_ms - attempt->job->ran_ms - availability_held_ms(core, attempt);
    return remaining_ms > 1 ? remaining_ms : 1;
}

/* Borrowed devices go back when another project wants devices that it is entitled to. */
static bool gives_back(const struct core *core, const struct attempt *attempt, const struct job *job)
{
    return attempt->claim == CLAIM_BORROWED && attempt->job->project != job->project &&
           account_claim(core, job, availability_partition(attempt)) == CLAIM_ENTITLED;
}

bool preempt_possible(const struct core *core)
{
    return core->borrowed_count > 0 || core->config.policy == POLICY_SRTF ||
           core->config.policy == POLICY_SRSF;
}

/* Yielding follows a strict order, so two jobs never yield to each other. */
static bool yields(struct core *core, const struct attempt *attempt, const struct queue_entry *entry)
{
    switch (core->config.policy) {
    case POLICY_SRTF:
        return remaining_ms(core, attempt) > entry->sort_key;
    case POLICY_SRSF:
        return remaining_ms(core, attempt) * gpus_of(attempt) > entry->sort_key;
    case POLICY_FIFO:
    case POLICY_EASY:
    case POLICY_SJF:
    case POLICY_DEFAULT:
        return gives_back(core, attempt, queue_first(entry));
    case POLICY_COUNT:
        break;
    }
    abort();
}

/* Whether the attempt has a lower priority or a later place in the queue. */
static bool could_yield(struct core *core, const struct attempt *attempt, const struct queue_entry *entry)
{
    const struct queue_entry own = queue_entry_of(core, attempt->job);
    return queue_before(entry, &own);
}

/* The loss of a preemption: wasted GPU time. Under policies where jobs resume later nothing is wasted, and
 * attempts that would hold their GPUs longest are preempted first. */
static int64_t loss_of(const struct core *core, const struct attempt *attempt)
{
    bool goes_on = core->config.policy == POLICY_SRTF || core->config.policy == POLICY_SRSF;
    int64_t ms = goes_on ? -remaining_ms(core, attempt) : availability_held_ms(core, attempt);
    return core->config.policy == POLICY_SRTF ? ms : ms * gpus_of(attempt);
}

static int by_loss(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    if (left->loss != right->loss) {
        return left->loss < right->loss ? -1 : 1;
    }
    uint64_t a_attempt_id = left->attempt->attempt_id, b_attempt_id = right->attempt->attempt_id;
    return (a_attempt_id < b_attempt_id) - (a_attempt_id > b_attempt_id); /* the youngest first */
}

static bool usable(const struct search *search, const struct attempt *attempt)
{
    const struct partition *partition = availability_partition(attempt);
    return partition != NULL && fit_open(search, partition);
}

/* Whether a running gang yields to a job of that queue entry. */
typedef bool yielding(struct core *core, const struct attempt *attempt, const struct queue_entry *entry);

static struct candidate *candidates_of(struct core *core, const struct queue_entry *entry,
                                       const struct search *search, yielding *goes, size_t *ret_count)
{
    size_t room = 0, count = 0;
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        room++;
    }
    struct candidate *candidates = xalloc((room + 1) * sizeof *candidates);
    for (struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        if (!attempt_is_leaving(attempt) && usable(search, attempt) && goes(core, attempt, entry)) {
            candidates[count++] = (struct candidate){attempt, loss_of(core, attempt)};
        }
    }
    if (count > 1) {
        qsort(candidates, count, sizeof *candidates, by_loss);
    }
    *ret_count = count;
    return candidates;
}

/* --- the fewest victims --------------------------------------------------------------------------------- */

static bool fits(const struct search *search, struct fit *ret_fit)
{
    free(ret_fit->shares);
    return fit_find(search, ret_fit);
}

/* Spares victims that the job does not need, the greatest loss first. */
static void spare_some(const struct search *search, struct victims *victims, struct fit *fit)
{
    size_t kept = victims->count;
    for (size_t i = victims->count; i > 0; i--) {
        struct attempt *attempt = victims->items[i - 1];
        prospect_release(attempt, false);
        if (i < kept && fits(search, fit)) {
            victims->items[i - 1] = NULL;
        } else {
            prospect_release(attempt, true);
        }
    }
    size_t count = 0;
    for (size_t i = 0; i < victims->count; i++) {
        if (victims->items[i] != NULL) {
            victims->items[count++] = victims->items[i];
        }
    }
    victims->count = count;
    bool found = fits(search, fit);
    assert(found);
}

static bool take_enough(const struct search *search, const struct candidate *candidates, size_t count,
                        struct victims *victims, struct fit *fit)
{
    for (size_t i = 0; i < count; i++) {
        prospect_release(candidates[i].attempt, true);
        victims->items[victims->count++] = candidates[i].attempt;
        if (fits(search, fit)) {
            spare_some(search, victims, fit);
            return true;
        }
    }
    return false;
}

static bool choose(struct core *core, const struct queue_entry *entry, const struct search *search,
                   yielding *goes, struct victims *ret_victims, struct fit *ret_fit)
{
    *ret_victims = (struct victims){0};
    *ret_fit = (struct fit){0};
    prospect_begin(search);
    if (fits(search, ret_fit)) {
        return true;
    }
    size_t count;
    struct candidate *candidates = candidates_of(core, entry, search, goes, &count);
    ret_victims->items = xalloc((count + 1) * sizeof(struct attempt *));
    bool found = take_enough(search, candidates, count, ret_victims, ret_fit);
    free(candidates);
    if (!found) {
        victims_finish(ret_victims);
    }
    return found;
}

bool preempt_choose(struct core *core, const struct queue_entry *entry, const struct search *search,
                    struct victims *ret_victims, struct fit *ret_fit)
{
    return choose(core, entry, search, yields, ret_victims, ret_fit);
}

bool preempt_rehearse(struct core *core, const struct queue_entry *entry, const struct search *search,
                      struct victims *ret_victims, struct fit *ret_fit)
{
    return choose(core, entry, search, could_yield, ret_victims, ret_fit);
}

/* --- stopping ------------------------------------------------------------------------------------------- */

void preempt_stop(struct core *core, const struct queue_entry *entry, const struct victims *victims)
{
    for (size_t i = 0; i < victims->count; i++) {
        char name[MENTION_BYTES];
        const struct fault fault = {
            .cause = CAUSE_PREEMPTED,
            .rank = -1,
            .text = record_text(core, "gave way to %s",
                                mention_job(core, victims->items[i]->job, queue_first(entry), name)),
        };
        attempt_stop(core, victims->items[i], &fault);
    }
}

bool preempt_take(struct core *core, const struct input *input, struct err *err)
{
    struct job *job = job_live(core, input->preempt.id, err);
    if (job == NULL) {
        return false;
    }
    if (array_is_whole(job)) { /* RUNNING while one of its tasks runs, but without an attempt */
        return err_field(err, ERR_CONFLICT, "id", "name one of its tasks, as ID.0",
                         "array %s has no GPUs of its own: its tasks have them", job->id);
    }
    if (job->state != JOB_PLACED && job->state != JOB_RUNNING) {
        return err_field(err, ERR_CONFLICT, "id", "only a job that has GPUs can give them back",
                         "job %s is %s", job->id, job_state_text(job->state));
    }
    if (attempt_is_leaving(job->attempt)) {
        return err_field(err, ERR_CONFLICT, "id", "wait for its end", "job %s is being stopped already",
                         job->id);
    }
    core->change_set.answer = job;
    const struct fault fault = {
        .cause = CAUSE_PREEMPTED,
        .rank = -1,
        .text = record_text(core, "preempted by %s", input->preempt.by),
    };
    attempt_stop(core, job->attempt, &fault);
    return true;
}
