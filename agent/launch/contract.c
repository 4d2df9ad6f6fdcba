/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the environment contract: torchrun's variables for launch_mode=process, the per-node contract of the
 * Google and PAI platforms for launch_mode=node. Each variable is written once. The spec wins over defaults,
 * but never over the variables that tell a rank who it is. PATH contains the folder of the job's Python, so
 * that ranks find torchrun and other programs there; if that Python is of the job's own environment, its
 * folder comes first. PYTHONPATH contains the folders of the bundle. The shim adds MASTER_ADDR, MASTER_PORT
 * and the interface, which are known only at the start. */
#include "agent/launch/contract.h"

#include <string.h>

#include "agent/common/launch_file.h"
#include "agent/launch/runner.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/spec/tasks.h"

#define DEFAULT_PYTHON "python3" /* found on the PATH of the ranks */

/* The program of a rank of a function job; the folder of the runner is its argument. */
#define RUN_FUNCTION "import sys; sys.path.insert(0, sys.argv[1]); import gpuctl_runner; gpuctl_runner.main()"

/* Names that a spec cannot set. */
static const char *const own_names[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "ROLE_RANK",
    "ROLE_NAME",
    "ROLE_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "NODE_RANK",
    "NNODES",
    "NUM_NODES",
    "NPROC_PER_NODE",
    "CLUSTER_SPEC",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
};
static const char *const own_prefixes[] = {"GPUCTL_", "TORCHELASTIC_"};

bool contract_has_port(const struct contract *contract)
{
    return contract->order->gang || contract->spec->launch_mode == LAUNCH_NODE;
}

bool contract_holds_port(const struct contract *contract)
{
    return contract_has_port(contract) &&
           (contract->order->node_rank == 0 || contract->spec->launch_mode == LAUNCH_NODE);
}

bool contract_has_store(const struct contract *contract)
{
    return job_spec_is_function(contract->spec) && contract->spec->launch_mode == LAUNCH_PROCESS &&
           contract->order->gang && contract->order->node_rank == 0;
}

bool contract_owns(const char *name)
{
    bool own = false;
    for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++) {
        own = own || strcmp(own_names[i], name) == 0;
    }
    for (size_t i = 0; i < sizeof own_prefixes / sizeof own_prefixes[0]; i++) {
        own = own || strncmp(name, own_prefixes[i], strlen(own_prefixes[i])) == 0;
    }
    return own;
}

static bool is_own(const struct contract *contract, const char *name)
{
    if (strcmp(name, "MASTER_ADDR") == 0 || strcmp(name, "MASTER_PORT") == 0) {
        return contract_has_port(contract);
    }
    return contract_owns(name);
}

static bool spec_has(const struct contract *contract, const char *name)
{
    return json_object_get(contract->spec->env, name) != NULL;
}

static void put_int(struct text *launch, const char *name, int64_t value)
{
    autofree char *number = xprintf("%lld", (long long)value);
    launch_put_env(launch, name, number);
}

static void put_path(struct text *launch, const char *name, const char *folder, const char *file)
{
    autofree char *path = xprintf("%s/%s", folder, file);
    launch_put_env(launch, name, path);
}

static void put_default(const struct contract *contract, struct text *launch, const char *name,
                        const char *value)
{
    if (!spec_has(contract, name)) {
        launch_put_env(launch, name, value);
    }
}

static void put_default_int(const struct contract *contract, struct text *launch, const char *name,
                            int64_t value)
{
    autofree char *number = xprintf("%lld", (long long)value);
    put_default(contract, launch, name, number);
}

/* --- the command ---------------------------------------------------------------------------------------- */

static void write_runner(const struct contract *contract, const char *python, struct text *launch)
{
    launch_put(launch, "arg", python);
    launch_put(launch, "arg", "-c");
    launch_put(launch, "arg", RUN_FUNCTION);
    launch_put(launch, "arg", contract->runner);
    if (contract_has_store(contract)) {
        launch_put_int(launch, "store_rank", 0);
    }
}

