/* SPDX-License-Identifier: Apache-2.0 */
/* Small random workloads, under each policy in turn: few nodes, few jobs that run exactly as long as their
 * limits say, and after each thing that happens an oracle that shares no code with the core and knows only
 * what the nodes were told. It says that no GPU serves two; that whoever is first never waits beside enough
 * free GPUs; that nobody is passed by (fifo, sjf), or put off beyond the first start that was possible when
 * it became first (easy, default), while whoever could fill a gap runs; and that the shorter takes from the
 * longer, in no loop (srtf, srsf). One number is one workload: `trace-workloads FIRST COUNT` runs others, and
 * shows what the core decides when COUNT is 1. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "tests/trace/harness/chance.h"
#include "tests/trace/harness/cluster.h"

#define WORKLOADS  20000
#define NODES      4
#define NODE_GPUS  4
#define TYPES      2
#define JOBS       8
#define JOB_GPUS   6
#define NOBODY     (-1)
#define NEVER_MS   INT64_MAX
#define BEATING_MS (2 * HEARTBEAT_MS)
#define REACTIONS  200 /* more of them to one thing that happened are a loop */
#define SHOWN      50  /* violations */

static const char *const type_names[TYPES] = {"A10", "H100"};

struct machine {
    char name[16];
    int type;
    int gpus;
    int owners[NODE_GPUS]; /* jobs, by device; or NOBODY */
    bool dirty;            /* its orders changed */
};

enum phase { PHASE_COMING, PHASE_WAITING, PHASE_HOLDING, PHASE_STOPPING, PHASE_OVER };

struct task {
    char id[16];
    int gpus;
    int type; /* or NOBODY: any */
    int64_t limit_ms, submit_ms, priority;
    enum phase phase;
    int64_t ran_ms;              /* before it holds what it holds now */
    int64_t start_ms, change_ms; /* since when; when it ends, or has stopped */
    int held;                    /* GPUs */
    bool yielding;               /* it was told to stop since then */
    bool fresh;                  /* it got them since the last look */
    int64_t promised_ms;         /* the first start that was possible when it became first; or NEVER_MS */
    int starts_at_yield[JOBS];   /* starts of others until it last yielded to that one; or NOBODY */
};

struct workload {
    struct cluster *cluster;
    struct chance chance;
    int number;
    enum policy policy;
    struct machine machines[NODES];
    int machine_count;
    struct task tasks[JOBS];
    int task_count;
    int starts;
    bool parted; /* the last one to end did so in parts */
    int64_t heartbeat_ms;
    bool violated;
};

/* How many violations there were, and whether to show what the core decides. */
static int64_t violations;
static bool shown;

static void __attribute__((format(printf, 2, 3))) violate(struct workload *load, const char *format, ...)
{
    if (load->violated) {
        return;
    }
    load->violated = true;
    if (violations++ < SHOWN) {
        va_list arguments;
        va_start(arguments, format);
        fprintf(stderr, "workload %d (%s), at %lld ms: ", load->number, policy_text(load->policy),
                (long long)load->cluster->now_ms);
        vfprintf(stderr, format, arguments);
        fprintf(stderr, "\n");
        va_end(arguments);
    }
}

/* --- the oracle: what there is -------------------------------------------------------------------------- */

static int total_of(const struct workload *load, int type)
{
    int total = 0;
    for (int i = 0; i < load->machine_count; i++) {
        total += load->machines[i].type == type ? load->machines[i].gpus : 0;
    }
    return total;
}

static int type_of(const struct workload *load, const struct task *task)
{
    for (int i = 0; i < load->machine_count; i++) {
        for (int j = 0; j < load->machines[i].gpus; j++) {
            if (load->machines[i].owners[j] == (int)(task - load->tasks)) {
                return load->machines[i].type;
            }
        }
    }
    return NOBODY;
}

static bool could_ever(const struct workload *load, const struct task *task, int type)
{
    return (task->type == NOBODY || task->type == type) && total_of(load, type) >= task->gpus;
}

/* At that time, if nothing else starts. */
static int free_at(const struct workload *load, int type, int64_t at_ms)
{
    int count = total_of(load, type);
    for (int i = 0; i < load->task_count; i++) {
        const struct task *task = &load->tasks[i];
        bool holds = task->phase == PHASE_HOLDING || task->phase == PHASE_STOPPING;
        count -= holds && task->change_ms > at_ms && type_of(load, task) == type ? task->gpus : 0;
    }
    return count;
}

