/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: which a job may have, and their values on the way to the nodes of its attempt. */
#ifndef HTTP_SECRETS_H
#define HTTP_SECRETS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/messages.h"

struct server;
struct submitter;
struct vault;

struct secrets {
    struct vault *vault;
    size_t asks; /* changes of secrets that are with the writer */
};

/* Reads the keys from the folder of the database. */
bool secrets_open(struct server *server, struct err *err);
/* Takes NULL. */
void secrets_close(struct secrets *secrets);

/* Whether the submitter may have every secret that the spec names. ERR_FIELD names the first that it may not.
 */
bool secrets_check(const struct submitter *submitter, const struct job_spec *spec, struct err *err);

/* The value of a secret in base64, as a job of this owner and project gets it; null: it is gone, or cannot be
 * opened. New reference. */
json_t *secrets_value(const struct server *server, const char *owner, const char *project, const char *name);

/* Adds the values to the inputs and to the image of a staging that name secrets; null: it is gone. */
void secrets_for_staging(const struct server *server, json_t *staging);

/* The values for an order, as struct order has them; the spec is its job's. NULL: the spec names none. New
 * reference. */
json_t *secrets_for_order(const struct server *server, const struct order *order, const json_t *spec);

#endif
