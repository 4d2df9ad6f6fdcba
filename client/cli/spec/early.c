/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the short form of an early signal, which is Slurm's. It promises to refuse wrong signals and times
 * here, with the remedy. proto/spec/jobspec.c compares the time with the time limit. */
#include "client/cli/spec/early.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/base/text.h"
#include "proto/spec/jobspec_parts.h"

json_t *early_read(const char *field, const char *text, struct err *err)
{
    enum early_signal signal;
    int64_t before_ms = 0;
    size_t length = strcspn(text, "@");
    autofree char *name = xstrndup(text, length);
    if (!jobspec_early_signal_from_text(name, &signal)) {
        err_field(err, ERR_USAGE, field, "USR1@60 for instance",
                  "early signal %s: the signal must be one of: %s", text, JOBSPEC_EARLY_NAMES);
        return NULL;
    }
    bool timed = text[length] == '@';
    if (timed && (!text_to_duration_ms(text + length + 1, &before_ms) || before_ms == 0)) {
        err_field(err, ERR_USAGE, field, "USR1@60 or USR1@2m for instance",
                  "early signal %s: the time before the limit must be a duration above 0", text);
        return NULL;
    }
    json_t *early = json_object();
    json_object_set_new(early, "signal", json_string(early_signal_text(signal)));
    if (timed) {
        json_object_set_new(early, "before_s", json_seconds(before_ms));
    }
    return early;
}
