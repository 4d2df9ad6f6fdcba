/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a job spec as people write them: dependencies ("ID:afterany"), arrays and sweeps (`--array
 * 100%8`,
 * `--sweep lr=0.1,0.01`), early signals ("USR1@60"). */
#ifndef CLI_SHORT_FORMS_H
#define CLI_SHORT_FORMS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/frame/verb.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/settings/options.h"
#include "proto/base/text/text.h"

/* --- dependencies --- */

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

/* --- arrays and sweeps --- */

struct array_options {
    const char *count; /* "N", "N%P" or, beside a sweep, "%P"; NULL: not given */
    struct option_list sweep;
};

/* Writes them into a spec, over what a job file says. ERR_USAGE names the option. */
bool array_put(const struct array_options *options, json_t *spec, struct err *err);

/* true when the spec is that of more than one job. */
bool array_asked(const json_t *spec);

/* "17/100 done, 8 running, 2 failed" of a job's member `array`; nothing where that is null. */
void array_say(const json_t *array, struct text *out);

/* --- early signals --- */

/* "USR1@60", "SIGUSR1@2m", "USR1" as the field of a job spec. New reference; NULL with ERR_USAGE, which names
 * the option or the key that it was written under. */
json_t *early_read(const char *field, const char *text, struct err *err);

#endif
