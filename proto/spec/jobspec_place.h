/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a job spec that say where it may run: GPU types, constraints, nodes to avoid and to exclude.
 * Values are never NULL. */
#ifndef PROTO_JOBSPEC_PLACE_H
#define PROTO_JOBSPEC_PLACE_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* Decodes one type, "H100|A100", or an array of types to one text, in which the first type is preferred. The
 * caller frees it. */
bool jobspec_decode_types(const json_t *value, char **ret_types, struct err *err);

bool jobspec_check_constraints(const json_t *constraints, struct err *err);
/* field is "avoid" or "exclude". */
bool jobspec_check_nodes(const char *field, const json_t *nodes, struct err *err);

/* Makes one text from constraints, the labels that volumes and images need, avoid and exclude (each may be
 * NULL); equal demands have equal texts. Its words are separated by blanks: "zone=a,b" means one of these
 * values, "disk!=hdd" none of these; "avoid:n1,n2", "exclude:n3". The caller frees *ret_terms, which is NULL
 * when nothing is demanded. ERR_FIELD when the demands contradict each other. */
bool jobspec_make_terms(const json_t *constraints, const json_t *volumes, const json_t *avoid,
                        const json_t *exclude, char **ret_terms, struct err *err);

#endif
