/* SPDX-License-Identifier: Apache-2.0 */
/* The dependencies of a job as people write them: "ID", "ID:afterany". */
#ifndef CLI_AFTER_H
#define CLI_AFTER_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/options.h"

/* Turns the texts in a spec's `after` into {"job", "when"}; one text may stand without a list. */
void after_spell_out(json_t *spec);

/* Adds those of --after. ERR_USAGE. */
bool after_add(json_t *spec, const struct option_list *list, struct err *err);

/* Makes whole ids of the beginnings of ids. Texts for which is_ours says true are left; is_ours may be NULL.
 * The field of an error is after[i]. */
bool after_fill(struct api *api, json_t *spec, bool (*is_ours)(const char *job, const void *closure),
                const void *closure, struct err *err);

/* The job that an item names; NULL where it is not as after_spell_out leaves it. */
const char *after_job(const json_t *item);

/* Puts whole ids in the place of all names, for a check of the rest. */
void after_pretend(json_t *spec);

#endif
