/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the queue, at a cost that follows what may happen and not what waits. A job class is settled
 * once what stages for it was considered, until that may change. Settled job classes of one family are
 * visited in order until the family is closed, because no free device is left for any of them. Job classes
 * without an environment are visited in order until no device is free at all, all others in any case. queue.c
 * orders the jobs of a job class, and place.c decides what a visit does. */
#include "daemon/core/queue/turn.h"

#include <string.h>

#include "daemon/core/fleet/request.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/queue.h"

#define REFRESH_MS (10LL * 60 * 1000) /* the greatest age of a sort key */

/* --- the first entry of a job class --------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t limit_of(const struct queue_entry *entry)
{
    int64_t limit_ms = entry->batch->key.time_limit_ms;
    return limit_ms > 0 ? limit_ms : NEVER;
}

/* Tells the family how short its jobs may be. */
static void note_least(const struct job_class *job_class)
{
    struct job_family *family = job_class->family;
    for (size_t i = 0; i < job_class->entry_count; i++) {
        const struct queue_entry *entry = &job_class->entries[i];
        family->least_estimate_ms = least(family->least_estimate_ms, entry->estimate_ms);
        family->least_limit_ms = least(family->least_limit_ms, limit_of(entry));
    }
}

static void find_first(struct job_class *job_class)
{
    job_class->first = BEST_NONE;
    for (size_t i = 0; i < job_class->entry_count; i++) {
        const struct queue_entry *entry = &job_class->entries[i];
        if (job_class->first == BEST_NONE || queue_before(entry, &job_class->entries[job_class->first])) {
            job_class->first = (int64_t)i;
        }
    }
    note_least(job_class);
}

/* --- job classes in order ------------------------------------------------------------------------------- */

/* The number of levels of a job class in the skip list: a quarter has two, a sixteenth three. */
static size_t levels_of(const struct job_class *job_class)
{
    size_t levels = 1;
    for (unsigned hash = job_class->hh.hashv; (hash & 3) == 0 && levels < ORDER_LEVELS; hash >>= 2) {
        levels++;
    }
    return levels;
}

/* Settled job classes are in the list of their family, those without an environment in one list. */
static struct job_class **list_of(struct core *core, const struct job_class *job_class)
{
    return job_class->environment != NULL ? job_class->family->settled : core->plain;
}

static void order_insert(struct core *core, struct job_class *job_class)
{
    struct job_class **links = list_of(core, job_class);
    size_t levels = levels_of(job_class);
    if (job_class->environment != NULL && links[0] == NULL) {
        DL_APPEND(core->settled_families, job_class->family);
    }
    job_class->order = job_class->entries[job_class->first];
    for (size_t level = ORDER_LEVELS; level-- > 0;) {
        while (links[level] != NULL && queue_before(&links[level]->order, &job_class->order)) {
            links = links[level]->after;
        }
        if (level < levels) {
            job_class->after[level] = links[level];
            links[level] = job_class;
        }
    }
}

static void order_remove(struct core *core, struct job_class *job_class)
{
    struct job_class **links = list_of(core, job_class);
    for (size_t level = ORDER_LEVELS; level-- > 0;) {
        while (links[level] != NULL && queue_before(&links[level]->order, &job_class->order)) {
            links = links[level]->after;
        }
        if (links[level] == job_class) {
            links[level] = job_class->after[level];
        }
    }
    if (job_class->environment != NULL && job_class->family->settled[0] == NULL) {
        DL_DELETE(core->settled_families, job_class->family);
    }
}

/* --- the heap of turns ---------------------------------------------------------------------------------- */

static bool comes_before(const struct job_class *a, const struct job_class *b)
{
    return queue_before(&a->entries[a->best], &b->entries[b->best]);
}

static void put_turn(struct turns *turns, size_t at, struct job_class *job_class)
{
    turns->items[at] = job_class;
    job_class->turn_index = at;
}

static void sift_up(struct turns *turns, size_t at)
{
    struct job_class *job_class = turns->items[at];
    for (; at > 0 && comes_before(job_class, turns->items[(at - 1) / 2]); at = (at - 1) / 2) {
        put_turn(turns, at, turns->items[(at - 1) / 2]);
    }
    put_turn(turns, at, job_class);
}