static int free_now(const struct workload *load, int type)
{
    int count = 0;
    for (int i = 0; i < load->machine_count; i++) {
        const struct machine *machine = &load->machines[i];
        for (int j = 0; j < machine->gpus && machine->type == type; j++) {
            count += machine->owners[j] == NOBODY;
        }
    }
    return count;
}

/* Every end is tried. */
static int64_t first_start(const struct workload *load, const struct task *task, int type)
{
    int64_t now_ms = load->cluster->now_ms, best = NEVER_MS;
    if (!could_ever(load, task, type)) {
        return NEVER_MS;
    }
    if (free_at(load, type, now_ms) >= task->gpus) {
        return now_ms;
    }
    for (int i = 0; i < load->task_count; i++) {
        const struct task *other = &load->tasks[i];
        bool holds = other->phase == PHASE_HOLDING || other->phase == PHASE_STOPPING;
        if (holds && other->change_ms < best && free_at(load, type, other->change_ms) >= task->gpus) {
            best = other->change_ms;
        }
    }
    return best;
}

/* --- the oracle: whose turn it is ----------------------------------------------------------------------- */

static int64_t remaining_ms(const struct workload *load, const struct task *task)
{
    bool holds = task->phase == PHASE_HOLDING;
    int64_t left_ms = task->limit_ms - task->ran_ms - (holds ? load->cluster->now_ms - task->start_ms : 0);
    return left_ms > 1 ? left_ms : 1;
}

static int64_t turn_of(const struct workload *load, const struct task *task)
{
    switch (load->policy) {
    case POLICY_SJF:
        return task->limit_ms;
    case POLICY_SRTF:
        return remaining_ms(load, task);
    case POLICY_SRSF:
        return remaining_ms(load, task) * task->gpus;
    case POLICY_DEFAULT:
        return task->submit_ms + 10 * task->limit_ms;
    case POLICY_FIFO:
    case POLICY_EASY:
        return 0;
    case POLICY_COUNT:
        break;
    }
    abort();
}

static bool before(const struct workload *load, const struct task *a, const struct task *b)
{
    if (load->policy == POLICY_DEFAULT && a->priority != b->priority) {
        return a->priority > b->priority;
    }
    int64_t left = turn_of(load, a), right = turn_of(load, b);
    return left != right ? left < right : a < b;
}

static struct task *first_of(struct workload *load)
{
    struct task *first = NULL;
    for (int i = 0; i < load->task_count; i++) {
        struct task *task = &load->tasks[i];
        if (task->phase == PHASE_WAITING && (first == NULL || before(load, task, first))) {
            first = task;
        }
    }
    return first;
}

/* --- the oracle: what must never be --------------------------------------------------------------------- */

static void check_first(struct workload *load, const struct task *first)
{
    for (int type = 0; type < TYPES; type++) {
        if (could_ever(load, first, type) && free_now(load, type) >= first->gpus) {
            violate(load, "%s is first and waits for %d %s, of which %d are free", first->id, first->gpus,
                    type_names[type], free_now(load, type));
        }
    }
}

/* fifo, sjf: nobody took what an earlier one could use. */
static void check_kept(struct workload *load, const struct task *task)
{
    int type = type_of(load, task);
    for (int i = 0; i < load->task_count; i++) {
        const struct task *other = &load->tasks[i];
        if (other->phase == PHASE_WAITING && before(load, other, task) && could_ever(load, other, type)) {
            violate(load, "%s passed by %s", task->id, other->id);
        }
    }
}

/* easy, default: one that would have ended before any earlier one could start there. */
static void check_gaps(struct workload *load, const struct task *task)
{
    for (int type = 0; type < TYPES; type++) {
        if (!could_ever(load, task, type) || free_now(load, type) < task->gpus) {
            continue;
        }
        int64_t reserved_ms = NEVER_MS;
        for (int i = 0; i < load->task_count; i++) {
            const struct task *other = &load->tasks[i];
            if (other->phase == PHASE_WAITING && before(load, other, task)) {
                int64_t start_ms = first_start(load, other, type);
                reserved_ms = start_ms < reserved_ms ? start_ms : reserved_ms;
            }
        }
        if (load->cluster->now_ms + task->limit_ms <= reserved_ms) {
            violate(load, "%s waits, and would fill a gap of %s", task->id, type_names[type]);
        }
    }
}

