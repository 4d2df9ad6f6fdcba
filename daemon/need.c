/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the need of a job as the core keeps it: a key and a text. What is needed follows from the spec in
 * proto/staging.c. */
#include "daemon/need.h"

#include <stdlib.h>

#include "proto/base/json.h"
#include "proto/staging.h"

bool need_of_spec(const struct job_spec *spec, struct need *ret_need)
{
    *ret_need = (struct need){.json = staging_of_spec(spec)};
    if (ret_need->json == NULL) {
        return false;
    }
    ret_need->text = json_text(ret_need->json);
    ret_need->core = (struct core_need){.key = json_string_value(json_object_get(ret_need->json, "key")),
                                        .text = ret_need->text};
    return true;
}

void need_finish(struct need *need)
{
    free(need->text);
    json_decref(need->json);
    *need = (struct need){0};
}