static void sift_down(struct turns *turns, size_t at)
{
    struct job_class *job_class = turns->items[at];
    for (size_t child; (child = 2 * at + 1) < turns->count; at = child) {
        bool second = child + 1 < turns->count && comes_before(turns->items[child + 1], turns->items[child]);
        child += second;
        if (!comes_before(turns->items[child], job_class)) {
            break;
        }
        put_turn(turns, at, turns->items[child]);
    }
    put_turn(turns, at, job_class);
}

/* Whether an entry belongs to the turn. */
static bool comes(const struct turns *turns, const struct queue_entry *entry)
{
    return !turns->partial || !queue_before(entry, &turns->from);
}

static void find_best(const struct core *core, struct job_class *job_class)
{
    job_class->best = BEST_NONE;
    for (size_t i = 0; i < job_class->entry_count; i++) {
        const struct queue_entry *entry = &job_class->entries[i];
        bool open = entry->passed != core->turns.number && entry->estimate_ms <= job_class->longest_ms &&
                    comes(&core->turns, entry);
        if (open &&
            (job_class->best == BEST_NONE || queue_before(entry, &job_class->entries[job_class->best]))) {
            job_class->best = (int64_t)i;
        }
    }
}

static void add_turn(struct core *core, struct job_class *job_class, bool leads)
{
    struct turns *turns = &core->turns;
    if (job_class->first == BEST_UNKNOWN) {
        find_first(job_class);
    }
    job_class->wants = job_class->environment != NULL || core->trace != NULL;
    job_class->best = job_class->first;
    job_class->leads = leads;
    job_class->whole = !leads;
    if (job_class->turn != turns->number) { /* else it has come in an earlier part */
        job_class->longest_ms = NEVER;
        job_class->tries = 0;
        job_class->turn = turns->number;
    }
    if (turns->partial) {
        find_best(core, job_class);
    }
    if (job_class->best == BEST_NONE) {
        return;
    }
    XGROW(turns->items, turns->count, turns->room, 64);
    turns->wanting += job_class->wants;
    put_turn(turns, turns->count, job_class);
    sift_up(turns, turns->count++);
}

/* The job class does not come any more in this turn. */
static void end_turn(struct core *core, struct job_class *job_class)
{
    struct turns *turns = &core->turns;
    size_t at = job_class->turn_index;
    struct job_class *last = turns->items[--turns->count];
    turns->wanting -= job_class->wants;
    job_class->turn_index = NO_TURN;
    if (last != job_class) {
        put_turn(turns, at, last);
        sift_down(turns, at);
        sift_up(turns, last->turn_index);
    }
}

/* The next job class of the list stands for those after it. */
static void lead_on(struct core *core, struct job_class *job_class)
{
    struct job_class *next = job_class->after[0];
    job_class->leads = false;
    while (next != NULL && next->turn == core->turns.number) {
        next = next->after[0];
    }
    if (next != NULL) {
        add_turn(core, next, true);
    }
}

/* The entries of the job class have changed, or which of them are skipped. */
static void find_best_again(struct core *core, struct job_class *job_class)
{
    if (job_class->turn_index == NO_TURN) {
        return;
    }
    find_best(core, job_class);
    if (job_class->best == BEST_NONE) {
        end_turn(core, job_class);
    } else {
        sift_down(&core->turns, job_class->turn_index);
        sift_up(&core->turns, job_class->turn_index);
    }
}

/* --- which job classes are settled ---------------------------------------------------------------------- */

static bool is_in_order(const struct job_class *job_class)
{
    return job_class->standing == JOB_CLASS_SETTLED ||
           (job_class->standing == JOB_CLASS_UNSETTLED && job_class->environment == NULL);
}

