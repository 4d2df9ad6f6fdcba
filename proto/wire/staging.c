/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the environment spec of a job from its job spec, and encodes and decodes it. Equal environment
 * specs have equal keys, whatever the order of their blobs. A job spec without environment and blobs has
 * none. Core and agent decide which node stages it, and when. */
#include "proto/wire/staging.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"
#include "proto/members.h"

/* --- of a spec --- */

void staging_requirements_text(const struct job_spec *spec, struct text *out)
{
    size_t index;
    json_t *line;
    json_array_foreach ((json_t *)(uintptr_t)spec->environment.requirements, index, line) {
        text_append(out, json_string_value(line));
        text_append(out, "\n");
    }
}

void staging_requirements_hash(const struct job_spec *spec, char out[65])
{
    if (spec->environment.blob != NULL) {
        memcpy(out, spec->environment.blob, HASH_HEX + 1);
        return;
    }
    autotext struct text text = {0};
    staging_requirements_text(spec, &text);
    hash_hex(text.bytes != NULL ? text.bytes : "", text.length, out);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All blobs of a spec, sorted and unique. */
static json_t *blobs_of(const struct job_spec *spec, const char *requirements)
{
    const char *found[LIMIT_FILES + 4];
    size_t count = 0;
    const char *const singles[] = {spec->function.blob, spec->function.modules, spec->bundle.blob,
                                   requirements};
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++) {
        if (singles[i] != NULL) {
            found[count++] = singles[i];
        }
    }
    for (size_t i = 0; i < spec->file_count; i++) {
        if (spec->files[i].blob != NULL) {
            found[count++] = spec->files[i].blob;
        }
    }
    qsort(found, count, sizeof found[0], by_text);
    json_t *blobs = json_array();
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(found[i - 1], found[i]) != 0) {
            json_array_append_new(blobs, json_string(found[i]));
        }
    }
    return blobs;
}

json_t *staging_of_spec(const struct job_spec *spec)
{
    bool environment = job_spec_has_environment(spec);
    char requirements[HASH_HEX + 1];
    if (environment) {
        staging_requirements_hash(spec, requirements);
    }
    autojson json_t *blobs = blobs_of(spec, environment ? requirements : NULL);
    if (json_array_size(blobs) == 0) {
        return NULL;
    }
    json_t *json = json_object();
    if (environment) {
        member_put_text(json, "requirements", requirements);
        member_put_text(json, "python_version", spec->environment.python);
        member_put_text(json, "python", spec->python);
    }
    member_put(json, "blobs", json_incref(blobs));
    autofree char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    char key[HASH_HEX + 1];
    hash_hex(text, strlen(text), key);
    member_put_text(json, "key", key);
    return json;
}

/* --- reading --- */

static bool read_hash(const json_t *json, const char *name, bool need, const char **ret_hash, struct err *err)
{
    const char *hash = NULL;
    if (!json_read_text(json, name, &hash, err)) {
        return false;
    }
    if (hash == NULL ? need : !jobspec_is_hash(hash)) {
        return err_field(err, ERR_FIELD, name, NULL, "%s must be a SHA-256 of 64 lower-case hex digits",
                         name);
    }
    *ret_hash = hash;
    return true;
}

static bool read_blobs(const json_t *json, struct staging *staging, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "blobs", LIMIT_FILES + 4, &array, err)) {
        return false;
    }
    staging->blobs = xzalloc((json_array_size(array) + 1) * sizeof *staging->blobs);
    for (; staging->blob_count < json_array_size(array); staging->blob_count++) {
        const char *hash = json_string_value(json_array_get(array, staging->blob_count));
        if (hash == NULL || !jobspec_is_hash(hash)) {
            err_set(err, ERR_FIELD, "must be a SHA-256 of 64 lower-case hex digits");
            return member_err_inside(err, "blobs", staging->blob_count);
        }
        staging->blobs[staging->blob_count] = hash;
    }
    return true;
}

bool staging_decode(json_t *json, struct staging *ret_staging, struct err *err)
{
    struct staging staging = {.json = json};
    bool good = member_holder(json, err) && read_hash(json, "key", true, &staging.key, err) &&
                read_hash(json, "requirements", false, &staging.requirements, err) &&
                json_read_text(json, "python_version", &staging.python_version, err) &&
                json_read_text(json, "python", &staging.python, err) && read_blobs(json, &staging, err);
    if (!good) {
        staging_finish(&staging);
        return false;
    }
    *ret_staging = staging;
    return true;
}

void staging_finish(struct staging *staging)
{
    free(staging->blobs);
    json_decref(staging->json);
    *staging = (struct staging){0};
}