/* When two end at once, or one on several nodes, the core looks in between, and cannot know that the rest
 * ends now; and one that came later may have gone before. */
static bool changes_promises(const struct workload *load, const struct task *first)
{
    if (load->parted) {
        return true;
    }
    for (int i = 0; i < load->task_count; i++) {
        const struct task *task = &load->tasks[i];
        bool overtakes = task->fresh && first != NULL && before(load, task, first);
        if (overtakes || (task->phase == PHASE_HOLDING && task->change_ms <= load->cluster->now_ms)) {
            return true;
        }
    }
    return false;
}

/* easy, default. */
static void check_promise(struct workload *load, const struct task *first)
{
    int64_t now_ms = load->cluster->now_ms;
    bool anew = changes_promises(load, first);
    for (int i = 0; i < load->task_count; i++) {
        struct task *task = &load->tasks[i];
        if (!load->parted && task->promised_ms != NEVER_MS && task->phase == PHASE_WAITING &&
            now_ms > task->promised_ms) {
            violate(load, "%s was put off from %lld", task->id, (long long)task->promised_ms);
        }
        task->promised_ms = task == first && !anew ? task->promised_ms : NEVER_MS;
    }
    load->parted = false;
    for (int type = 0; type < TYPES && first != NULL && !anew; type++) {
        int64_t start_ms = first_start(load, first, type);
        struct task *task = &load->tasks[first - load->tasks];
        task->promised_ms = start_ms < task->promised_ms ? start_ms : task->promised_ms;
    }
}

/* srtf, srsf: while nothing is about to stop, whoever is first has taken what it can. */
static void check_taken(struct workload *load, const struct task *first)
{
    for (int type = 0; type < TYPES; type++) {
        int takeable = free_now(load, type);
        for (int i = 0; i < load->task_count; i++) {
            const struct task *other = &load->tasks[i];
            if (other->phase == PHASE_STOPPING) {
                return;
            }
            bool yields = other->phase == PHASE_HOLDING && type_of(load, other) == type &&
                          turn_of(load, other) > turn_of(load, first);
            takeable += yields ? other->gpus : 0;
        }
        if (could_ever(load, first, type) && takeable >= first->gpus) {
            violate(load, "%s is first, and longer ones keep the %d %s that it wants", first->id, first->gpus,
                    type_names[type]);
        }
    }
}

static void check_held(struct workload *load)
{
    for (int i = 0; i < load->task_count; i++) {
        const struct task *task = &load->tasks[i];
        int held[TYPES] = {0};
        for (int j = 0; j < load->machine_count; j++) {
            for (int k = 0; k < load->machines[j].gpus; k++) {
                held[load->machines[j].type] += load->machines[j].owners[k] == i;
            }
        }
        bool holds = task->phase == PHASE_HOLDING || task->phase == PHASE_STOPPING;
        int wanted = holds ? task->gpus : 0;
        if (held[0] + held[1] != wanted || (held[0] != 0 && held[1] != 0) ||
            (task->type != NOBODY && held[task->type] != wanted)) {
            violate(load, "%s holds %d A10 and %d H100, not %d", task->id, held[0], held[1], wanted);
        }
    }
}

/* Between two yieldings to the same one somebody else must have started: else nothing has changed. */
static void check_yield(struct workload *load, struct task *task)
{
    const struct rows *rows = load->cluster->rows;
    const char *text = rows_attempt(rows, rows_attempt_id(rows, task->id))->cause_text;
    const char *id = text != NULL && strrchr(text, ' ') != NULL ? strrchr(text, ' ') + 1 : "";
    for (int i = 0; i < load->task_count; i++) {
        if (strcmp(load->tasks[i].id, id) != 0) {
            continue;
        }
        int others = load->starts - 1; /* its own start is none of them */
        if (task->starts_at_yield[i] != NOBODY && others <= task->starts_at_yield[i]) {
            violate(load, "%s yields to %s again", task->id, id);
        }
        task->starts_at_yield[i] = load->starts;
        return;
    }
    violate(load, "%s is stopped for nobody: %s", task->id, text != NULL ? text : "");
}

