/* SPDX-License-Identifier: Apache-2.0 */
/* Files beside a rank of a running job. They come and go through tar, there and here; what runs there is
 * copy.sh. */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"

extern const unsigned char copy_script[];
extern const size_t copy_script_length;

struct live {
    const char *job_id;
    int64_t rank;
    const char *path; /* there, from the rank's working folder; "": the folder itself */
};

/* Both as cp -r copies, in or over what is there. */
bool live_put(struct api *api, const struct live *live, const char *source, struct err *err);
/* Into the target; "-": a file to stdout. */
bool live_get(struct api *api, const struct live *live, const char *target, struct err *err);

#endif
