/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which ranks can share a forkserver. It ignores variables that nothing reads during imports and that
 * a worker gets before its program runs. All other variables count. */
#include "agent/launch/warm_key.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/contract.h"
#include "proto/base/cleanup.h"

/* Besides those that the contract owns. */
static const char *const identities[] = {
    "MASTER_ADDR",          "MASTER_PORT",
    "GLOO_SOCKET_IFNAME",   "NCCL_SOCKET_IFNAME",
    "MLFLOW_RUN_ID",        "MLFLOW_TRACKING_TOKEN",
    "PET_NNODES",           "PET_NODE_RANK",
    "PET_NPROC_PER_NODE",   "JAX_COORDINATOR_ADDRESS",
    "JAX_LOCAL_DEVICE_IDS", "TRACEPARENT",
    "TRACESTATE",
};

static bool is_identity(const char *variable)
{
    autofree char *name = xstrndup(variable, strcspn(variable, "="));
    bool identity = contract_owns(name);
    for (size_t i = 0; i < sizeof identities / sizeof identities[0]; i++) {
        identity = identity || strcmp(identities[i], name) == 0;
    }
    return identity;
}

/* The folders of a bundle belong to this attempt alone; a worker adds them to its path itself. */
static bool is_of_bundle(const char *variable, const char *logs)
{
    static const char name[] = "PYTHONPATH=";
    const char *path = variable + strlen(name);
    return strncmp(variable, name, strlen(name)) == 0 && strncmp(path, logs, strlen(logs)) == 0 &&
           path[strlen(logs)] == '/';
}

static void add_variable(struct warm_key *key, const char *variable)
{
    key->variables = xrealloc(key->variables, (key->variable_count + 2) * sizeof *key->variables);
    key->variables[key->variable_count++] = xstrdup(variable);
    key->variables[key->variable_count] = NULL;
}

static void make_hash(struct warm_key *key)
{
    autotext struct text all = {0};
    text_append_bytes(&all, key->python, strlen(key->python) + 1);
    for (size_t i = 0; i < key->variable_count; i++) {
        text_append_bytes(&all, key->variables[i], strlen(key->variables[i]) + 1);
    }
    text_printf(&all, "%lld %lld", (long long)key->uid, (long long)key->gid);
    for (size_t i = 0; i < key->group_count; i++) {
        text_printf(&all, " %lld", (long long)key->groups[i]);
    }
    hash_hex(all.bytes, all.length, key->hash);
}

static void add_variables(struct warm_key *key, char *const *env, size_t count, const char *logs)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_identity(env[i]) && !is_of_bundle(env[i], logs)) {
            add_variable(key, env[i]);
        }
    }
}

void warm_key_make(const struct launch *launch, struct warm_key *ret_key)
{
    struct warm_key key = {.python = xstrdup(launch->arguments[0]),
                           .ranks = launch->rank_count,
                           .uid = launch->uid,
                           .gid = launch->gid,
                           .group_count = launch->group_count};
    key.groups = xalloc(launch->group_count * sizeof *key.groups);
    for (size_t i = 0; i < launch->group_count; i++) {
        key.groups[i] = launch->groups[i];
    }
    add_variables(&key, launch->env, launch->env_count, launch->logs);
    for (size_t i = 0; i < launch->rank_count; i++) {
        add_variables(&key, launch->ranks[i].env, launch->ranks[i].env_count, launch->logs);
    }
    make_hash(&key);
    *ret_key = key;
}

void warm_key_finish(struct warm_key *key)
{
    for (size_t i = 0; i < key->variable_count; i++) {
        free(key->variables[i]);
    }
    free(key->variables);
    free(key->python);
    free(key->groups);
    *key = (struct warm_key){0};
}
