/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the launch file: read once, as one block of bytes into which all texts point. Every field that other
 * files rely on is present and within its limits. Unknown keys are ignored; they are for newer shims. The
 * file also builds the environment of a rank: the entries for all ranks, then those for this rank, then those
 * that the start adds. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

/* Reads the whole file, which must end with NUL. */
static bool bytes_read(struct launch *launch, size_t *ret_size, struct why *why)
{
    autoclose int fd = open(SHIM_LAUNCH_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return why_set(why, "launch file: %s", strerror(errno));
    }
    launch->bytes = xalloc(LIMIT_LAUNCH_BYTES + 1);
    size_t size = 0;
    ssize_t got;
    while ((got = read(fd, launch->bytes + size, LIMIT_LAUNCH_BYTES + 1 - size)) > 0) {
        size += (size_t)got;
    }
    if (got < 0) {
        return why_set(why, "launch file: %s", strerror(errno));
    }
    if (size == 0 || size > LIMIT_LAUNCH_BYTES || launch->bytes[size - 1] != '\0') {
        return why_set(why, "launch file: %zu bytes that do not end a field", size);
    }
    launch->bytes = xrealloc(launch->bytes, size);
    *ret_size = size;
    return true;
}

static void list_add(char ***list, size_t *count, char *text)
{
    if ((*count & (*count + 1)) == 0) { /* the array has room for 2^n entries, the last of them NULL */
        *list = xrealloc(*list, 2 * (*count + 1) * sizeof **list);
    }
    (*list)[(*count)++] = text;
    (*list)[*count] = NULL;
}

static bool rank_add(struct launch *launch, const char *value, struct why *why)
{
    int64_t number;
    if (!text_to_int(value, 0, LIMIT_GPUS - 1, &number) || launch->rank_count >= LIMIT_NODE_DEVICES) {
        return why_set(why, "launch file: rank %.32s, after %zu others", value, launch->rank_count);
    }
    launch->ranks = xrealloc(launch->ranks, (launch->rank_count + 1) * sizeof *launch->ranks);
    launch->ranks[launch->rank_count++] = (struct launch_rank){.number = (int)number};
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

static bool field_take(struct launch *launch, const char *key, char *value, struct why *why)
{
    const struct {
        const char *key;
        const char **text;
    } texts[] = {{"epoch", &launch->attempt_id},
                 {"logs", &launch->logs},
                 {"cwd", &launch->cwd},
                 {"cgroup", &launch->cgroup},
                 {"hold", &launch->hold}};
    const struct {
        const char *key;
        int64_t *number;
        int64_t min, max;
    } numbers[] = {{"port_first", &launch->port_first, 1, 65535},
                   {"port_last", &launch->port_last, 1, 65535},
                   {"store_rank", &launch->store_rank, 0, LIMIT_GPUS - 1},
                   {"torchrun", &launch->torchrun, 0, 1},
                   {"log_limit", &launch->log_limit, LIMIT_STREAM_MIN_BYTES, LIMIT_STREAM_MAX_BYTES},
                   {"failed_grace_ms", &launch->failed_grace_ms, 0, LIMIT_GRACE_MS}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(key, texts[i].key) == 0) {
            *texts[i].text = value;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            return text_to_int(value, numbers[i].min, numbers[i].max, numbers[i].number) ||
                   why_set(why, "launch file: %s is %.32s", key, value);
        }
    }
    if (strcmp(key, "arg") == 0) {
        list_add(&launch->arguments, &launch->argument_count, value);
    } else if (strcmp(key, "env") == 0) {
        env_add(launch, value);
    } else if (strcmp(key, "pattern") == 0 && launch->pattern_count < SHIM_PATTERNS) {
        launch->patterns[launch->pattern_count++] = value;
    } else if (strcmp(key, "rank") == 0) {
        return rank_add(launch, value, why);
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

static bool launch_complete(const struct launch *launch, struct why *why)
{
    const char *missing = launch->attempt_id == NULL               ? "epoch"
                          : launch->logs == NULL                   ? "logs"
                          : launch->cwd == NULL                    ? "cwd"
                          : launch->argument_count == 0            ? "arg"
                          : launch->rank_count == 0                ? "rank"
                          : launch->port_last < launch->port_first ? "port_last"
                                                                   : NULL;
    if (missing == NULL && launch->store_rank >= 0) {
        missing = launch->port_first == 0                   ? "port_first for store_rank"
                  : !rank_known(launch, launch->store_rank) ? "rank that store_rank names"
                                                            : NULL;
    }
    return missing == NULL || why_set(why, "launch file: no %s", missing);
}

bool launch_read(struct launch *launch, struct why *why)
{
    size_t size = 0;
    *launch = (struct launch){
        .failed_grace_ms = FAILED_GRACE_MS, .store_rank = -1, .log_limit = LIMIT_STREAM_BYTES};
    if (!bytes_read(launch, &size, why)) {
        return false;
    }
    char *end = launch->bytes + size;
    for (char *key = launch->bytes; key < end;) {
        char *value = key + strlen(key) + 1;
        if (value >= end) {
            return why_set(why, "launch file: %.32s has no value", key);
        }
        if (!field_take(launch, key, value, why)) {
            return false;
        }
        key = value + strlen(value) + 1;
    }
    return launch_complete(launch, why);
}

void launch_finish(struct launch *launch)
{
    for (size_t i = 0; i < launch->rank_count; i++) {
        free(launch->ranks[i].env);
    }
    free(launch->ranks);
    free(launch->env);
    free(launch->arguments);
    free(launch->bytes);
    *launch = (struct launch){0};
}

static char **entry_find(char **env, size_t count, const char *entry)
{
    size_t length = strcspn(entry, "=");
    for (size_t i = 0; i < count; i++) {
        if (strncmp(env[i], entry, length) == 0 && (env[i][length] == '=' || env[i][length] == '\0')) {
            return &env[i];
        }
    }
    return NULL;
}

/* Adds the entry. If its name is there already, the new one replaces it, or with `keep` the old one stays. */
static void entry_put(char **env, size_t *count, char *entry, bool keep)
{
    char **found = entry_find(env, *count, entry);
    if (found == NULL) {
        env[(*count)++] = entry;
    } else if (!keep) {
        *found = entry;
    }
}

char **launch_environment(const struct launch *launch, size_t rank, char *const *added)
{
    const struct launch_rank *own = &launch->ranks[rank];
    size_t added_count = 0, count = 0;
    while (added[added_count] != NULL) {
        added_count++;
    }
    char **env = xalloc((launch->env_count + own->env_count + added_count + 2) * sizeof *env);
    for (size_t i = 0; i < launch->env_count; i++) {
        entry_put(env, &count, launch->env[i], false);
    }
    for (size_t i = 0; i < own->env_count; i++) {
        entry_put(env, &count, own->env[i], false);
    }
    for (size_t i = 0; i < added_count; i++) {
        entry_put(env, &count, added[i], true);
    }
    env[count] = NULL;
    env[count + 1] = NULL; /* room for one more */
    return env;
}