static void stand(struct core *core, struct job_class *job_class, enum job_class_standing standing)
{
    if (is_in_order(job_class)) {
        order_remove(core, job_class);
    } else if (job_class->standing == JOB_CLASS_UNSETTLED) {
        DL_DELETE2(core->unsettled, job_class, prev_unsettled, next_unsettled);
    }
    job_class->standing = standing;
    job_class->considered = false;
    if (is_in_order(job_class)) {
        find_first(job_class);
        order_insert(core, job_class);
    } else if (standing == JOB_CLASS_UNSETTLED) {
        DL_APPEND2(core->unsettled, job_class, prev_unsettled, next_unsettled);
    }
}

static void unsettle(struct core *core, struct job_class *job_class)
{
    if (job_class->turn_index != NO_TURN && job_class->leads) {
        lead_on(core, job_class);
    }
    job_class->whole = true;
    stand(core, job_class, job_class->entry_count > 0 ? JOB_CLASS_UNSETTLED : JOB_CLASS_IDLE);
}

void turn_entries_changed(struct core *core, struct job_class *job_class)
{
    job_class->first = BEST_UNKNOWN;
    unsettle(core, job_class);
    find_best_again(core, job_class);
}

void turn_entries_sorted(struct core *core, struct job_class *job_class)
{
    find_first(job_class);
    find_best_again(core, job_class);
}

void turn_restore(struct core *core, struct job_class *job_class, enum job_class_standing standing)
{
    bool settled = standing == JOB_CLASS_SETTLED && job_class->standing == JOB_CLASS_UNSETTLED;
    if (settled || is_in_order(job_class)) { /* its first entry may have another sort key */
        stand(core, job_class, settled ? JOB_CLASS_SETTLED : job_class->standing);
    }
}

void turn_consider(struct core *core, struct job_class *job_class, bool stuck)
{
    if (job_class->standing == JOB_CLASS_UNSETTLED && job_class->whole) {
        const struct resource_request *request = &job_class->request;
        job_class->considered = true;
        job_class->stuck = stuck;
        job_class->settled_kind = request_auto_kind(core, request, request->units);
    }
}

/* Nodes that come or go, or can stage again, may let stuck jobs stage, may let gangs spread wider, and may
 * lead jobs to the other kind of pools. */
static void take_fleet_change(struct core *core)
{
    core->fleet_changed = false;
    for (struct job_class *job_class = core->job_classes; job_class != NULL; job_class = job_class->next) {
        const struct resource_request *request = &job_class->request;
        if (job_class->standing == JOB_CLASS_SETTLED &&
            (job_class->stuck || request->placement == PLACEMENT_SPREAD ||
             request_auto_kind(core, request, request->units) != job_class->settled_kind)) {
            unsettle(core, job_class);
        }
    }
}

void turn_pass_begin(struct core *core)
{
    while (core->changed_environments != NULL) {
        struct environment *environment = core->changed_environments;
        staging_take_change(core, environment);
        for (struct job_class *job_class = environment->job_classes; job_class != NULL;
             job_class = job_class->next_sharing) {
            if (job_class->standing == JOB_CLASS_SETTLED) {
                unsettle(core, job_class);
            }
        }
    }
    if (core->fleet_changed) {
        take_fleet_change(core);
    }
}

void turn_pass_end(struct core *core)
{
    struct job_class *next;
    for (struct job_class *job_class = core->unsettled; job_class != NULL; job_class = next) {
        next = job_class->next_unsettled;
        if (job_class->considered) {
            stand(core, job_class, JOB_CLASS_SETTLED);
        }
    }
}

void turn_refresh(struct core *core)
{
    if (core->now_ms - core->refreshed_ms < REFRESH_MS) {
        return;
    }
    core->refreshed_ms = core->now_ms;
    for (struct job_family *family = core->job_families; family != NULL; family = family->hh.next) {
        family->least_estimate_ms = family->least_limit_ms = NEVER;
    }
    for (struct job_class *job_class = core->job_classes; job_class != NULL; job_class = job_class->next) {
        enum job_class_standing standing = job_class->standing;
        for (size_t i = 0; i < job_class->entry_count; i++) {
            queue_recalculate(core, &job_class->entries[i]);
        }
        find_first(job_class);
        stand(core, job_class, standing);
    }
}

/* --- a turn --------------------------------------------------------------------------------------------- */

