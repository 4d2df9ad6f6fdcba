/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a contract under test from its spec to its launch file, and reads that file. */
#include "tests/unit/agent/launch/contract_rig.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

static const int64_t two_devices[] = {1, 3};

static void spec_from(struct job_spec *spec, const char *members)
{
    struct err err = {0};
    autofree char *text = strdup(members);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    json_t *json = json_parse(text, strlen(text), &err);
    ck_assert_msg(json != NULL, "%s", err.text);
    ck_assert_msg(job_spec_decode(json, 0, spec, &err), "%s", err.text);
}

struct written *written_begin(const char *members)
{
    struct written *written = calloc(1, sizeof *written);
    spec_from(&written->spec, members);
    written->order = (struct order){.attempt_id = 4294967297,
                                    .phase = ORDER_PREPARE,
                                    .job_id = "jjjjjjjjjjjjjjjj",
                                    .attempt = 2,
                                    .node_rank = 1,
                                    .nodes = 2,
                                    .first_rank = 2,
                                    .local_ranks = 2,
                                    .world = 4,
                                    .devices = two_devices,
                                    .device_count = 2,
                                    .gang = true};
    written->contract = (struct contract){.order = &written->order,
                                          .spec = &written->spec,
                                          .node = "alpha",
                                          .visible_devices = "GPU-b,GPU-d",
                                          .logs = "/state",
                                          .run = "/run/5",
                                          .runner = "/state/runner/0123456789abcdef"};
    return written;
}

void written_end(struct written *written)
{
    job_spec_finish(&written->spec);
    text_finish(&written->launch);
    free(written);
}

const char *written_variable(const struct written *written, int64_t rank, const char *name)
{
    const char *found = NULL;
    int64_t section = -1;
    const char *last = written->launch.bytes + written->launch.length;
    for (const char *key = written->launch.bytes; key < last;) {
        const char *value = key + strlen(key) + 1;
        if (strcmp(key, "rank") == 0) {
            section = strtoll(value, NULL, 10);
        }
        size_t length = strlen(name);
        if (strcmp(key, "env") == 0 && section == rank && strncmp(value, name, length) == 0 &&
            value[length] == '=') {
            ck_assert_msg(found == NULL, "%s is there twice", name);
            found = value + length + 1;
        }
        key = value + strlen(value) + 1;
    }
    return found;
}

void written_assert(const struct written *written, int64_t rank, const char *name, const char *expected,
                    int line)
{
    const char *actual = written_variable(written, rank, name);
    ck_assert_msg(actual != NULL, "line %d: %s is missing", line, name);
    ck_assert_msg(strcmp(actual, expected) == 0, "line %d: %s is \"%s\", not \"%s\"", line, name, actual,
                  expected);
}
void written_track(struct written *written)
{
    written->order.tracking_token = "gcr_1";
    written->order.tracking_run_id = "0f";
    written->contract.url = "http://c:1";
    contract_write(&written->contract, &written->launch);
}

void written_smuggle(struct written *written, const char *name)
{
    json_object_set_new(json_object_get(written->spec.json, "env"), name, json_string("smuggled"));
}

const char *written_argument(const struct written *written)
{
    ck_assert_str_eq(written->launch.bytes, "arg");
    return written->launch.bytes + strlen("arg") + 1;
}