/* The caller frees it. */
static char *python_of(const struct contract *contract)
{
    if (contract->environment != NULL) {
        return xprintf("%s/bin/python", contract->environment);
    }
    const char *agents =
        contract->python != NULL && contract->image == NULL ? contract->python : DEFAULT_PYTHON;
    return xstrdup(contract->spec->python != NULL ? contract->spec->python : agents);
}

static bool names_python(const char *word)
{
    return strcmp(word, "python") == 0 || strcmp(word, "python3") == 0;
}

bool contract_is_python(const struct contract *contract)
{
    const json_t *command = contract->spec->command;
    return job_spec_is_function(contract->spec) ||
           (json_array_size(command) > 1 && names_python(json_string_value(json_array_get(command, 0))));
}

#define FORM_WORDS 3

/* How many words of the command match the form; 0: it does not begin with the form. */
static size_t begins_with(const json_t *command, const char *const form[FORM_WORDS])
{
    size_t count = 0;
    for (; count < FORM_WORDS && form[count] != NULL; count++) {
        const char *word = json_string_value(json_array_get(command, count));
        bool python = word != NULL && names_python(word) && names_python(form[count]);
        if (word == NULL || (!python && strcmp(word, form[count]) != 0)) {
            return 0;
        }
    }
    return count;
}

static size_t words_of_accelerate(const json_t *command)
{
    static const char *const forms[][FORM_WORDS] = {
        {"accelerate", "launch"}, {"accelerate-launch"}, {"python", "-m", "accelerate.commands.launch"}};
    size_t count = 0;
    for (size_t i = 0; count == 0 && i < sizeof forms / sizeof forms[0]; i++) {
        count = begins_with(command, forms[i]);
    }
    return count;
}

static void write_command(const struct contract *contract, struct text *launch)
{
    const struct job_spec *spec = contract->spec;
    autofree char *python = python_of(contract);
    bool as_given =
        contract->image != NULL && spec->python == NULL; /* an image may have only one of both names */
    if (job_spec_is_function(spec)) {
        write_runner(contract, python, launch);
        return;
    }
    size_t index, said = words_of_accelerate(spec->command);
    const json_t *word;
    if (said > 0) {
        autofree char *program = xprintf("%s/" RUNNER_ACCELERATE_FILE, contract->runner);
        launch_put(launch, "arg", python);
        launch_put(launch, "arg", program);
    }
    json_array_foreach (spec->command, index, word) {
        const char *text = json_string_value(word);
        if (index >= said) {
            launch_put(launch, "arg", index == 0 && names_python(text) && !as_given ? python : text);
        }
    }
}

/* --- what all ranks share ------------------------------------------------------------------------------- */

static bool path_has(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    for (const char *at = path; at != NULL;) {
        const char *end = strchrnul(at, ':');
        if ((size_t)(end - at) == length && strncmp(at, folder, length) == 0) {
            return true;
        }
        at = *end == ':' ? end + 1 : NULL;
    }
    return false;
}

/* The given PATH, preceded by the folder of the job's Python unless it contains that folder already. */
static char *path_with_python(const struct contract *contract, const char *path)
{
    autofree char *python = python_of(contract);
    const char *slash = strrchr(python, '/');
    if (python[0] != '/' || slash == python) {
        return xprintf("%s", path);
    }
    autofree char *folder = xstrndup(python, (size_t)(slash - python));
    return path_has(path, folder) ? xprintf("%s", path) : xprintf("%s:%s", folder, path);
}

static void write_inherited(const struct contract *contract, struct text *launch)
{
    for (const char *const *at = contract->inherited; at != NULL && *at != NULL; at++) {
        const char *equals = strchr(*at, '=');
        autofree char *name = xstrndup(*at, (size_t)(equals - *at));
        autofree char *path = strcmp(name, "PATH") == 0 ? path_with_python(contract, equals + 1) : NULL;
        put_default(contract, launch, name, path != NULL ? path : equals + 1);
    }
}

