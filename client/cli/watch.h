/* SPDX-License-Identifier: Apache-2.0 */
/* --watch: shows a list again whenever it changes. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include <stdbool.h>

#include "client/cli/api.h"
#include "client/cli/print.h"
#include "client/cli/verb.h"
#include "proto/base/err.h"
#include "proto/base/text.h"

struct watch {
    /* Appends what is to be seen now; *ret_last: nothing will change any more. */
    bool (*show)(struct api *api, const void *options, struct text *out, bool *ret_last, struct err *err);
    const void *options;
    enum print_format format;
};

/* Adds -w/--watch. */
void watch_option(struct option_table *table, bool *target);

/* Shows once, or until the person has seen enough. On a terminal the picture is redrawn; elsewhere it is
 * written again when it differs, and of jsonl only the lines that differ. A controller that goes away is
 * waited for. */
bool watch_run(struct api *api, const struct watch *watch, bool again, struct err *err);

#endif
