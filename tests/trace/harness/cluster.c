/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated cluster of the trace tests. After every input it checks all invariants, and applies the
 * changes to rows as a store would. The tests say what they expect. */
#include "tests/trace/harness/cluster.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/spec/node_label.h"

#define TEST_LEASE_MS 60000

static void boot(struct cluster *cluster)
{
    struct core_config config = {
        .incarnation = ++cluster->incarnation,
        .next_job_key = rows_next_key(cluster->rows),
        .heartbeat_ms = HEARTBEAT_MS,
        .policy = cluster->policy,
        .pass_work = cluster->pass_work,
    };
    cluster->core = core_create(&config);
    rows_load(cluster->rows, cluster->core);
    core_trace(cluster->core, &cluster->trace);
    cluster_step(cluster, &(struct input){.kind = INPUT_BOOT});
}

struct cluster *cluster_open_with(enum policy policy)
{
    return cluster_open_slow(policy, 0);
}

struct cluster *cluster_open_slow(enum policy policy, int64_t pass_work)
{
    struct cluster *cluster = xzalloc(sizeof *cluster);
    cluster->policy = policy;
    cluster->pass_work = pass_work;
    cluster->rows = rows_create();
    cluster->wall_ms = 1000000;
    boot(cluster);
    return cluster;
}

struct cluster *cluster_open(void)
{
    return cluster_open_with(POLICY_FIFO);
}

static void drop_waiting(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->waiting_count; i++) {
        step_finish(&cluster->waiting[i]);
    }
    cluster->waiting_count = 0;
}

void cluster_close(struct cluster *cluster)
{
    drop_waiting(cluster);
    free(cluster->waiting);
    step_finish(&cluster->step);
    core_destroy(cluster->core);
    rows_destroy(cluster->rows);
    text_finish(&cluster->trace);
    free(cluster);
}

void cluster_restart(struct cluster *cluster)
{
    core_destroy(cluster->core);
    drop_waiting(cluster);
    boot(cluster);
}

/* Takes the last step to the rows, or lets it wait for one that is not lazy. */
static void commit(struct cluster *cluster, const struct job_spec *spec)
{
    if (cluster->late && cluster->step.lazy) {
        size_t count = cluster->waiting_count + 1;
        cluster->waiting = xrealloc(cluster->waiting, count * sizeof *cluster->waiting);
        cluster->waiting[cluster->waiting_count++] = cluster->step;
        cluster->step = (struct step){.ok = true, .lazy = true};
        return;
    }
    if (cluster->step.change_count > 0) {
        for (size_t i = 0; i < cluster->waiting_count; i++) {
            rows_apply(cluster->rows, &cluster->waiting[i], NULL);
        }
        drop_waiting(cluster);
    }
    rows_apply(cluster->rows, &cluster->step, spec);
}

static enum err_code step_with(struct cluster *cluster, const struct input *input,
                               const struct job_spec *spec)
{
    struct input stamped = *input;
    stamped.wall_ms = cluster->wall_ms + cluster->now_ms;
    step_finish(&cluster->step);
    core_step(cluster->core, &stamped, cluster->now_ms, &cluster->step);
    if (!cluster->large) {
        core_check(cluster->core);
    }
    cluster->inputs++;
    commit(cluster, spec);
    return cluster->step.ok ? ERR_NONE : cluster->step.err.code;
}

enum err_code cluster_step(struct cluster *cluster, const struct input *input)
{
    return step_with(cluster, input, NULL);
}

/* --- nodes and jobs ------------------------------------------------------------------------------------- */

static const char *text_or(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

static int64_t wall_of(const struct cluster *cluster, int64_t at_ms)
{
    return at_ms != 0 ? cluster->wall_ms + at_ms : 0;
}

/* NULL for NULL. */
static json_t *labels_of(const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    json_t *labels = json_object();
    autofree char *copy = xstrdup(text);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        ck_assert(node_label_take(word, labels, NULL));
    }
    return labels;
}

