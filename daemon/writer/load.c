/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the live rows from the store into a new core. The core interprets the rows. */
#include "daemon/writer/load.h"

#include <string.h>

#include "daemon/writer/spec_environment.h"
#include "proto/base/text/json.h"
#include "proto/spec/jobspec.h"

/* Rows that the core loads unchanged. */
#define DEFINE_LOAD(noun)                                                                                    \
    static bool load_##noun(const struct noun##_row *row, void *closure, struct err *err)                    \
    {                                                                                                        \
        core_load_##noun(closure, row);                                                                      \
        return true;                                                                                         \
    }
DEFINE_LOAD(history)
DEFINE_LOAD(usage)
DEFINE_LOAD(node)
DEFINE_LOAD(window)
DEFINE_LOAD(webhook)
DEFINE_LOAD(delivery)
DEFINE_LOAD(array)
DEFINE_LOAD(dependency)
DEFINE_LOAD(attempt)
DEFINE_LOAD(member)

static bool load_limits(const struct limits_row *row, void *closure, struct err *err)
{
    struct account_limits limits;
    autojson json_t *json = json_parse(row->limits, strlen(row->limits), err);
    if (json == NULL || !account_limits_decode(json, row->kind, &limits, err)) {
        return false;
    }
    core_load_limits(closure, row, &limits);
    account_limits_finish(&limits);
    return true;
}

static bool load_job(const struct job_birth *birth, const struct job_life *life, void *closure,
                     struct err *err)
{
    struct job_spec spec;
    json_t *json = json_parse(birth->spec, birth->spec_length, err);
    if (json == NULL || !job_spec_decode(json, 0, &spec, err)) {
        return false;
    }
    struct spec_environment environment;
    bool needs = spec_environment_of(&spec, birth->owner, &environment);
    core_load_job(closure, birth, life, &spec, needs ? &environment.core : NULL);
    spec_environment_finish(&environment);
    job_spec_finish(&spec);
    return true;
}

bool load_live(struct store *store, struct core *core, struct err *err)
{
    const struct store_visitor visitor = {.history = load_history,
                                          .limits = load_limits,
                                          .usage = load_usage,
                                          .node = load_node,
                                          .window = load_window,
                                          .webhook = load_webhook,
                                          .delivery = load_delivery,
                                          .job = load_job,
                                          .array = load_array,
                                          .dependency = load_dependency,
                                          .attempt = load_attempt,
                                          .member = load_member,
                                          .closure = core};
    return store_load_live(store, &visitor, err);
}
