/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a job spec that say where it may run: GPU types, constraints, nodes to avoid and to exclude.
 * Values are never NULL. */
#ifndef PROTO_JOBSPEC_PLACE_H
#define PROTO_JOBSPEC_PLACE_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* One type, "H100|A100", or an array of types: becomes one text in which the first is preferred. The caller
 * frees it. */
bool jobspec_decode_types(const json_t *value, char **ret_types, struct err *err);

bool jobspec_check_constraints(const json_t *constraints, struct err *err);
/* field is "avoid" or "exclude". */
bool jobspec_check_nodes(const char *field, const json_t *nodes, struct err *err);

/* What constraints, avoid and exclude (each may be NULL) come to, as one text; equal demands have equal
 * texts. Its words are parted by blanks: "zone=a,b" one of these, "disk!=hdd" none of these, "avoid:n1,n2",
 * "exclude:n3". *ret_terms is the caller's to free, NULL when nothing is demanded. ERR_FIELD when they
 * contradict each other. */
bool jobspec_make_terms(const json_t *constraints, const json_t *avoid, const json_t *exclude,
                        char **ret_terms, struct err *err);

#endif
