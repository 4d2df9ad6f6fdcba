/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the environment spec of a job to the form of the core: keys and a text. proto/wire/staging.c
 * derives it from the job spec. */
#include "daemon/writer/spec_environment.h"

#include <stdlib.h>

#include "proto/base/text/json.h"
#include "proto/wire/staging.h"

bool spec_environment_of(const struct job_spec *spec, const char *owner,
                         struct spec_environment *ret_environment)
{
    *ret_environment = (struct spec_environment){.json = staging_of_spec(spec, owner)};
    if (ret_environment->json == NULL) {
        return false;
    }
    ret_environment->text = json_text(ret_environment->json);
    ret_environment->parts = staging_part_keys(ret_environment->json);
    ret_environment->core =
        (struct environment_spec){.key = json_string_value(json_object_get(ret_environment->json, "key")),
                                  .text = ret_environment->text,
                                  .parts = ret_environment->parts,
                                  .unpinned = staging_is_unpinned(spec)};
    return true;
}

void spec_environment_finish(struct spec_environment *environment)
{
    free(environment->text);
    free(environment->parts);
    json_decref(environment->json);
    *environment = (struct spec_environment){0};
}