enum err_code cluster_register(struct cluster *cluster, const struct node_ask *ask)
{
    size_t count = ask->gpus > 0 ? (size_t)ask->gpus : (size_t)(ask->gpus + 1);
    autofree struct device *devices = xzalloc(count * sizeof *devices);
    for (size_t i = 0; i < count; i++) {
        devices[i] = (struct device){.index = (int64_t)i,
                                     .uuid = "GPU",
                                     .type = text_or(ask->type, "A10"),
                                     .group = ask->groups != NULL ? ask->groups[i] - '0' : -1};
    }
    autojson json_t *labels = labels_of(ask->labels);
    struct device_fault fault = {.index = 0, .reason = ask->broken};
    struct register_message message = {
        .name = ask->name,
        .faults = {.told = true, .items = &fault, .count = ask->broken != NULL ? 1 : 0},
        .boot_id = text_or(ask->boot, "boot-1"),
        .agent_id = ask->agent,
        .host_id = text_or(ask->host, ask->name),
        .version = "0.1.0",
        .address = text_or(ask->address, "10.0.0.1"),
        .pool = ask->pool,
        .reserved = ask->reserved,
        .labels = labels,
        .devices = ask->devices != NULL ? ask->devices : devices,
        .device_count = ask->devices != NULL ? ask->device_count : count,
        .millicpus = ask->cpus * 1000,
        .memory_bytes = ask->memory_gib * GIB,
        .attempts = ask->attempts,
        .attempt_count = ask->attempt_count,
        .expires_at_ms = wall_of(cluster, ask->expires_ms),
        .has_nonce = ask->nonce != NULL,
        .nonce = ask->nonce != NULL ? *ask->nonce : 0,
    };
    return cluster_step(cluster, &(struct input){.kind = INPUT_REGISTER, .node_register = &message});
}

/* What the reader of a submission tells of the jobs that it names. */
static size_t read_dependencies(const struct cluster *cluster, const struct job_ask *ask, char *words,
                                struct core_dependency *dependencies)
{
    size_t count = 0;
    char *rest = words;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        struct core_dependency *on = &dependencies[count++];
        on->id = strsep(&word, ":");
        ck_assert(dependency_from_text(word, &on->kind));
        on->key = rows_key(cluster->rows, on->id);
        ck_assert_int_gt(on->key, 0);
        on->state = ask->stale ? JOB_RUNNING : rows_job(cluster->rows, on->id)->state;
    }
    return count;
}

static struct job_spec spec_of(const struct job_ask *ask)
{
    struct job_spec spec = {
        .gpus = ask->gpus > 0 ? ask->gpus : ask->gpus + 1,
        .millicpus = ask->millicpus,
        .memory_bytes = ask->memory_gib * GIB,
        .gpu_type = ask->type,
        .project = ask->project,
        .remote = ask->local == NULL,
        .host_id = ask->local,
        .use_reserved_pool = ask->reserved,
        .pool = ask->pool,
        .launch_mode = ask->by_node ? LAUNCH_NODE : LAUNCH_PROCESS,
        .time_limit_ms = ask->time_limit_ms,
        .name = ask->name,
        .priority = ask->priority,
        .early_signal = ask->early,
        .grace_ms = DEFAULT_GRACE_MS,
        .keep_ms = ask->keep_ms,
        .lease_ms = ask->lease_ms > 0 ? ask->lease_ms : TEST_LEASE_MS,
        .retries = ask->retries,
        .infra_retries = ask->infra_retries == 0 ? DEFAULT_INFRA_RETRIES : ask->infra_retries,
        .on_disconnect = ask->on_disconnect,
        .tasks = ask->tasks,
        .parallel = ask->parallel,
        .not_before_ms = ask->not_before_ms,
        .only = ask->only != NULL ? task_list_read(ask->only, ask->tasks) : NULL,
        .terms = (char *)(uintptr_t)ask->terms,
        .placement = ask->spread ? PLACEMENT_SPREAD : PLACEMENT_PACK,
        .nodes = ask->nodes,
        .function = {.base64 = ask->function ? "Zg==" : NULL},
        .hold = ask->hold,
        .checkpoint_of = ask->goes_on,
    };
    spec.infra_retries = spec.infra_retries > 0 ? spec.infra_retries : 0;
    spec.bundle.blob = ask->environment; /* where the rows find it */
    return spec;
}