static struct job_family *family_of(const struct core *core, struct job_family *family)
{
    if (family->turn != core->turns.number) {
        family->turn = core->turns.number;
        family->closed = false;
        family->hopeless_estimate_ms = family->hopeless_limit_ms = NEVER;
    }
    return family;
}

/* The first job class of a list in order stands for those after it. Others come by themselves: those that
 * have come in an earlier part of the turn, and those whose first entry was in one. */
static void add_list(struct core *core, struct job_class *list)
{
    struct turns *turns = &core->turns;
    struct job_class *first = NULL;
    for (struct job_class *each = list; each != NULL; each = each->after[0]) {
        if (each->turn == turns->number || !comes(turns, &each->order)) {
            add_turn(core, each, false);
            each->whole = false;
        } else if (first == NULL) {
            first = each;
        }
        if (first != NULL && !turns->partial) {
            break;
        }
    }
    if (first != NULL) {
        add_turn(core, first, true);
    }
}

void turn_open(struct core *core, bool all, const struct queue_entry *from)
{
    struct turns *turns = &core->turns;
    while (turns->count > 0) { /* the last turn ended early */
        turns->items[--turns->count]->turn_index = NO_TURN;
    }
    turns->wanting = 0;
    turns->partial = from != NULL;
    if (turns->partial) {
        turns->number = core->pass.turn;
        turns->from = *from;
    } else {
        turns->number = ++turns->last;
    }
    turns->all = all;
    turns->ready = false;
    if (all) {
        for (struct job_class *each = core->job_classes; each != NULL; each = each->next) {
            add_turn(core, each, false);
        }
        return;
    }
    for (struct job_class *each = core->unsettled; each != NULL; each = each->next_unsettled) {
        add_turn(core, each, false);
    }
    if (core_free(core) > 0 || core->trace != NULL) { /* the trace says why they wait */
        add_list(core, core->plain[0]);
    }
    for (struct job_family *each = core->settled_families; each != NULL; each = each->next) {
        add_list(core, each->settled[0]);
    }
}

struct queue_entry *turn_next(struct core *core)
{
    struct turns *turns = &core->turns;
    while (turns->count > 0) {
        struct job_class *job_class = turns->items[0];
        if (!job_class->leads) {
            return &job_class->entries[job_class->best];
        }
        if (job_class->environment != NULL && family_of(core, job_class->family)->closed) {
            end_turn(core, job_class);
        } else {
            lead_on(core, job_class);
        }
    }
    return NULL;
}

bool turn_is_spent(const struct core *core)
{
    return !core->turns.all && core_free(core) == 0 && core->turns.wanting == 0;
}

/* Lets a settled job class come by itself, unless it has come already. */
static void add_ready(struct core *core, struct job_class *job_class)
{
    if (job_class->turn_index != NO_TURN && job_class->leads) {
        lead_on(core, job_class);
    } else if (job_class->standing == JOB_CLASS_SETTLED && job_class->turn != core->turns.number) {
        add_turn(core, job_class, false);
        job_class->whole = false;
    }
}

void turn_add_ready(struct core *core)
{
    if (core->turns.ready) {
        return;
    }
    core->turns.ready = true;
    for (size_t i = 0; i < core->node_count; i++) {
        const struct node *node = core->nodes[i];
        const struct environment_copy *copy = staging_has_free_devices(node) ? node->copies : NULL;
        for (; copy != NULL; copy = copy->next) {
            struct job_class *each = copy->state == COPY_READY ? copy->environment->job_classes : NULL;
            for (; each != NULL; each = each->next_sharing) {
                add_ready(core, each);
            }
        }
    }
}

bool turn_renew(struct core *core, struct queue_entry *entry)
{
    const struct queue_entry old = *entry;
    struct job_class *job_class = entry->batch->key.job_class;
    queue_recalculate(core, entry);
    bool changed = entry->sort_key != old.sort_key || entry->estimate_ms != old.estimate_ms;
    if (changed) {
        turn_entries_changed(core, job_class);
    }
    return changed;
}

void turn_close(struct core *core, struct job_class *job_class)
{
    job_class->longest_ms = -1; /* in later parts of the turn, too */
    if (job_class->turn_index != NO_TURN) {
        end_turn(core, job_class);
    }
}