static void check_passed(struct workload *load, const struct task *first)
{
    bool keeps = load->policy == POLICY_FIFO || load->policy == POLICY_SJF;
    bool reserves = load->policy == POLICY_EASY || load->policy == POLICY_DEFAULT;
    for (int i = 0; i < load->task_count; i++) {
        const struct task *task = &load->tasks[i];
        if (keeps && task->fresh) {
            check_kept(load, task);
        }
        if (reserves && task->phase == PHASE_WAITING) {
            check_gaps(load, task);
        }
    }
    if (reserves) {
        check_promise(load, first);
    } else if (!keeps && first != NULL) {
        check_taken(load, first);
    }
}

static void check(struct workload *load)
{
    const struct task *first = first_of(load);
    check_held(load);
    if (first != NULL) {
        check_first(load, first);
    }
    check_passed(load, first);
    for (int i = 0; i < load->task_count; i++) {
        if (load->tasks[i].yielding) {
            check_yield(load, &load->tasks[i]);
        }
        load->tasks[i].yielding = load->tasks[i].fresh = false;
    }
}

/* --- nodes do what they are told ------------------------------------------------------------------------ */

static void note_dirty(struct workload *load)
{
    const struct step *step = &load->cluster->step;
    for (size_t i = 0; i < step->dirty_count; i++) {
        for (int j = 0; j < load->machine_count; j++) {
            struct machine *machine = &load->machines[j];
            machine->dirty = machine->dirty || strcmp(machine->name, step->dirty_nodes[i]) == 0;
        }
    }
}

static void starts(struct workload *load, struct task *task)
{
    int64_t now_ms = load->cluster->now_ms;
    task->phase = PHASE_HOLDING;
    task->start_ms = now_ms;
    task->change_ms = now_ms + remaining_ms(load, task);
    task->fresh = true;
    load->starts++;
}

static void yields(struct workload *load, struct task *task)
{
    int64_t left_ms = remaining_ms(load, task);
    int64_t takes_ms = chance_of(&load->chance, 50) ? 0 : (int64_t)chance_below(&load->chance, 2000);
    task->phase = PHASE_STOPPING;
    task->change_ms = load->cluster->now_ms + (takes_ms < left_ms ? takes_ms : left_ms - 1);
    task->yielding = true;
}

/* Returns whether the node has something to report. */
static bool obey(struct workload *load, struct machine *machine, const struct order *order)
{
    int number = order->job_id[1] - '0';
    struct task *task = &load->tasks[number];
    for (size_t i = 0; i < order->device_count; i++) {
        int64_t device = order->devices[i];
        if (device >= machine->gpus || machine->owners[device] != NOBODY) {
            violate(load, "device %lld of %s serves two", (long long)device, machine->name);
            return false;
        }
        machine->owners[device] = number;
    }
    if (task->phase == PHASE_WAITING) {
        starts(load, task);
    }
    if (order->phase == ORDER_STOP && task->phase == PHASE_HOLDING) {
        yields(load, task);
    }
    return order->phase == ORDER_PREPARE;
}

/* A gang starts when all its nodes are prepared; saying so twice changes nothing. */
static void serve(struct workload *load, struct machine *machine)
{
    char preparing[NODE_GPUS][ID_LENGTH + 1];
    int count = 0;
    machine->dirty = false;
    for (int i = 0; i < machine->gpus; i++) {
        machine->owners[i] = NOBODY;
    }
    struct node_orders *orders = core_orders(load->cluster->core, machine->name);
    for (size_t i = 0; i < orders->count && !load->violated; i++) {
        if (obey(load, machine, &orders->items[i].order)) {
            snprintf(preparing[count++], sizeof preparing[0], "%s", orders->items[i].job_id);
        }
    }
    node_orders_destroy(orders);
    for (int i = 0; i < count; i++) {
        prepared(load->cluster, preparing[i], machine->name);
        note_dirty(load);
    }
}

static void react(struct workload *load)
{
    note_dirty(load);
    int reactions = 0;
    for (int i = 0; i < load->machine_count && !load->violated; i++) {
        if (load->machines[i].dirty) {
            serve(load, &load->machines[i]);
            i = -1;
            if (++reactions > REACTIONS) {
                violate(load, "orders change for ever");
            }
        }
    }
    if (!load->violated) {
        check(load);
    }
}