enum err_code cluster_submit(struct cluster *cluster, const struct job_ask *ask)
{
    struct job_spec spec = spec_of(ask);
    autofree struct task_list *only = spec.only;
    spec.only = only;
    struct input input = {.kind = INPUT_SUBMIT,
                          .submit = {.id = ask->id,
                                     .owner = text_or(ask->owner, "alice"),
                                     .spec = &spec,
                                     .body = "{}",
                                     .body_length = 2}};
    const struct environment_spec environment = rows_environment(ask->environment);
    input.submit.environment = ask->environment != NULL ? &environment : NULL;
    struct core_dependency dependencies[8];
    autofree char *words = ask->after != NULL ? xstrdup(ask->after) : NULL;
    input.submit.dependencies = dependencies;
    input.submit.dependency_count = words != NULL ? read_dependencies(cluster, ask, words, dependencies) : 0;
    return step_with(cluster, &input, &spec);
}

enum err_code cancel(struct cluster *cluster, const char *id)
{
    return cluster_step(cluster, &(struct input){.kind = INPUT_CANCEL, .cancel = {.id = id, .by = "alice"}});
}

enum err_code remove_job(struct cluster *cluster, const char *id)
{
    int64_t key = rows_key(cluster->rows, id);
    return cluster_step(cluster,
                        &(struct input){.kind = INPUT_REMOVE, .remove = {.keys = &key, .count = key != 0}});
}

enum err_code preempt(struct cluster *cluster, const char *id)
{
    return cluster_step(cluster,
                        &(struct input){.kind = INPUT_PREEMPT, .preempt = {.id = id, .by = "alice"}});
}

/* --- questions ------------------------------------------------------------------------------------------ */

static enum err_code ask_core(struct cluster *cluster, const struct input *input)
{
    enum err_code code = cluster_step(cluster, input);
    ck_assert_uint_eq(cluster->step.change_count, 0);
    ck_assert_uint_eq(cluster->step.dirty_count, 0);
    ck_assert_uint_eq(cluster->step.touched_count, 0);
    return code;
}

enum err_code cluster_ask(struct cluster *cluster, enum ask_kind kind, const char *id)
{
    return ask_core(cluster, &(struct input){.kind = INPUT_ASK,
                                             .ask = {.kind = kind, .id = id, .sees_all = cluster->sees_all}});
}

enum err_code cluster_plan(struct cluster *cluster, const struct job_ask *ask)
{
    struct job_spec spec = spec_of(ask);
    autofree struct task_list *only = spec.only;
    spec.only = only;
    const struct environment_spec environment = rows_environment(ask->environment);
    return ask_core(cluster,
                    &(struct input){.kind = INPUT_ASK,
                                    .ask = {.kind = ASK_PLAN,
                                            .owner = "alice",
                                            .spec = &spec,
                                            .environment = ask->environment != NULL ? &environment : NULL}});
}

enum err_code hold(struct cluster *cluster, const char *id)
{
    return cluster_step(cluster, &(struct input){.kind = INPUT_HOLD, .hold = {.id = id, .by = "root"}});
}

enum err_code release(struct cluster *cluster, const char *id)
{
    return cluster_step(cluster, &(struct input){.kind = INPUT_RELEASE, .hold = {.id = id, .by = "root"}});
}

enum err_code change_if(struct cluster *cluster, const char *id, int64_t seq, int64_t priority)
{
    return cluster_step(
        cluster,
        &(struct input){
            .kind = INPUT_CHANGE,
            .change = {.id = id, .by = "root", .if_seq = seq, .sets_priority = true, .priority = priority}});
}

enum err_code change_priority(struct cluster *cluster, const char *id, int64_t priority)
{
    return change_if(cluster, id, -1, priority);
}

enum err_code change_limit(struct cluster *cluster, const char *id, int64_t time_limit_ms)
{
    return cluster_step(cluster, &(struct input){.kind = INPUT_CHANGE,
                                                 .change = {.id = id,
                                                            .by = "root",
                                                            .if_seq = -1,
                                                            .sets_time_limit = true,
                                                            .time_limit_ms = time_limit_ms}});
}

static enum err_code node_action(struct cluster *cluster, const char *name, enum node_action action)
{
    return cluster_step(
        cluster, &(struct input){.kind = INPUT_NODE, .node = {.name = name, .action = action, .by = "root"}});
}

