/* SPDX-License-Identifier: Apache-2.0 */
/* The format of the launch file: the file can read back all it writes. contract.c and stage.c decide its
 * content. */
#include "agent/launch/launch.h"

#include <stdlib.h>
#include <string.h>

#include "agent/output/rank_file.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

#define VISIBLE_DEVICES "CUDA_VISIBLE_DEVICES="

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

static void add_number(int64_t **numbers, size_t *count, const char *text)
{
    int64_t number;
    if (text_to_int(text, 0, INT64_MAX, &number)) {
        *numbers = xrealloc(*numbers, (*count + 1) * sizeof **numbers);
        (*numbers)[(*count)++] = number;
    }
}

static void read_pair(const char *key, const char *value, struct launch_facts *facts)
{
    if (strcmp(key, "rank") == 0) {
        add_number(&facts->ranks, &facts->rank_count, value);
    } else if (strcmp(key, "env") == 0 && strncmp(value, VISIBLE_DEVICES, strlen(VISIBLE_DEVICES)) == 0) {
        free(facts->devices);
        facts->devices = xstrdup(value + strlen(VISIBLE_DEVICES));
    } else if (strcmp(key, "cgroup") == 0) {
        free(facts->cgroup);
        facts->cgroup = xstrdup(value);
    } else if (strcmp(key, "port_first") == 0) {
        facts->holds_port = true;
    } else if (strcmp(key, "granted") == 0) {
        text_to_int(value, 1, LIMIT_NODE_DEVICES, &facts->granted);
    } else if (strcmp(key, "received") == 0) {
        text_to_int(value, 1, INT64_MAX, &facts->received_us);
    }
}

bool launch_read(const char *run_folder, struct launch_facts *ret_facts, struct err *err)
{
    autofree char *path = xprintf("%s/%s", run_folder, SHIM_LAUNCH_FILE);
    size_t length;
    autofree char *bytes = rank_file_read(run_folder, NULL, SHIM_LAUNCH_FILE, LIMIT_LAUNCH_BYTES, &length);
    if (bytes == NULL) {
        return err_set(err, ERR_NOT_FOUND, "there is no %s", path);
    }
    struct launch_facts facts = {0};
    const char *at = bytes, *end = bytes + length;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (value >= end || value + strlen(value) >= end) {
            launch_facts_finish(&facts);
            return err_set(err, ERR_MALFORMED, "%s is cut short", path);
        }
        read_pair(at, value, &facts);
        at = value + strlen(value) + 1;
    }
    if (facts.rank_count == 0) { /* ranks come last, so the writer was killed */
        launch_facts_finish(&facts);
        return err_set(err, ERR_MALFORMED, "%s is cut short", path);
    }
    *ret_facts = facts;
    return true;
}

void launch_facts_finish(struct launch_facts *facts)
{
    free(facts->ranks);
    free(facts->devices);
    free(facts->cgroup);
    *facts = (struct launch_facts){0};
}
