/* SPDX-License-Identifier: Apache-2.0 */
/* Commands beside several ranks at once, whose output is collected in memory. */
#ifndef CLI_COLLECT_H
#define CLI_COLLECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct collected {
    int64_t rank;
    struct text output, errors; /* of the command; the first CLIENT_COLLECT_BYTES of each */
    bool failed;                /* it did not run to its end: */
    struct err err;             /* why */
    int exit_code;              /* otherwise: its exit code, 128+N for signal N */
};

/* Runs the command beside each of the ranks, with nothing on its stdin, and waits for all of them. The caller
 * has filled in the ranks, and frees the texts. False: gpuctl cannot wait. */
bool collect_run(struct api *api, const char *job_id, json_t *command, struct collected *items, size_t count,
                 struct err *err);
void collected_finish(struct collected *items, size_t count);

#endif