enum err_code drain(struct cluster *cluster, const char *name)
{
    return node_action(cluster, name, NODE_ACTION_DRAIN);
}

enum err_code resume(struct cluster *cluster, const char *name)
{
    return node_action(cluster, name, NODE_ACTION_RESUME);
}

enum err_code fence(struct cluster *cluster, const char *name)
{
    return node_action(cluster, name, NODE_ACTION_FENCE);
}

enum err_code remove_node(struct cluster *cluster, const char *name, bool force)
{
    const struct input input = {
        .kind = INPUT_NODE,
        .node = {.name = name, .action = NODE_ACTION_REMOVE, .by = "root", .force = force}};
    return cluster_step(cluster, &input);
}

enum err_code forget_node(struct cluster *cluster, const char *name, int64_t heard_ms)
{
    const struct input input = {
        .kind = INPUT_NODE,
        .node = {.name = name, .action = NODE_ACTION_FORGET, .by = "retention", .heard_ms = heard_ms}};
    return cluster_step(cluster, &input);
}

static enum err_code take_leave(struct cluster *cluster, const struct leave_message *message)
{
    const struct input input = {
        .kind = INPUT_NODE, .node = {.name = message->node, .action = NODE_ACTION_LEAVE, .leave = message}};
    return cluster_step(cluster, &input);
}

enum err_code leave_node(struct cluster *cluster, const char *name, bool stop, bool forget)
{
    const struct node_row *row = rows_node(cluster->rows, name);
    return take_leave(cluster, &(struct leave_message){.node = name,
                                                       .boot_id = row != NULL ? row->boot_id : "boot-1",
                                                       .reason = stop ? "SIGTERM" : "idle",
                                                       .stop = stop,
                                                       .forget = forget});
}

enum err_code leave_as(struct cluster *cluster, const char *name, const char *boot_id)
{
    return take_leave(cluster, &(struct leave_message){.node = name, .boot_id = boot_id, .reason = "idle"});
}

/* --- accounts ------------------------------------------------------------------------------------------- */

static enum err_code set_limits(struct cluster *cluster, enum account_kind kind, const char *name,
                                const char *json, bool force)
{
    struct account_limits limits;
    struct err err = {0};
    autotext struct text text = {0};
    struct input input = {.kind = INPUT_LIMITS, .limits = {.kind = kind, .name = name, .force = force}};
    account_limits_init(&limits);
    if (json != NULL) {
        autojson json_t *parsed = json_parse(json, strlen(json), &err);
        ck_assert_msg(parsed != NULL && account_limits_decode(parsed, kind, &limits, &err), "%s", err.text);
        account_limits_encode(&limits, kind, &text);
        input.limits.limits = &limits;
        input.limits.text = text.bytes;
    }
    enum err_code code = cluster_step(cluster, &input);
    account_limits_finish(&limits);
    return code;
}

enum err_code limit(struct cluster *cluster, enum account_kind kind, const char *name, const char *json)
{
    return set_limits(cluster, kind, name, json, false);
}

enum err_code limit_forced(struct cluster *cluster, enum account_kind kind, const char *name,
                           const char *json)
{
    return set_limits(cluster, kind, name, json, true);
}

const char *account_text(struct cluster *cluster, enum account_kind kind, const char *name,
                         const char *viewer)
{
    const struct input input = {.kind = INPUT_ACCOUNTS,
                                .accounts = {.viewer = viewer, .name = name, .kind = kind}};
    cluster_step(cluster, &input);
    return cluster->step.answer;
}

enum err_code expire(struct cluster *cluster, const char *name, int64_t at_ms)
{
    return cluster_step(cluster, &(struct input){.kind = INPUT_NODE,
                                                 .node = {.name = name,
                                                          .action = NODE_ACTION_EXPIRE,
                                                          .by = "root",
                                                          .expires_at_ms = wall_of(cluster, at_ms)}});
}

