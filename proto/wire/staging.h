/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a job needs on a node before it may be placed there: an environment and blobs. Equal needs
 * have the same key, so a node that is ready for one job is ready for all jobs with that key. */
#ifndef PROTO_STAGING_H
#define PROTO_STAGING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"
#include "proto/spec/jobspec.h"

/* All strings are borrowed from json, which the staging owns. */
struct staging {
    json_t *json;
    const char *key;          /* 64 lower-case hex digits: SHA-256 of all other members */
    const char *requirements; /* SHA-256 in hex of a blob, a requirements file of pip; NULL: no environment */
    const char *python_version; /* MAJOR.MINOR that the environment must have; NULL: the node's own */
    const char *python;         /* the job's interpreter; NULL: the agent's */
    const char **blobs;         /* SHA-256 in hex, sorted and unique; includes requirements; owned */
    size_t blob_count;
};

/* The needs of a spec as JSON with their key; NULL when the spec needs nothing. New reference. */
json_t *staging_of_spec(const struct job_spec *spec);

/* The SHA-256 in hex of the requirements; the spec must have an environment. */
void staging_requirements_hash(const struct job_spec *spec, char out[65]);

/* Appends the inline requirements of the spec, one line each. */
struct text;
void staging_requirements_text(const struct job_spec *spec, struct text *out);

/* Takes over json in any case; ERR_FIELD names the member. Unknown members are ignored. */
bool staging_decode(json_t *json, struct staging *ret_staging, struct err *err);
void staging_finish(struct staging *staging);

#endif
