/* SPDX-License-Identifier: Apache-2.0 */
/* --watch: shows a list again whenever it changes. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include <stdbool.h>

#include "client/cli/frame/verb.h"

/* show appends the present picture; *ret_last: nothing will change any more. Shows once, or with -w until
 * the person has seen enough. On a terminal the picture is redrawn; elsewhere it is written again when it
 * differs, and of jsonl only the lines that differ. A controller that goes away is waited for. */
bool watch_run(const struct call *call,
               bool (*show)(const struct call *call, struct text *out, bool *ret_last, struct err *err),
               struct err *err);

#endif