enum err_code cluster_window(struct cluster *cluster, const struct window_ask *ask)
{
    const struct window_row row = {.id = ask->id,
                                   .nodes = ask->nodes,
                                   .pool = ask->pool,
                                   .from_ms = cluster->wall_ms + ask->from_ms,
                                   .until_ms = cluster->wall_ms + ask->until_ms,
                                   .hard = ask->hard,
                                   .reason = ask->reason,
                                   .owner = "root"};
    return cluster_step(cluster, &(struct input){.kind = INPUT_WINDOW, .window = {.row = &row}});
}

enum err_code remove_window(struct cluster *cluster, const char *id)
{
    return cluster_step(cluster, &(struct input){.kind = INPUT_WINDOW, .window = {.remove = id}});
}

/* --- stagings ------------------------------------------------------------------------------------------- */

enum err_code cluster_staging(struct cluster *cluster, const char *name,
                              const struct staging_message *message)
{
    const struct node_row *row = rows_node(cluster->rows, name);
    struct staging_message whole = *message;
    whole.node = name;
    if (whole.boot_id == NULL) {
        whole.boot_id = row != NULL ? row->boot_id : "";
    }
    return cluster_step(cluster, &(struct input){.kind = INPUT_STAGING, .staging = &whole});
}

enum err_code staged(struct cluster *cluster, const char *environment, const char *name)
{
    return cluster_staging(cluster, name,
                           &(struct staging_message){.key = environment, .state = STAGING_READY});
}

enum err_code unstaged(struct cluster *cluster, const char *environment, const char *name, const char *text)
{
    const struct staging_message message = {.key = environment, .state = STAGING_FAILED, .text = text};
    return cluster_staging(cluster, name, &message);
}

enum err_code refused(struct cluster *cluster, const char *environment, const char *name, const char *text)
{
    const struct staging_message message = {
        .key = environment, .state = STAGING_FAILED, .by_user = true, .text = text};
    return cluster_staging(cluster, name, &message);
}

enum err_code unable(struct cluster *cluster, const char *environment, const char *name, const char *text)
{
    const struct staging_message message = {
        .key = environment, .state = STAGING_FAILED, .lasting = true, .text = text};
    return cluster_staging(cluster, name, &message);
}

/* --- time ----------------------------------------------------------------------------------------------- */

enum err_code heartbeat(struct cluster *cluster, const char *name)
{
    const struct node_row *row = rows_node(cluster->rows, name);
    const struct heartbeat_message message = {.node = name,
                                              .boot_id = row != NULL ? row->boot_id : "boot-1",
                                              .agent_id = row != NULL ? row->agent_id : NULL};
    return cluster_step(cluster, &(struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &message});
}

enum err_code heartbeat_broken(struct cluster *cluster, const char *name, int64_t index, const char *reason)
{
    struct device_fault fault = {.index = index, .reason = reason};
    const struct heartbeat_message message = {
        .node = name,
        .boot_id = rows_node(cluster->rows, name)->boot_id,
        .faults = {.told = true, .items = &fault, .count = reason != NULL ? 1 : 0}};
    return cluster_step(cluster, &(struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &message});
}

void advance(struct cluster *cluster, int64_t ms)
{
    int64_t until = cluster->now_ms + ms;
    while (core_deadline(cluster->core) <= until) {
        int64_t due = core_deadline(cluster->core);
        cluster->now_ms = due > cluster->now_ms ? due : cluster->now_ms;
        cluster_step(cluster, &(struct input){.kind = INPUT_TICK});
        ck_assert_int_gt(core_deadline(cluster->core),
                         cluster->now_ms); /* else TICK would be called for ever */
    }
    cluster->now_ms = until;
}

void advance_beating(struct cluster *cluster, int64_t ms, const char *names)
{
    int64_t until = cluster->now_ms + ms;
    while (cluster->now_ms < until) {
        int64_t rest = until - cluster->now_ms;
        advance(cluster, rest < HEARTBEAT_MS ? rest : HEARTBEAT_MS);
        for (const char *at = names; *at != '\0';) {
            char name[32];
            size_t length = strcspn(at, " ");
            ck_assert_uint_lt(length, sizeof name);
            memcpy(name, at, length);
            name[length] = '\0';
            ck_assert_int_eq(heartbeat(cluster, name), ERR_NONE);
            at += length + (at[length] == ' ');
        }
    }
}
