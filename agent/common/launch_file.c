/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and parses launch files. A parsed file has every field that its readers rely on, within its limits.
 * Unknown keys are ignored; they are for newer shims. contract.c and stage.c decide the content of a file. */
#include "agent/common/launch_file.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

/* --- writing -------------------------------------------------------------------------------------------- */

void launch_put(struct text *launch, const char *key, const char *value)
{
    text_append_bytes(launch, key, strlen(key) + 1);
    text_append_bytes(launch, value, strlen(value) + 1);
}

void launch_put_int(struct text *launch, const char *key, int64_t value)
{
    autofree char *number = xprintf("%lld", (long long)value);
    launch_put(launch, key, number);
}

void launch_put_env(struct text *launch, const char *name, const char *value)
{
    autofree char *pair = xprintf("%s=%s", name, value);
    launch_put(launch, "env", pair);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static void list_add(char ***list, size_t *count, char *text)
{
    if ((*count & (*count + 1)) == 0) { /* the array has room for 2^n entries, the last of them NULL */
        *list = xrealloc(*list, 2 * (*count + 1) * sizeof **list);
    }
    (*list)[(*count)++] = text;
    (*list)[*count] = NULL;
}

static bool rank_add(struct launch *launch, const char *value, struct err *err)
{
    int64_t number;
    if (!text_to_int(value, 0, LIMIT_GPUS - 1, &number) || launch->rank_count >= LIMIT_NODE_DEVICES) {
        return err_set(err, ERR_MALFORMED, "launch file: rank %.32s, after %zu others", value,
                       launch->rank_count);
    }
    launch->ranks = xrealloc(launch->ranks, (launch->rank_count + 1) * sizeof *launch->ranks);
    launch->ranks[launch->rank_count++] = (struct launch_rank){.number = (int)number};
    return true;
}

static bool group_add(struct launch *launch, const char *value, struct err *err)
{
    int64_t number;
    if (!text_to_int(value, 1, UINT32_MAX - 1, &number)) {
        return err_set(err, ERR_MALFORMED, "launch file: group %.32s", value);
    }
    launch->groups = xrealloc(launch->groups, (launch->group_count + 1) * sizeof *launch->groups);
    launch->groups[launch->group_count++] = (gid_t)number;
    return true;
}

static void env_add(struct launch *launch, char *value)
{
    if (launch->rank_count == 0) {
        list_add(&launch->env, &launch->env_count, value);
    } else {
        struct launch_rank *rank = &launch->ranks[launch->rank_count - 1];
        list_add(&rank->env, &rank->env_count, value);
    }
}

/* A variable is one of all ranks, wherever it stands. */
static bool secret_add(struct launch *launch, char *value, bool file, struct err *err)
{
    if (launch->secret_count == LIMIT_JOB_SECRETS || strchr(value, '=') == NULL) {
        return err_set(err, ERR_MALFORMED, "launch file: secret after %zu others", launch->secret_count);
    }
    launch->secrets[launch->secret_count++] = (struct launch_secret){.pair = value, .file = file};
    if (!file) {
        list_add(&launch->env, &launch->env_count, value);
    }
    return true;
}

/* The fields of a volume come in one order, the last one completes it. */
static bool volume_add(struct launch *launch, const char *key, const char *value, struct err *err)
{
    if (launch->volume_count == LAUNCH_VOLUMES) {
        return err_set(err, ERR_MALFORMED, "launch file: volume after %zu others", launch->volume_count);
    }
    struct launch_volume *volume = &launch->volumes[launch->volume_count];
    if (strcmp(key, "volume_from") == 0) {
        volume->from = value;
    } else if (strcmp(key, "volume_at") == 0) {
        volume->at = value;
    } else if (volume->from == NULL || volume->at == NULL) {
        return err_set(err, ERR_MALFORMED, "launch file: a volume without a path");
    } else {
        volume->read_only = strcmp(value, "0") != 0;
        launch->volume_count++;
    }
    return true;
}

static bool field_take(struct launch *launch, const char *key, char *value, struct err *err)
{
    const struct {
        const char *key;
        const char **text;
    } texts[] = {{"epoch", &launch->attempt_id}, {"logs", &launch->logs}, {"cwd", &launch->cwd},
                 {"cgroup", &launch->cgroup},    {"tmp", &launch->tmp},   {"image", &launch->image}};
    const struct {
        const char *key;
        int64_t *number;
        int64_t min, max;
    } numbers[] = {{"port_first", &launch->port_first, 1, 65535},
                   {"port_last", &launch->port_last, 1, 65535},
                   {"store_rank", &launch->store_rank, 0, LIMIT_GPUS - 1},
                   {"torchrun", &launch->torchrun, 0, 1},
                   {"log_limit", &launch->log_limit, LIMIT_STREAM_MIN_BYTES, LIMIT_STREAM_MAX_BYTES},
                   {"failed_grace_ms", &launch->failed_grace_ms, 0, LIMIT_GRACE_MS},
                   {"keep", &launch->keep, 0, 1},
                   {"uid", &launch->uid, 1, UINT32_MAX - 1},
                   {"gid", &launch->gid, 1, UINT32_MAX - 1},
                   {"secrets", &launch->secrets_wanted, 0, LIMIT_JOB_SECRETS},
                   {"seccomp", &launch->seccomp, 0, 1},
                   {"granted", &launch->granted, 0, LIMIT_NODE_DEVICES},
                   {"millicpus", &launch->millicpus, 0, LIMIT_CPUS * 1000LL},
                   {"memory_bytes", &launch->memory_bytes, 0, LIMIT_MEMORY_BYTES},
                   {"received", &launch->received_us, 0, INT64_MAX}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(key, texts[i].key) == 0) {
            *texts[i].text = value;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            return text_to_int(value, numbers[i].min, numbers[i].max, numbers[i].number) ||
                   err_set(err, ERR_MALFORMED, "launch file: %s is %.32s", key, value);
        }
    }
    if (strcmp(key, "arg") == 0) {
        list_add(&launch->arguments, &launch->argument_count, value);
    } else if (strcmp(key, "env") == 0) {
        env_add(launch, value);
    } else if (strcmp(key, "pattern") == 0 && launch->pattern_count < LAUNCH_PATTERNS) {
        launch->patterns[launch->pattern_count++] = value;
    } else if (strcmp(key, "hold") == 0 && launch->hold_count < LAUNCH_HOLDS) {
        launch->holds[launch->hold_count++] = value;
    } else if (strcmp(key, "secret") == 0 || strcmp(key, "secret_file") == 0) {
        return secret_add(launch, value, strcmp(key, "secret_file") == 0, err);
    } else if (strcmp(key, "volume_from") == 0 || strcmp(key, "volume_at") == 0 ||
               strcmp(key, "volume_read_only") == 0) {
        return volume_add(launch, key, value, err);
    } else if (strcmp(key, "group") == 0) {
        return group_add(launch, value, err);
    } else if (strcmp(key, "rank") == 0) {
        return rank_add(launch, value, err);
    }
    return true;
}

