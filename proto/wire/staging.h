/* SPDX-License-Identifier: Apache-2.0 */
/* What a job needs on a node before it may be placed there: an environment or an image, blobs and inputs.
 * Equal needs have the same key, so a node that is ready for one job is ready for all jobs with that key. */
#ifndef PROTO_STAGING_H
#define PROTO_STAGING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"
#include "proto/spec/jobspec.h"

struct staging_input {
    const char *url;
    const char *sha256; /* that its content must have; or NULL */
    const char *secret; /* name of the secret with its credentials; or NULL */
    const char *value;  /* of the secret, in base64; NULL: there is none */
};

/* All strings are borrowed from json, which the staging owns. */
struct staging {
    json_t *json;
    const char *key;          /* 64 lower-case hex digits: SHA-256 of all other members */
    const char *requirements; /* SHA-256 in hex of a blob, a requirements file of pip; NULL: no environment */
    const char *python_version; /* MAJOR.MINOR that the environment must have; NULL: the node's own */
    const char *python;         /* the job's interpreter; NULL: the agent's */
    const char *image;          /* of a container, with its digest; NULL: none */
    const char *worker_image;   /* another image that it needs; NULL: none */
    const char *image_secret;   /* name of the secret with which they are pulled; NULL: none */
    const char *image_auth;     /* the value of that secret in base64; NULL: none, or it is gone */
    const char **blobs;         /* SHA-256 in hex, sorted and unique; includes requirements; owned */
    size_t blob_count;
    struct staging_input *inputs; /* owned */
    size_t input_count;
    const char *owner, *project; /* whose secrets inputs and image name; NULL: they name none */
};

/* The needs of a spec as JSON with their key; NULL when the spec needs nothing. The owner of the job counts
 * where its inputs or its image name secrets, whose values are not part of it. New reference. */
json_t *staging_of_spec(const struct job_spec *spec, const char *owner);

/* The parts of such needs that take a node long: images, the requirements with their Python, and each
 * input. Their keys, of 64 lower-case hex digits, are separated by spaces; equal parts of different needs
 * have equal keys. NULL: there are none. The caller frees it. */
char *staging_part_keys(const json_t *needs);

/* Whether inputs of the spec may change at their sources: all that it needs is there, and may be old. */
bool staging_is_unpinned(const struct job_spec *spec);

/* The SHA-256 in hex of the requirements; the spec must have an environment. */
void staging_requirements_hash(const struct job_spec *spec, char out[65]);

/* Appends the inline requirements of the spec, one line each. */
struct text;
void staging_requirements_text(const struct job_spec *spec, struct text *out);

/* Takes over json in any case; ERR_FIELD names the member. Unknown members are ignored. */
bool staging_decode(json_t *json, struct staging *ret_staging, struct err *err);
void staging_finish(struct staging *staging);

#endif