/* --- what happens --------------------------------------------------------------------------------------- */

static void come(struct workload *load, struct task *task)
{
    const struct job_ask ask = {.id = task->id,
                                .gpus = task->gpus,
                                .type = task->type != NOBODY ? type_names[task->type] : NULL,
                                .time_limit_ms = task->limit_ms,
                                .priority = task->priority};
    task->phase = PHASE_WAITING;
    if (cluster_submit(load->cluster, &ask) != ERR_NONE) {
        violate(load, "%s was refused: %s", task->id, load->cluster->step.err.text);
    }
}

/* Whoever holds something ends, or has stopped; the last node to say so ends it. */
static void leave(struct workload *load, struct task *task)
{
    int number = (int)(task - load->tasks);
    bool ends = task->phase == PHASE_HOLDING;
    bool holders[NODES] = {false};
    for (int i = 0; i < load->machine_count; i++) {
        for (int j = 0; j < load->machines[i].gpus; j++) {
            holders[i] = holders[i] || load->machines[i].owners[j] == number;
        }
    }
    task->ran_ms += load->cluster->now_ms - task->start_ms;
    task->phase = ends ? PHASE_OVER : PHASE_WAITING;
    load->parted = load->parted || holders[0] + holders[1] + holders[2] + holders[3] > 1;
    for (int i = 0; i < load->machine_count; i++) {
        if (holders[i]) {
            const char *name = load->machines[i].name;
            (void)(ends ? exited(load->cluster, task->id, name, 0) : stopped(load->cluster, task->id, name));
            note_dirty(load);
        }
    }
    const struct job_life *life = rows_job(load->cluster->rows, task->id);
    if (life->ran_ms != task->ran_ms || (life->state == JOB_SUCCEEDED) != ends) {
        violate(load, "%s is %s after %lld ms, not %lld", task->id, job_state_text(life->state),
                (long long)life->ran_ms, (long long)task->ran_ms);
    }
}

static int64_t change_of(const struct task *task)
{
    switch (task->phase) {
    case PHASE_COMING:
        return task->submit_ms;
    case PHASE_HOLDING:
    case PHASE_STOPPING:
        return task->change_ms;
    case PHASE_WAITING:
    case PHASE_OVER:
        break;
    }
    return NEVER_MS;
}

/* What ends goes before what comes. */
static struct task *next_of(struct workload *load)
{
    struct task *next = NULL;
    for (int i = 0; i < load->task_count; i++) {
        struct task *task = &load->tasks[i];
        int64_t at_ms = change_of(task), best_ms = next != NULL ? change_of(next) : NEVER_MS;
        bool sooner = next != NULL && next->phase == PHASE_COMING && task->phase != PHASE_COMING;
        if (at_ms < best_ms || (at_ms == best_ms && sooner)) {
            next = task;
        }
    }
    return next;
}

static void heartbeat_all(struct workload *load)
{
    for (int i = 0; i < load->machine_count; i++) {
        heartbeat(load->cluster, load->machines[i].name);
    }
    load->heartbeat_ms = load->cluster->now_ms;
}

/* TICKs that are due at that very time wait for what happens then. */
static void wait_until(struct workload *load, int64_t at_ms)
{
    struct cluster *cluster = load->cluster;
    while (!load->violated) {
        int64_t tick_ms = core_deadline(cluster->core), heartbeat_ms = load->heartbeat_ms + BEATING_MS;
        int64_t due_ms = tick_ms < heartbeat_ms ? tick_ms : heartbeat_ms;
        if (due_ms >= at_ms) {
            break;
        }
        cluster->now_ms = due_ms > cluster->now_ms ? due_ms : cluster->now_ms;
        if (due_ms == heartbeat_ms) {
            heartbeat_all(load);
        } else {
            cluster_step(cluster, &(struct input){.kind = INPUT_TICK});
        }
        react(load);
    }
    cluster->now_ms = at_ms;
}

/* --- one workload --------------------------------------------------------------------------------------- */

