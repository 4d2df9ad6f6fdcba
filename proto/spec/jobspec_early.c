/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the early signal of a job: which signals are allowed, and how long before the limit they come. A
 * refusal names the member and an accepted value. The core decides when the signal is sent. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"

bool jobspec_early_signal_from_text(const char *text, enum early_signal *ret_signal)
{
    enum early_signal signal;
    const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
    if (!early_signal_from_text(name, &signal) || signal == EARLY_NONE) {
        return false;
    }
    *ret_signal = signal;
    return true;
}

static bool take_signal(const json_t *value, enum early_signal *ret_signal, struct err *err)
{
    const char *text = json_string_value(value);
    return (text != NULL && jobspec_early_signal_from_text(text, ret_signal)) ||
           err_field(err, ERR_FIELD, "early_signal.signal", "USR1 is what most training programs listen for",
                     "early_signal.signal must be one of: " JOBSPEC_EARLY_NAMES);
}

static bool take_before(const json_t *json, int64_t *ret_ms, struct err *err)
{
    struct err inner;
    return json_read_seconds(json, "before_s", 1, LIMIT_TIME_MS, ret_ms, &inner) ||
           err_field(err, ERR_FIELD, "early_signal.before_s", "60 for instance: a minute before the limit",
                     "early_signal.%s", inner.text);
}

static bool check_names(const json_t *json, struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)json, name, value) {
        if (strcmp(name, "signal") != 0 && strcmp(name, "before_s") != 0) {
            struct nearest nearest = nearest_to(name);
            nearest_try(&nearest, "signal");
            nearest_try(&nearest, "before_s");
            autofree char *path = xprintf("early_signal.%s", name);
            return nearest_refuse(&nearest, path, err);
        }
    }
    return true;
}

bool jobspec_decode_early_signal(const json_t *json, struct job_early_signal *ret_early, struct err *err)
{
    struct job_early_signal early = {.before_ms = DEFAULT_EARLY_MS};
    if (!json_is_object(json)) {
        return err_field(err, ERR_FIELD, "early_signal",
                         "give {\"signal\": \"USR1\", \"before_s\": 60} for instance",
                         "early_signal must be an object");
    }
    if (!check_names(json, err) || !take_signal(json_object_get(json, "signal"), &early.signal, err) ||
        !take_before(json, &early.before_ms, err)) {
        return false;
    }
    *ret_early = early;
    return true;
}
