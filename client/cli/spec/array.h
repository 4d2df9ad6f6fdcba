/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and sweeps as people write and read them: `--array 100%8`, `--sweep lr=0.1,0.01`, "17/100 done". */
#ifndef CLI_ARRAY_H
#define CLI_ARRAY_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/frame/verb.h"
#include "proto/base/err.h"
#include "proto/base/text.h"

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

#endif