void turn_narrow(struct core *core, struct job_class *job_class, int64_t longest_ms)
{
    job_class->longest_ms = least(longest_ms, job_class->longest_ms);
    find_best_again(core, job_class);
}

void turn_skip_owner(struct core *core, struct job_class *job_class, const struct job *job)
{
    for (size_t i = 0; i < job_class->entry_count; i++) {
        const struct job *other = job_class->entries[i].batch->jobs;
        if (other->project == job->project && other->owner == job->owner) {
            job_class->entries[i].passed = core->turns.number;
        }
    }
    find_best_again(core, job_class);
}

void turn_skip(struct core *core, struct queue_entry *entry)
{
    entry->passed = core->turns.number;
    find_best_again(core, entry->batch->key.job_class);
}

bool turn_is_hopeless(const struct core *core, struct job_family *family, int64_t estimate_ms,
                      int64_t limit_ms)
{
    family_of(core, family);
    return estimate_ms >= family->hopeless_estimate_ms && limit_ms >= family->hopeless_limit_ms;
}

void turn_note_hopeless(const struct core *core, struct job_family *family, int64_t estimate_ms,
                        int64_t limit_ms)
{
    family_of(core, family)->hopeless_estimate_ms = estimate_ms;
    family->hopeless_limit_ms = limit_ms;
}

/* The shortest jobs may have left the queue. */
static void find_least(const struct core *core, struct job_family *family)
{
    family->least_turn = core->turns.number;
    family->least_estimate_ms = family->least_limit_ms = NEVER;
    for (struct job_class *each = family->settled[0]; each != NULL; each = each->after[0]) {
        note_least(each);
    }
}

bool turn_all_hopeless(const struct core *core, struct job_family *family)
{
    bool all = turn_is_hopeless(core, family, family->least_estimate_ms, family->least_limit_ms);
    if (!all && family->least_turn != core->turns.number) {
        find_least(core, family);
        all = turn_is_hopeless(core, family, family->least_estimate_ms, family->least_limit_ms);
    }
    return all;
}

void turn_skip_hopeless(struct core *core, struct job_class *job_class)
{
    for (size_t i = 0; i < job_class->entry_count; i++) {
        struct queue_entry *entry = &job_class->entries[i];
        if (turn_is_hopeless(core, job_class->family, entry->estimate_ms, limit_of(entry))) {
            entry->passed = core->turns.number;
        }
    }
    find_best_again(core, job_class);
}

void turn_close_family(const struct core *core, struct job_family *family)
{
    family_of(core, family)->closed = true;
}

bool turn_is_closed(const struct core *core, struct job_family *family)
{
    return family_of(core, family)->closed;
}

/* --- invariants ----------------------------------------------------------------------------------------- */

void turn_check(const struct core *core)
{
    size_t settled = 0, waiting = 0;
    for (const struct job_family *family = core->settled_families; family != NULL; family = family->next) {
        for (const struct job_class *each = family->settled[0]; each != NULL; each = each->after[0]) {
            assert(each->standing == JOB_CLASS_SETTLED && each->family == family && each->first >= 0);
            assert(each->order.key == each->entries[each->first].key);
            assert(each->after[0] == NULL || queue_before(&each->order, &each->after[0]->order));
            settled++;
        }
    }
    for (const struct job_class *each = core->unsettled; each != NULL; each = each->next_unsettled) {
        assert(each->standing == JOB_CLASS_UNSETTLED && each->environment != NULL);
        settled++;
    }
    for (const struct job_class *each = core->plain[0]; each != NULL; each = each->after[0]) {
        assert(each->standing == JOB_CLASS_UNSETTLED && each->environment == NULL && each->first >= 0);
        assert(each->order.key == each->entries[each->first].key &&
               each->order.sort_key == each->entries[each->first].sort_key);
        assert(each->after[0] == NULL || queue_before(&each->order, &each->after[0]->order));
        settled++;
    }
    for (const struct job_class *each = core->job_classes; each != NULL; each = each->next) {
        waiting++;
    }
    assert(settled == waiting);
}