static void draw_machines(struct workload *load)
{
    struct chance *chance = &load->chance;
    bool mixed = chance_of(chance, 50);
    load->machine_count = 1 + (int)chance_below(chance, NODES);
    for (int i = 0; i < load->machine_count; i++) {
        struct machine *machine = &load->machines[i];
        snprintf(machine->name, sizeof machine->name, "n%d", i);
        machine->type = mixed ? (int)chance_below(chance, TYPES) : 0;
        machine->gpus = 1 + (int)chance_below(chance, NODE_GPUS);
        machine->dirty = true;
        cluster_register(load->cluster, &(struct node_ask){.name = machine->name,
                                                           .type = type_names[machine->type],
                                                           .gpus = machine->gpus});
    }
}

/* In half of the workloads in whole seconds, so that much of it happens at once. */
static int64_t draw_ms(struct workload *load, int64_t least_ms, int64_t most_ms)
{
    int64_t ms = least_ms + (int64_t)chance_below(&load->chance, (uint64_t)(most_ms - least_ms));
    return load->number / POLICY_COUNT % 2 == 0 ? ms / 1000 * 1000 : ms;
}

static void draw_tasks(struct workload *load)
{
    struct chance *chance = &load->chance;
    int64_t at_ms = 1000;
    load->task_count = 1 + (int)chance_below(chance, JOBS);
    for (int i = 0; i < load->task_count; i++) {
        struct task *task = &load->tasks[i];
        snprintf(task->id, sizeof task->id, "j%d", i);
        task->type = chance_of(chance, 50) ? NOBODY : (int)chance_below(chance, TYPES);
        task->type = task->type != NOBODY && total_of(load, task->type) == 0 ? NOBODY : task->type;
        int any = total_of(load, 0) > total_of(load, 1) ? total_of(load, 0) : total_of(load, 1);
        int total = task->type != NOBODY ? total_of(load, task->type) : any;
        task->gpus = 1 + (int)chance_below(chance, (uint64_t)(total < JOB_GPUS ? total : JOB_GPUS));
        task->limit_ms = draw_ms(load, 1000, chance_of(chance, 50) ? 4000 : 15000);
        at_ms += chance_of(chance, 30) ? 0 : draw_ms(load, 0, 5000);
        task->submit_ms = at_ms;
        task->priority = chance_of(chance, 20) ? (int64_t)chance_below(chance, 3) - 1 : 0;
        task->promised_ms = NEVER_MS;
        for (int j = 0; j < JOBS; j++) {
            task->starts_at_yield[j] = NOBODY;
        }
    }
}

static void run(struct workload *load)
{
    for (struct task *task; !load->violated && (task = next_of(load)) != NULL;) {
        wait_until(load, change_of(task));
        if (load->violated) {
            return;
        }
        if (task->phase == PHASE_COMING) {
            come(load, task);
        } else {
            leave(load, task);
        }
        react(load);
    }
    if (!load->violated && core_live_jobs(load->cluster->core) > 0) {
        violate(load, "%zu jobs never start", core_live_jobs(load->cluster->core));
    }
}

static void run_one(int number)
{
    struct workload load = {.number = number,
                            .policy = (enum policy)(number % POLICY_COUNT),
                            .chance = {.state = 0x9e3779b97f4a7c15ULL * (uint64_t)number}};
    load.cluster = cluster_open_with(load.policy);
    load.cluster->large = true; /* what the core says of itself is checked by the random walk */
    if (!shown) {
        core_trace(load.cluster->core, NULL);
    }
    draw_machines(&load);
    draw_tasks(&load);
    run(&load);
    if (shown && load.cluster->trace.bytes != NULL) {
        fputs(load.cluster->trace.bytes, stderr);
    }
    cluster_close(load.cluster);
}

int main(int argc, char **argv)
{
    int64_t first = 1, count = WORKLOADS;
    if (argc != 1 && (argc != 3 || !text_to_int(argv[1], 1, INT32_MAX / 2, &first) ||
                      !text_to_int(argv[2], 1, INT32_MAX / 2, &count))) {
        fprintf(stderr, "usage: trace-workloads [FIRST COUNT]\n");
        return 2;
    }
    shown = count == 1;
    for (int64_t number = first; number < first + count; number++) {
        run_one((int)number);
    }
    printf("%lld workloads, %lld violations\n", (long long)count, (long long)violations);
    return violations == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