/* Names that the spec may set, and to which the agent adds. */
static bool is_shared(const struct contract *contract, const char *name)
{
    if (strcmp(name, "PATH") == 0 || strcmp(name, "VIRTUAL_ENV") == 0) {
        return contract->environment != NULL;
    }
    return strcmp(name, "PYTHONPATH") == 0 && contract->spec->bundle.blob != NULL;
}

/* The environment's programs come first, whatever PATH the job brings along. */
static void write_environment(const struct contract *contract, struct text *launch)
{
    if (contract->environment == NULL) {
        return;
    }
    const char *path = json_string_value(json_object_get(contract->spec->env, "PATH"));
    launch_put_env(launch, "VIRTUAL_ENV", contract->environment);
    if (path != NULL) {
        autofree char *longer = path_with_python(contract, path);
        launch_put_env(launch, "PATH", longer);
    }
}

/* The folders of the bundle, then the job's own. */
static void write_python_path(const struct contract *contract, struct text *launch)
{
    const struct job_bundle *bundle = &contract->spec->bundle;
    const char *own = json_string_value(json_object_get(contract->spec->env, "PYTHONPATH"));
    autotext struct text path = {0};
    size_t index;
    const json_t *folder;
    if (bundle->blob == NULL) {
        return;
    }
    text_printf(&path, "%s/" SHIM_WORK_FOLDER, contract->logs);
    json_array_foreach (bundle->python_path, index, folder) {
        if (strcmp(json_string_value(folder), ".") != 0) {
            text_printf(&path, ":%s/" SHIM_WORK_FOLDER "/%s", contract->logs, json_string_value(folder));
        }
    }
    if (own != NULL && *own != '\0') {
        text_printf(&path, ":%s", own);
    }
    launch_put_env(launch, "PYTHONPATH", path.bytes);
}

static void write_spec(const struct contract *contract, struct text *launch)
{
    const char *name;
    json_t *value;
    json_object_foreach (json_object_get(contract->spec->json, "env"), name, value) {
        if (json_is_string(value) && !is_own(contract, name) && !is_shared(contract, name)) {
            launch_put_env(launch, name, json_string_value(value));
        }
    }
}