static bool fields_take(struct launch *launch, char *bytes, size_t size, struct err *err)
{
    const char *end = bytes + size;
    if (size == 0 || size > LIMIT_LAUNCH_BYTES || bytes[size - 1] != '\0') {
        return err_set(err, ERR_MALFORMED, "launch file: %zu bytes that do not end a field", size);
    }
    for (char *key = bytes; key < end;) {
        char *value = key + strlen(key) + 1;
        if (value >= end) {
            return err_set(err, ERR_MALFORMED, "launch file: %.32s has no value", key);
        }
        if (!field_take(launch, key, value, err)) {
            return false;
        }
        key = value + strlen(value) + 1;
    }
    return true;
}

static bool rank_known(const struct launch *launch, int64_t number)
{
    for (size_t i = 0; i < launch->rank_count; i++) {
        if (launch->ranks[i].number == number) {
            return true;
        }
    }
    return false;
}

static bool is_complete(const struct launch *launch, struct err *err)
{
    const char *missing = launch->attempt_id == NULL               ? "epoch"
                          : launch->logs == NULL                   ? "logs"
                          : launch->cwd == NULL                    ? "cwd"
                          : launch->argument_count == 0            ? "arg"
                          : launch->rank_count == 0                ? "rank"
                          : launch->port_last < launch->port_first ? "port_last"
                          : (launch->uid < 0) != (launch->gid < 0) ? "uid with its gid"
                                                                   : NULL;
    if (missing == NULL && launch->store_rank >= 0) {
        missing = launch->port_first == 0                   ? "port_first for store_rank"
                  : !rank_known(launch, launch->store_rank) ? "rank that store_rank names"
                                                            : NULL;
    }
    return missing == NULL || err_set(err, ERR_MALFORMED, "launch file: no %s", missing);
}

bool launch_parse(char *bytes, size_t size, struct launch *ret_launch, struct err *err)
{
    struct launch launch = {.bytes = bytes,
                            .failed_grace_ms = FAILED_GRACE_MS,
                            .store_rank = -1,
                            .uid = -1,
                            .gid = -1,
                            .log_limit = LIMIT_STREAM_BYTES};
    if (!fields_take(&launch, bytes, size, err) || !is_complete(&launch, err)) {
        launch_finish(&launch);
        return false;
    }
    *ret_launch = launch;
    return true;
}

void launch_finish(struct launch *launch)
{
    for (size_t i = 0; i < launch->rank_count; i++) {
        free(launch->ranks[i].env);
    }
    free(launch->ranks);
    free(launch->groups);
    free(launch->env);
    free(launch->arguments);
    free(launch->bytes);
    *launch = (struct launch){0};
}

const char *launch_variable(const struct launch *launch, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < launch->env_count; i++) {
        if (strncmp(launch->env[i], name, length) == 0 && launch->env[i][length] == '=') {
            return launch->env[i] + length + 1;
        }
    }
    return NULL;
}
