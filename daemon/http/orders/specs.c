/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a small ring of decoded job specs, so that a job which starts at once is not read and parsed again
 * for its order. The ring has few entries, and small ones only. The store has all specs. */
#include "daemon/http/orders/specs.h"

#include <stdlib.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

struct specs {
    struct reader *reader;
    struct {
        int64_t job_key; /* 0: empty */
        json_t *spec;
    } ring[LIMIT_SPECS_KEPT];
    size_t next;
};

struct specs *specs_create(struct reader *reader)
{
    struct specs *specs = xzalloc(sizeof *specs);
    specs->reader = reader;
    return specs;
}

void specs_destroy(struct specs *specs)
{
    if (specs == NULL) {
        return;
    }
    for (size_t i = 0; i < LIMIT_SPECS_KEPT; i++) {
        json_decref(specs->ring[i].spec);
    }
    free(specs);
}

void specs_keep(struct specs *specs, int64_t job_key, json_t *spec, size_t length)
{
    if (length > LIMIT_SPEC_KEPT_BYTES) {
        return;
    }
    json_decref(specs->ring[specs->next].spec);
    specs->ring[specs->next].job_key = job_key;
    specs->ring[specs->next].spec = json_incref(spec);
    specs->next = (specs->next + 1) % LIMIT_SPECS_KEPT;
}

json_t *specs_get(struct specs *specs, int64_t job_key, struct err *err)
{
    for (size_t i = 0; i < LIMIT_SPECS_KEPT; i++) {
        if (specs->ring[i].job_key == job_key) {
            return json_incref(specs->ring[i].spec);
        }
    }
    autorows struct rows rows = reader_job_by_key(specs->reader, job_key, err);
    struct job_record job;
    if (!rows_job(&rows, &job)) {
        if (!rows.failed) {
            err_set(err, ERR_INTERNAL, "an order names a job that is not in the store");
        }
        return NULL;
    }
    json_t *spec = json_parse(job.birth.spec, job.birth.spec_length, err);
    if (spec != NULL) {
        specs_keep(specs, job_key, spec, job.birth.spec_length);
    }
    return spec;
}

const char *specs_variable(const json_t *spec, const char *name)
{
    return json_string_value(json_object_get(json_object_get(spec, "env"), name));
}