static void write_devices(const struct contract *contract, struct text *launch)
{
    if (contract->slots) {
        launch_put_env(launch, "CUDA_VISIBLE_DEVICES", "");
        put_default(contract, launch, "ACCELERATE_USE_CPU", "true");
        return;
    }
    launch_put_env(launch, "CUDA_VISIBLE_DEVICES", contract->visible_devices);
    launch_put_env(launch, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    if (contract->no_peer_access) {
        put_default(contract, launch, "NCCL_P2P_DISABLE", "1");
        put_default(contract, launch, "NCCL_IB_DISABLE", "1");
    }
}

/* Writes GPUCTL_SWEEP_LR for the name "lr". */
static void write_sweep_value(const struct task_value *value, struct text *launch)
{
    autofree char *name = xprintf("GPUCTL_SWEEP_%s", value->name);
    for (char *at = name; *at != '\0'; at++) {
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    }
    launch_put_env(launch, name, value->text);
}

static void write_task(const struct contract *contract, struct text *launch)
{
    const struct order *order = contract->order;
    struct task_values values;
    launch_put_env(launch, "GPUCTL_ARRAY_ID", order->array_id);
    put_int(launch, "GPUCTL_ARRAY_TASK", order->task);
    put_int(launch, "GPUCTL_ARRAY_TASKS", order->tasks);
    task_values_make(contract->spec->sweep, order->tasks, order->task, &values);
    for (size_t i = 1; i < values.count; i++) {
        write_sweep_value(&values.items[i], launch);
    }
    task_values_finish(&values);
}

static void write_ours(const struct contract *contract, struct text *launch)
{
    const struct order *order = contract->order;
    launch_put_env(launch, "GPUCTL_JOB_ID", order->job_id);
    if (order->array_id != NULL) {
        write_task(contract, launch);
    }
    put_int(launch, "GPUCTL_ATTEMPT", order->attempt);
    autofree char *attempt_id = xprintf("%llu", (unsigned long long)order->attempt_id);
    launch_put_env(launch, "GPUCTL_EPOCH", attempt_id);
    launch_put_env(launch, "GPUCTL_NODE", contract->node);
    if (contract->image != NULL) {
        launch_put_env(launch, "GPUCTL_IMAGE", contract->image);
    }
    put_int(launch, "GPUCTL_NODE_RANK", order->node_rank);
    put_int(launch, "GPUCTL_NODES", order->nodes);
    if (order->millicpus > 0) {
        autofree char *cpus = xprintf("%.15g", (double)order->millicpus / 1000);
        launch_put_env(launch, "GPUCTL_CPUS", cpus);
        put_int(launch, "GPUCTL_MEMORY_BYTES", order->memory_bytes);
    }
    put_path(launch, "GPUCTL_SOCKET", contract->run, SHIM_RANK_SOCKET);
    if (contract->checkpoint != NULL) {
        launch_put_env(launch, "GPUCTL_CHECKPOINT_DIR", contract->checkpoint);
    } else {
        put_path(launch, "GPUCTL_CHECKPOINT_DIR", contract->logs, SHIM_CHECKPOINT_FOLDER);
    }
    launch_put_env(launch, "GPUCTL_WATCH", contract->runner);
    put_default(contract, launch, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
}

/* Both are of one span: a job that names its own parent gets neither. */
static void write_trace(const struct contract *contract, struct text *launch)
{
    const struct order *order = contract->order;
    if (order->traceparent != NULL && !spec_has(contract, "TRACEPARENT")) {
        launch_put_env(launch, "TRACEPARENT", order->traceparent);
        if (order->tracestate != NULL && !spec_has(contract, "TRACESTATE")) {
            launch_put_env(launch, "TRACESTATE", order->tracestate);
        }
    }
}

static bool tracks_here(const struct contract *contract)
{
    return contract->order->tracking_token != NULL && !spec_has(contract, "MLFLOW_TRACKING_URI");
}

/* A job that names its own tracking server gets none of these variables; a job that names a run gets no
 * run. */
static void write_tracking(const struct contract *contract, struct text *launch)
{
    const struct order *order = contract->order;
    if (!tracks_here(contract)) {
        return;
    }
    launch_put_env(launch, "MLFLOW_TRACKING_URI", contract->url);
    put_default(contract, launch, "MLFLOW_SYSTEM_METRICS_NODE_ID", contract->node);
    if (!spec_has(contract, "MLFLOW_TRACKING_USERNAME")) {
        put_default(contract, launch, "MLFLOW_TRACKING_TOKEN", order->tracking_token);
    }
    if (contract->cacert != NULL) {
        put_default(contract, launch, "MLFLOW_TRACKING_SERVER_CERT_PATH", contract->cacert);
    }
    if (order->tracking_run_id != NULL && !spec_has(contract, "MLFLOW_RUN_ID")) {
        launch_put_env(launch, "MLFLOW_RUN_ID", order->tracking_run_id);
        launch_put_env(launch, "GPUCTL_RUN_ID",
                       order->tracking_run_id); /* MLflow's client deletes MLFLOW_RUN_ID */
    }
}

/* A command's output appears at once. The runner of functions does so itself, at less cost. */
static void write_kind(const struct contract *contract, struct text *launch)
{
    if (!job_spec_is_function(contract->spec)) {
        put_default(contract, launch, "PYTHONUNBUFFERED", "1");
        return;
    }
    put_path(launch, "GPUCTL_FUNCTION", contract->logs, SHIM_FUNCTION_FILE);
    put_path(launch, "GPUCTL_RESULT_DIR", contract->logs, SHIM_RESULTS_FOLDER);
    if (contract->spec->function.modules != NULL) {
        put_path(launch, "GPUCTL_MODULES", contract->logs, SHIM_MODULES_FILE);
    }
}

/* The file for the findings of gpuctl_watch.py in the rank. */
static void write_note_file(const struct contract *contract, int64_t rank, struct text *launch)
{
    if (contract->order->gang) {
        autofree char *name = xprintf(SHIM_ERRORS_FOLDER "/%lld" SHIM_NOTE_ENDING, (long long)rank);
        put_path(launch, "GPUCTL_NOTE_FILE", contract->logs, name);
    }
}

char *contract_kept_folder(int64_t rank)
{
    return xprintf("%lld.%s", (long long)rank, stream_text(STREAM_FILES));
}

static void write_kept_folder(const struct contract *contract, int64_t rank, struct text *launch)
{
    autofree char *name = contract_kept_folder(rank);
    put_path(launch, "GPUCTL_OUTPUT_DIR", contract->logs, name);
}

static void write_error_file(const struct contract *contract, int64_t rank, struct text *launch)
{
    autofree char *name = xprintf(SHIM_ERRORS_FOLDER "/%lld.json", (long long)rank);
    put_path(launch, "TORCHELASTIC_ERROR_FILE", contract->logs, name);
}

/* To one rank a node: that MLflow's client shall measure the node into a run that is not the controller's for
 * this attempt, if it can (gpuctl_mlflow.py). What goes into that run the agent measures itself. */
static void write_measuring(const struct contract *contract, struct text *launch)
{
    if (job_spec_is_function(contract->spec) && tracks_here(contract)) {
        launch_put_env(launch, "GPUCTL_SYSTEM_METRICS", "1");
    }
}

/* --- launch_mode=process -------------------------------------------------------------------------------- */

static void write_torchrun(const struct contract *contract, struct text *launch)
{
    const struct order *order = contract->order;
    put_int(launch, "WORLD_SIZE", order->world);
    put_int(launch, "LOCAL_WORLD_SIZE", order->local_ranks);
    put_int(launch, "GROUP_RANK", order->node_rank);
    put_int(launch, "GROUP_WORLD_SIZE", order->nodes);
    put_int(launch, "NODE_RANK", order->node_rank);
    launch_put_env(launch, "ROLE_NAME", "default");
    put_int(launch, "ROLE_WORLD_SIZE", order->world);
    launch_put_env(launch, "TORCHELASTIC_RUN_ID", order->job_id);
    launch_put_env(launch, "TORCHELASTIC_USE_AGENT_STORE", "False");
    put_int(launch, "TORCHELASTIC_RESTART_COUNT", order->attempt - 1);
    put_int(launch, "TORCHELASTIC_MAX_RESTARTS", contract->spec->retries);
    if (order->local_ranks > 1) {
        put_default(contract, launch, "OMP_NUM_THREADS", "1");
    }
    if (order->gang) { /* for gpuctl_watch.py, because the program may change the others */
        put_int(launch, "GPUCTL_WORLD_SIZE", order->world);
    }
    if (!contract_has_port(
            contract)) { /* for programs that make a group of one: port 0 lets their store take any port */
        put_default(contract, launch, "MASTER_ADDR", "127.0.0.1");
        put_default(contract, launch, "MASTER_PORT", "0");
    }
}

static void write_rank(const struct contract *contract, int64_t local_rank, struct text *launch)
{
    int64_t rank = contract->order->first_rank + local_rank;
    launch_put_int(launch, "rank", rank);
    put_int(launch, "RANK", rank);
    put_int(launch, "LOCAL_RANK", local_rank);
    put_int(launch, "ROLE_RANK", rank);
    put_int(launch, "GPUCTL_RANK", rank);
    write_kept_folder(contract, rank, launch);
    if (!contract->slots) { /* else each JAX process would take all GPUs of the node */
        put_default_int(contract, launch, "JAX_LOCAL_DEVICE_IDS", local_rank);
    }
    write_error_file(contract, rank, launch);
    write_note_file(contract, rank, launch);
    if (local_rank == 0) {
        write_measuring(contract, launch);
    }
    if (rank == 0 && contract_has_store(contract)) {
        put_int(launch, "GPUCTL_STORE_FD", SHIM_STORE_FD);
    }
}

/* --- launch_mode=node ----------------------------------------------------------------------------------- */

/* A list of nodes as patterns, which the shim replaces by addresses with ports. */
static json_t *nodes_from(int64_t first, int64_t count)
{
    json_t *nodes = json_array();
    for (int64_t i = first; i < count; i++) {
        json_array_append_new(nodes, json_sprintf("@%lld", (long long)i));
    }
    return nodes;
}

/* The nodes by role: the first node under `first`, the others under "worker". */
static json_t *cluster_of(const struct order *order, const char *first)
{
    json_t *cluster = json_pack("{s:o}", first, nodes_from(0, 1));
    if (order->nodes > 1) {
        json_object_set_new(cluster, "worker", nodes_from(1, order->nodes));
    }
    return cluster;
}

static json_t *task_of(const struct order *order, const char *first)
{
    return json_pack("{s:s, s:I}", "type", order->node_rank == 0 ? first : "worker", "index",
                     (json_int_t)(order->node_rank == 0 ? 0 : order->node_rank - 1));
}

static void put_pattern(struct text *launch, const char *name, const json_t *value)
{
    autofree char *text = json_text(value);
    autofree char *pattern = xprintf("%s=%s", name, text);
    launch_put(launch, "pattern", pattern);
}

/* The variable of Google's AI Platform for each replica, and the one that TensorFlow reads. */
static void write_cluster(const struct contract *contract, struct text *launch)
{
    const struct order *order = contract->order;
    autojson json_t *spec =
        json_pack("{s:o, s:s, s:o, s:s}", "cluster", cluster_of(order, "master"), "environment", "cloud",
                  "task", task_of(order, "master"), "job", order->job_id);
    autojson json_t *config =
        json_pack("{s:o, s:o}", "cluster", cluster_of(order, "chief"), "task", task_of(order, "chief"));
    put_pattern(launch, "CLUSTER_SPEC", spec);
    if (!spec_has(contract, "TF_CONFIG")) {
        put_pattern(launch, "TF_CONFIG", config);
    }
}

/* Values that torchrun uses for options it is not given; the shim adds the master. */
static void write_options_of_torchrun(const struct contract *contract, struct text *launch)
{
    const struct order *order = contract->order;
    put_default_int(contract, launch, "PET_NNODES", order->nodes);
    put_default_int(contract, launch, "PET_NODE_RANK", order->node_rank);
    put_default_int(contract, launch, "PET_NPROC_PER_NODE", order_units(order));
    launch_put_int(launch, "torchrun", 1);
}

static void write_node(const struct contract *contract, struct text *launch)
{
    const struct order *order = contract->order;
    put_int(launch, "WORLD_SIZE", order->nodes);
    put_int(launch, "RANK", order->node_rank);
    put_int(launch, "NODE_RANK", order->node_rank);
    put_int(launch, "NNODES", order->nodes);
    put_int(launch, "NUM_NODES", order->nodes);
    put_int(launch, "NPROC_PER_NODE", order_units(order));
    put_int(launch, "LOCAL_WORLD_SIZE", order_units(order));
    put_int(launch, "GPUCTL_RANK", order->node_rank);
    write_cluster(contract, launch);
    write_options_of_torchrun(contract, launch);
    launch_put_int(launch, "rank", order->node_rank);
    write_kept_folder(contract, order->node_rank, launch);
    if (job_spec_is_function(
            contract->spec)) { /* the launcher in a command gives its workers their own files */
        write_error_file(contract, order->node_rank, launch);
        write_measuring(contract, launch);
    }
}

void contract_write(const struct contract *contract, struct text *launch)
{
    write_command(contract, launch);
    write_inherited(contract, launch);
    write_spec(contract, launch);
    write_environment(contract, launch);
    write_python_path(contract, launch);
    write_devices(contract, launch);
    write_ours(contract, launch);
    write_tracking(contract, launch);
    write_trace(contract, launch);
    write_kind(contract, launch);
    if (contract->spec->launch_mode == LAUNCH_NODE) {
        write_node(contract, launch);
        return;
    }
    write_torchrun(contract, launch);
    for (int64_t i = 0; i < contract->order->local_ranks; i++) {
        write_rank(contract, i, launch);
    }
}
