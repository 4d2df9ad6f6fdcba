/* SPDX-License-Identifier: Apache-2.0 */
/* New jobs that are made of the specs of others. */
#ifndef HTTP_RETRY_H
#define HTTP_RETRY_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/http/api/job_lookup.h"
#include "proto/base/err.h"

struct request;

/* Whether who asks may have a job of the request's job's spec. One that hides something is for who may change
 * that job: a program that is changed, or looked into, could show it. */
bool retry_allowed(struct request *request, const json_t *spec, struct err *err);

/* Submits a spec that was made of that job's, for who asks, as a submission is. Takes the spec over. */
bool retry_submit(struct request *request, const struct job_facts *job, json_t *spec, struct err *err);

/* Changes the spec of an array so that it has only these of its tasks. */
void retry_only(json_t *spec, const char *tasks);

#endif
