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

/* In the order of the spec, which equal jobs have in common. */
static json_t *inputs_of(const struct job_spec *spec, bool *ret_secrets)
{
    json_t *inputs = json_array();
    *ret_secrets = spec->image_secret != NULL;
    for (size_t i = 0; i < spec->input_count; i++) {
        const struct job_input *input = &spec->inputs[i];
        json_t *item = json_object();
        member_put_text(item, "url", input->url);
        member_put_text(item, "sha256", input->sha256);
        member_put_text(item, "secret", input->secret);
        *ret_secrets = *ret_secrets || input->secret != NULL;
        json_array_append_new(inputs, item);
    }
    return inputs;
}

bool staging_is_unpinned(const struct job_spec *spec)
{
    size_t i = 0;
    while (i < spec->input_count && spec->inputs[i].sha256 != NULL) {
        i++;
    }
    return i < spec->input_count;
}

static void key_of(const json_t *json, char out[HASH_HEX + 1])
{
    autofree char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    hash_hex(text, strlen(text), out);
}

json_t *staging_of_spec(const struct job_spec *spec, const char *owner)
{
    bool environment = job_spec_has_environment(spec);
    char requirements[HASH_HEX + 1];
    if (environment) {
        staging_requirements_hash(spec, requirements);
    }
    autojson json_t *blobs = blobs_of(spec, environment ? requirements : NULL);
    bool secrets;
    autojson json_t *inputs = inputs_of(spec, &secrets);
    if (json_array_size(blobs) == 0 && json_array_size(inputs) == 0 && spec->image == NULL) {
        return NULL;
    }
    json_t *json = json_object();
    if (environment) {
        member_put_text(json, "requirements", requirements);
        member_put_text(json, "python_version", spec->environment.python);
        member_put_text(json, "python", spec->python);
    }
    member_put_text(json, "image", spec->image);
    member_put_text(json, "worker_image", spec->worker_image);
    member_put_text(json, "image_secret", spec->image_secret);
    member_put(json, "blobs", json_incref(blobs));
    if (json_array_size(inputs) > 0) {
        member_put(json, "inputs", json_incref(inputs));
    }
    if (secrets) {
        member_put_text(json, "owner", owner);
        member_put_text(json, "project", job_spec_project(spec));
    }
    char key[HASH_HEX + 1];
    key_of(json, key);
    member_put_text(json, "key", key);
    return json;
}

static void copy_members(const json_t *from, const char *const *names, size_t count, json_t *to)
{
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_object_get(from, names[i]);
        if (value != NULL) {
            json_object_set(to, names[i], value);
        }
    }
}

/* The part is of one owner if a secret opens it. */
static void append_part(const json_t *needs, json_t *part, const char *secret, struct text *out)
{
    static const char *const whose[] = {"owner", "project"};
    char key[HASH_HEX + 1];
    if (json_object_get(part, secret) != NULL) {
        copy_members(needs, whose, 2, part);
    }
    key_of(part, key);
    text_printf(out, "%s%s", out->length > 0 ? " " : "", key);
}

/* An image is the same part whichever nodes run it. */
static void append_image(const json_t *needs, json_t *image, struct text *out)
{
    static const char *const secret = "image_secret";
    autojson json_t *part = json_object();
    if (image != NULL) {
        json_object_set(part, "image", image);
        copy_members(needs, &secret, 1, part);
        append_part(needs, part, secret, out);
    }
}

char *staging_part_keys(const json_t *needs)
{
    static const char *const packages[] = {"requirements", "python_version", "python"};
    struct text keys = {0};
    append_image(needs, json_object_get(needs, "image"), &keys);
    append_image(needs, json_object_get(needs, "worker_image"), &keys);
    if (json_object_get(needs, packages[0]) != NULL) {
        autojson json_t *part = json_object();
        copy_members(needs, packages, 3, part);
        append_part(needs, part, "secret", &keys);
    }
    size_t index;
    json_t *input;
    json_array_foreach (json_object_get(needs, "inputs"), index, input) {
        autojson json_t *part = json_copy(input);
        append_part(needs, part, "secret", &keys);
    }
    return keys.bytes;
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

static bool read_image(const json_t *json, struct staging *staging, struct err *err)
{
    return json_read_text(json, "image", &staging->image, err) &&
           json_read_text(json, "worker_image", &staging->worker_image, err) &&
           json_read_text(json, "image_secret", &staging->image_secret, err) &&
           json_read_text(json, "image_auth", &staging->image_auth, err) &&
           (staging->image == NULL || jobspec_check_image("image", staging->image, err)) &&
           (staging->worker_image == NULL || jobspec_check_image("worker_image", staging->worker_image, err));
}

static bool read_inputs(const json_t *json, struct staging *staging, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "inputs", LIMIT_JOB_INPUTS, &array, err)) {
        return false;
    }
    staging->inputs = xzalloc((json_array_size(array) + 1) * sizeof *staging->inputs);
    for (; staging->input_count < json_array_size(array); staging->input_count++) {
        const json_t *item = json_array_get(array, staging->input_count);
        struct staging_input *input = &staging->inputs[staging->input_count];
        if (!member_holder(item, err) || !json_need_text(item, "url", &input->url, err) ||
            !read_hash(item, "sha256", false, &input->sha256, err) ||
            !json_read_text(item, "secret", &input->secret, err) ||
            !json_read_text(item, "value", &input->value, err)) {
            return member_err_inside(err, "inputs", staging->input_count);
        }
    }
    return true;
}

bool staging_decode(json_t *json, struct staging *ret_staging, struct err *err)
{
    struct staging staging = {.json = json};
    bool good = member_holder(json, err) && read_hash(json, "key", true, &staging.key, err) &&
                read_hash(json, "requirements", false, &staging.requirements, err) &&
                json_read_text(json, "python_version", &staging.python_version, err) &&
                json_read_text(json, "python", &staging.python, err) && read_image(json, &staging, err) &&
                read_blobs(json, &staging, err) && read_inputs(json, &staging, err) &&
                json_read_text(json, "owner", &staging.owner, err) &&
                json_read_text(json, "project", &staging.project, err);
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
    free(staging->inputs);
    json_decref(staging->json);
    *staging = (struct staging){0};
}
