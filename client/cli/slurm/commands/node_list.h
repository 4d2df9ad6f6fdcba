/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes in Slurm's short form: "node[0-3,7],login". */
#ifndef CLI_SLURM_NODE_LIST_H
#define CLI_SLURM_NODE_LIST_H

#include <jansson.h>

#include "proto/base/text/text.h"

/* Appends the names, a JSON array of texts, each once and in their order. Names that differ in the number at
 * their end alone share brackets; numbers with zeros before them keep these. */
void node_list_append(const json_t *names, struct text *out);

#endif
